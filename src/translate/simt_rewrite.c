/* simt_rewrite.c - CUDA launches and dynamic shared memory, rewritten on tokens.
 *
 * Two passes: the first learns which names are kernels and which of them are templates, overloaded or have default
 * arguments; the second copies the source and replaces the few constructs. A launch of a plain kernel becomes
 *     ::simt::cfg(SIMT_AT(name), CFG).of(CALLEE)(ARGS)
 * whose parameters convert once, as in CUDA; a kernel whose address cannot be taken without its arguments becomes
 *     ::simt::cfg(SIMT_AT(name), CFG).gen([=](auto &...simt_a) { CALLEE(simt_a...); })(ARGS) */
#include "translate/simt_rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "translate/lexer.h"
#include "translate/asm.h"

struct simt_rewrite_kernel {
    size_t name; /* token */
    bool generic;
};

/* __launch_bounds__ of a kernel with a body: the most threads of a block, as it is written. */
struct simt_rewrite_bound {
    size_t brace, from, to; /* tokens: the body's first; [from, to) the number */
};

/* What pairs with each bracket, and how many tokens of some kinds come before each: looked up, so that no search from
 * a token runs over the same text as the search from another. */
struct links {
    uint32_t *mate;    /* by token: the other bracket of ( [ { or < >, or NONE */
    uint32_t *strings; /* strings and characters before this token */
    uint32_t *equals;  /* '=' before this token */
};
#define NONE UINT32_MAX

struct rewriter {
    struct toks t;
    struct links l;
    struct simt_rewrite_kernel *kernels;
    size_t n_kernels, cap_kernels;
    uint32_t *slots; /* hash table: index into kernels + 1, or 0; n_slots is a power of two above 2 n_kernels */
    size_t n_slots;
    struct simt_rewrite_bound *bounds; /* in the order of their braces */
    size_t n_bounds, next_bound;
    struct buf *out;
    bool real; /* launches on a real device, and nothing else */
};

/* 1 for an opening bracket, -1 for a closing one, else 0. Angle brackets are not brackets here. */
static int simt_rewrite_bracket(const struct toks *t, size_t i)
{
    if (t->v[i].kind != TOK_PUNCT || t->v[i].n != 1)
        return 0;
    switch (t->src[t->v[i].at]) {
    case '(': case '[': case '{': return 1;
    case ')': case ']': case '}': return -1;
    default: return 0;
    }
}

/* ---- links ---- */

/* Open brackets and '<' that wait for their partner. A '<' is given up where its list cannot go on: at ';' and where
 * the bracket around it closes. */
struct stack {
    uint32_t *v;
    size_t n, base; /* base: what a directive may not reach below */
};

/* Drops open '<' that were no template brackets. */
static void simt_rewrite_give_up_angles(const struct toks *t, struct stack *s)
{
    while (s->n > s->base && t->src[t->v[s->v[s->n - 1]].at] == '<')
        s->n--;
}

/* Pairs the closing token i with the open one on top. */
static void simt_rewrite_pair(struct links *l, struct stack *s, size_t i)
{
    l->mate[i] = s->v[--s->n];
    l->mate[s->v[s->n]] = (uint32_t)i;
}

/* Links brackets and angles to their mates as token i opens or closes one. */
static void simt_rewrite_link_punct(const struct toks *t, struct links *l, struct stack *s, size_t i)
{
    char ch = t->src[t->v[i].at];

    if (simt_rewrite_bracket(t, i) > 0 || ch == '<')
        s->v[s->n++] = (uint32_t)i;
    else if (ch == '>' && s->n > s->base && t->src[t->v[s->v[s->n - 1]].at] == '<')
        simt_rewrite_pair(l, s, i);
    else if (ch == ';')
        simt_rewrite_give_up_angles(t, s);
    else if (simt_rewrite_bracket(t, i) < 0) {
        simt_rewrite_give_up_angles(t, s);
        if (s->n > s->base)
            simt_rewrite_pair(l, s, i);
    }
}

