/* expression.c - see expression.h. A formula is drawn three times at once: as PyTorch's text, as C's, and as its values
 * at some points, which tell whether it is a constant. */
#include "synth/surface/expression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How tightly the outermost operator of a text binds. */
enum binding { BIND_CALL, BIND_PRODUCT, BIND_SUM, BIND_CHOICE };

#define POINTS 6

/* Where a formula is tried: what an earlier layer leaves may have no negative values. */
static const double points[POINTS] = {-2.1, -0.7, -0.2, 0.3, 0.8, 1.9};

struct formula {
    const char *py, *c;
    enum binding py_binds, c_binds;
    bool positive;
    double at[POINTS];
};

/* A function of one formula: texts with one %s each, and its values. */
struct function_row {
    const char *py, *c;
    enum binding c_binds; /* of the result in C; PyTorch's is a call */
    bool positive;
    double (*value)(double x);
};

static double value_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double value_relu(double x)
{
    return fmax(x, 0);
}

static double value_decay(double x)
{
    return exp(-fabs(x));
}

static double value_negative(double x)
{
    return -x;
}

static double value_square(double x)
{
    return x * x;
}

static double value_cube(double x)
{
    return x * x * x;
}

static double value_root(double x)
{
    return sqrt(x * x + 1);
}

static double value_bell(double x)
{
    return exp(-x * x);
}

static double value_silu(double x)
{
    return x / (1 + exp(-x));
}

static double value_steep(double x)
{
    return value_sigmoid(2 * x);
}

static const struct function_row functions[] = {
    {"torch.tanh(%s)", "tanhf(%s)", BIND_CALL, false, tanh},
    {"torch.sigmoid(%s)", "1.0f / (1.0f + expf(-(%s)))", BIND_PRODUCT, true, value_sigmoid},
    {"torch.relu(%s)", "fmaxf(%s, 0.0f)", BIND_CALL, true, value_relu},
    {"F.relu(%s)", "fmaxf(%s, 0.0f)", BIND_CALL, true, value_relu},
    {"torch.abs(%s)", "fabsf(%s)", BIND_CALL, true, fabs},
    {"torch.exp(-torch.abs(%s))", "expf(-fabsf(%s))", BIND_CALL, true, value_decay},
    {"torch.erf(%s)", "erff(%s)", BIND_CALL, false, erf},
    {"torch.neg(%s)", "-(%s)", BIND_CALL, false, value_negative},
};

/* Functions that need their operand twice, or want it small: of the value alone. $ is the value. */
static const struct function_row powers[] = {
    {"$ ** 2", "$ * $", BIND_PRODUCT, true, value_square},
    {"torch.square($)", "$ * $", BIND_PRODUCT, true, value_square},
    {"$ * $", "$ * $", BIND_PRODUCT, true, value_square},
    {"$ ** 3", "$ * $ * $", BIND_PRODUCT, false, value_cube},
    {"torch.sin($)", "sinf($)", BIND_CALL, false, sin},
    {"torch.cos($)", "cosf($)", BIND_CALL, false, cos},
    {"torch.sqrt($ * $ + 1.0)", "sqrtf($ * $ + 1.0f)", BIND_CALL, true, value_root},
    {"torch.exp(-$ * $)", "expf(-$ * $)", BIND_CALL, true, value_bell},
    {"F.silu($)", "$ / (1.0f + expf(-$))", BIND_PRODUCT, false, value_silu},
    {"torch.sigmoid(2.0 * $)", "1.0f / (1.0f + expf(-2.0f * $))", BIND_PRODUCT, true, value_steep},
};

/* Denominators above 0; %s is a number. */
static const struct function_row denominators[] = {
    {"(%s + $ ** 2)", "(%sf + $ * $)", BIND_CALL, true, value_square},
    {"(%s + $ * $)", "(%sf + $ * $)", BIND_CALL, true, value_square},
    {"(%s + torch.exp(-torch.abs($)))", "(%sf + expf(-fabsf($)))", BIND_CALL, true, value_decay},
    {"(%s + torch.relu($))", "(%sf + fmaxf($, 0.0f))", BIND_CALL, true, value_relu},
};

