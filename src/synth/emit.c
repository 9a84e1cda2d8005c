/* emit.c - see emit.h. Reading order: emit_nest at the end; holes are rows of a table; values are written bottom up,
 * an operator's result and a load that is used twice get names. emit_hole_NAME appends what the hole NAME of sched.h
 * stands for; arg is what follows the name there. */
#include "synth/emit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

const char *const c_types[N_DTYPES] = {"float", "at::Half", "at::BFloat16", "int64_t"};

struct emitter {
    const struct nest *k;
    const struct sched *s;
    const struct placing *p;
    struct arena arena;
    const char *dim[NEST_DIMS];  /* how a dimension is called */
    const char *sym[NEST_DIMS];  /* how its extent is called in the kernel */
    const char *host[NEST_DIMS]; /* and by the host; NULL: the number */
    bool sized[NEST_DIMS];       /* the kernel used sym */
    int stat;                    /* the statistic of %{ %} */
    const struct ax *memo[256];  /* values with a name, in this scope */
    const char *memo_name[256];
    int n_memo, n_values;
    struct buf helpers;
    bool helper_a, helper_b;
    const char *flat_store;      /* the store's offset, where a variable holds it */
    char lane;                   /* of a float4: loads along the fast dimension are members of it; 0: plain loads */
};

/* The expression as text, in the arena. */
static char *emit_text_of(struct emitter *e, const struct ax *x)
{
    struct buf b;
    char *s;

    buf_init(&b, BUF_MAX_TEXT);
    ax_print(x, NULL, &b);
    s = arena_strdup(&e->arena, b.p);
    buf_free(&b);
    return s;
}