/* A directive's brackets pair among themselves: '#define BEGIN {' opens nothing around it. */
static void simt_rewrite_links_make(const struct toks *t, struct links *l)
{
    struct stack s = {xcalloc(t->n + 1, sizeof *s.v), 0, 0};
    uint32_t strings = 0, equals = 0;
    bool directive = false;

    l->mate = xcalloc(t->n + 1, sizeof *l->mate);
    l->strings = xcalloc(t->n + 1, sizeof *l->strings);
    l->equals = xcalloc(t->n + 1, sizeof *l->equals);
    for (size_t i = 0; i <= t->n; i++) {
        l->mate[i] = NONE;
        l->strings[i] = strings;
        l->equals[i] = equals;
        if (i == t->n)
            break;
        if (t->v[i].directive != directive) {
            if (directive)
                s.n = s.base;
            s.base = directive ? 0 : s.n;
            directive = !directive;
        }
        strings += t->v[i].kind == TOK_STRING || t->v[i].kind == TOK_CHAR;
        equals += tok_is(t, i, "=");
        if (t->v[i].kind == TOK_PUNCT && t->v[i].n == 1)
            simt_rewrite_link_punct(t, l, &s, i);
    }
    free(s.v);
}

static void simt_rewrite_links_free(struct links *l)
{
    free(l->mate);
    free(l->strings);
    free(l->equals);
}

/* Index of the bracket that closes the one at i (any of ( [ {), or t->n. */
static size_t simt_rewrite_close_of(const struct rewriter *r, size_t i)
{
    return r->l.mate[i] == NONE ? r->t.n : r->l.mate[i];
}

/* The bracket that opens the one at i (any of ) ] } >), or SIZE_MAX. */
static size_t simt_rewrite_open_of(const struct rewriter *r, size_t i)
{
    return r->l.mate[i] == NONE ? SIZE_MAX : r->l.mate[i];
}

/* ---- pass 1: kernels ---- */

/* Is the declaration that holds token i a template? Looks back to the end of the one before it, to the bracket around
 * it, or to another kernel's. */
static bool simt_rewrite_is_template(const struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;

    while (i > 0) {
        i--;
        if (tok_is(t, i, "template"))
            return true;
        if (tok_is_any(t, i, ";\0}\0{\0(\0[\0__global__\0") || t->v[i].directive)
            return false;
        if (tok_is(t, i, ")") && (i = simt_rewrite_open_of(r, i)) == SIZE_MAX)
            return false;
    }
    return false;
}

/* From a __global__ token: the token of the kernel's name, or t->n. The next __global__ and the end of the bracket
 * around this one end the search, so that searches never overlap. */
static size_t simt_rewrite_kernel_name(const struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;

    for (i = tok_next(t, i + 1); i < t->n; i = tok_next(t, i + 1)) {
        size_t next = tok_next(t, i + 1);

        if (tok_is_any(t, i, ";\0{\0}\0)\0]\0__global__\0"))
            break;
        if (t->v[i].kind != TOK_IDENT || !tok_is(t, next, "("))
            continue;
        if (!tok_is_any(t, i, "__launch_bounds__\0__attribute__\0__align__\0alignas\0__cluster_dims__\0"
                                       "__maxnreg__\0"
                                       "__block_size__\0decltype\0"))
            return i;
        if ((i = simt_rewrite_close_of(r, next)) == t->n)
            break;
    }
    return t->n;
}

/* The hash table's slot of a name: of the kernel called so, or the free one where it belongs. */
static uint32_t *simt_rewrite_slot_of(const struct rewriter *r, size_t name)
{
    const struct tok *k = &r->t.v[name];
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < k->n; i++)
        h = (h ^ (unsigned char)r->t.src[k->at + i]) * 1099511628211u;
    for (size_t i = (size_t)(h ^ h >> 32);; i++) {
        uint32_t *s = &r->slots[i & (r->n_slots - 1)];

        if (!*s || tok_same_text(&r->t, r->kernels[*s - 1].name, name))
            return s;
    }
}

static struct simt_rewrite_kernel *simt_rewrite_find_kernel(const struct rewriter *r, size_t name)
{
    uint32_t k = r->n_slots ? *simt_rewrite_slot_of(r, name) : 0;

    return k ? &r->kernels[k - 1] : NULL;
}

