/* expression.c - see expression.h. A formula is drawn twice at once: as PyTorch's text and as C's. */
#include "synth/surface/expression.h"

#include <string.h>

/* How tightly the outermost operator of a text binds. */
enum binding { BIND_CALL, BIND_PRODUCT, BIND_SUM, BIND_CHOICE };

struct formula {
    const char *py, *c;
    enum binding py_binds, c_binds;
    bool leaf, positive;
};

/* A function of one formula: texts with one %s each. */
struct function_row {
    const char *py, *c;
    enum binding c_binds; /* of the result in C; PyTorch's is a call */
    bool positive;
};

static const struct function_row functions[] = {
    {"torch.tanh(%s)", "tanhf(%s)", BIND_CALL, false},
    {"torch.sigmoid(%s)", "1.0f / (1.0f + expf(-(%s)))", BIND_PRODUCT, true},
    {"torch.relu(%s)", "fmaxf(%s, 0.0f)", BIND_CALL, true},
    {"F.relu(%s)", "fmaxf(%s, 0.0f)", BIND_CALL, true},
    {"torch.abs(%s)", "fabsf(%s)", BIND_CALL, true},
    {"torch.exp(-torch.abs(%s))", "expf(-fabsf(%s))", BIND_CALL, true},
    {"torch.erf(%s)", "erff(%s)", BIND_CALL, false},
    {"torch.neg(%s)", "-(%s)", BIND_CALL, false},
};

/* Functions that need their operand twice, or want it small: of the value alone. $ is the value. */
static const struct function_row powers[] = {
    {"$ ** 2", "$ * $", BIND_PRODUCT, true},
    {"torch.square($)", "$ * $", BIND_PRODUCT, true},
    {"$ * $", "$ * $", BIND_PRODUCT, true},
    {"$ ** 3", "$ * $ * $", BIND_PRODUCT, false},
    {"torch.sin($)", "sinf($)", BIND_CALL, false},
    {"torch.cos($)", "cosf($)", BIND_CALL, false},
    {"torch.sqrt($ * $ + 1.0)", "sqrtf($ * $ + 1.0f)", BIND_CALL, true},
    {"torch.exp(-$ * $)", "expf(-$ * $)", BIND_CALL, true},
    {"F.silu($)", "$ / (1.0f + expf(-$))", BIND_PRODUCT, false},
    {"torch.sigmoid(2.0 * $)", "1.0f / (1.0f + expf(-2.0f * $))", BIND_PRODUCT, true},
};

#define N_ROWS(t) ((int)(sizeof(t) / sizeof *(t)))

static const char *formula_fill(struct making *m, const char *text, char hole, const char *with)
{
    const char *ret = "";

    for (const char *at; (at = strchr(text, hole)); text = at + (hole == '%' ? 2 : 1))
        ret = making_format(m, "%s%.*s%s", ret, (int)(at - text), text, with);
    return making_format(m, "%s%s", ret, text);
}

static const char *formula_within(struct making *m, const char *text, enum binding binds, enum binding most)
{
    return binds > most ? making_format(m, "(%s)", text) : text;
}

static const char *formula_number(struct making *m)
{
    return making_pick(m, "0.5 2.0 1.5 0.1 3.0 0.25 0.75 1.2 0.3 2.5 0.8", ' ');
}

static struct formula formula_call(struct making *m, const struct formula *f)
{
    const struct function_row *t = &functions[making_draw(m, 0, N_ROWS(functions) - 1)];

    return (struct formula){formula_fill(m, t->py, '%', f->py),
                            formula_fill(m, t->c, '%', f->c),
                            BIND_CALL,
                            t->c_binds,
                            false,
                            t->positive};
}

static struct formula formula_power(struct making *m, const struct formula *x)
{
    const struct function_row *t = &powers[making_draw(m, 0, N_ROWS(powers) - 1)];
    enum binding py = !strncmp(t->py, "$ *", 3) ? BIND_PRODUCT : BIND_CALL;

    return (struct formula){
        formula_fill(m, t->py, '$', x->py), formula_fill(m, t->c, '$', x->c), py, t->c_binds, false, t->positive};
}

