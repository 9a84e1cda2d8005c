/* musa_cxx.c - one C++ text: names by rows and prefixes, includes, guards by what they mean,
    and what has no counterpart.
 * Reading order: musa_cxx at the end, token(), musa_cxx_name(). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate/asm.h"
#include "translate/musa_work.h"

struct cxx {
    struct musa_work *w;
    const struct musa_text *t;
    struct toks k;
    bool ptx;  /* inline PTX became plain code here */
    bool keep; /* some of it cannot: all of it stays, for a hand that finishes the file */
};

static const char *musa_cxx_word(const struct cxx *c, size_t i)
{
    return c->k.src + c->k.v[i].at;
}

/* Notes that the word at i has no counterpart. */
static void musa_cxx_refuse(struct cxx *c, size_t i, const struct musa_lack *l)
{
    musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, l->rule, '-', "'%.*s': %s", (int)c->k.v[i].n, musa_cxx_word(c, i),
              l->why);
}

/* ---- names that the text declares itself ---- */

static const char no_types[] =
    "return\0else\0case\0goto\0new\0delete\0const\0volatile\0static\0extern\0inline\0constexpr\0typename\0struct\0"
    "class\0enum\0union\0sizeof\0throw\0typedef\0using\0namespace\0operator\0and\0or\0not\0do\0if\0while\0co_return\0"
    "__restrict__\0register\0__global__\0__device__\0__host__\0template\0define\0undef\0ifdef\0ifndef\0elif\0defined\0"
    "__forceinline__\0__inline__\0thread_local\0mutable\0public\0private\0";

/* 'type name' followed by what can follow a name in its declaration. */
static bool musa_cxx_declared_at(const struct toks *k, size_t i)
{
    size_t p = tok_before(k, i), n = tok_after(k, i);

    if (p == SIZE_MAX)
        return false;
    if (tok_is_any(k, p, "struct\0class\0enum\0union\0"))
        return tok_is_any(k, n, "{\0:\0");
    if (tok_is_any(k, p, "using\0"))
        return tok_is(k, n, "=");
    if (tok_is_ident(k, p) && !tok_is_any(k, p, no_types))
        return tok_is_any(k, n, "=\0;\0,\0)\0(\0{\0[\0");
    if (tok_is_any(k, p, "*\0&\0>\0")) {
        size_t q = tok_before(k, p);
        bool type = q != SIZE_MAX && (tok_is_ident(k, q) || tok_is_any(k, q, ">\0*\0")) &&
            !tok_is_any(k, q, "return\0");
        return type && (tok_is_any(k, n, ";\0[\0") || (tok_is(k, n, "=") && !tok_is(k, n + 1, "=")));
    }
    return false;
}

/* Adds the names that the source defines itself: macros and declarations. */
static void musa_cxx_own_names(struct musa_names *names, const struct toks *k)
{
    for (size_t i = 0; i < k->n; i++) {
        size_t p;

        if (k->v[i].kind != TOK_IDENT)
            continue;
        p = tok_before(k, i);
        if ((k->v[i].directive && p != SIZE_MAX && tok_is(k, p, "define")) || musa_cxx_declared_at(k, i))
            musa_own_add(names, k->src + k->v[i].at, k->v[i].n);
    }
}

void musa_cxx_names(struct musa_names *names, const struct musa_text *t)
{
    struct toks k;

    lex(t->s, t->n, &k);
    musa_cxx_own_names(names, &k);
    toks_free(&k);
}

/* ---- words ---- */

/* The word with its prefix exchanged, in the arena. */
static const char *musa_cxx_exchanged(struct musa_work *w, const struct musa_prefix *p, const char *s, size_t n,
                                      size_t skip)
{
    const char *to = musa_back(w) ? p->cuda : p->musa;
    size_t k = strlen(to);
    char *out = arena_alloc(&w->arena, k + n - skip + 1);

    memcpy(out, to, k);
    memcpy(out + k, s + skip, n - skip);
    return out;
}

/* The row of the table for a word, or for a member's name. */
static const struct musa_row *musa_cxx_row_for(const struct musa_work *w, const char *s, size_t n, bool member)
{
    const struct musa_row *r = member ? musa_row_find(ROW_MEMBER, s, n, musa_back(w)) : NULL;

    return r ? r : musa_row_find(ROW_NAME, s, n, musa_back(w));
}