/* Adds a kernel to the table, which is found by name through slots. */
static void simt_rewrite_add_kernel(struct rewriter *r, struct simt_rewrite_kernel k)
{
    if (r->n_kernels == r->cap_kernels) {
        r->cap_kernels = r->cap_kernels ? r->cap_kernels * 2 : 16;
        r->kernels = xrealloc(r->kernels, r->cap_kernels * sizeof *r->kernels);
    }
    if (2 * (r->n_kernels + 1) > r->n_slots) {
        free(r->slots);
        r->n_slots = 4 * r->cap_kernels;
        r->slots = xcalloc(r->n_slots, sizeof *r->slots);
        for (size_t i = 0; i < r->n_kernels; i++)
            *simt_rewrite_slot_of(r, r->kernels[i].name) = (uint32_t)i + 1;
    }
    *simt_rewrite_slot_of(r, k.name) = (uint32_t)r->n_kernels + 1;
    r->kernels[r->n_kernels++] = k;
}

/* Notes a kernel's declaration; one of a template is generic. */
static void simt_rewrite_note_kernel(struct rewriter *r, size_t global, size_t name, size_t open, size_t close,
                                     bool body)
{
    /* a default argument */
    bool generic = simt_rewrite_is_template(r, global) || r->l.equals[close] > r->l.equals[open];
    struct simt_rewrite_kernel *k = simt_rewrite_find_kernel(r, name);

    if (k)
        k->generic |= generic || body; /* a second body is an overload */
    else
        simt_rewrite_add_kernel(r, (struct simt_rewrite_kernel){name, generic});
}

/* The first argument of __launch_bounds__ between the tokens of __global__ and of the kernel's name. */
static void simt_rewrite_note_bound(struct rewriter *r, size_t global, size_t name, size_t brace)
{
    const struct toks *t = &r->t;
    size_t i = global, open, close, to;

    while (i < name && !tok_is(t, i, "__launch_bounds__"))
        i++;
    open = tok_next(t, i + 1);
    if (i >= name || !tok_is(t, open, "(") || (close = simt_rewrite_close_of(r, open)) >= t->n)
        return;
    for (to = open + 1; to < close && !tok_is(t, to, ","); to++)
        if (simt_rewrite_bracket(t, to) > 0 && (to = simt_rewrite_close_of(r, to)) >= close)
            return;
    r->bounds = xrealloc(r->bounds, (r->n_bounds + 1) * sizeof *r->bounds);
    r->bounds[r->n_bounds++] = (struct simt_rewrite_bound){brace, open + 1, to};
}

/* A forward declaration followed by its definition is one kernel, so only bodies count towards overloading: pass over
 * declarations first would be wrong for generic(), hence the two loops. */
static void simt_rewrite_note_kernels(struct rewriter *r)
{
    const struct toks *t = &r->t;

    for (int bodies = 1; bodies >= 0; bodies--)
        for (size_t i = 0; i < t->n; i++) {
            size_t name, open, close;
            bool body;

            if (!tok_is(t, i, "__global__") || (name = simt_rewrite_kernel_name(r, i)) >= t->n)
                continue;
            open = tok_next(t, name + 1);
            if ((close = simt_rewrite_close_of(r, open)) >= t->n)
                continue;
            body = tok_is(t, tok_next(t, close + 1), "{");
            if (body == (bodies == 1))
                simt_rewrite_note_kernel(r, i, name, open, close, body);
            if (body && bodies)
                simt_rewrite_note_bound(r, i, name, tok_next(t, close + 1));
        }
}

/* ---- pass 2: copying ---- */

/* Appends the text of tokens [from, to). */
static void simt_rewrite_copy(struct rewriter *r, size_t from, size_t to)
{
    const struct toks *t = &r->t;

    if (from < to)
        buf_add(r->out, t->src + t->v[from].at, t->v[to].at - t->v[from].at);
}

/* Line breaks of tokens [from, to), so that what follows keeps its line. */
static void simt_rewrite_keep_lines(struct rewriter *r, size_t from, size_t to)
{
    const struct toks *t = &r->t;

    for (uint32_t n = t->v[to].line - t->v[from].line; n > 0; n--)
        buf_adds(r->out, t->v[from].directive ? "\\\n" : "\n");
}

/* True where tokens i to i + 2 are three of that mark, side by side. */
static bool simt_rewrite_three(const struct toks *t, size_t i, char ch)
{
    if (t->looks)
        ++*t->looks;
    for (size_t k = i; k < i + 3; k++)
        if (k >= t->n || t->v[k].kind != TOK_PUNCT || t->v[k].n != 1 || t->src[t->v[k].at] != ch)
            return false;
    return true;
}

