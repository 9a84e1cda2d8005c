/* test_wording.c - other words for the same: names never collide, formulas are the registry's, questions come in eight
 * forms whose answers are whole, and the estimate of entropy tells noise from repetition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "synth/entropy.h"
#include "synth/knowledge.h"
#include "synth/knowledge_public.h"
#include "synth/program.h"
#include "synth/surface/kind.h"
#include "synth/surface/surface.h"
#include "synth/wording.h"

/* ---- names ---- */

struct ids {
    const char *v[256];
    int n;
};

static void add_id(struct ids *s, const char *id)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->v[i], id))
            return;
    assert_true(s->n < 256);
    s->v[s->n++] = id;
}

static void ids_of_expr(struct ids *s, const struct ax *x)
{
    if (x && x->kind == AX_ID)
        add_id(s, x->s);
    for (int i = 0; x && i < x->n; i++)
        ids_of_expr(s, x->kid[i]);
}

static void ids_of(struct ids *s, const struct as *x)
{
    for (; x; x = x->next) {
        if (x->kind == AS_DECL)
            add_id(s, x->s);
        ids_of_expr(s, x->e), ids_of_expr(s, x->e2);
        ids_of(s, x->init), ids_of(s, x->body), ids_of(s, x->other);
    }
}

static int count_ids(const struct afun *f, const char *word)
{
    struct ids s = {.n = 0};
    int found = 0;

    for (; f; f = f->next) {
        for (int i = 0; i < f->n_param; i++)
            add_id(&s, f->param[i].name);
        ids_of(&s, f->body);
    }
    for (int i = 0; i < s.n; i++)
        found += word && !strcmp(s.v[i], word);
    return word ? found : s.n;
}

/* Two names that become one would change what a program means. */
static void names_never_meet(void **state)
{
    struct dag_table *t = dag_table_new(NULL);
    struct dag *g = malloc(sizeof *g);
    struct kernels *k = malloc(sizeof *k);
    struct dag_limits l = {.l = {.max_numel = 512, .max_work = 1 << 14, .dtypes = 1}, .min_ops = 1, .max_ops = 3,
                           .anchors = 2};
    struct program_style style = {.sizes = SIZES_PARAMS, .terse = true};
    struct err e = ERR_INIT;
    int renamed = 0;
    struct rng r;
    (void)state;

    rng_seed(&r, 8, 0);
    for (int i = 0; i < 200; i++) {
        struct arena a = {0};
        struct afun *f;
        dag_draw(t, &r, &l, g);
        fuse(g, FUSE_ALL, &a, k);
        if (fuse_schedule(k, &r) == 0 && (f = program_cuda(g, k, &style, &a, &e))) {
            int before = count_ids(f, NULL), sizes = count_ids(f, "D1");
            wording_names(f, 1 + i % (WORDINGS - 1));
            assert_int_equal(count_ids(f, NULL), before);
            renamed += sizes && !count_ids(f, "D1");
        }
        arena_free(&a);
    }
    assert_true(renamed > 30);
    dag_table_free(t);
    free(g), free(k);
}

/* ---- formulas ---- */

static void check_formula(const char *op, double constant, const char *want)
{
    struct op_call c = {.op = op_find_row(op), .n_in = 1, .f = {constant}};
    struct buf b;

    buf_init(&b, 4096);
    assert_int_equal(wording_formula(&c, &b), want != NULL);
    assert_string_equal(b.n ? b.p : "", want ? want : "");
    buf_free(&b);
}

static void formulas_are_the_registrys(void **state)
{
    (void)state;
    check_formula("hardswish", 0, "hardswish(x) = x * min(max(x + 3, 0), 6) / 6");
    check_formula("atan", 0, NULL);
    check_formula("clamp_min", 0.25, "clamp_min(x) = max(x, 0.25)");
    check_formula("amax", 0, "amax: the largest along the reduced axes");
}

/* ---- questions ---- */

static const char *said(const json_t *v, int i)
{
    return json_str(json_array_get(json_object_get(v, "messages"), (size_t)i), "content", "");
}

static void check_answer(const char *ask, const char *answer)
{
    assert_true(strlen(answer) > 1);
    if (strstr(ask, "__device__")) {
        assert_non_null(strstr(answer, "return "));
        assert_null(strchr(answer, '['));
    }
    if (strstr(ask, "// ..."))
        assert_true(strstr(ask, "__global__ void") && !strstr(answer, "__global__"));
    if (strstr(ask, "As one expression") || strstr(ask, "__device__"))
        assert_true(!strstr(ask, "index_select") && !strstr(ask, "torch.gather"));
    if (strstr(ask, "formula"))
        assert_null(strstr(answer, "```"));
}

static void questions_have_eight_forms(void **state)
{
    struct problem_options o = {.seed = 3, .max_ops = 2, .max_numel = 512, .dtypes = 1,
                                .prompt_format.wordings = WORDINGS};
    struct problem_source s;
    json_t *forms = json_object();
    (void)state;

    problem_source_init(&s, &o);
    for (int i = 0; i < 400; i++) {
        json_t *v = knowledge_record(&s, i);
        char first[80];
        assert_non_null(v);
        snprintf(first, sizeof first, "%.*s", (int)strcspn(said(v, 0), "\n"), said(v, 0));
        json_object_set_new(forms, first, json_true());
        check_answer(said(v, 0), said(v, 1));
        json_decref(v);
    }
    assert_int_equal(json_object_size(forms), WORDINGS);
    json_decref(forms);
    problem_source_free(&s);
}