bool musa_word(struct musa_work *w, const struct musa_text *t, size_t i, size_t n, bool member)
{
    const char *s = t->s + i;
    const struct musa_row *r = musa_cxx_row_for(w, s, n, member);
    const struct musa_prefix *p;
    size_t skip;

    if (r) {
        musa_replace(w, t, i, n, musa_back(w) ? r->cuda : r->musa);
        musa_used(w, t, i, musa_back(w) ? r->musa : r->cuda, musa_back(w) ? r->cuda : r->musa, r->evidence, r->one_way);
        return true;
    }
    if (musa_owns(w, s, n) || !(p = musa_prefix_find(s, n, musa_back(w), &skip)))
        return false;
    musa_replace(w, t, i, n, musa_cxx_exchanged(w, p, s, n, skip));
    musa_used(w, t, i, musa_back(w) ? p->musa : p->cuda, musa_back(w) ? p->cuda : p->musa, p->evidence, false);
    return true;
}

/* 'cuda' as a namespace; a variable of that name stays. */
static bool musa_cxx_is_namespace(const struct toks *k, size_t i)
{
    size_t p = tok_before(k, i), n = tok_after(k, i);

    return tok_is(k, n, "::") || (p != SIZE_MAX && tok_is_any(k, p, "::\0namespace\0"));
}

/* DeviceType::CUDA, DispatchKey::CUDA, and the key of TORCH_LIBRARY_IMPL. */
static bool musa_cxx_is_device_enum(const struct toks *k, size_t i)
{
    size_t p = tok_before(k, i), q = p == SIZE_MAX ? SIZE_MAX : tok_before(k, p);

    if (q == SIZE_MAX)
        return false;
    if (tok_is(k, p, "::"))
        return tok_is_any(k, q, "DeviceType\0Backend\0DispatchKey\0");
    if (!tok_is(k, p, ",") || !tok_is_ident(k, q))
        return false;
    p = tok_before(k, q);
    q = p == SIZE_MAX ? SIZE_MAX : tok_before(k, p);
    return q != SIZE_MAX && tok_is(k, p, "(") && tok_is(k, q, "TORCH_LIBRARY_IMPL");
}

/* ---- guards ---- */

/* The generation that has what an NVIDIA guard asks for. Above 1000 the number stays: no MUSA device reaches it,
 * so what it guards stays out. */
static long musa_cxx_meaning(long cuda)
{
    if (cuda >= 1000 || cuda < 200)
        return cuda;
    return cuda <= 750 ? 210 : cuda <= 800 ? 220 : 310;
}

/* The CUDA architecture that stands for a MUSA one. */
static long musa_cxx_meaning_back(long musa)
{
    return musa == 210 ? 700 : musa == 220 ? 800 : musa == 310 ? 900 : musa;
}

/* Translates an architecture's number in a comparison such as __CUDA_ARCH__ >= 800, or notes that it is none. */
static void musa_cxx_guard_number(struct cxx *c, size_t i, bool exclusive)
{
    const struct tok *v = &c->k.v[i];
    char text[24];
    long was, now, back;

    snprintf(text, sizeof text, "%.*s", (int)(v->n < 20 ? v->n : 20), musa_cxx_word(c, i));
    was = strtol(text, NULL, 10);
    now = musa_back(c->w) ? musa_cxx_meaning_back(was)
        : musa_cxx_meaning(was + (exclusive && was < 1000 && was >= 750 ? 1 : 0));
    back = musa_back(c->w) ? musa_cxx_meaning(now) : musa_cxx_meaning_back(now);
    if (back != was || exclusive)
        musa_note(c->w, c->t, v->at, MUSA_LOSSY, "guard", 'V',
                  "the guard %ld becomes %ld, which comes back as %ld", was, now, back);
    if (now == was)
        return;
    snprintf(text, sizeof text, "%ld", now);
    musa_replace(c->w, c->t, v->at, v->n, arena_strdup(&c->w->arena, text));
}

