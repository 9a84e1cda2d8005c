/* test_surface_mutate.c - bugs in public programs: one line each, all kinds, and one line's edit leads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "synth/surface/surface.h"
#include "synth/surface/surface_mutate.h"
#include "synth/surface/surface_wiring.h"
#include "synth/surface/surface_window.h"
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

/* Of these the way from forward() to the kernel is wrong, in several places; a convolution of one axis has one size. */
static bool of_several_lines(const char *name)
{
    return !strncmp(name, "parameter_", 10) || !strcmp(name, "function_renamed");
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
        assert_true(!strcmp(m->name, "other_sizes") ||
                    of_several_lines(m->name) == (lines_that_differ(mutant, s.program) > 0));
        note(&seen, m->name);
        edits = mend_edits(mutant, s.program, MEND_LINES);
        assert_non_null(edits);
        response = xasprintf("```python\n%s```", mutant), whole = xasprintf("```python\n%s```", s.program);
        back = mend_apply(response, edits);
        assert_string_equal(back, whole);
        free(mutant), free(same), free(edits), free(response), free(back), free(whole);
        surface_free(&s);
    }
    assert_int_equal(seen.n, 16);
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

/* A program by its four places, and the name of its function. */
static const char *wired(const char *kernel, const char *function, const char *launch, const char *call,
                         const char *name)
{
    static char text[2000];

    snprintf(text, sizeof text, "__global__ void celu_kernel(const float* x, float* out, int n%s) {\n"
             "    out[0] = alpha * w[0];\n}\n\ntorch::Tensor celu_forward(torch::Tensor x%s) {\n"
             "    celu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n%s);\n}\n"
             "    m.def(\"%s\", &%s);\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n"
             "        return ops.%s(x%s)\n", kernel, function, launch, name, name, name, call);
    return text;
}

/* All that the kind makes of the program, each once. */
static int all_of(surface_wiring *kind, const char *program, char **ret)
{
    int n = 0;

    for (uint64_t seed = 0; seed < 400; seed++) {
        struct rng r;
        char *mutant;
        bool had = false;

        rng_seed(&r, 8, seed);
        mutant = kind(&r, program);
        for (int i = 0; i < n && mutant; i++)
            had |= !strcmp(ret[i], mutant);
        if (mutant && !had)
            ret[n++] = mutant;
        else
            free(mutant);
    }
    return n;
}

static void free_all(char **list, int n)
{
    while (n > 0)
        free(list[--n]);
}

static bool holds(char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

static void parameters_lose_their_way(void **state)
{
    (void)state;
    char *whole = xstrdup(wired(", float alpha, const float* w", ", float alpha, torch::Tensor w",
                                ", alpha, w.data_ptr<float>()", ", self.act.alpha, self.w", "celu_forward"));
    char *list[400];
    int n = all_of(surface_wiring_drop, whole, list);

    assert_int_equal(n, 2);
    assert_true(holds(list, n, wired(", const float* w", ", torch::Tensor w", ", w.data_ptr<float>()", ", self.w",
                                     "celu_forward")));
    assert_true(holds(list, n, wired(", float alpha", ", float alpha", ", alpha", ", self.act.alpha", "celu_forward")));
    free_all(list, n);
    n = all_of(surface_wiring_add, whole, list);
    for (int own = 0; own < 2; own++)
        assert_true(holds(list, n, wired(", float alpha, const float* w, float beta",
                                         ", float alpha, torch::Tensor w, float beta",
                                         ", alpha, w.data_ptr<float>(), beta",
                                         own ? ", self.act.alpha, self.w, self.beta"
                                             : ", self.act.alpha, self.w, self.act.beta", "celu_forward")));
    free_all(list, n);
    n = all_of(surface_wiring_rename, whole, list);
    assert_true(holds(list, n, wired(", float alpha, const float* w", ", float alpha, torch::Tensor w",
                                     ", alpha, w.data_ptr<float>()", ", self.act.alpha, self.w", "elu_forward")));
    free_all(list, n);
    free(whole);
}

static void sizes_become_those_of_the_other_convolution(void **state)
{
    (void)state;
    static const char plain[] = "        return " WINDOW_CONV_SIZE ";\n";
    static const char up[] = "        return " WINDOW_TRANSPOSED_SIZE ";\n";
    static const char up_alone[] = "        return (x.size(2 + i) - 1) * stride[i] - 2 * padding[i] + dilation[i] * "
                                   "(w.size(2 + i) - 1) + 1;\n";
    struct rng r;
    char *mutant;

    rng_seed(&r, 1, 1);
    assert_string_equal(mutant = surface_wiring_sizes(&r, plain), up_alone);
    free(mutant);
    assert_string_equal(mutant = surface_wiring_sizes(&r, up), plain);
    free(mutant);
    assert_null(surface_wiring_sizes(&r, "    int n = x.numel();\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_line_goes_wrong_and_comes_back),
                                       cmocka_unit_test(what_holds_no_line_stays),
                                       cmocka_unit_test(parameters_lose_their_way),
                                       cmocka_unit_test(sizes_become_those_of_the_other_convolution)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
