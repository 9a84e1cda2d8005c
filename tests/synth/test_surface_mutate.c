/* test_surface_mutate.c - bugs in public programs: one line each, all kinds, and one line's edit leads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "synth/surface/surface.h"
#include "synth/surface/surface_mutate.h"
#include "task/repair_text.h"

enum { PROGRAMS = 600, MOST = 20 };

struct seen {
    const char *name[MOST];
    int n;
};

static void note(struct seen *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], name))
            return;
    assert_true(s->n < MOST);
    s->name[s->n++] = name;
}

/* Lines, and how many of them stand where the other has the same one, from both ends. */
static int lines_that_differ(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), head = 0, tail = 0;
    int lines = 0;

    while (head < na && head < nb && a[head] == b[head])
        head++;
    while (tail < na - head && tail < nb - head && a[na - 1 - tail] == b[nb - 1 - tail])
        tail++;
    for (size_t i = head; i < na - tail; i++)
        lines += a[i] == '\n' && i + 1 < na - tail;
    return lines;
}

static void one_line_goes_wrong_and_comes_back(void **state)
{
    (void)state;
    const struct surface_limits l = {.chains = 0.4};
    struct seen seen = {.n = 0};

    for (uint64_t i = 0; i < PROGRAMS; i++) {
        const struct surface_mutation *m, *again;
        struct surface s;
        struct rng r;
        char *mutant, *same, *edits, *response, *back, *whole;

        surface_draw(11, i, &l, &s);
        rng_seed(&r, 3, i);
        mutant = surface_mutate(s.program, &r, &m);
        rng_seed(&r, 3, i);
        same = surface_mutate(s.program, &r, &again);
        assert_non_null(mutant);
        assert_string_equal(mutant, same);
        assert_string_not_equal(mutant, s.program);
        assert_int_equal(lines_that_differ(mutant, s.program), 0);
        note(&seen, m->name);
        edits = mend_edits(mutant, s.program, MEND_LINES);
        assert_non_null(edits);
        response = xasprintf("```python\n%s```", mutant), whole = xasprintf("```python\n%s```", s.program);
        back = mend_apply(response, edits);
        assert_string_equal(back, whole);
        free(mutant), free(same), free(edits), free(response), free(back), free(whole);
        surface_free(&s);
    }
    assert_int_equal(seen.n, 12);
}

static void what_holds_no_line_stays(void **state)
{
    (void)state;
    const struct surface_mutation *m;
    struct rng r;

    rng_seed(&r, 1, 1);
    assert_null(surface_mutate("", &r, &m));
    assert_null(surface_mutate("class ModelNew:\n    pass\n", &r, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_line_goes_wrong_and_comes_back),
                                       cmocka_unit_test(what_holds_no_line_stays)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