/* __CUDA_ARCH__ OP NUMBER. '> N' and '<= N' mean the next generation, so they become '>= M' and '< M'. */
static void musa_cxx_guard(struct cxx *c, size_t i)
{
    size_t op = tok_after(&c->k, i), num;
    bool wide;

    if (!tok_is_any(&c->k, op, ">\0<\0=\0!\0")) {
        if (tok_is_any(&c->k, op, "/\0%\0*\0+\0-\0"))
            musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, "guard", '-',
                      "arithmetic with the architecture's number");
        return;
    }
    wide = tok_is(&c->k, op + 1, "=");
    num = tok_after(&c->k, wide ? op + 1 : op);
    if (num >= c->k.n || c->k.v[num].kind != TOK_NUMBER) {
        musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, "guard", '-',
                  "the architecture is compared with something else than a number");
        return;
    }
    if (tok_is_any(&c->k, op, "=\0!\0"))
        musa_note(c->w, c->t, c->k.v[i].at, MUSA_ADVICE, "guard", '-', "the guard asks for one architecture only");
    if (musa_back(c->w) || tok_is_any(&c->k, op, "=\0!\0") || wide == tok_is(&c->k, op, ">") ||
        c->k.v[num].n > 9) {
        musa_cxx_guard_number(c, num, false);
        return;
    }
    musa_cxx_guard_number(c, num, true);
    if (tok_is(&c->k, op, ">"))
        musa_replace(c->w, c->t, c->k.v[op].at, c->k.v[op].n, ">=");
    else if (wide)
        musa_replace(c->w, c->t, c->k.v[op + 1].at, c->k.v[op + 1].n, "");
}

/* ---- includes ---- */

static bool musa_cxx_ends_with(const char *s, size_t n, const char *tail)
{
    size_t k = strlen(tail);

    return n > k && !memcmp(s + n - k, tail, k);
}

/* A program's own header: 'x.cuh' is 'x.muh', since mcc goes by the ending. */
static void musa_cxx_own_header(struct cxx *c, size_t at, size_t n)
{
    const char *from = musa_back(c->w) ? ".muh" : ".cuh", *to = musa_back(c->w) ? ".cuh" : ".muh";

    if (musa_cxx_ends_with(c->t->s + at, n, from))
        musa_replace(c->w, c->t, at + n - 4, 4, to);
}

/* Translates the path of an #include of n bytes at 'at', or notes that MUSA lacks it. */
static void musa_cxx_include_path(struct cxx *c, size_t at, size_t n, bool quoted)
{
    const char *s = c->t->s + at;
    bool back = musa_back(c->w);
    const struct musa_row *r = musa_row_find(ROW_INCLUDE, s, n, back);
    const struct musa_lack *l = back ? NULL : musa_lack_find(musa_include_lacks, s, n);
    int arch = c->w->o->target ? c->w->o->target->arch : 0;

    if (!back && n > 13 && !memcmp(s, "cuda_pipeline", 13)) { /* its functions are plain code */
        c->ptx = true;
        musa_replace(c->w, c->t, at, n, "musa_runtime.h");
    } else if (l && !(r && l->arch == 0) && !(quoted && !r && !strcmp(l->rule, "header")) && !(l->arch && (!arch ||
        arch >= l->arch))) {
        musa_note(c->w, c->t, at, MUSA_REFUSED, l->rule, '-', "<%.*s>: %s", (int)n, s, l->why);
    } else if (r) {
        musa_replace(c->w, c->t, at, n, back ? r->cuda : r->musa);
        musa_used(c->w, c->t, at, back ? r->musa : r->cuda, back ? r->cuda : r->musa, r->evidence, r->one_way);
    } else if (n > 9 && !memcmp(s, back ? "musa/std/" : "cuda/std/", 9)) {
        musa_replace(c->w, c->t, at, 4, back ? "cuda" : "musa");
        musa_used(c->w, c->t, at, back ? "musa/std/" : "cuda/std/", back ? "cuda/std/" : "musa/std/", 'T', false);
    } else if (quoted) {
        musa_cxx_own_header(c, at, n);
    }
}