struct launch {
    size_t callee, end_callee; /* tokens [callee, end_callee) */
    size_t name;               /* the identifier to report; the last part of a pasted one */
    bool targs;                /* explicit template arguments */
    size_t cfg, end_cfg;       /* between the brackets */
    size_t open, close;        /* the argument list's parentheses */
};

/* In a macro: the first token of the name that '##' makes of the one at i and of those before it. */
static size_t simt_rewrite_pasted_from(const struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;
    size_t a, b, c;

    while (t->v[i].directive && (a = tok_before(t, i)) != SIZE_MAX && tok_is(t, a, "#") &&
           (b = tok_before(t, a)) != SIZE_MAX && tok_is(t, b, "#") &&
           (c = tok_before(t, b)) != SIZE_MAX && t->v[c].directive && t->v[c].kind != TOK_PUNCT)
        i = c;
    return i;
}

/* One name of a possibly qualified callee, with its template arguments, walking back from i. Sets *ret_start. */
static bool simt_rewrite_back_over_name(const struct rewriter *r, size_t i, size_t *ret_start, size_t *ret_name,
                                        bool *ret_targs)
{
    const struct toks *t = &r->t;

    if (i == SIZE_MAX)
        return false;
    *ret_targs = tok_is(t, i, ">");
    if (*ret_targs && ((i = simt_rewrite_open_of(r, i)) == SIZE_MAX || (i = tok_before(t, i)) == SIZE_MAX))
        return false;
    *ret_name = i;
    *ret_start = simt_rewrite_pasted_from(r, i);
    /* what '##' puts behind a name may begin with a digit (2d_kernel) */
    return *ret_start < i ? t->v[i].kind != TOK_PUNCT
        : t->v[i].kind == TOK_IDENT && !tok_is_any(t, i, "return\0else\0do\0case\0throw\0");
}

/* Finds the kernel's expression in front of <<<; it goes to *l. False: there is none. */
static bool simt_rewrite_find_callee(const struct rewriter *r, size_t chevrons, struct launch *l)
{
    const struct toks *t = &r->t;
    size_t i = tok_before(t, chevrons), start, name, p;
    bool targs;

    if (i == SIZE_MAX)
        return false;
    l->end_callee = i + 1;
    l->targs = false;
    if (tok_is_any(t, i, ")\0]\0")) { /* (*table[k])<<<...>>>, pick(n)<<<...>>>, table[k]<<<...>>> */
        if ((start = simt_rewrite_open_of(r, i)) == SIZE_MAX)
            return false;
        l->name = l->callee = start;
        if ((p = tok_before(t, start)) != SIZE_MAX && t->v[p].kind == TOK_IDENT &&
            !tok_is_any(t, p, "return\0else\0do\0"))
            l->name = l->callee = p;
        return true;
    }
    if (!simt_rewrite_back_over_name(r, i, &start, &l->name, &l->targs))
        return false;
    for (;;) {
        p = tok_before(t, start);
        if (p != SIZE_MAX && tok_is(t, p, "template"))
            p = tok_before(t, start = p);
        if (p == SIZE_MAX || !tok_is_any(t, p, "::\0.\0->\0"))
            break;
        start = p;
        if (!simt_rewrite_back_over_name(r, tok_before(t, p), &start, &name, &targs))
            break;
    }
    l->callee = start;
    return true;
}

/* True where token i is the <<< of a launch, whose parts go to *l. */
static bool simt_rewrite_find_launch(const struct rewriter *r, size_t i, struct launch *l)
{
    const struct toks *t = &r->t;
    bool directive = t->v[i].directive;
    size_t k;

    if (!simt_rewrite_three(t, i, '<') || !simt_rewrite_find_callee(r, i, l))
        return false;
    l->cfg = i + 3;
    for (k = l->cfg; k < t->n && !simt_rewrite_three(t, k, '>'); k++) {
        if (simt_rewrite_three(t, k, '<') || (directive && !t->v[k].directive))
            return false;
        if (simt_rewrite_bracket(t, k) < 0 || tok_is(t, k, ";"))
            return false;
        if (simt_rewrite_bracket(t, k) > 0 && (k = simt_rewrite_close_of(r, k)) >= t->n)
            return false;
    }
    l->end_cfg = k;
    l->open = k < t->n ? tok_next(t, k + 3) : t->n;
    if (!tok_is(t, l->open, "(") || t->v[l->open].directive != directive)
        return false;
    l->close = simt_rewrite_close_of(r, l->open);
    return l->close < t->n && tok_next(t, l->cfg) < l->end_cfg;
}