/* "f + 0.5", "2.0 * f", "f / 1.5", "1.5 - f" */
static struct formula formula_constant(struct making *m, const struct formula *f)
{
    const char *n = formula_number(m), *py = f->py, *c = f->c;
    int way = making_draw(m, 0, 4);
    enum binding most = way < 2    ? BIND_SUM
                        : way == 4 ? BIND_PRODUCT
                                   : BIND_CALL,
                 binds = way < 2 || way == 4 ? BIND_SUM : BIND_PRODUCT;
    static const char *const forms[] = {"%s + %s%s", "%s - %s%s", "%s * %s%s", "%s / %s%s", NULL};

    py = formula_within(m, py, f->py_binds, most), c = formula_within(m, c, f->c_binds, most);
    if (way == 4)
        return (struct formula){
            making_format(m, "%s - %s", n, py), making_format(m, "%sf - %s", n, c), binds, binds, false, false};
    return (struct formula){making_format(m, forms[way], py, n, ""),
                            making_format(m, forms[way], c, n, "f"),
                            binds,
                            binds,
                            false,
                            f->positive && way != 1};
}

static struct formula formula_clamp(struct making *m, const struct formula *f)
{
    const char *lo = making_pick(m, "-1.0 -0.5 -2.0 -1.5", ' '), *hi = making_pick(m, "1.0 0.5 2.0 1.5", ' ');
    const char *py = making_pick(m, "torch.clamp(%s, %s, %s)|torch.clamp(%s, min=%s, max=%s)", '|');

    return (struct formula){making_format(m, py, f->py, lo, hi),
                            making_format(m, "fminf(fmaxf(%s, %sf), %sf)", f->c, lo, hi),
                            BIND_CALL,
                            BIND_CALL,
                            false,
                            false};
}

/* "a + b", "a - b", "a * b" */
static struct formula formula_pair(struct making *m, const struct formula *a, const struct formula *b)
{
    const char *op = making_pick(m, "+ - * *", ' ');
    bool product = *op == '*';
    enum binding left = product ? BIND_PRODUCT : BIND_SUM, right = *op == '+' ? BIND_SUM
                                                                   : product  ? BIND_CALL
                                                                              : BIND_PRODUCT;

    return (struct formula){making_format(m, "%s %s %s", formula_within(m, a->py, a->py_binds, left), op,
                                          formula_within(m, b->py, b->py_binds, right)),
                            making_format(m, "%s %s %s", formula_within(m, a->c, a->c_binds, left), op,
                                          formula_within(m, b->c, b->c_binds, right)),
                            left,
                            left,
                            false,
                            a->positive && b->positive && *op != '-'};
}

/* "a / (1.0 + x ** 2)": the denominator is above 0. */
static struct formula formula_quotient(struct making *m, const struct formula *a, const struct formula *x)
{
    static const struct function_row under[] = {
        {"(%s + $ ** 2)", "(%sf + $ * $)", BIND_CALL, true},
        {"(%s + $ * $)", "(%sf + $ * $)", BIND_CALL, true},
        {"(%s + torch.exp(-torch.abs($)))", "(%sf + expf(-fabsf($)))", BIND_CALL, true},
        {"(%s + torch.relu($))", "(%sf + fmaxf($, 0.0f))", BIND_CALL, true},
    };
    const struct function_row *t = &under[making_draw(m, 0, N_ROWS(under) - 1)];
    const char *n = making_pick(m, "1.0 2.0 0.5 1.5", ' ');

    return (struct formula){making_format(m, "%s / %s", formula_within(m, a->py, a->py_binds, BIND_PRODUCT),
                                          formula_fill(m, formula_fill(m, t->py, '%', n), '$', x->py)),
                            making_format(m, "%s / %s", formula_within(m, a->c, a->c_binds, BIND_PRODUCT),
                                          formula_fill(m, formula_fill(m, t->c, '%', n), '$', x->c)),
                            BIND_PRODUCT,
                            BIND_PRODUCT,
                            false,
                            a->positive};
}

static struct formula formula_draw(struct making *m, const struct formula *x, int depth);

/* "torch.where(x > 0.5, a, b)"; both are formulas, so that it is no threshold. */
static struct formula formula_choice(struct making *m, const struct formula *x, int depth)
{
    struct formula a = formula_draw(m, x, depth - 1), b = formula_draw(m, x, depth - 1);
    const char *op = making_pick(m, "> < >", ' '), *n = making_pick(m, "0 0.5 1.0 0.25", ' ');
    const char *f = strchr(n, '.') ? "f" : ".0f";