/* '#' at i. Returns the token behind the path, or i if this is no include. */
static size_t musa_cxx_include(struct cxx *c, size_t i)
{
    size_t w = tok_after(&c->k, i), open = w < c->k.n ? tok_after(&c->k, w) : c->k.n, close;

    if (!tok_is(&c->k, w, "include") || open >= c->k.n || !c->k.v[open].directive)
        return i;
    if (c->k.v[open].kind == TOK_STRING && c->k.v[open].n > 2) {
        musa_cxx_include_path(c, c->k.v[open].at + 1, c->k.v[open].n - 2, true);
        return open + 1;
    }
    if (!tok_is(&c->k, open, "<"))
        return open;
    for (close = open; close < c->k.n && c->k.v[close].directive && !tok_is(&c->k, close, ">"); close++)
        ;
    if (close < c->k.n && close > open + 1)
        musa_cxx_include_path(c, c->k.v[open + 1].at, c->k.v[close].at - c->k.v[open + 1].at, false);
    return close;
}

/* ---- what has no counterpart ---- */

enum { LONGEST_ASM = 8192 }; /* tokens: the search for an end stays short in garbage */

/* The place of the bracket that closes the one at 'open'; the end where none does. */
static size_t musa_cxx_close_of(const void *ctx, size_t open)
{
    const struct toks *k = ctx;
    int depth = 0;

    for (size_t i = open; i < k->n && i < open + LONGEST_ASM; i++) {
        depth += tok_is_any(k, i, "(\0[\0{\0") ? 1 : tok_is_any(k, i, ")\0]\0}\0") ? -1 : 0;
        if (depth == 0)
            return i;
    }
    return k->n;
}

/* Replaces bytes [at, end) of the text; the line breaks among them stay. */
static void musa_cxx_replace_lines(struct cxx *c, size_t at, size_t end, const char *text, bool directive)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    buf_adds(&b, text);
    for (size_t i = at; i < end; i++)
        if (c->t->s[i] == '\n')
            buf_adds(&b, directive ? "\\\n" : "\n");
    musa_replace(c->w, c->t, at, end - at, arena_strdup(&c->w->arena, b.p));
    buf_free(&b);
}

/* The statement's operands stay where they are, so that their names are translated as any; what is around them goes. */
static void musa_cxx_plain_statement(struct cxx *c, size_t i, const struct asm_statement *a,
                                     const struct ptx_operand *v, int n, struct buf *head, const struct buf *tail)
{
    const struct tok *close = &c->k.v[a->close];
    size_t at = c->k.v[i].at;

    for (int k = 0; k < n; k++) {
        struct buf behind;
        size_t expr = (size_t)(v[k].text - c->t->s);

        buf_init(&behind, BUF_MAX_TEXT);
        ptx_bind(v, (size_t)k, true, head, &behind);
        musa_cxx_replace_lines(c, at, expr, head->p, c->k.v[i].directive);
        head->n = 0;
        buf_add(head, behind.p, behind.n);
        buf_free(&behind);
        at = expr + v[k].n_text;
    }
    buf_add(head, tail->p, tail->n);
    musa_cxx_replace_lines(c, at, close->at + close->n, head->p, c->k.v[i].directive);
}

/* Code can be put in front of the text: it has lines of its own. */
static bool musa_cxx_has_room(const struct cxx *c)
{
    const char *nl = memchr(c->t->s, '\n', c->t->n);

    return !c->t->map || (nl && c->w->src[musa_place(c->t, (size_t)(nl - c->t->s))] == '\n');
}

struct inline_ptx {
    struct asm_statement a;
    struct ptx_operand v[ASM_OPERANDS];
    int n;
    struct buf head, tail;
    char why[200]; /* it has no plain code; "" if it has */
};

