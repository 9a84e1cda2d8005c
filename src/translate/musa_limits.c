/* musa_limits.c - sizes of a C++ text that a device may lack: shared memory that a kernel declares or asks for,
    constant
 * memory. Sizes are evaluated where the text alone says them: literals,
     #define and constant integers; what a template or
 * the caller decides is left to the compiler. */
#include <inttypes.h>
#include <stdlib.h>

#include "translate/musa_work.h"

#define MAX_DEPTH 24 /* of macros in macros and brackets: foreign text must not choose how deep we recurse */
#define UNKNOWN INT64_MIN

struct constant {
    size_t name, from, to; /* tokens: the name, and [from, to) of its value */
};

struct musa_limits {
    struct musa_work *w;
    const struct musa_text *t;
    const struct toks *k;
    struct constant *v;
    size_t n, cap;
    int depth;
};

/* ---- constants of the text ---- */

/* Notes a name and the tokens of its value. */
static void musa_limits_add_constant(struct musa_limits *l, size_t name, size_t from, size_t to)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 32;
        l->v = xrealloc(l->v, l->cap * sizeof *l->v);
    }
    l->v[l->n++] = (struct constant){name, from, to};
}

static size_t musa_limits_end_of_value(const struct toks *k, size_t i)
{
    while (i < k->n && !tok_is_any(k, i, ";\0,\0}\0"))
        i++;
    return i;
}

/* Collects #defines and constants of known integer value. */
static void musa_limits_find_constants(struct musa_limits *l)
{
    const struct toks *k = l->k;

    for (size_t i = 0; i + 2 < k->n; i++) {
        size_t n = tok_after(k, i);
        if (n >= k->n || k->v[n].kind != TOK_IDENT)
            continue;
        if (k->v[i].directive && tok_is(k, i, "define"))
            musa_limits_add_constant(l, n, n + 1, tok_end_of_directive(k, n));
        else if (tok_is_any(k, i, "int\0unsigned\0size_t\0uint32_t\0long\0auto\0") &&
                 tok_is(k, tok_after(k, n), "="))
            musa_limits_add_constant(l, n, tok_after(k, n) + 1,
                                     musa_limits_end_of_value(k, tok_after(k, n)));
    }
}

/* ---- expressions: sum -> product -> atom ---- */

static int64_t musa_limits_sum(struct musa_limits *l, size_t *i, size_t to);

/* Bytes of the type at token i; UNKNOWN for what is not in the table. */
static int64_t musa_limits_type_size(const struct toks *k, size_t i)
{
    static const struct { const char *names; int64_t bytes; } rows[] = {
        {"char\0bool\0int8_t\0uint8_t\0__nv_fp8_e4m3\0__nv_fp8_e5m2\0", 1},
        {"short\0half\0__half\0__nv_bfloat16\0nv_bfloat16\0int16_t\0uint16_t\0__half_raw\0", 2},
        {"float\0int\0unsigned\0int32_t\0uint32_t\0half2\0__half2\0__nv_bfloat162\0uint\0", 4},
        {"double\0float2\0int2\0int64_t\0uint64_t\0size_t\0long\0uint2\0", 8},
        {"float4\0int4\0double2\0uint4\0", 16},
    };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (tok_is_any(k, i, rows[r].names))
            return rows[r].bytes;
    return UNKNOWN;
}

/* Value of the named constant; UNKNOWN where it is none. */
static int64_t musa_limits_value_of(struct musa_limits *l, size_t name)
{
    int64_t v = UNKNOWN;

    for (size_t c = 0; c < l->n; c++)
        if (tok_same_text(l->k, l->v[c].name, name)) {
            size_t i = l->v[c].from;
            int64_t one = musa_limits_sum(l, &i, l->v[c].to);
            if (one == UNKNOWN || tok_next(l->k, i) < l->v[c].to || (v != UNKNOWN && v != one))
                return UNKNOWN; /* defined twice: only the preprocessor knows */
            v = one;
        }
    return v;
}

/* The value of sizeof(type), with *i behind it; UNKNOWN: another operand. */
static int64_t musa_limits_size_of(struct musa_limits *l, size_t *i)
{
    size_t p = tok_after(l->k, *i), type = p < l->k->n ? tok_after(l->k, p) : l->k->n;
    int64_t v = musa_limits_type_size(l->k, type);

    if (!tok_is(l->k, p, "(") || !tok_is(l->k, tok_after(l->k, type), ")"))
        return UNKNOWN;
    *i = tok_after(l->k, type) + 1;
    return v;
}

/* Value of a number, constant or parenthesis at *i, which moves behind it; UNKNOWN where it is not constant. */
static int64_t musa_limits_atom(struct musa_limits *l, size_t *i, size_t to)
{
    int64_t v = UNKNOWN;

    *i = tok_next(l->k, *i);
    if (*i >= to || ++l->depth > MAX_DEPTH) {
        v = UNKNOWN;
    } else if (tok_is(l->k, *i, "(")) {
        ++*i;
        v = musa_limits_sum(l, i, to);
        *i = tok_next(l->k, *i);
        if (!tok_is(l->k, *i, ")"))
            v = UNKNOWN;
        ++*i;
    } else if (l->k->v[*i].kind == TOK_NUMBER && l->k->v[*i].n < 12) {
        v = strtoll(l->k->src + l->k->v[(*i)++].at, NULL, 0);
    } else if (tok_is(l->k, *i, "sizeof")) {
        v = musa_limits_size_of(l, i);
    } else if (l->k->v[*i].kind == TOK_IDENT) {
        v = musa_limits_value_of(l, (*i)++);
    }
    l->depth--;
    return v < 0 || v > (int64_t)1 << 40 ? UNKNOWN : v;
}