enum { NEAR = 400 }; /* tokens: how far back a macro's variable may be set */

/* In a macro's body: 'auto kernel = choose<A>; ... kernel<<<...>>>(...)'. */
static bool simt_rewrite_is_variable(const struct rewriter *r, size_t name)
{
    const struct toks *t = &r->t;

    for (size_t i = name; i-- > 0 && name - i < NEAR && t->v[i].directive;)
        if (t->v[i].kind == TOK_IDENT && tok_same_text(t, i, name) && tok_is(t, tok_next(t, i + 1), "=") &&
            tok_is_any(t, tok_before(t, i), "auto\0*\0"))
            return true;
    return false;
}

/* True where the kernel's parameters are known only at compile time. */
static bool simt_rewrite_launch_is_generic(const struct rewriter *r, const struct launch *l)
{
    const struct simt_rewrite_kernel *k = simt_rewrite_find_kernel(r, l->name);

    return l->targs || (k && k->generic) ||
           (r->t.v[l->callee].directive && r->t.v[l->name].kind != TOK_PUNCT &&
            !(!k && simt_rewrite_is_variable(r, l->name)));
}

/* Arguments are copied, but NULL would deduce an integer type in the generic form. */
static void simt_rewrite_emit_args(struct rewriter *r, const struct launch *l, bool generic)
{
    size_t from = l->open;

    for (size_t i = l->open; generic && i < l->close; i++)
        if (tok_is(&r->t, i, "NULL")) {
            simt_rewrite_copy(r, from, i);
            buf_adds(r->out, "nullptr");
            from = i + 1;
        }
    simt_rewrite_copy(r, from, l->close + 1);
}

/* As nvcc writes it: the configuration is pushed, the kernel's stub pops it. */
static void simt_rewrite_emit_real_launch(struct rewriter *r, const struct launch *l)
{
    buf_adds(r->out, "(::lt::push(");
    simt_rewrite_copy(r, l->cfg, l->end_cfg);
    buf_adds(r->out, ") ? (void)0 : ");
    simt_rewrite_copy(r, l->callee, l->end_callee);
    simt_rewrite_keep_lines(r, l->end_callee, l->cfg);
    simt_rewrite_keep_lines(r, l->end_cfg, l->open);
    simt_rewrite_copy(r, l->open, l->close + 1);
    buf_adds(r->out, ")");
}

/* Appends a launch as a call of the emulator. */
static void simt_rewrite_emit_launch(struct rewriter *r, const struct launch *l)
{
    const struct toks *t = &r->t;
    bool generic = simt_rewrite_launch_is_generic(r, l), named = t->v[l->name].kind != TOK_PUNCT;

    buf_adds(r->out, "::simt::cfg(SIMT_AT(");
    if (named)
        simt_rewrite_copy(r, simt_rewrite_pasted_from(r, l->name), l->name + 1);
    else
        buf_adds(r->out, "kernel");
    buf_adds(r->out, "), ");
    simt_rewrite_copy(r, l->cfg, l->end_cfg);
    buf_adds(r->out, generic ? ").gen([=](auto &...simt_a) { " : ").of(");
    simt_rewrite_copy(r, l->callee, l->end_callee);
    buf_adds(r->out, generic ? "(simt_a...); })" : ")");
    simt_rewrite_keep_lines(r, l->end_callee, l->cfg);
    simt_rewrite_keep_lines(r, l->end_cfg, l->open);
    simt_rewrite_emit_args(r, l, generic);
}

/* 'extern ... __shared__ ... name[]dims;' */
struct dynamic_shared {
    size_t type, name, dims, semicolon; /* dims: first token behind the empty brackets */
};