    return (struct formula){making_format(m, "torch.where(%s %s %s, %s, %s)", x->py, op, n, a.py, b.py),
                            making_format(m, "%s %s %s%s ? %s : %s", x->c, op, n, f,
                                          formula_within(m, a.c, a.c_binds, BIND_SUM),
                                          formula_within(m, b.c, b.c_binds, BIND_SUM)),
                            BIND_CALL,
                            BIND_CHOICE,
                            false,
                            a.positive && b.positive};
}

/* Never the leaf alone. */
static struct formula formula_draw(struct making *m, const struct formula *x, int depth)
{
    struct formula a, b;
    int way = making_draw(m, 0, depth > 1 ? 9 : 3);

    a = depth > 1 && making_chance(m, 0.7) ? formula_draw(m, x, depth - 1) : *x;
    switch (way) {
    case 0:
        return formula_power(m, x);
    case 1:
        return formula_constant(m, &a);
    case 2:
    case 4:
        return formula_call(m, &a);
    case 3:
        return formula_clamp(m, &a);
    case 5:
        return formula_quotient(m, &a, x);
    case 6:
        return formula_choice(m, x, depth);
    default:
        break;
    }
    b = formula_draw(m, x, depth - 1);
    return making_chance(m, 0.5) ? formula_pair(m, &a, &b) : formula_pair(m, &b, &a);
}

static struct formula formula_leaf(const char *py, const char *c)
{
    return (struct formula){py, c, BIND_CALL, BIND_CALL, true, false};
}

static bool formula_is_magnitude(const struct formula *f)
{
    return !strncmp(f->c, "fabsf(", 6);
}

static struct kind *expression_kind(struct making *m, const char *name, const char *family, enum form form,
                                    const char *say)
{
    struct kind *k = arena_alloc(&m->a, sizeof *k);

    *k = (struct kind){.name = name, .family = family, .say = say, .form = form, .flags = KIND_CHAIN};
    if (form == FORM_REDUCE || form == FORM_ROW || form == FORM_SCAN)
        k->attr[0] = (struct kind_attr){"dim", "int", NULL, "axis"};
    return k;
}

/* "gate = torch.sigmoid(x); x * gate + 0.5": outside of chains a third have a first statement. */
static struct kind *expression_draw_map(struct making *m)
{
    struct kind *k = expression_kind(m, "map_expression", "math", FORM_MAP,
                                     "an elementwise formula|a custom activation|an elementwise expression");
    struct formula x = formula_leaf("$x", "v"), first, all, named;
    const char *name = making_pick(m, "gate|inner|scaled|shifted|curve|inner", '|');

    if (m->chain || !making_chance(m, 0.35)) {
        all = formula_draw(m, &x, making_draw(m, 2, m->chain ? 2 : 3));
        k->spell[0] = all.py, k->code = making_format(m, "v = %s;\n", all.c);
        return k;
    }
    first = formula_draw(m, &x, 2);
    named = formula_leaf(name, name);
    named = making_chance(m, 0.6) ? formula_pair(m, &x, &named) : formula_draw(m, &named, 1);
    all = making_chance(m, 0.5) ? formula_constant(m, &named) : named;
    k->spell[0] = making_format(m, "%s = %s; %s", name, first.py, all.py);
    k->code = making_format(m, "float %s = %s;\nv = %s;\n", name, first.c, all.c);
    return k;
}

/* How an axis is reduced. */
struct reducing {
    const char *py, *start, *step, *result; /* step: with the formula's C text */
    bool positive;
};

static const struct reducing *expression_draw_reducing(struct making *m)
{
    static const struct reducing all[] = {
        {"torch.sum(%s, dim=$dim", "float sum = 0.0f;\n", "sum += %s;\n", "sum", true},
        {"torch.mean(%s, dim=$dim", "float sum = 0.0f;\n", "sum += %s;\n", "sum / n", true},
        {"torch.amax(%s, dim=$dim", "float best = -INFINITY;\n", "best = fmaxf(best, %s);\n", "best", true},
    };

    return &all[making_draw(m, 0, 2)];
}

static const char *expression_loop(struct making *m, const struct reducing *r, const struct formula *f)
{
    return making_format(m, "%sfor (int j = 0; j < n; j++) {\nfloat v = row[j * inner];\n%s}\n", r->start,
                         formula_fill(m, r->step, '%', f->c));
}

/* What is summed: never the value alone, nor magnitudes. */
static struct formula expression_draw_summand(struct making *m)
{
    struct formula x = formula_leaf("$x", "v"), f;