/* The same for products. */
static int64_t musa_limits_product(struct musa_limits *l, size_t *i, size_t to)
{
    int64_t v = musa_limits_atom(l, i, to), b;

    for (;;) {
        size_t op = tok_next(l->k, *i);
        if (v == UNKNOWN || op >= to || !tok_is_any(l->k, op, "*\0/\0%\0"))
            return v;
        *i = op + 1;
        b = musa_limits_atom(l, i, to);
        if (b == UNKNOWN || (b == 0 && !tok_is(l->k, op, "*")) || (tok_is(l->k, op, "*") && v &&
                                                                   b > ((int64_t)1 << 40) / v))
            return UNKNOWN;
        v = tok_is(l->k, op, "*") ? v * b : tok_is(l->k, op, "/") ? v / b : v % b;
    }
}

/* The same for sums. */
static int64_t musa_limits_sum(struct musa_limits *l, size_t *i, size_t to)
{
    int64_t v = musa_limits_product(l, i, to), b;

    for (;;) {
        size_t op = tok_next(l->k, *i);
        if (v == UNKNOWN || op >= to || !tok_is_any(l->k, op, "+\0-\0"))
            return v;
        *i = op + 1;
        b = musa_limits_product(l, i, to);
        if (b == UNKNOWN)
            return UNKNOWN;
        v = tok_is(l->k, op, "+") ? v + b : v - b;
    }
}

/* ---- declarations ---- */

/* Bytes of the arrays declared from the type at i to ';'. UNKNOWN if one of them is. */
static int64_t musa_limits_declared_bytes(struct musa_limits *l, size_t i)
{
    const struct toks *k = l->k;
    int64_t element = UNKNOWN, total = 0, one = 1;

    for (i = tok_next(k, i); i < k->n && !tok_is(k, i, ";"); i = tok_next(k, i)) {
        if (tok_is(k, i, "[")) {
            int64_t d;
            i++;
            d = musa_limits_sum(l, &i, k->n);
            i = tok_next(k, i);
            if (d == UNKNOWN || !tok_is(k, i, "]"))
                return UNKNOWN;
            one *= d;
        } else if (tok_is(k, i, ",")) {
            total += one;
            one = 1;
        } else if (tok_is_any(k, i, "<\0(\0{\0")) {
            return UNKNOWN;
        } else if (element == UNKNOWN) {
            element = musa_limits_type_size(k, i);
        }
        if (one > (int64_t)1 << 40)
            return UNKNOWN;
        i++;
    }
    return element == UNKNOWN ? UNKNOWN : (total + one) * element;
}

/* Notes an array that exceeds the device's limit, in bytes. */
static void musa_limits_over(struct musa_limits *l, size_t i, const char *rule, const char *what, int64_t bytes,
                             int64_t limit)
{
    if (limit > 0 && bytes > limit)
        musa_note(l->w, l->t, l->k->v[i].at, MUSA_REFUSED, rule, 'D',
                  "%s of %" PRId64 " bytes: %s has %" PRId64, what, bytes,
                  l->w->o->target->name, limit);
}

/* cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES) */
static void musa_limits_opt_in(struct musa_limits *l, size_t i)
{
    size_t k = tok_after(l->k, i);
    int64_t v;

    if (!tok_is(l->k, k, ","))
        return;
    k++;
    v = musa_limits_sum(l, &k, l->k->n);
    if (v != UNKNOWN && tok_is_any(l->k, tok_next(l->k, k), ")\0;\0"))
        musa_limits_over(l, i, "shared-memory", "dynamic shared memory", v, l->w->o->target->shared_bytes);
}

void musa_limits(struct musa_work *w, const struct musa_text *t, const struct toks *k)
{
    struct musa_limits l = {.w = w, .t = t, .k = k};
    int64_t shared = 0, constants = 0, v;
    int depth = 0;

    musa_limits_find_constants(&l);
    for (size_t i = 0; i < k->n; i++) {
        if (k->v[i].directive)
            continue;
        depth += tok_is(k, i, "{") ? 1 : tok_is(k, i, "}") ? -1 : 0;
        if (depth <= 0)
            shared = 0; /* a kernel ends */
        if (tok_is(k, i, "__shared__") && (v = musa_limits_declared_bytes(&l, i + 1)) != UNKNOWN) {
            shared += v;
            musa_limits_over(&l, i, "shared-memory", "static shared memory", shared, w->o->target->shared_bytes);
        } else if (tok_is(k, i, "__constant__") && (v = musa_limits_declared_bytes(&l, i + 1)) != UNKNOWN) {
            constants += v;
            musa_limits_over(&l, i, "constant-memory", "constant memory", constants, w->o->target->const_bytes);
        } else if (tok_is(k, i, "cudaFuncAttributeMaxDynamicSharedMemorySize")) {
            musa_limits_opt_in(&l, i);
        }
    }
    free(l.v);
}