/* False if no inline assembly begins at token i. Freed by musa_cxx_ptx_done. */
static bool musa_cxx_read_ptx(struct cxx *c, size_t i, struct inline_ptx *x)
{
    const struct asm_mates m = {musa_cxx_close_of, &c->k};
    struct buf text;
    char failed[96];
    bool known;

    if (!tok_is_any(&c->k, i, "asm\0__asm__\0__asm\0") || !asm_find(&c->k, &m, i, &x->a))
        return false;
    buf_init(&text, BUF_MAX_TEXT);
    known = asm_text(&c->k, &x->a, &text);
    if (known && !asm_is_code(&x->a, text.n ? text.p : "")) {
        buf_free(&text);
        return false;
    }
    buf_init(&x->head, BUF_MAX_TEXT);
    buf_init(&x->tail, BUF_MAX_TEXT);
    x->why[0] = 0;
    x->n = asm_operands(&c->k, &m, &x->a, x->v);
    if (musa_back(c->w))
        snprintf(x->why, sizeof x->why, "assembly of a MUSA device");
    else if (!known || x->n < 0 || !musa_cxx_has_room(c))
        snprintf(x->why, sizeof x->why, "inline PTX: no MUSA compiler reads it");
    else if (!ptx_plain(text.p, x->a.n_sections > 0, x->v, (size_t)x->n, &x->head, &x->tail, failed, sizeof failed))
        snprintf(x->why, sizeof x->why, "inline PTX: no MUSA compiler reads it, and no plain code stands for '%s'",
            failed);
    buf_free(&text);
    return true;
}

static void musa_cxx_ptx_done(struct inline_ptx *x)
{
    buf_free(&x->head);
    buf_free(&x->tail);
}

/* Does the text hold assembly without plain code? */
static bool musa_cxx_keeps_ptx(struct cxx *c)
{
    bool keeps = false;

    for (size_t i = 0; i < c->k.n && !keeps; i++) {
        struct inline_ptx x;

        if (c->k.v[i].kind == TOK_IDENT && musa_cxx_read_ptx(c, i, &x)) {
            keeps = x.why[0];
            musa_cxx_ptx_done(&x);
        }
    }
    return keeps;
}

/* An assembler statement; an empty text with clobbers is a fence for the compiler and stays. */
static void musa_cxx_assembler(struct cxx *c, size_t i)
{
    struct inline_ptx x;

    if (!musa_cxx_read_ptx(c, i, &x))
        return;
    if (x.why[0])
        musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, "ptx", '-', "%s", x.why);
    else if (!c->keep) {
        c->ptx = true;
        musa_cxx_plain_statement(c, i, &x.a, x.v, x.n, &x.head, &x.tail);
        musa_note(c->w, c->t, c->k.v[i].at, MUSA_LOSSY, "ptx", '-',
            "inline PTX becomes plain code: the same values, slower");
    }
    musa_cxx_ptx_done(&x);
}

__asm__(".pushsection .rodata\n"
        ".global translate_ptx\ntranslate_ptx: .incbin \"litetorch/include/litetorch/ptx_plain.h\"\n"
        ".byte 0\n.popsection");
extern const char translate_ptx[];

/* What the calls need, once in front of the text, without its comments. Shared addresses are counted by it from now
 * on. */
static void musa_cxx_put_ptx(struct cxx *c)
{
    struct buf b;

    for (size_t i = 0; i < c->k.n; i++)
        if (tok_is(&c->k, i, "__cvta_generic_to_shared"))
            musa_replace(c->w, c->t, c->k.v[i].at, c->k.v[i].n, "::musacoder::ptx::to_shared");
    buf_init(&b, BUF_MAX_TEXT);
    buf_adds(&b, "\n#include <musa_runtime.h>\n");
    for (const char *p = translate_ptx; *p; p++) {
        if (p[0] == '/' && p[1] == '*')
            p = strstr(p, "*/") + 1;
        else if (*p != '\n' || b.p[b.n - 1] != '\n')
            buf_addc(&b, *p);
    }
    buf_adds(&b, "#line 1\n");
    musa_replace(c->w, c->t, 0, 0, arena_strdup(&c->w->arena, b.p));
    buf_free(&b);
}