    do
        f = formula_draw(m, &x, making_draw(m, 1, 2));
    while (formula_is_magnitude(&f));
    return f;
}

static struct kind *expression_draw_reduce(struct making *m)
{
    struct kind *k = expression_kind(m, "reduce_expression", "reduction", FORM_REDUCE,
                                     "a reduction of a formula|a custom statistic along an axis");
    const struct reducing *r = expression_draw_reducing(m);
    struct formula f = expression_draw_summand(m);
    struct formula s = formula_leaf(making_format(m, "%s$keep)", formula_fill(m, r->py, '%', f.py)), r->result);

    s.c_binds = strchr(r->result, '/') ? BIND_PRODUCT : BIND_CALL;
    if (making_chance(m, 0.4))
        s = formula_constant(m, &s);
    k->spell[0] = s.py;
    k->code = making_format(m, "%sout[i] = %s;\n", expression_loop(m, r, &f), s.c);
    return k;
}

/* "total = torch.sum(x ** 2, dim=1, keepdim=True); x / (total + 0.5)" */
static struct kind *expression_draw_row(struct making *m)
{
    struct kind *k = expression_kind(m, "row_expression", "norm", FORM_ROW,
                                     "a custom normalisation|scaling by a statistic of the row");
    const struct reducing *r = expression_draw_reducing(m);
    struct formula f = expression_draw_summand(m), x = formula_leaf("$x", "row[j * inner]"), s, all;
    const char *name = making_pick(m, "stat|total|level|s|energy", '|');

    s = formula_leaf(name, name);
    if (f.positive && making_chance(m, 0.5)) {
        const char *n = making_pick(m, "0.5 1.0 0.1 2.0", ' ');
        all = (struct formula){making_format(m, "$x / (%s + %s)", name, n),
                               making_format(m, "row[j * inner] / (%s + %sf)", name, n),
                               BIND_PRODUCT,
                               BIND_PRODUCT,
                               false,
                               false};
    } else {
        all = formula_pair(m, &x, &s);
    }
    if (making_chance(m, 0.35))
        all = formula_call(m, &all);
    k->spell[0] = making_format(m, "%s = %s, keepdim=True); %s", name, formula_fill(m, r->py, '%', f.py), all.py);
    k->code = making_format(m, "%sfloat %s = %s;\nfor (int j = 0; j < n; j++) {\ny[j * inner] = %s;\n}\n",
                            expression_loop(m, r, &f), name, r->result, all.c);
    return k;
}

static struct kind *expression_draw_scan(struct making *m)
{
    struct kind *k = expression_kind(m, "scan_expression", "scan", FORM_SCAN,
                                     "a running total of a formula|cumulative sum of transformed values");
    struct formula f = expression_draw_summand(m), s;

    s = formula_leaf(making_format(m, "torch.cumsum(%s, dim=$dim)", f.py), "sum");
    if (making_chance(m, 0.4))
        s = formula_constant(m, &s);
    k->spell[0] = s.py;
    k->code = making_format(m,
                            "float sum = 0.0f;\nfor (int j = 0; j < n; j++) {\nfloat v = row[j * inner];\nsum += "
                            "%s;\ny[j * inner] = %s;\n}\n",
                            f.c, s.c);
    return k;
}

/* "diff = x - t; torch.mean(torch.tanh(diff) ** 2)" */
static struct kind *expression_draw_loss(struct making *m)
{
    struct kind *k =
        expression_kind(m, "loss_expression", "loss", FORM_LOSS, "a custom loss|a loss written out as a formula");
    const char *name = making_pick(m, "diff|error|delta|residual", '|');
    struct formula d = formula_leaf(name, "d"), f;

    do
        f = formula_draw(m, &d, making_draw(m, 1, 2));
    while (formula_is_magnitude(&f) || strchr(f.c, '?'));
    k->spell[0] = making_format(m, "%s = $x - $t; torch.mean(%s)", name, f.py);
    k->code = making_format(m, "float d = a - b;\nacc += %s;\n", f.c);
    return k;
}

const struct kind *expression_draw_kind(struct making *m, enum form form)
{
    switch (form) {
    case FORM_MAP:
        return expression_draw_map(m);
    case FORM_REDUCE:
        return expression_draw_reduce(m);
    case FORM_ROW:
        return expression_draw_row(m);
    case FORM_SCAN:
        return expression_draw_scan(m);
    case FORM_LOSS:
        return expression_draw_loss(m);
    default:
        return NULL;
    }
}