#define N_ROWS(t) ((int)(sizeof(t) / sizeof *(t)))

/* text with each hole replaced by 'with'. */
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

/* Is it no constant, and finite, among the points from the i-th on? */
static bool formula_varies_from(const struct formula *f, int i)
{
    double lo = f->at[i], hi = lo;

    for (; i < POINTS; i++) {
        if (!isfinite(f->at[i]))
            return false;
        lo = fmin(lo, f->at[i]);
        hi = fmax(hi, f->at[i]);
    }
    return hi - lo > 1e-2;
}

static bool formula_varies(const struct formula *f)
{
    return formula_varies_from(f, 0) && formula_varies_from(f, POINTS / 2);
}

static struct formula formula_value(struct formula f, const struct formula *of, double (*value)(double x))
{
    for (int i = 0; i < POINTS; i++)
        f.at[i] = value(of->at[i]);
    return f;
}

/* A function of f, in Python and in CUDA. */
static struct formula formula_call(struct making *m, const struct formula *f)
{
    const struct function_row *t = &functions[making_draw(m, 0, N_ROWS(functions) - 1)];
    struct formula ret = {formula_fill(m, t->py, '%', f->py), formula_fill(m, t->c, '%', f->c), BIND_CALL, t->c_binds,
                          t->positive, {0}};

    return formula_value(ret, f, t->value);
}

/* A power of x, in Python and in CUDA. */
static struct formula formula_power(struct making *m, const struct formula *x)
{
    const struct function_row *t = &powers[making_draw(m, 0, N_ROWS(powers) - 1)];
    enum binding py = !strncmp(t->py, "$ *", 3) ? BIND_PRODUCT : BIND_CALL;
    struct formula ret = {formula_fill(m, t->py, '$', x->py), formula_fill(m, t->c, '$', x->c), py, t->c_binds,
                          t->positive, {0}};

    return formula_value(ret, x, t->value);
}

/* "f + 0.5", "f - 0.5", "f * 2.0", "f / 1.5", "1.5 - f" */
static struct formula formula_constant(struct making *m, const struct formula *f)
{
    static const char *const forms[] = {"%s + %s%s", "%s - %s%s", "%s * %s%s", "%s / %s%s"};
    const char *n = formula_number(m);
    int way = making_draw(m, 0, 4);
    bool sum = way < 2 || way == 4;
    enum binding most = way < 2 ? BIND_SUM : way == 4 ? BIND_PRODUCT : BIND_CALL;
    const char *py = formula_within(m, f->py, f->py_binds, most), *c = formula_within(m, f->c, f->c_binds, most);
    struct formula ret = {.py_binds = sum ? BIND_SUM : BIND_PRODUCT, .positive = f->positive && (!sum || !way)};
    double by = strtod(n, NULL);

    ret.c_binds = ret.py_binds;
    ret.py = way == 4 ? making_format(m, "%s - %s", n, py) : making_format(m, forms[way], py, n, "");
    ret.c = way == 4 ? making_format(m, "%sf - %s", n, c) : making_format(m, forms[way], c, n, "f");
    for (int i = 0; i < POINTS; i++) {
        const double values[] = {f->at[i] + by, f->at[i] - by, f->at[i] * by, f->at[i] / by, by - f->at[i]};

        ret.at[i] = values[way];
    }
    return ret;
}

/* f between two drawn limits. */
static struct formula formula_clamp(struct making *m, const struct formula *f)
{
    const char *lo = making_pick(m, "-1.0 -0.5 -2.0 -1.5", ' '), *hi = making_pick(m, "1.0 0.5 2.0 1.5", ' ');
    const char *py = making_pick(m, "torch.clamp(%s, %s, %s)|torch.clamp(%s, min=%s, max=%s)", '|');
    struct formula ret = {making_format(m, py, f->py, lo, hi),
                          making_format(m, "fminf(fmaxf(%s, %sf), %sf)", f->c, lo, hi),
                          BIND_CALL, BIND_CALL, false, {0}};