/* Each known operator that is one kernel is asked about: the only thing that training sees of it. */
static void known_operators_are_asked_about(void **state)
{
    struct problem_options o = {.seed = 3, .max_ops = 2, .max_numel = 512, .dtypes = 1};
    json_t *asked = json_object(), *op;
    int n, known = 0, found = 0;
    const struct opdef *const *row = op_rows(&n);
    struct problem_source s;
    size_t k;
    (void)state;

    problem_source_init(&s, &o);
    for (int i = 0; i < 3000; i++) {
        json_t *v = knowledge_record(&s, i);
        json_array_foreach(json_object_get(json_object_get(v, "task"), "ops"), k, op)
            json_object_set_new(asked, json_string_value(op), json_true());
        json_decref(v);
    }
    for (int i = 0; i < n; i++)
        if (heldout_class(row[i]) == OP_KNOWN) {
            known++, found += json_object_get(asked, row[i]->name) != NULL;
            if (!json_object_get(asked, row[i]->name))
                print_message("not asked about: %s\n", row[i]->name);
        } else if (heldout_class(row[i]) == OP_UNSEEN) {
            assert_null(json_object_get(asked, row[i]->name));
        }
    assert_true(found >= known - 3);
    json_decref(asked);
    problem_source_free(&s);
}

/* ---- the same for tasks as people write them ---- */

/* A frame with the answer in its gap is a kernel: braces close, and nothing but its statements was asked. */
static void check_public_answer(const char *ask, const char *answer)
{
    int open = 0;

    assert_non_null(strstr(ask, "class Model"));
    assert_null(strstr(ask, "get_inputs"));
    assert_true(!strstr(answer, "torch::Tensor ") && !strstr(answer, "ModelNew") && !strstr(answer, "return v;"));
    if (strstr(ask, "declared?")) {
        assert_int_equal(strncmp(answer, "```cuda\n__global__ void ", 24), 0);
        return;
    }
    assert_null(strstr(answer, "__global__"));
    for (const char *c = answer; *c; c++)
        open += *c == '{' ? 1 : *c == '}' ? -1 : 0;
    assert_int_equal(open, 0);
    if (strstr(ask, "Fill in")) {
        const char *frame = strstr(ask, "__global__");
        assert_non_null(strstr(frame, "// ..."));
        for (const char *c = frame; *c; c++)
            open += *c == '{' ? 1 : *c == '}' ? -1 : 0;
        assert_int_equal(open, 0);
    }
}

static void public_questions_are_of_taught_and_known_kinds(void **state)
{
    static const char celu[] = "v = fmaxf(v, 0.0f) + fminf(alpha * expm1f(v / alpha), 0.0f);\n";
    struct problem_options o = {.seed = 3, .max_ops = 2, .max_numel = 512, .dtypes = 1, .public = true};
    json_t *asked = json_object();
    struct problem_source s;
    const char *name;
    int known = 0, right = 0;
    (void)state;

    problem_source_init(&s, &o);
    for (int i = 0; i < 600; i++) {
        json_t *v = knowledge_public_record(&s, i);
        assert_non_null(v);
        name = json_string_value(json_array_get(json_object_get(json_object_get(v, "task"), "ops"), 0));
        assert_true(heldout_name_class(kind_operator(name)) != OP_UNSEEN);
        known += heldout_name_class(kind_operator(name)) == OP_KNOWN;
        json_object_set_new(asked, name, json_true());
        check_public_answer(said(v, 0), said(v, 1));
        right += !strcmp(name, "celu") && strstr(said(v, 1), celu);
        json_decref(v);
    }
    assert_true(known > 240 && known < 360 && right > 0);
    for (int i = 0; (name = surface_kind(i)); i++)
        if (heldout_name_class(kind_operator(name)) == OP_KNOWN && !json_object_get(asked, name))
            fail_msg("nothing was asked about '%s'", name);
    json_decref(asked);
    problem_source_free(&s);
}

/* ---- entropy ---- */

static double nats_a_byte(int distinct, int records)
{
    struct entropy *e = entropy_new();
    struct rng r;
    json_t *v;
    double x;

    rng_seed(&r, 4, 0);
    for (int i = 0; i < records; i++) {
        char text[1001];
        for (int k = 0; k < 1000; k++)
            text[k] = (char)('A' + rng_below(&r, (uint64_t)distinct));
        text[1000] = 0;
        entropy_add(e, "write", text);
    }
    v = entropy_json(e);
    assert_int_equal(json_i64(v, "records", 0), records);
    assert_int_equal(json_i64(v, "distinct_requests", 0), 1);
    assert_int_equal(json_i64(v, "distinct_answers", 0), distinct == 1 ? 1 : records);
    x = json_f64(v, "nats_per_byte", -1);
    json_decref(v);
    entropy_free(e);
    return x;
}

static void entropy_tells_noise_from_repetition(void **state)
{
    (void)state;
    assert_true(nats_a_byte(1, 400) < 0.01);
    assert_true(fabs(nats_a_byte(2, 400) - log(2)) < 0.1);
    assert_true(fabs(nats_a_byte(16, 400) - log(16)) < 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_never_meet),           cmocka_unit_test(formulas_are_the_registrys),
        cmocka_unit_test(questions_have_eight_forms), cmocka_unit_test(known_operators_are_asked_about),
        cmocka_unit_test(public_questions_are_of_taught_and_known_kinds),
        cmocka_unit_test(entropy_tells_noise_from_repetition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