/* As simt_rewrite_kernel_name(), the search ends at the next of its kind and where the bracket around it closes. */
static bool simt_rewrite_find_dynamic_shared(const struct rewriter *r, size_t i, struct dynamic_shared *d)
{
    const struct toks *t = &r->t;
    bool shared = false;
    size_t k;

    if (!tok_is(t, i, "extern"))
        return false;
    d->name = d->dims = t->n;
    for (k = tok_next(t, i + 1); k < t->n && !tok_is_any(t, k, ";\0{\0}\0)\0=\0,\0\"C\"\0extern\0");
         k = tok_next(t,
        k + 1)) {
        if (t->v[k].directive != t->v[i].directive)
            return false;
        shared |= tok_is(t, k, "__shared__");
        if (tok_is(t, k, "(") && (k = simt_rewrite_close_of(r, k)) >= t->n)
            return false;
        if (tok_is(t, k, "[") && d->name == t->n) {
            d->name = tok_before(t, k);
            d->dims = simt_rewrite_close_of(r, k) + 1;
        }
    }
    d->type = i + 1;
    d->semicolon = k;
    if (r->l.strings[k] > r->l.strings[i])
        return false;
    return shared && tok_is(t, k, ";") && d->name > i && d->name < k && t->v[d->name].kind == TOK_IDENT &&
           d->dims <= k;
}

/* The tokens on one line, without storage class and alignment: dynamic shared memory is aligned for everything. */
static void simt_rewrite_emit_flat(struct rewriter *r, size_t from, size_t to)
{
    const struct toks *t = &r->t;

    for (size_t i = from; i < to; i++) {
        if (tok_is_any(t, i, "__shared__\0static\0"))
            continue;
        if (tok_is_any(t, i, "__align__\0alignas\0__attribute__\0") && tok_is(t, tok_next(t, i + 1), "(")) {
            i = simt_rewrite_close_of(r, tok_next(t, i + 1));
            continue;
        }
        if (tok_blank(t, i))
            buf_addc(r->out, ' ');
        else
            buf_add(r->out, t->src + t->v[i].at, t->v[i].n);
    }
}

/* Appends a declaration of dynamic shared memory as a pointer into the emulator's. */
static void simt_rewrite_emit_dynamic_shared(struct rewriter *r, size_t start, const struct dynamic_shared *d)
{
    const struct toks *t = &r->t;
    bool rows = tok_next(t, d->dims) < d->semicolon; /* T name[][N]: a pointer to rows */

    buf_adds(r->out, "__attribute__((unused)) ");
    simt_rewrite_emit_flat(r, d->type, d->name);
    buf_adds(r->out, rows ? "(*const " : "*const ");
    buf_add(r->out, t->src + t->v[d->name].at, t->v[d->name].n);
    if (rows) {
        buf_adds(r->out, ")");
        simt_rewrite_emit_flat(r, d->dims, d->semicolon);
    }
    buf_adds(r->out, " = (");
    simt_rewrite_emit_flat(r, d->type, d->name);
    buf_adds(r->out, rows ? "(*)" : "*");
    if (rows)
        simt_rewrite_emit_flat(r, d->dims, d->semicolon);
    buf_adds(r->out, ")simt_dynamic_shared");
    simt_rewrite_keep_lines(r, start, d->semicolon);
}

/* '__shared__ alignas(16) T x': nvcc takes the alignment behind the storage class, C++ in front alone. */
static size_t simt_rewrite_late_alignment(struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;
    size_t end = i + 1, k, close;

    while (tok_is(t, k = tok_next(t, end), "alignas") && tok_is(t, tok_next(t, k + 1), "(")) {
        if ((close = simt_rewrite_close_of(r, tok_next(t, k + 1))) >= t->n)
            break;
        simt_rewrite_keep_lines(r, end, k);
        simt_rewrite_copy(r, k, close + 1);
        buf_addc(r->out, ' ');
        end = close + 1;
    }
    if (end == i + 1)
        return i;
    simt_rewrite_copy(r, i, i + 1);
    return end;
}

/* ---- kernels that host functions launch by a pointer without a type ---- */

/* After "cudaLaunchKernel (": the token behind "(void *)" or "reinterpret_cast<const void *>", or i. With the cast the
 * kernel's parameters would be lost, which the header's template needs. */
static size_t simt_rewrite_behind_cast(const struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;
    size_t k = i, close;

    if (tok_is_any(t, k, "reinterpret_cast\0static_cast\0"))
        k = tok_next(t, k + 1);
    close = tok_is_any(t, k, "(\0<\0") ? r->l.mate[k] : NONE;
    if (close == NONE)
        return i;
    for (k = tok_next(t, k + 1); k < close; k = tok_next(t, k + 1))
        if (!tok_is_any(t, k, "const\0void\0*\0"))
            return i;
    return tok_next(t, close + 1);
}