    for (int i = 0; i < POINTS; i++)
        ret.at[i] = fmin(fmax(f->at[i], strtod(lo, NULL)), strtod(hi, NULL));
    return ret;
}

/* "a + b", "a - b", "a * b" */
static struct formula formula_pair(struct making *m, const struct formula *a, const struct formula *b)
{
    const char *op = making_pick(m, "+ - * *", ' ');
    bool product = *op == '*';
    enum binding left = product ? BIND_PRODUCT : BIND_SUM;
    enum binding right = *op == '+' ? BIND_SUM : product ? BIND_CALL : BIND_PRODUCT;
    struct formula ret = {making_format(m, "%s %s %s", formula_within(m, a->py, a->py_binds, left), op,
                                        formula_within(m, b->py, b->py_binds, right)),
                          making_format(m, "%s %s %s", formula_within(m, a->c, a->c_binds, left), op,
                                        formula_within(m, b->c, b->c_binds, right)),
                          left, left, a->positive && b->positive && *op != '-', {0}};

    for (int i = 0; i < POINTS; i++)
        ret.at[i] = product ? a->at[i] * b->at[i] : *op == '+' ? a->at[i] + b->at[i] : a->at[i] - b->at[i];
    return ret;
}

/* "a / (1.0 + x ** 2)" */
static struct formula formula_quotient(struct making *m, const struct formula *a, const struct formula *x)
{
    const struct function_row *t = &denominators[making_draw(m, 0, N_ROWS(denominators) - 1)];
    const char *n = making_pick(m, "1.0 2.0 0.5 1.5", ' ');
    struct formula ret = {making_format(m, "%s / %s", formula_within(m, a->py, a->py_binds, BIND_PRODUCT),
                                        formula_fill(m, formula_fill(m, t->py, '%', n), '$', x->py)),
                          making_format(m, "%s / %s", formula_within(m, a->c, a->c_binds, BIND_PRODUCT),
                                        formula_fill(m, formula_fill(m, t->c, '%', n), '$', x->c)),
                          BIND_PRODUCT, BIND_PRODUCT, a->positive, {0}};

    for (int i = 0; i < POINTS; i++)
        ret.at[i] = a->at[i] / (strtod(n, NULL) + t->value(x->at[i]));
    return ret;
}

static struct formula formula_draw(struct making *m, const struct formula *x, int depth);

/* "torch.where(x > 0.5, a, b)"; both are formulas, so that it is no threshold. */
static struct formula formula_choice(struct making *m, const struct formula *x, int depth)
{
    struct formula a = formula_draw(m, x, depth - 1), b = formula_draw(m, x, depth - 1);
    const char *op = making_pick(m, "> < >", ' '), *n = making_pick(m, "0 0.5 1.0 0.25", ' ');
    const char *f = strchr(n, '.') ? "f" : ".0f";
    struct formula ret = {making_format(m, "torch.where(%s %s %s, %s, %s)", x->py, op, n, a.py, b.py),
                          making_format(m, "%s %s %s%s ? %s : %s", x->c, op, n, f,
                                        formula_within(m, a.c, a.c_binds, BIND_SUM),
                                        formula_within(m, b.c, b.c_binds, BIND_SUM)),
                          BIND_CALL, BIND_CHOICE, a.positive && b.positive, {0}};

    for (int i = 0; i < POINTS; i++)
        ret.at[i] = (*op == '>' ? x->at[i] > strtod(n, NULL) : x->at[i] < strtod(n, NULL)) ? a.at[i] : b.at[i];
    return ret;
}

/* Never the leaf alone; perhaps a constant, as x - x is. */
static struct formula formula_draw_any(struct making *m, const struct formula *x, int depth)
{
    struct formula a, b;
    int way = making_draw(m, 0, depth > 1 ? 9 : 3);

    a = depth > 1 && making_chance(m, 0.7) ? formula_draw(m, x, depth - 1) : *x;
    switch (way) {
    case 0: return formula_power(m, x);
    case 1: return formula_constant(m, &a);
    case 2:
    case 4: return formula_call(m, &a);
    case 3: return formula_clamp(m, &a);
    case 5: return formula_quotient(m, &a, x);
    case 6: return formula_choice(m, x, depth);
    default: break;
    }
    b = formula_draw(m, x, depth - 1);
    return making_chance(m, 0.5) ? formula_pair(m, &a, &b) : formula_pair(m, &b, &a);
}