/* Functions of the toolkit whose meaning litetorch/ptx_plain.h has. */
static bool musa_cxx_plain_function(struct cxx *c, size_t i)
{
    static const char *const rows[][2] = {
        {"__pipeline_memcpy_async", "::musacoder::ptx::pipeline_copy"},
        {"__pipeline_commit", "::musacoder::ptx::pipeline_commit"},
        {"__pipeline_wait_prior", "::musacoder::ptx::pipeline_wait"},
        {"__nanosleep", "::musacoder::ptx::nanosleep"},
    };

    for (size_t k = 0; k < sizeof rows / sizeof *rows && !musa_back(c->w); k++)
        if (tok_is(&c->k, i, rows[k][0]) && musa_cxx_has_room(c) &&
            !musa_owns(c->w, musa_cxx_word(c, i), c->k.v[i].n)) {
            c->ptx = true;
            musa_replace(c->w, c->t, c->k.v[i].at, c->k.v[i].n, rows[k][1]);
            musa_note(c->w, c->t, c->k.v[i].at, MUSA_LOSSY, "plain", '-', "'%s' becomes plain code", rows[k][0]);
            return true;
        }
    return false;
}

/* True where token i names something that MUSA lacks; it is noted. */
static bool musa_cxx_lacks(struct cxx *c, size_t i)
{
    const struct tok *v = &c->k.v[i];
    const struct musa_lack *l = musa_back(c->w) ? NULL : musa_lack_find(musa_lacks, musa_cxx_word(c, i), v->n);
    const struct musa_target *g = c->w->o->target;
    size_t next = tok_after(&c->k, i);

    if (!l || musa_owns(c->w, musa_cxx_word(c, i), v->n))
        return false;
    if (tok_is_any(&c->k, i, "cute\0cutlass\0wmma\0") && !tok_is(&c->k, next, "::"))
        return false;
    if (l->arch && (!g || !g->arch || g->arch >= l->arch))
        return false;
    musa_cxx_refuse(c, i, l);
    return true;
}

/* True if the tokens at i spell a type of 64 bits. */
static bool musa_cxx_wide_type(const struct toks *k, size_t i)
{
    size_t next = tok_after(k, i);

    return tok_is_any(k, i, "int64_t\0uint64_t\0longlong\0ulonglong\0") || (tok_is(k, i, "long") && tok_is(k, next,
        "long"));
}

/* atomicAdd((unsigned long long *)p, ...): only compare-and-swap and exchange are known at 64 bits. */
static void musa_cxx_atomic(struct cxx *c, size_t i)
{
    size_t k = tok_after(&c->k, i);
    int depth = 0;

    if (!tok_is(&c->k, k, "("))
        return;
    for (; k < c->k.n; k++) {
        depth += tok_is(&c->k, k, "(") ? 1 : tok_is(&c->k, k, ")") ? -1 : 0;
        if (depth == 0 || (depth == 1 && tok_is(&c->k, k, ",")))
            return;
        if (musa_cxx_wide_type(&c->k, k)) {
            musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, "atomic-64", 'D',
                      "'%.*s' on 64-bit integers: only compare-and-swap "
                      "is known at that width", (int)c->k.v[i].n, musa_cxx_word(c, i));
            return;
        }
    }
}

/* Notes a cooperative launch where the target device has none. */
static void musa_cxx_cooperative(struct cxx *c, size_t i)
{
    const struct musa_target *g = c->w->o->target;

    if (g && !g->cooperative)
        musa_note(c->w, c->t, c->k.v[i].at, MUSA_REFUSED, "cooperative", '-',
                  "'%.*s': nothing shows that %s waits across its grid",
                  (int)c->k.v[i].n, musa_cxx_word(c, i), g->name);
}

/* A name of CUDA's that no rule knows, for instance one made by '##'. */
static bool musa_cxx_pasted(const struct cxx *c, size_t i)
{
    size_t n = tok_after(&c->k, i), p = tok_before(&c->k, i);
    const char *s = musa_cxx_word(c, i);
    size_t len = c->k.v[i].n;
    bool ours = (len >= 4 && (!memcmp(s, "cuda", 4) || !memcmp(s, "CUDA", 4))) || (len >= 6 && !memcmp(s, "cublas", 6));

    if (!ours || !c->k.v[i].directive)
        return false;
    return (tok_is(&c->k, n, "#") && tok_is(&c->k, n + 1, "#")) || (p != SIZE_MAX && tok_is(&c->k, p, "#") && p > 0 &&
           tok_is(&c->k, p - 1, "#"));
}