static size_t simt_rewrite_untyped_launch(const struct rewriter *r, size_t i, size_t *ret_open)
{
    const struct toks *t = &r->t;
    size_t first;

    if (!tok_is_any(t, i, "cudaLaunchKernel\0cudaLaunchCooperativeKernel\0musaLaunchKernel\0"
                                   "musaLaunchCooperativeKernel\0"))
        return i;
    *ret_open = tok_next(t, i + 1);
    if (!tok_is(t, *ret_open, "("))
        return i;
    first = tok_next(t, *ret_open + 1);
    return simt_rewrite_behind_cast(r, first) == first ? i : simt_rewrite_behind_cast(r, first);
}

/* ---- asm statements ---- */

static size_t simt_rewrite_mate_of(const void *r, size_t i)
{
    return simt_rewrite_close_of(r, i);
}

/* "asm volatile("" ::: "memory")" tells the compiler something, and 'int f() asm("name")' is a name: both stay. */
static bool simt_rewrite_emit_asm(struct rewriter *r, size_t i, const struct asm_statement *a)
{
    const struct asm_mates m = {simt_rewrite_mate_of, r};
    struct ptx_operand v[ASM_OPERANDS];
    struct buf text;
    int n = asm_operands(&r->t, &m, a, v);
    bool known;

    buf_init(&text, BUF_MAX_TEXT);
    known = asm_text(&r->t, a, &text) && n >= 0;
    if (known && !asm_is_code(a, text.p)) {
        buf_free(&text);
        return false;
    }
    if (known)
        ptx_translate(text.p, a->n_sections > 0, v, (size_t)n, r->out);
    else
        buf_adds(r->out, "::simt::ptx::unsupported(\"inline PTX whose text macros make\")");
    simt_rewrite_keep_lines(r, i, a->close);
    buf_free(&text);
    return true;
}

/* At the brace of a kernel with bounds: a larger block is refused, as a card refuses its launch. */
static bool simt_rewrite_emit_bound(struct rewriter *r, size_t i)
{
    const struct simt_rewrite_bound *b;

    if (r->next_bound == r->n_bounds || r->bounds[r->next_bound].brace != i)
        return false;
    b = &r->bounds[r->next_bound++];
    simt_rewrite_copy(r, i, i + 1);
    buf_adds(r->out, " SIMT_BOUNDS((");
    simt_rewrite_emit_flat(r, b->from, b->to);
    buf_adds(r->out, "))");
    return true;
}

/* Emits the replacement of what starts at token i and returns the token behind it, or i if nothing starts here. */
enum { DECLARATOR_MOST = 40 }; /* tokens between __device__ and what shows that a variable is declared */

/* '__device__ T name' and no function. */
static bool simt_rewrite_is_device_variable(const struct toks *t, size_t i)
{
    if (!tok_is(t, i, "__device__"))
        return false;
    for (size_t k = tok_next(t, i + 1), n = 0; k < t->n && n < DECLARATOR_MOST; k = tok_next(t, k + 1), n++) {
        if (tok_is_any(t, k, "=\0;\0[\0"))
            return n > 1;
        if (tok_is_any(t, k, "(\0{\0)\0}\0,\0"))
            return false;
    }
    return false;
}