static char *emit_format(struct emitter *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Formatted text in the arena. */
static char *emit_format(struct emitter *e, const char *fmt, ...)
{
    struct buf b;
    char *s;
    va_list ap;

    buf_init(&b, BUF_MAX_TEXT);
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    s = arena_strdup(&e->arena, b.p);
    buf_free(&b);
    return s;
}

/* ---- sizes ---- */

/* A size the kernel mentions: its name, or the number. */
static const char *emit_size_of(struct emitter *e, int d)
{
    e->sized[d] = true;
    return e->p->sizes == SIZES_LITERAL || (e->p->sizes == SIZES_PARAMS && !e->host[d]) ? emit_format(e, "%d",
        e->k->dim[d].n)
                                                                                         : e->sym[d];
}

/* An operand whose extent at some position is this dimension: there the host can ask for it. */
static const struct ax *emit_provenance(const struct ax *x, const char *dim, int n, int *at)
{
    const struct ax *y;

    if (!x)
        return NULL;
    if (x->kind == AX_LOAD)
        for (int i = 0; i < x->n; i++)
            if (ax_is_id(x->kid[i], dim) && x->ext[i].n == n) {
                *at = i;
                return x;
            }
    for (int i = 0; i < x->n; i++)
        if ((y = emit_provenance(x->kid[i], dim, n, at)))
            return y;
    return NULL;
}

/* The load that shows the size of dimension d; *at is its position. NULL: none does. */
static const struct ax *emit_nest_provenance(const struct nest *k, int d, int *at)
{
    const struct ax *all[NEST_STATS + 4], *x;
    int n = 0;

    for (int i = 0; i < k->n_stats; i++)
        all[n++] = k->stat[i].elem;
    all[n++] = k->a, all[n++] = k->b, all[n++] = k->c, all[n++] = k->out;
    for (int i = 0; i < n; i++)
        if ((x = emit_provenance(all[i], k->dim[d].name, k->dim[d].n, at)))
            return x;
    return NULL;
}

/* The host's C++ expression for the size of dimension d, from an input's sizes; NULL: no input has it. */
static const char *emit_host_size(struct emitter *e, int d)
{
    int at;
    const struct ax *x = emit_nest_provenance(e->k, d, &at);
    char *s;

    if (!x)
        return NULL;
    if (x->n == 1 && x->ext[0].n == tdesc_numel(&e->k->in[x->i].t))
        return emit_format(e, "%s.numel()", e->p->name[x->i]);
    s = emit_format(e, "%s.size(%d)", e->p->name[x->i], x->ext[at].from);
    for (int i = x->ext[at].from + 1; i <= x->ext[at].to; i++)
        s = emit_format(e, "%s * %s.size(%d)", s, e->p->name[x->i], i);
    return s;
}

/* Names the sizes of all dimensions. */
static void emit_name_sizes(struct emitter *e)
{
    for (int d = 0; d < e->k->n_dims; d++) {
        char *s = arena_strdup(&e->arena, e->k->dim[d].name);
        for (char *p = s; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        e->sym[d] = !e->p->terse ? s : e->k->n_dims == 1 ? "N" : emit_format(e, "D%d", d);
        e->host[d] = emit_host_size(e, d);
    }
}

/* The text of a group's extent, for the host or for the kernel. */
static const char *emit_extent_text(struct emitter *e, int group, bool host)
{
    int d[NEST_DIMS], n = nest_group(e->k, group, d);
    const char *s = NULL;

    if (host && e->p->sizes != SIZES_PARAMS)
        return emit_format(e, "%lld", (long long)nest_extent(e->k, group));
    for (int i = 0; i < n; i++) {
        const char *t = emit_size_of(e, d[i]);
        s = s ? emit_format(e, "%s * %s", s, t) : t;
    }
    return !s ? "1" : n > 1 ? emit_format(e, "(%s)", s) : s;
}

/* ---- dimensions ---- */

/* A group of one dimension is its flat variable. */
static void emit_name_dims(struct emitter *e)
{
    for (int d = 0; d < e->k->n_dims; d++)
        e->dim[d] = e->p->terse ? emit_format(e, "d%d", d) : e->k->dim[d].name;
    for (int g = 0; g < NEST_GROUPS; g++) {
        int v[NEST_DIMS];
        if (e->s->flat[g] && nest_group(e->k, g, v) == 1)
            e->dim[v[0]] = e->s->flat[g];
    }
}

/* Appends declarations of a group's indices from the flat index, but for unused ones. */
static void emit_decode(struct emitter *e, int group, const char *flat, const bool used[], struct buf *out)
{
    int d[NEST_DIMS], n = nest_group(e->k, group, d);
    const char *below = NULL;
    char *line[NEST_DIMS];

    for (int i = n - 1; i >= 0 && n > 1; i--) {
        const char *name = e->dim[d[i]], *size = i ? emit_size_of(e, d[i]) : "";
        line[i] = i == 0       ? emit_format(e, "int %s = %s / (%s);\n", name, flat, below)
                  : below ? emit_format(e, "int %s = %s / (%s) %% %s;\n", name, flat, below, size)
                          : emit_format(e, "int %s = %s %% %s;\n", name, flat, size);
        below = below ? emit_format(e, "%s * %s", size, below) : size;
    }
    for (int i = 0; i < n && n > 1; i++)
        if (!used || used[d[i]])
            buf_adds(out, line[i]);
}

/* Marks the dimensions that x uses. */
static void emit_mark(const struct nest *k, const struct ax *x, bool used[])
{
    int d;

    if (!x)
        return;
    if (x->kind == AX_ID && (d = nest_find_dim(k, x->s)) >= 0)
        used[d] = true;
    for (int i = 0; i < x->n; i++)
        emit_mark(k, x->kid[i], used);
}

/* ---- values ---- */

static const char *emit_dim_text(struct emitter *e, const char *s)
{
    int d = nest_find_dim(e->k, s);

    return d >= 0 ? e->dim[d] : s;
}

/* True where expression x of the nest has an integer value. */
static bool emit_is_integer(const struct nest *k, const struct ax *x)
{
    switch (x->kind) {
    case AX_LOAD: return !dtype_is_float(k->in[x->i].t.dtype);
    case AX_INT: return true;
    case AX_ID:
        return nest_find_dim(k, x->s) >= 0 ||
               (x->s[0] == 's' && isdigit((unsigned char)x->s[1]) && k->class != NEST_ATTEND &&
                (k->stat[x->s[1] - '0'].c == C_ARGMAX || k->stat[x->s[1] - '0'].c == C_ARGMIN ||
                 (emit_is_integer(k, k->stat[x->s[1] - '0'].elem) && !k->stat[x->s[1] - '0'].fin)));
    case AX_BINARY: return strchr("<>=!&|", x->s[0]) ||
        (emit_is_integer(k, x->kid[0]) && emit_is_integer(k, x->kid[1]));
    case AX_COND: return emit_is_integer(k, x->kid[1]) && emit_is_integer(k, x->kid[2]);
    case AX_UNARY: return emit_is_integer(k, x->kid[0]);
    case AX_CAST: return strstr(x->s, "int") || strstr(x->s, "long");
    case AX_CALL:
        return (!strcmp(x->kid[0]->s, "max") || !strcmp(x->kid[0]->s, "min")) && emit_is_integer(k, x->kid[1]) &&
               emit_is_integer(k, x->kid[2]);
    default: return false;
    }
}

static const char *emit_value_type(const struct nest *k, const struct ax *x)
{
    return emit_is_integer(k, x) ? "int64_t" : "float";
}

static struct ax *emit_value(struct emitter *e, const struct ax *x, struct buf *out);

/* Does the load, from position i on, walk all of a group of several dimensions? Then its flat variable does. */
static bool emit_walks_group(const struct emitter *e, const struct ax *load, int i, int g)
{
    int d[NEST_DIMS], n = nest_group(e->k, g, d);

    if (!e->s->flat[g] || n < 2 || i + n > load->n)
        return false;
    for (int j = 0; j < n; j++)
        if (!ax_is_id(load->kid[i + j], e->k->dim[d[j]].name) || load->ext[i + j].n != e->k->dim[d[j]].n)
            return false;
    return true;
}

/* The size of position i of a load, as an expression. */
static struct ax *emit_position_size(struct emitter *e, const struct ax *load, int i)
{
    int d = load->kid[i]->kind == AX_ID ? nest_find_dim(e->k, load->kid[i]->s) : -1;

    return d >= 0 && e->k->dim[d].n == load->ext[i].n ? ax_id(&e->arena, emit_size_of(e, d)) : ax_int(&e->arena,
        load->ext[i].n);
}

/* Row-major offset, with sizes by name where the index is a whole dimension. */
static struct ax *emit_offset(struct emitter *e, const struct ax *load, struct buf *out)
{
    struct ax *o = NULL;
    struct arena *a = &e->arena;

    for (int i = 0, n; i < load->n; i += n) {
        struct ax *index = NULL, *size;
        int d[NEST_DIMS];
        n = 1;
        for (int g = 0; g < NEST_GROUPS && !index; g++)
            if (emit_walks_group(e, load, i, g))
                index = ax_id(a, e->s->flat[g]), n = nest_group(e->k, g, d);
        if (!index)
            index = emit_value(e, load->kid[i], out);
        if (!o || (o->kind == AX_INT && !o->i)) {
            o = index;
            continue;
        }
        size = emit_position_size(e, load, i);
        for (int j = 1; j < n; j++)
            size = ax_bin(a, "*", size, emit_position_size(e, load, i + j));
        o = ax_bin(a, "+", ax_bin(a, "*", o, size), index);
    }
    return o ? ax_simplify(a, o, NULL) : ax_int(a, 0);
}

/* The dimension that a float4 lies along: of a map the output's, else the reduced one. */
static int emit_fast_dim(const struct nest *k)
{
    int d[NEST_DIMS], n = nest_group(k, k->class == NEST_MAP ? 0 : 1, d);

    return n == 1 ? d[0] : -1;
}

bool nest_load_is_wide(const struct nest *k, const struct ax *load)
{
    int d = emit_fast_dim(k);

    return d >= 0 && load->n && ax_is_id(load->kid[load->n - 1], k->dim[d].name) &&
           load->ext[load->n - 1].n == k->dim[d].n && k->in[load->i].t.dtype == DT_F32;
}

/* The C expression of a load; its index statements go to out. Halves are converted to float. */
static struct ax *emit_load_value(struct emitter *e, const struct ax *x, struct buf *out)
{
    if (e->lane && nest_load_is_wide(e->k, x))
        return ax_id(&e->arena, emit_format(e, "%s_4.%c", e->p->name[x->i], e->lane));
    struct ax *y = ax_new(&e->arena, AX_INDEX, NULL, 2), *c;
    int dtype = e->k->in[x->i].t.dtype;

    y->kid[0] = ax_id(&e->arena, e->p->name[x->i]);
    y->kid[1] = emit_offset(e, x, out);
    if (dtype != DT_F16 && dtype != DT_BF16)
        return y;
    c = ax_new(&e->arena, AX_CAST, "float", 1);
    c->kid[0] = y;
    return c;
}

/* How often 'what' stands in x. */
static int emit_uses_of(const struct ax *x, const struct ax *what)
{
    int n = x == what;

    for (int i = 0; x != what && i < x->n; i++)
        n += emit_uses_of(x->kid[i], what);
    return n;
}

/* Declares a variable for the value y of x and returns its name. */
static struct ax *emit_named(struct emitter *e, const struct ax *x, struct ax *y, struct buf *out)
{
    char *name = emit_format(e, "v%d", e->n_values++);

    buf_addf(out, "%s %s = %s;\n", emit_value_type(e->k, x), name, emit_text_of(e, y));
    if (e->n_memo < 256)
        e->memo[e->n_memo] = x, e->memo_name[e->n_memo++] = name;
    return ax_id(&e->arena, name);
}

/* True where x has parts that are named. */
static bool emit_has_names(const struct ax *x)
{
    if (x->let)
        return true;
    for (int i = 0; i < x->n; i++)
        if (emit_has_names(x->kid[i]))
            return true;
    return false;
}

static bool emit_has_loads(const struct ax *x)
{
    if (x->kind == AX_LOAD)
        return true;
    for (int i = 0; i < x->n; i++)
        if (emit_has_loads(x->kid[i]))
            return true;
    return false;
}

/* One side of a guarded value: its statements and the assignment, in a scope of their own. */
static void emit_add_side(struct emitter *e, const char *name, const struct ax *x, struct buf *out)
{
    int memo = e->n_memo;
    struct ax *v = emit_value(e, x, out);

    buf_addf(out, "%s = %s;\n}\n", name, emit_text_of(e, v));
    e->n_memo = memo;
}

/* A guarded value that needs statements of its own: they must stay behind the guard, and what is loaded where the guard
 * does not hold must stay on the other side. A test of indices keeps inside the padding; one of values is the
 * operator's own choice. Neither keeps threads away, so neither has the role "guard". */
static struct ax *emit_guarded(struct emitter *e, const struct ax *x, struct buf *out)
{
    const struct ax *other = x->kid[2];
    struct ax *test = emit_value(e, x->kid[0], out);
    char *name = emit_format(e, "v%d", e->n_values++);
    bool apart = emit_has_loads(other) || emit_has_names(other), of_values = emit_has_loads(x->kid[0]) ||
        emit_has_names(x->kid[0]);

    buf_addf(out, "%s %s = %s;\n@%s if (%s) {\n", emit_value_type(e->k, x), name,
             apart ? emit_is_integer(e->k, x) ? "0" : "0.0f" : emit_text_of(e, emit_value(e, other, out)),
             of_values ? "choice" : "inside", emit_text_of(e, test));
    emit_add_side(e, name, x->kid[1], out);
    if (apart) {
        buf_adds(out, "else {\n");
        emit_add_side(e, name, other, out);
    }
    return ax_id(&e->arena, name);
}

/* The C expression of x; statements that it needs first go to out. A value that has a name is used by it. */
static struct ax *emit_value(struct emitter *e, const struct ax *x, struct buf *out)
{
    struct ax *y;

    for (int i = 0; i < e->n_memo; i++)
        if (e->memo[i] == x)
            return ax_id(&e->arena, e->memo_name[i]);
    if (x->kind == AX_COND && (emit_has_names(x->kid[1]) || emit_has_names(x->kid[2])))
        return emit_guarded(e, x, out);
    if (x->kind == AX_LOAD) {
        y = emit_load_value(e, x, out);
        return x->let ? emit_named(e, x, y, out) : y;
    }
    if (x->kind == AX_ID)
        return ax_id(&e->arena, emit_dim_text(e, x->s));
    y = arena_alloc(&e->arena, sizeof *y);
    *y = *x;
    y->let = false;
    y->kid = x->n ? arena_alloc(&e->arena, sizeof *y->kid * (size_t)x->n) : NULL;
    for (int i = 0; i < x->n; i++)
        y->kid[i] = x->kind == AX_CALL && !i ? x->kid[0] : emit_value(e, x->kid[i], out);
    return x->let ? emit_named(e, x, y, out) : y;
}

/* Marks loads that this expression reads twice, so that emit_value() names them. */
static void emit_mark_repeated(struct ax *root, struct ax *x)
{
    for (int i = 0; i < x->n; i++)
        emit_mark_repeated(root, x->kid[i]);
    if (x->kind == AX_LOAD && emit_uses_of(root, x) > 1)
        x->let = true;
}

static const char *emit_whole_value(struct emitter *e, const struct ax *x, struct buf *out)
{
    return emit_text_of(e, emit_value(e, x, out));
}

static const char *emit_offset_text(struct emitter *e, const struct ax *load, struct buf *out)
{
    return emit_text_of(e, emit_offset(e, load, out));
}

/* ---- four at once ---- */

/* "float4 x_4 = *(const float4*)&x[..];" for each load along the fast dimension, once for each operand. */
static void emit_add_wide_loads(struct emitter *e, const struct ax *x, unsigned *done, struct buf *out)
{
    if (x->kind == AX_LOAD && nest_load_is_wide(e->k, x) && !(*done >> x->i & 1)) {
        const char *at = emit_offset_text(e, x, out);
        buf_addf(out, "float4 %s_4 = *(const float4*)&%s[%s];\n", e->p->name[x->i], e->p->name[x->i], at);
        *done |= 1u << x->i;
    }
    for (int i = 0; i < x->n; i++)
        emit_add_wide_loads(e, x->kid[i], done, out);
}

/* What a float4 wants of addresses. */
static void emit_hole_aligned(struct emitter *e, const char *arg, struct buf *out)
{
    buf_adds(out, "(");
    for (int i = 0; i < e->k->n_in; i++)
        buf_addf(out, "%s(size_t)%s", i ? " | " : "", e->p->name[i]);
    buf_addf(out, "%s) %% 16 == 0", !strcmp(arg, "out") ? " | (size_t)out" : "");
}

/* ---- combining ---- */

/* The text that combines two partial results. */
static const char *emit_merged(struct emitter *e, enum combine c, const char *a, const char *b)
{
    switch (c) {
    case C_SUM: return emit_format(e, "%s + %s", a, b);
    case C_PROD: return emit_format(e, "%s * %s", a, b);
    case C_MAX:
    case C_ARGMAX: return emit_format(e, "fmaxf(%s, %s)", a, b);
    case C_MIN:
    case C_ARGMIN: return emit_format(e, "fminf(%s, %s)", a, b);
    case C_LOGADDEXP: break; /* scans only: emit_merge_values */
    }
    return a;
}

/* The text of the value that changes nothing. */
static const char *emit_identity(enum combine c, bool ints)
{
    if (ints)
        return c == C_SUM ? "0" : c == C_PROD ? "1" : c == C_MAX || c == C_ARGMAX ? "-9223372036854775807" :
            "9223372036854775807";
    return c == C_SUM    ? "0.0f"
           : c == C_PROD ? "1.0f"
           : c == C_MAX || c == C_ARGMAX || c == C_LOGADDEXP ? "-INFINITY"
                                                             : "INFINITY";
}

static bool emit_is_arg(enum combine c)
{
    return c == C_ARGMAX || c == C_ARGMIN;
}

static const struct stat *emit_current(const struct emitter *e)
{
    return &e->k->stat[e->stat < 0 ? 0 : e->stat];
}

static bool emit_stat_is_int(const struct emitter *e)
{
    return emit_is_integer(e->k, emit_current(e)->elem);
}

/* a0 takes in the value and, of arg reductions, its index; ties go to the first. */
static void emit_take_in(struct emitter *e, const char *v, const char *index, bool ordered, struct buf *out)
{
    int s = e->stat;
    enum combine c = emit_current(e)->c;
    const char *op = c == C_ARGMAX ? ">" : "<", *a = emit_format(e, "a%d", s);

    if (!emit_is_arg(c) && c == C_SUM)
        buf_addf(out, "@combine %s += %s;\n", a, v);
    else if (!emit_is_arg(c) && c == C_PROD)
        buf_addf(out, "@combine %s *= %s;\n", a, v);
    else if (!emit_is_arg(c) && emit_stat_is_int(e))
        buf_addf(out, "@combine %s = %s %s %s ? %s : %s;\n", a, v, c == C_MAX ? ">" : "<", a, v, a);
    else if (!emit_is_arg(c))
        buf_addf(out, "@combine %s = %s;\n", a, emit_merged(e, c, a, v));
    else if (ordered)
        buf_addf(out, "@combine if (%s %s %s) { %s = %s; i%d = %s; }\n", v, op, a, a, v, s, index);
    else
        buf_addf(out, "@combine if (%s %s %s || (%s == %s && %s < i%d)) { %s = %s; i%d = %s; }\n", v, op, a, v, a,
            index, s, a, v,
                 s, index);
}

/* Hole "begin": declares the accumulator. */
static void emit_hole_begin(struct emitter *e, const char *arg, struct buf *out)
{
    bool ints = emit_stat_is_int(e);

    (void)arg;
    buf_addf(out, "@identity %s a%d = %s;\n", ints ? "int64_t" : "float", e->stat,
             emit_identity(emit_current(e)->c, ints));
    if (emit_is_arg(emit_current(e)->c))
        buf_addf(out, "int i%d = 0;\n", e->stat);
}

/* Hole "step": one element is taken into the accumulator. */
static void emit_hole_step(struct emitter *e, const char *arg, struct buf *out)
{
    const char *v;

    (void)arg;
    e->n_memo = 0;
    v = emit_whole_value(e, emit_current(e)->elem, out);
    if (emit_is_arg(emit_current(e)->c) ||
        (emit_stat_is_int(e) && emit_current(e)->c != C_SUM && emit_current(e)->c != C_PROD)) {
        buf_addf(out, "%s e%d = %s;\n", emit_stat_is_int(e) ? "int64_t" : "float", e->stat, v);
        v = emit_format(e, "e%d", e->stat);
    }
    emit_take_in(e, v, e->s->flat[1] ? e->s->flat[1] : "j", true, out);
    e->n_memo = 0;
}

/* Four elements of the row at j: one load, four steps. */
static void emit_hole_step4(struct emitter *e, const char *arg, struct buf *out)
{
    unsigned done = 0;

    e->n_memo = 0;
    emit_add_wide_loads(e, emit_current(e)->elem, &done, out);
    for (const char *c = "xyzw"; *c; c++) {
        e->lane = *c;
        emit_hole_step(e, arg, out);
    }
    e->lane = 0;
}

/* Four elements of a map at i: one load of each operand, four values, one store. */
static void emit_hole_map4(struct emitter *e, const char *arg, struct buf *out)
{
    unsigned done = 0;

    (void)arg;
    e->n_memo = 0;
    emit_add_wide_loads(e, e->k->out, &done, out);
    buf_adds(out, "float4 r;\n");
    for (const char *c = "xyzw"; *c; c++) {
        e->lane = *c;
        e->n_memo = 0;
        buf_addf(out, "r.%c = %s;\n", *c, emit_whole_value(e, e->k->out, out));
    }
    e->lane = 0;
    e->n_memo = 0;
    buf_addf(out, "@store *(float4*)&out[%s] = r;\n", emit_offset_text(e, e->k->store, out));
}

/* Hole "end": the accumulator becomes the statistic's value. */
static void emit_hole_end(struct emitter *e, const char *arg, struct buf *out)
{
    const struct stat *s = emit_current(e);
    const char *acc = emit_format(e, emit_is_arg(s->c) ? "i%d" : "a%d", e->stat);
    const char *id = "acc";
    struct ax *with = ax_id(&e->arena, acc), *fin;

    (void)arg;
    e->n_memo = 0;
    fin = s->fin ? emit_value(e, ax_subst(&e->arena, s->fin, &id, &with, 1), out) : with;
    buf_addf(out, "%s s%d = %s;\n",
             emit_is_arg(s->c) ? "int" : emit_stat_is_int(e) && !s->fin ? "int64_t" : "float", e->stat,
             emit_text_of(e, fin));
    e->n_memo = 0;
}

/* From another lane; kind is "down" or "xor". */
static void emit_shuffle(struct emitter *e, const char *kind, const char *s, struct buf *out)
{
    const char *call = emit_format(e, "__shfl_%s_sync(0xffffffff, a%d, %s)", kind, e->stat, s);

    if (!emit_is_arg(emit_current(e)->c) && !(emit_stat_is_int(e) && emit_current(e)->c != C_SUM)) {
        emit_take_in(e, call, NULL, false, out);
        return;
    }
    buf_addf(out, "%s other = %s;\n", emit_stat_is_int(e) ? "int64_t" : "float", call);
    if (emit_is_arg(emit_current(e)->c))
        buf_addf(out, "int at = __shfl_%s_sync(0xffffffff, i%d, %s);\n", kind, e->stat, s);
    emit_take_in(e, "other", "at", false, out);
}

static void emit_hole_shfl(struct emitter *e, const char *arg, struct buf *out)
{
    emit_shuffle(e, "down", arg, out);
}

static void emit_hole_shflx(struct emitter *e, const char *arg, struct buf *out)
{
    emit_shuffle(e, "xor", arg, out);
}

/* Hole "smem": declares shared memory for partial results. */
static void emit_hole_smem(struct emitter *e, const char *arg, struct buf *out)
{
    bool arg_any = false, ints = false;

    for (int i = 0; i < e->k->n_stats; i++) {
        arg_any |= emit_is_arg(e->k->stat[i].c);
        ints |= emit_is_integer(e->k, e->k->stat[i].elem);
    }
    buf_addf(out, "__shared__ %s sm[%s];\n", ints ? "int64_t" : "float", arg);
    if (arg_any)
        buf_addf(out, "__shared__ int si[%s];\n", arg);
}

static void emit_hole_put(struct emitter *e, const char *arg, struct buf *out)
{
    buf_addf(out, "sm[%s] = a%d;\n", arg, e->stat);
    if (emit_is_arg(emit_current(e)->c))
        buf_addf(out, "si[%s] = i%d;\n", arg, e->stat);
}

static void emit_hole_get(struct emitter *e, const char *arg, struct buf *out)
{
    buf_addf(out, "a%d = sm[%s];\n", e->stat, arg);
    if (emit_is_arg(emit_current(e)->c))
        buf_addf(out, "i%d = si[%s];\n", e->stat, arg);
}

/* Hole "merge": joins another thread's partial result. */
static void emit_hole_merge(struct emitter *e, const char *arg, struct buf *out)
{
    if (emit_is_arg(emit_current(e)->c) || emit_stat_is_int(e)) {
        buf_addf(out, "%s other = sm[%s];\n", emit_stat_is_int(e) ? "int64_t" : "float", arg);
        emit_take_in(e, "other", emit_format(e, "si[%s]", arg), false, out);
    } else {
        emit_take_in(e, emit_format(e, "sm[%s]", arg), NULL, false, out);
    }
}

static void emit_hole_identity(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_adds(out, emit_identity(emit_current(e)->c, emit_stat_is_int(e)));
}

/* ---- storing ---- */

static void emit_expand(struct emitter *e, const char *text, struct buf *out);

/* Appends the store of the output. */
static void emit_add_store(struct emitter *e, struct buf *out)
{
    const char *v, *at;

    e->n_memo = 0;
    v = emit_whole_value(e, e->k->out, out);
    at = e->flat_store ? e->flat_store : emit_offset_text(e, e->k->store, out);
    buf_addf(out, "@store out[%s] = %s;\n", at, v);
    e->n_memo = 0;
}

static void emit_used_by_output(const struct emitter *e, bool used[])
{
    emit_mark(e->k, e->k->out, used);
    emit_mark(e->k, e->k->store, used);
}

static void emit_hole_store(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_add_store(e, out);
}

/* The template's text with its holes filled, in the arena. */
static const char *emit_expanded(struct emitter *e, const char *text)
{
    struct buf b;
    char *s;

    buf_init(&b, BUF_MAX_TEXT);
    emit_expand(e, text, &b);
    s = arena_strdup(&e->arena, b.p);
    buf_free(&b);
    return s;
}

/* A reduction's result is stored by one lane; of a row class, all elements by all lanes. */
static void emit_hole_write(struct emitter *e, const char *arg, struct buf *out)
{
    bool used[NEST_DIMS] = {0}, alone = !strcmp(e->s->lane, "0") && !strcmp(e->s->stride, "1");
    const char *j = e->s->flat[1], *stride = emit_expanded(e, e->s->stride);

    (void)arg;
    if (e->k->class != NEST_ROW) {
        if (!alone)
            buf_addf(out, "@one if (%s == 0) {\n", e->s->lane);
        emit_add_store(e, out);
        buf_adds(out, alone ? "" : "}\n");
        return;
    }
    emit_used_by_output(e, used);
    if (strcmp(e->s->stride, "1"))
        buf_addf(out, "for (int %s = %s; %s < %s; %s += %s) {\n", j, e->s->lane, j, emit_extent_text(e, 1, false), j,
            stride);
    else
        buf_addf(out, "for (int %s = %s; %s < %s; ++%s) {\n", j, e->s->lane, j, emit_extent_text(e, 1, false), j);
    emit_decode(e, 1, j, used, out);
    emit_add_store(e, out);
    buf_adds(out, "}\n");
}

/* ---- contraction's factors ---- */

/* True where the factor is a plain load whose indices are single dimensions. */
static bool emit_simple_factor(const struct emitter *e, const struct ax *x)
{
    for (int g = 1; g < 4; g++) {
        int v[NEST_DIMS];
        if (nest_group(e->k, g, v) > 1)
            return false;
    }
    return x->kind == AX_LOAD && !x->let;
}

/* Appends the parameters of inputs and, if out, of the output. */
static void emit_pointer_params(struct emitter *e, bool out, struct buf *b)
{
    for (int i = 0; i < e->k->n_in; i++)
        buf_addf(b, "%sconst %s* %s", i ? ", " : "", c_types[e->k->in[i].t.dtype], e->p->name[i]);
    if (out)
        buf_addf(b, "%s%s* out", e->k->n_in ? ", " : "", c_types[e->k->out_t.dtype]);
}

static void emit_size_params(struct emitter *e, struct buf *b, bool types)
{
    for (int d = 0; d < e->k->n_dims && e->p->sizes == SIZES_PARAMS; d++)
        if (e->host[d])
            buf_addf(b, ", %s%s", types ? "int " : "", e->sym[d]);
}

static void emit_add_sizes(struct emitter *e, struct buf *out)
{
    for (int d = 0; d < e->k->n_dims && e->p->sizes == SIZES_CONSTEXPR; d++)
        if (e->sized[d])
            buf_addf(out, "constexpr int %s = %d;\n", e->sym[d], e->k->dim[d].n);
}

/* "__device__ float load_a(const float* x, int m, int k)": element of a factor, decoding its flat indices. */
static void emit_add_helper(struct emitter *e, const char *name, const struct ax *x, int g1, int g2)
{
    bool used[NEST_DIMS] = {0}, sized[NEST_DIMS];
    struct buf body, batch;
    const char *v;
    int d[NEST_DIMS];

    buf_init(&body, BUF_MAX_TEXT), buf_init(&batch, BUF_MAX_TEXT);
    memcpy(sized, e->sized, sizeof sized);
    memset(e->sized, 0, sizeof e->sized);
    emit_mark(e->k, x, used);
    emit_decode(e, 0, "b", used, &body);
    emit_decode(e, g1, e->s->flat[g1], used, &body);
    emit_decode(e, g2, e->s->flat[g2], used, &body);
    e->n_memo = 0;
    v = emit_whole_value(e, x, &body);
    e->n_memo = 0;
    if (nest_group(e->k, 0, d))
        buf_adds(&batch, ", int b");
    buf_addf(&e->helpers, "__device__ float %s_%s(", e->p->kernel, name);
    emit_pointer_params(e, false, &e->helpers);
    emit_size_params(e, &e->helpers, true);
    buf_addf(&e->helpers, "%s, int %s, int %s) {\n", batch.p, e->s->flat[g1], e->s->flat[g2]);
    emit_add_sizes(e, &e->helpers);
    buf_addf(&e->helpers, "%sreturn %s;\n}\n\n", body.p, v);
    memcpy(e->sized, sized, sizeof sized);
    buf_free(&body), buf_free(&batch);
}

/* Splits arg at its first comma outside of brackets. */
static void emit_split_two(char *arg, const char **x, const char **y)
{
    int depth = 0;
    char *p = arg;

    for (; *p && (*p != ',' || depth); p++)
        depth += *p == '(' || *p == '[' ? 1 : *p == ')' || *p == ']' ? -1 : 0;
    *x = arg;
    *y = *p ? p + 1 : p;
    if (*p)
        *p = 0;
    while (**y == ' ')
        ++*y;
}

/* Holes of a contraction's factor a or b at the two given indices. */
static void emit_factor(struct emitter *e, const char *arg, bool is_a, struct buf *out)
{
    const struct ax *x = is_a ? e->k->a : e->k->b;
    int g1 = is_a ? 1 : 3, g2 = is_a ? 3 : 2, d[NEST_DIMS];
    char *copy = arena_strdup(&e->arena, arg);
    const char *first, *second;
    bool *done = is_a ? &e->helper_a : &e->helper_b;

    emit_split_two(copy, &first, &second);
    if (emit_simple_factor(e, x)) {
        const char *keep[NEST_DIMS];
        memcpy(keep, e->dim, sizeof keep);
        if (nest_group(e->k, g1, d))
            e->dim[d[0]] = emit_format(e, "(%s)", first);
        if (nest_group(e->k, g2, d))
            e->dim[d[0]] = emit_format(e, "(%s)", second);
        e->n_memo = 0;
        buf_adds(out, emit_text_of(e, emit_value(e, x, out)));
        memcpy(e->dim, keep, sizeof keep);
        return;
    }
    if (!*done)
        emit_add_helper(e, is_a ? "a" : "b", x, g1, g2);
    *done = true;
    buf_addf(out, "%s_%s(", e->p->kernel, is_a ? "a" : "b");
    for (int i = 0; i < e->k->n_in; i++)
        buf_addf(out, "%s%s", i ? ", " : "", e->p->name[i]);
    emit_size_params(e, out, false);
    buf_addf(out, "%s, %s, %s)", nest_group(e->k, 0, d) ? ", b" : "", first, second);
}

static void emit_hole_A(struct emitter *e, const char *arg, struct buf *out)
{
    emit_factor(e, arg, true, out);
}

static void emit_hole_Bm(struct emitter *e, const char *arg, struct buf *out)
{
    emit_factor(e, arg, false, out);
}

/* Batch: "int b = blockIdx.z;" and nothing where there is no batch. */
static void emit_hole_batch(struct emitter *e, const char *arg, struct buf *out)
{
    int d[NEST_DIMS], n = nest_group(e->k, 0, d);
    bool used[NEST_DIMS] = {0};

    if (!n)
        return;
    emit_used_by_output(e, used);
    buf_addf(out, "int b = %s;\n", arg);
    emit_decode(e, 0, "b", used, out);
}

/* ---- the table of holes ---- */

/* Hole "loops": loops over a group's dimensions. */
static void emit_hole_loops(struct emitter *e, const char *arg, struct buf *out)
{
    int d[NEST_DIMS], n = nest_group(e->k, *arg - '0', d);

    for (int i = 0; i < n; i++)
        buf_addf(out, "for (int %s = 0; %s < %s; ++%s) {\n", e->dim[d[i]], e->dim[d[i]], emit_size_of(e, d[i]),
            e->dim[d[i]]);
}

/* Fills a hole that closes the loops of a group of dimensions. */
static void emit_hole_endloops(struct emitter *e, const char *arg, struct buf *out)
{
    int d[NEST_DIMS], n = nest_group(e->k, *arg - '0', d);

    while (n--)
        buf_adds(out, "}\n");
}

/* Hole "decode": the indices of a group. */
static void emit_hole_decode(struct emitter *e, const char *arg, struct buf *out)
{
    bool used[NEST_DIMS] = {0};
    int g = *arg - '0';

    if (g == 1 && (e->k->class == NEST_REDUCE || e->k->class == NEST_ROW) && e->stat >= 0) {
        emit_mark(e->k, emit_current(e)->elem, used);
        emit_decode(e, g, e->s->flat[g], used, out);
        return;
    }
    emit_used_by_output(e, used);
    if (!(e->k->class == NEST_CONTRACT && e->s->flat[3])) /* factors decode for themselves */
        for (int i = 0; i < e->k->n_stats; i++)
            emit_mark(e->k, e->k->stat[i].elem, used), emit_mark(e->k, e->k->stat[i].fin, used);
    emit_decode(e, g, e->s->flat[g], used, out);
}

/* Output dimensions in the order of the store. */
static int emit_output_order(const struct emitter *e, int ret[NEST_DIMS])
{
    int n = 0;
    bool seen[NEST_DIMS] = {0};

    for (int i = 0; i < e->k->store->n; i++) {
        bool used[NEST_DIMS] = {0};
        emit_mark(e->k, e->k->store->kid[i], used);
        for (int d = 0; d < e->k->n_dims; d++)
            if (used[d] && !seen[d])
                seen[d] = true, ret[n++] = d;
    }
    return n;
}

/* "$decodeout": all output dimensions from the flat index i of the output, which the store then uses as it is. */
static void emit_hole_decodeout(struct emitter *e, const char *arg, struct buf *out)
{
    int d[NEST_DIMS], n = emit_output_order(e, d);
    const char *below = NULL;
    char *line[NEST_DIMS];

    (void)arg;
    for (int i = n - 1; i >= 0; i--) {
        const char *name = e->dim[d[i]], *size = i ? emit_size_of(e, d[i]) : "";
        line[i] = i == 0 ? below ? emit_format(e, "int %s = i / (%s);\n", name, below)
            : emit_format(e, "int %s = i;\n", name)
                  : below ? emit_format(e, "int %s = i / (%s) %% %s;\n", name, below, size)
                          : emit_format(e, "int %s = i %% %s;\n", name, size);
        below = below ? emit_format(e, "%s * %s", size, below) : size;
    }
    for (int i = 0; i < n; i++)
        buf_adds(out, line[i]);
    e->flat_store = "i";
}

static void emit_hole_total(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_addf(out, "%lld", (long long)tdesc_numel(&e->k->out_t));
}

static void emit_hole_n(struct emitter *e, const char *arg, struct buf *out)
{
    buf_adds(out, emit_extent_text(e, *arg - '0', false));
}

static void emit_hole_h(struct emitter *e, const char *arg, struct buf *out)
{
    buf_adds(out, emit_extent_text(e, *arg - '0', true));
}

static void emit_hole_number(struct emitter *e, const char *arg, struct buf *out)
{
    buf_addf(out, "%d", e->p->tuned[*arg - 'B']);
}

static void emit_hole_B1(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_addf(out, "%d", e->p->tuned[0] - 1);
}

static void emit_hole_BH(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_addf(out, "%d", e->p->tuned[0] / 2);
}

static void emit_hole_T(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_adds(out, c_types[e->k->out_t.dtype]);
}

static void emit_hole_k(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_adds(out, e->p->kernel);
}

static void emit_hole_params(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_pointer_params(e, true, out);
    emit_size_params(e, out, true);
}

/* Hole "args": the call's pointers. */
static void emit_hole_args(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    for (int i = 0; i < e->k->n_in; i++)
        buf_addf(out, "%s.data_ptr<%s>(), ", e->p->name[i], c_types[e->k->in[i].t.dtype]);
    buf_addf(out, "%s.data_ptr<%s>()", e->p->out, c_types[e->k->out_t.dtype]);
    emit_size_params(e, out, false);
}

static void emit_hole_out(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_adds(out, e->p->out);
}

/* Hole "product": adds a product to the accumulator. */
static void emit_hole_product(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    e->n_memo = 0;
    buf_addf(out, "@combine a0 += %s;\n", emit_whole_value(e, e->k->stat[0].elem, out));
    e->n_memo = 0;
}

/* ---- two kernels, atomics, scans, attention ---- */

/* Appends the inputs, with types if asked for, and 'last' behind them. */
static void emit_inputs_then(struct emitter *e, const char *last, bool types, struct buf *out)
{
    for (int i = 0; i < e->k->n_in; i++) {
        const char *type = c_types[e->k->in[i].t.dtype];
        if (types)
            buf_addf(out, "const %s* %s, ", type, e->p->name[i]);
        else
            buf_addf(out, "%s.data_ptr<%s>(), ", e->p->name[i], type);
    }
    buf_adds(out, last);
    emit_size_params(e, out, types);
}

static void emit_hole_parampart(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_inputs_then(e, "float* part", true, out);
}

static void emit_hole_argpart(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_inputs_then(e, "part.data_ptr<float>()", false, out);
}

static void emit_hole_paramjoin(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_inputs_then(e, emit_format(e, "const float* part, %s* out", c_types[e->k->out_t.dtype]), true, out);
}

/* Hole "argjoin": arguments of the kernel that joins partial results. */
static void emit_hole_argjoin(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_inputs_then(e,
                     emit_format(e, "part.data_ptr<float>(), %s.data_ptr<%s>()", e->p->out, c_types[e->k->out_t.dtype]),
                     false, out);
}

static void emit_hole_x(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_adds(out, e->p->name[0]);
}

/* Hole "add": an atomic addition to the output. */
static void emit_hole_add(struct emitter *e, const char *arg, struct buf *out)
{
    const char *v, *at;

    (void)arg;
    e->n_memo = 0;
    v = e->k->class == NEST_SCATTER ? emit_whole_value(e, e->k->stat[0].elem, out) : "s0";
    at = emit_offset_text(e, e->k->store, out);
    buf_addf(out, "@store atomicAdd(&out[%s], %s);\n", at, v);
    e->n_memo = 0;
}

static void emit_hole_decodebatch(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_decode(e, 0, "b", NULL, out);
}

static void emit_hole_decodefirst(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_decode(e, 1, e->s->flat[1], NULL, out);
}

/* Hole "element": declares the element that is scanned. */
static void emit_hole_element(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    e->n_memo = 0;
    buf_addf(out, "float e0 = %s;\n", emit_whole_value(e, e->k->stat[0].elem, out));
    e->n_memo = 0;
}

static void emit_hole_mergepart(struct emitter *e, const char *arg, struct buf *out)
{
    emit_take_in(e, arg, NULL, false, out);
}

/* Appends the size of the last dimension. */
static void emit_last_size(struct emitter *e, bool host, struct buf *out)
{
    int d[NEST_DIMS], n = nest_group(e->k, 0, d);

    if (!n)
        buf_adds(out, "1");
    else if (host)
        buf_addf(out, "%d", e->k->dim[d[n - 1]].n);
    else
        buf_adds(out, emit_size_of(e, d[n - 1]));
}

static void emit_hole_last(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_last_size(e, false, out);
}

static void emit_hole_hlast(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    emit_last_size(e, true, out);
}

static void emit_hole_N(struct emitter *e, const char *arg, struct buf *out)
{
    buf_addf(out, "%lld", (long long)nest_extent(e->k, *arg - '0'));
}

/* Appends the store of a scan's running value. */
static void emit_scan_store(struct emitter *e, const char *running, struct buf *out)
{
    const char *id = "acc";
    struct ax *with = ax_id(&e->arena, running), *fin = e->k->stat[0].fin;

    e->n_memo = 0;
    buf_addf(out, "float s0 = %s;\n",
             fin ? emit_whole_value(e, ax_subst(&e->arena, fin, &id, &with, 1), out) : running);
    emit_add_store(e, out);
}

static void emit_hole_scanbegin(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_addf(out, "@identity float a0 = %s;\n", emit_identity(e->k->stat[0].c, false));
}

static void emit_hole_before(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    if (e->k->flags & SCAN_EXCLUSIVE)
        emit_scan_store(e, "a0", out);
}

static void emit_hole_after(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    if (!(e->k->flags & SCAN_EXCLUSIVE))
        emit_scan_store(e, "a0", out);
}

/* Hole "J": the index along a scan, from the end where that is reversed. */
static void emit_hole_J(struct emitter *e, const char *arg, struct buf *out)
{
    if (e->k->flags & SCAN_REVERSE)
        buf_addf(out, "%s - 1 - %s", emit_extent_text(e, 1, false), arg);
    else
        buf_adds(out, arg);
}

/* The call of a helper for log(exp a + exp b), which is defined at its first use. */
static const char *emit_log_add(struct emitter *e, const char *a, const char *b)
{
    if (!e->helper_a)
        buf_addf(&e->helpers,
                 "__device__ float %s_log_add(float p, float q) {\nfloat hi = fmaxf(p, q);\nfloat lo = fminf(p, q);\n"
                 "return lo == -INFINITY ? hi : hi + log1pf(expf(lo - hi));\n}\n\n",
                 e->p->kernel);
    e->helper_a = true;
    return emit_format(e, "%s_log_add(%s, %s)", e->p->kernel, a, b);
}

static const char *emit_merge_values(struct emitter *e, const char *a, const char *b)
{
    enum combine c = e->k->stat[0].c;

    return c == C_LOGADDEXP ? emit_log_add(e, a, b) : emit_merged(e, c, a, b);
}

/* Hole $mergev(A; B): text that joins two named values by the statistic's combine. */
static void emit_hole_mergev(struct emitter *e, const char *arg, struct buf *out)
{
    char *copy = arena_strdup(&e->arena, arg), *b = strchr(copy, ';');

    *b++ = 0;
    buf_adds(out, emit_merge_values(e, copy, b + (*b == ' ')));
}

static void emit_hole_exclusive(struct emitter *e, const char *arg, struct buf *out)
{
    if (e->k->flags & SCAN_EXCLUSIVE)
        buf_addf(out, "float before = __shfl_up_sync(0xffffffff, v, 1);\nif (%s == 0) before = %s;\n", arg,
                 emit_identity(e->k->stat[0].c, false));
}

static void emit_hole_exclusivesm(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    if (e->k->flags & SCAN_EXCLUSIVE)
        buf_addf(out, "float before = tid > 0 ? sm[tid - 1] : %s;\n", emit_identity(e->k->stat[0].c, false));
}

static void emit_hole_running(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    buf_addf(out, "float total = %s;\n", emit_merge_values(e, "carry", e->k->flags & SCAN_EXCLUSIVE ? "before" : "v"));
    emit_scan_store(e, "total", out);
}

/* "p": the score of this query and key. */
static void emit_hole_score(struct emitter *e, const char *arg, struct buf *out)
{
    const char *id = "s0";
    struct ax *dot = ax_id(&e->arena, "dot");

    (void)arg;
    buf_adds(out, "@identity float dot = 0.0f;\n");
    emit_hole_loops(e, "3", out);
    e->n_memo = 0;
    buf_addf(out, "dot += %s * ", emit_whole_value(e, e->k->a, out));
    buf_addf(out, "%s;\n", emit_whole_value(e, e->k->b, out));
    emit_hole_endloops(e, "3", out);
    e->n_memo = 0;
    buf_addf(out, "float p = %s;\n",
             emit_whole_value(e, ax_subst(&e->arena, e->k->stat[0].elem, &id, &dot, 1), out));
    e->n_memo = 0;
}

static void emit_hole_value(struct emitter *e, const char *arg, struct buf *out)
{
    (void)arg;
    e->n_memo = 0;
    buf_adds(out, emit_whole_value(e, e->k->c, out));
}

typedef void (*hole_fn)(struct emitter *e, const char *arg, struct buf *out);

static const struct {
    const char *key; /* a trailing '#' is a digit or letter that becomes the argument */
    hole_fn f;
} holes[] = {
    {"parampart", emit_hole_parampart}, {"argpart", emit_hole_argpart}, {"paramjoin", emit_hole_paramjoin},
    {"argjoin", emit_hole_argjoin},
    {"x", emit_hole_x}, {"add", emit_hole_add}, {"scatter", emit_hole_add}, {"decodebatch", emit_hole_decodebatch},
    {"decodefirst", emit_hole_decodefirst}, {"element", emit_hole_element}, {"mergepart", emit_hole_mergepart},
    {"last0", emit_hole_last},
    {"hlast0", emit_hole_hlast}, {"N#", emit_hole_N}, {"scanbegin", emit_hole_scanbegin}, {"before", emit_hole_before},
    {"after",
        emit_hole_after},
    {"J", emit_hole_J}, {"mergev", emit_hole_mergev}, {"exclusive", emit_hole_exclusive},
    {"exclusivesm", emit_hole_exclusivesm},
    {"running", emit_hole_running}, {"score", emit_hole_score}, {"value", emit_hole_value},
    {"aligned", emit_hole_aligned}, {"step4", emit_hole_step4}, {"map4", emit_hole_map4},
    {"decodeout", emit_hole_decodeout}, {"total", emit_hole_total}, {"decode#", emit_hole_decode},
    {"loops#", emit_hole_loops},
        {"endloops#", emit_hole_endloops}, {"begin", emit_hole_begin}, {"step", emit_hole_step},
    {"end", emit_hole_end}, {"shflx", emit_hole_shflx}, {"shfl", emit_hole_shfl}, {"smem", emit_hole_smem},
    {"put", emit_hole_put}, {"get",
        emit_hole_get},
    {"merge", emit_hole_merge}, {"identity", emit_hole_identity}, {"store", emit_hole_store},
    {"write", emit_hole_write}, {"batch",
        emit_hole_batch},
    {"product", emit_hole_product}, {"params", emit_hole_params}, {"args", emit_hole_args}, {"out", emit_hole_out},
    {"Bm", emit_hole_Bm},
        {"B1", emit_hole_B1},
    {"BH", emit_hole_BH}, {"n#", emit_hole_n}, {"h#", emit_hole_h}, {"A", emit_hole_A}, {"T", emit_hole_T},
    {"k", emit_hole_k},
    {"B", emit_hole_number}, {"C", emit_hole_number}, {"D", emit_hole_number}};

/* A parenthesised argument behind a hole, itself expanded; returns the place behind it. */
static const char *emit_argument(struct emitter *e, const char *p, char **ret)
{
    const char *q = p + 1;
    struct buf b;
    int depth = 1;

    while (depth)
        depth += *q == '(' ? 1 : *q == ')' ? -1 : 0, q++;
    buf_init(&b, BUF_MAX_TEXT);
    emit_expand(e, arena_strndup(&e->arena, p + 1, (size_t)(q - p - 2)), &b);
    *ret = arena_strdup(&e->arena, b.p);
    buf_free(&b);
    return q;
}

/* Expands the hole at p into out. Returns where the template goes on. */
static const char *emit_expand_hole(struct emitter *e, const char *p, struct buf *out)
{
    size_t n = 0;
    char key[16], *arg;

    while (isalnum((unsigned char)p[n]) && n < sizeof key - 1)
        n++;
    memcpy(key, p, n);
    key[n] = 0;
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        const char *want = holes[i].key;
        size_t m = strlen(want);
        bool digit = want[m - 1] == '#';
        if (digit ? n != m || strncmp(key, want, m - 1) : strcmp(key, want))
            continue;
        if (digit)
            arg = emit_format(e, "%c", key[n - 1]);
        else if (holes[i].f == emit_hole_number)
            arg = emit_format(e, "%s", key);
        else if (p[n] == '(' && holes[i].f != emit_hole_k)
            return holes[i].f(e, (p = emit_argument(e, p + n, &arg), arg), out), p;
        else
            arg = "";
        holes[i].f(e, arg, out);
        return p + n;
    }
    buf_addf(out, "$%s", key);
    return p + n;
}

static void emit_expand_stats(struct emitter *e, const char *text, struct buf *out)
{
    for (e->stat = 0; e->stat < e->k->n_stats; e->stat++)
        emit_expand(e, text, out);
    e->stat = -1;
}

/* Appends the template with its holes filled; %{..%} is repeated for each statistic. */
static void emit_expand(struct emitter *e, const char *text, struct buf *out)
{
    for (const char *p = text; *p;) {
        if (p[0] == '%' && p[1] == '{') {
            const char *end = strstr(p, "%}");
            emit_expand_stats(e, arena_strndup(&e->arena, p + 2, (size_t)(end - p - 2)), out);
            p = end + 2;
        } else if (*p == '$') {
            p = emit_expand_hole(e, p + 1, out);
        } else {
            buf_addc(out, *p++);
        }
    }
}

/* ---- the whole ---- */

/* Appends the host's allocation of the output; cleared where kernels add to it. */
static void emit_add_allocation(struct emitter *e, struct buf *host)
{
    const struct tdesc *o = &e->k->out_t;
    bool atomic = e->s->flags & SCHED_ATOMIC;
    const char *like = NULL;

    if (!e->k->n_in)
        return;
    if (e->k->class == NEST_SCATTER && e->k->init >= 0) {
        buf_addf(host, "auto %s = %s.clone();\n", e->p->out, e->p->name[e->k->init]);
        return;
    }
    atomic |= e->k->class == NEST_SCATTER;
    for (int i = 0; i < e->k->n_in && !like; i++)
        if (tdesc_same_shape(&e->k->in[i].t, o) && e->k->in[i].t.dtype == o->dtype)
            like = e->p->name[i];
    if (like) {
        buf_addf(host, "auto %s = torch::%s(%s);\n", e->p->out, atomic ? "zeros_like" : "empty_like", like);
        return;
    }
    buf_addf(host, "auto %s = torch::%s({", e->p->out, atomic ? "zeros" : "empty");
    for (int i = 0; i < o->rank; i++)
        buf_addf(host, "%s%d", i ? ", " : "", o->d[i]);
    buf_addf(host, "}, %s.options()%s);\n", e->p->name[0],
             e->k->in[0].t.dtype == o->dtype ? "" : o->dtype == DT_I64 ? ".dtype(torch::kInt64)" :
                 ".dtype(torch::kFloat32)");
}

static void emit_add_host_sizes(struct emitter *e, struct buf *host)
{
    for (int d = 0; d < e->k->n_dims && e->p->sizes == SIZES_PARAMS; d++)
        if (e->host[d])
            buf_addf(host, "int %s = %s;\n", e->sym[d], e->host[d]);
}

static void emit_mark_all_repeated(struct nest *k)
{
    for (int i = 0; i < k->n_stats; i++)
        emit_mark_repeated(k->stat[i].elem, k->stat[i].elem);
    emit_mark_repeated(k->out, k->out);
}

/* "$sizes" comes last: what is needed is known when the kernel is written. */
static void emit_replace_sizes(struct emitter *e, const char *text, struct buf *out)
{
    const char *at;

    while ((at = strstr(text, "$sizes"))) {
        buf_add(out, text, (size_t)(at - text));
        emit_add_sizes(e, out);
        text = at + 6;
    }
    buf_adds(out, text);
}

void emit_nest(const struct nest *k, const struct sched *s, const struct placing *p, struct buf *device,
    struct buf *host)
{
    struct emitter e = {.k = k, .s = s, .p = p, .stat = -1};
    struct nest *own = (struct nest *)(uintptr_t)k; /* only marks of repetition are set: the same for every schedule */
    struct buf kernel, launch;

    buf_init(&kernel, BUF_MAX_TEXT), buf_init(&launch, BUF_MAX_TEXT), buf_init(&e.helpers, BUF_MAX_TEXT);
    emit_mark_all_repeated(own);
    emit_name_sizes(&e);
    emit_name_dims(&e);
    emit_expand(&e, s->kernel, &kernel);
    emit_expand(&e, s->launch, &launch);
    buf_adds(device, e.helpers.p);
    emit_replace_sizes(&e, kernel.p, device);
    emit_add_host_sizes(&e, host);
    buf_addf(host, "%s\n", launch.p);
    buf_free(&kernel), buf_free(&launch), buf_free(&e.helpers);
    arena_free(&e.arena);
}

void emit_allocation(const struct nest *k, const struct sched *s, const struct placing *p, struct buf *host)
{
    struct emitter e = {.k = k, .s = s, .p = p};

    emit_add_allocation(&e, host);
    arena_free(&e.arena);
}