/* Never the leaf alone, and no constant. */
static struct formula formula_draw(struct making *m, const struct formula *x, int depth)
{
    struct formula f;

    do
        f = formula_draw_any(m, x, depth);
    while (!formula_varies(&f));
    return f;
}

/* A name for what has these values. */
static struct formula formula_leaf(const char *py, const char *c, const double at[POINTS])
{
    struct formula f = {py, c, BIND_CALL, BIND_CALL, false, {0}};

    memcpy(f.at, at, sizeof f.at);
    return f;
}

static bool formula_is_magnitude(const struct formula *f)
{
    return !strncmp(f->c, "fabsf(", 6);
}

/* A new kind in the making's arena; 'say' are names for it, parted by '|'. */
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
    struct formula x = formula_leaf("$x", "v", points), first, all, named;
    const char *name = making_pick(m, "gate|inner|scaled|shifted|curve|inner", '|');

    if (m->chain || !making_chance(m, 0.35)) {
        all = formula_draw(m, &x, making_draw(m, 2, m->chain ? 2 : 3));
        k->spell[0] = all.py, k->code = making_format(m, "v = %s;\n", all.c);
        return k;
    }
    first = formula_draw(m, &x, 2);
    do {
        named = formula_leaf(name, name, first.at);
        named = making_chance(m, 0.6) ? formula_pair(m, &x, &named) : formula_draw_any(m, &named, 1);
        all = making_chance(m, 0.5) ? formula_constant(m, &named) : named;
    } while (!formula_varies(&all));
    k->spell[0] = making_format(m, "%s = %s; %s", name, first.py, all.py);
    k->code = making_format(m, "float %s = %s;\nv = %s;\n", name, first.c, all.c);
    return k;
}

/* How an axis is reduced. */
struct reducing {
    const char *py, *start, *step, *result; /* step: with the formula's C text */
    bool positive;
};

/* A way to reduce, by torch and as a loop. */
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
    struct formula x = formula_leaf("$x", "v", points), f;

    do
        f = formula_draw(m, &x, making_draw(m, 1, 2));
    while (formula_is_magnitude(&f));
    return f;
}

/* Draws a reduction of a formula. */
static struct kind *expression_draw_reduce(struct making *m)
{
    struct kind *k = expression_kind(m, "reduce_expression", "reduction", FORM_REDUCE,
                                     "a reduction of a formula|a custom statistic along an axis");
    const struct reducing *r = expression_draw_reducing(m);
    struct formula f = expression_draw_summand(m);
    struct formula s = formula_leaf(making_format(m, "%s$keep)", formula_fill(m, r->py, '%', f.py)), r->result, f.at);

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
    struct formula f = expression_draw_summand(m), x = formula_leaf("$x", "row[j * inner]", points), s, all;
    const char *name = making_pick(m, "stat|total|level|s|energy", '|');

    s = formula_leaf(name, name, f.at);
    if (f.positive && making_chance(m, 0.5)) {
        const char *n = making_pick(m, "0.5 1.0 0.1 2.0", ' ');
        all = (struct formula){making_format(m, "$x / (%s + %s)", name, n),
                               making_format(m, "row[j * inner] / (%s + %sf)", name, n),
                               BIND_PRODUCT, BIND_PRODUCT, false, {0}};
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

/* Draws a running sum of a formula. */
static struct kind *expression_draw_scan(struct making *m)
{
    struct kind *k = expression_kind(m, "scan_expression", "scan", FORM_SCAN,
                                     "a running total of a formula|cumulative sum of transformed values");
    struct formula f = expression_draw_summand(m), s;

    s = formula_leaf(making_format(m, "torch.cumsum(%s, dim=$dim)", f.py), "sum", f.at);
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
    struct formula d = formula_leaf(name, "d", points), f;

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