/* Rewrites what begins at token i, if anything does; the next token to look at. */
static size_t simt_rewrite_replace(struct rewriter *r, size_t i)
{
    const struct toks *t = &r->t;
    struct dynamic_shared d;
    const struct asm_mates m = {simt_rewrite_mate_of, r};
    struct asm_statement a;
    size_t open, next;

    if (!r->real && simt_rewrite_emit_bound(r, i))
        return i + 1;
    if (r->real || t->v[i].kind != TOK_IDENT)
        return i;
    if (tok_is(t, i, "__noinline__")) { /* a macro of this name would break the standard library's attributes */
        buf_adds(r->out, t->v[i].directive ? "__noinline__" : "SIMT_NOINLINE");
        return i + 1;
    }
    if (!r->real && simt_rewrite_is_device_variable(t, i)) {
        buf_adds(r->out, "SIMT_ROOT"); /* the host may name it where no kernel does */
        return i + 1;
    }
    if (tok_is(t, i, "static") && tok_is(t, tok_next(t, i + 1), "__shared__"))
        return i + 1; /* __shared__ is static already */
    if (tok_is(t, i, "__shared__") && (next = simt_rewrite_late_alignment(r, i)) != i)
        return next;
    if ((next = simt_rewrite_untyped_launch(r, i, &open)) != i) {
        simt_rewrite_copy(r, i, open + 1);
        simt_rewrite_keep_lines(r, open + 1, next);
        return next;
    }
    if (asm_find(t, &m, i, &a) && simt_rewrite_emit_asm(r, i, &a))
        return a.close + 1;
    if (simt_rewrite_find_dynamic_shared(r, i, &d)) {
        simt_rewrite_emit_dynamic_shared(r, i, &d);
        return d.semicolon;
    }
    return i;
}

/* The first launch whose callee starts at or behind token i; false if there is none. */
static bool simt_rewrite_next_launch(const struct rewriter *r, size_t i, size_t *scan, struct launch *l)
{
    for (; *scan < r->t.n; ++*scan)
        if (simt_rewrite_find_launch(r, *scan, l) && l->callee >= i) {
            *scan = l->cfg;
            return true;
        }
    return false;
}

/* Appends the whole source with launches and declarations replaced. */
static void simt_rewrite_rewrite(struct rewriter *r)
{
    const struct toks *t = &r->t;
    struct launch l;
    size_t scan = 0, next;
    bool more = simt_rewrite_next_launch(r, 0, &scan, &l);

    for (size_t i = 0; i < t->n;) {
        if (more && i == l.callee) {
            (r->real ? simt_rewrite_emit_real_launch : simt_rewrite_emit_launch)(r, &l);
            i = l.close + 1;
            more = simt_rewrite_next_launch(r, i, &scan, &l);
        } else if ((next = simt_rewrite_replace(r, i)) > i) {
            i = next;
            while (more && l.callee < i)
                more = simt_rewrite_next_launch(r, i, &scan, &l);
        } else {
            simt_rewrite_copy(r, i, i + 1);
            i++;
        }
    }
}

/* Appends a #line directive for the user's file. */
static void simt_rewrite_emit_line_directive(struct buf *out, const char *filename)
{
    buf_adds(out, "#line 1 \"");
    for (const char *p = filename; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_addc(out, '\\');
        buf_addc(out, *p == '\n' ? '?' : *p);
    }
    buf_adds(out, "\"\n");
}

/* Rewrites a source into out. real: for a compiler of a card; looks: notes which replacements were looked for.
 * ERR_INPUT: it is no text. */
static int rewrite_source(const char *src, size_t n, const char *filename, bool real, struct buf *out, uint64_t *looks,
                          struct err *e)
{
    struct rewriter r = {.out = out, .real = real};

    if (memchr(src, 0, n))
        return err_set(e, ERR_INPUT, "'%s' holds a NUL byte; sources are text", filename);
    if (n >= NONE)
        return err_set(e, ERR_INPUT, "'%s' is too long to rewrite", filename);
    lex(src, n, &r.t);
    r.t.looks = looks;
    simt_rewrite_links_make(&r.t, &r.l);
    simt_rewrite_note_kernels(&r);
    simt_rewrite_emit_line_directive(out, filename);
    simt_rewrite_rewrite(&r);
    free(r.kernels);
    free(r.bounds);
    free(r.slots);
    simt_rewrite_links_free(&r.l);
    toks_free(&r.t);
    if (out->cut)
        return err_set(e, ERR_INPUT, "'%s' is too long after rewriting", filename);
    return 0;
}

int simt_rewrite_counted(const char *src, size_t n, const char *filename, struct buf *out, uint64_t *looks,
                         struct err *e)
{
    return rewrite_source(src, n, filename, false, out, looks, e);
}

int simt_rewrite_launches(const char *src, size_t n, const char *filename, struct buf *out, struct err *e)
{
    return rewrite_source(src, n, filename, true, out, NULL, e);
}

int simt_rewrite(const char *src, size_t n, const char *filename, struct buf *out, struct err *e)
{
    return simt_rewrite_counted(src, n, filename, out, NULL, e);
}