/* x.cuda() of a tensor: torch has no method of that kind for other devices. */
static bool musa_cxx_to_device(struct cxx *c, size_t i)
{
    size_t open = tok_after(&c->k, i), close = open < c->k.n ? tok_after(&c->k, open) : c->k.n;

    if (musa_back(c->w) || !tok_is(&c->k, open, "(") || !tok_is(&c->k, close, ")"))
        return false;
    musa_replace(c->w, c->t, c->k.v[i].at, c->k.v[close].at + 1 - c->k.v[i].at, "to(torch::kPrivateUse1)");
    musa_note(c->w, c->t, c->k.v[i].at, MUSA_LOSSY, "one-way", 'V',
              "'cuda()' becomes 'to(torch::kPrivateUse1)', which stays a 'to'");
    return true;
}

/* ---- one token ---- */

/* Translates the name at token i. */
static void musa_cxx_name(struct cxx *c, size_t i)
{
    const struct tok *v = &c->k.v[i];
    size_t p = tok_before(&c->k, i);
    bool member = p != SIZE_MAX && tok_is_any(&c->k, p, ".\0->\0"), back = musa_back(c->w);

    if (tok_is_any(&c->k, i, "asm\0__asm__\0__asm\0"))
        musa_cxx_assembler(c, i);
    else if (!back && musa_cxx_pasted(c, i))
        musa_note(c->w, c->t, v->at, MUSA_REFUSED, "pasted", '-',
                  "'%.*s' is joined with '##': the whole name is not in the text",
                  (int)v->n, musa_cxx_word(c, i));
    else if (musa_cxx_plain_function(c, i) || musa_cxx_lacks(c, i))
        return;
    else if (tok_is(&c->k, i, back ? "musa" : "cuda")) {
        if (!(member && musa_cxx_to_device(c, i)) && musa_cxx_is_namespace(&c->k, i))
            musa_replace(c->w, c->t, v->at, v->n, back ? "cuda" : "musa");
    } else if (tok_is(&c->k, i, back ? "PrivateUse1" : "CUDA")) {
        if (musa_cxx_is_device_enum(&c->k, i))
            musa_replace(c->w, c->t, v->at, v->n, back ? "CUDA" : "PrivateUse1");
    } else {
        if (!back && tok_is_any(&c->k, i, "cudaLaunchCooperativeKernel\0this_grid\0grid_group\0"))
            musa_cxx_cooperative(c, i);
        if (tok_is_any(&c->k, i, "atomicAdd\0atomicSub\0atomicMin\0atomicMax\0atomicAnd\0atomicOr\0atomicXor\0") &&
            !back)
            musa_cxx_atomic(c, i);
        if (tok_is(&c->k, i, back ? "__MUSA_ARCH__" : "__CUDA_ARCH__"))
            musa_cxx_guard(c, i);
        musa_word(c->w, c->t, v->at, v->n, member);
    }
}

bool musa_device_name(struct musa_work *w, const struct musa_text *t, size_t i, size_t n)
{
    const char *from = musa_back(w) ? "musa" : "cuda";

    if (n < 4 || memcmp(t->s + i, from, 4) || (n > 4 && t->s[i + 4] != ':'))
        return false;
    for (size_t k = i + 5; k < i + n; k++)
        if (!isdigit((unsigned char)t->s[k]))
            return false;
    musa_replace(w, t, i, 4, musa_back(w) ? "cuda" : "musa");
    return true;
}

void musa_cxx(struct musa_work *w, const struct musa_text *t)
{
    struct cxx c = {.w = w, .t = t};

    lex(t->s, t->n, &c.k);
    c.keep = musa_cxx_keeps_ptx(&c);
    for (size_t i = 0; i < c.k.n; i++) {
        const struct tok *v = &c.k.v[i];
        if (v->kind == TOK_IDENT)
            musa_cxx_name(&c, i);
        else if (v->kind == TOK_STRING && v->n > 2 && t->s[v->at] == '"')
            musa_device_name(w, t, v->at + 1, v->n - 2);
        else if (v->directive && tok_is(&c.k, i, "#"))
            i = musa_cxx_include(&c, i);
    }
    if (c.ptx)
        musa_cxx_put_ptx(&c);
    if (!musa_back(w) && w->o->target)
        musa_limits(w, t, &c.k);
    toks_free(&c.k);
}
