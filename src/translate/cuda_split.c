/* cuda_split.c - the host's and the device's half of a CUDA source, on tokens.
 *
 * Each token carries two bits, in which half it stays. The source is read as declarations of a scope (file, namespace,
 * class), each of which clears bits of its tokens and may leave a text to insert into the host's half: ';' for the body
 * of a device function, a stub for the body of a kernel. Emission copies what stays and keeps all line breaks.
 * Reading order: cuda_split at the end, cuda_split_scope(), cuda_split_read_decl(), then the rules by kind of
 * declaration. */
#include "translate/cuda_split.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "translate/lexer.h"
#include "translate/simt_rewrite.h"

#define NONE UINT32_MAX
#define MAX_DEPTH 64 /* of scopes: foreign text must not choose how deep we recurse */
enum { HOST = 1, DEVICE = 2 };

struct insert {
    size_t at; /* before this token, host's half */
    char *text;
};

struct cuda_split_splitter {
    struct toks t;
    uint32_t *mate; /* of ( [ { and their partners, or NONE */
    uint8_t *keep;
    struct insert *inserts; /* in order of at */
    size_t n_inserts, cap_inserts;
    struct buf *templates;
    int depth;
    const char *why; /* set: declined */
};

/* One declaration: tokens [start, end). Indexes of what was found in it, or NONE. */
struct decl {
    size_t start, end;
    size_t head;     /* behind template<...> */
    size_t params;   /* '(' of a function's parameters */
    size_t init;     /* ':' of a constructor's initialisers */
    size_t body;     /* '{' of a function, a class or a namespace */
    bool templated, instantiates, global, device, host, constant, is_class, has_equals, is_function, is_scope;
};

/* Gives up on splitting; the first reason stays. */
static void cuda_split_decline(struct cuda_split_splitter *s, const char *why)
{
    if (!s->why)
        s->why = why;
}

/* Next token that is neither blank nor part of a directive. */
static size_t cuda_split_next_code(const struct cuda_split_splitter *s, size_t i)
{
    while (i < s->t.n && (tok_blank(&s->t, i) || s->t.v[i].directive))
        i++;
    return i;
}

/* Tokens [from, to) do not belong to that half. */
static void cuda_split_clear(struct cuda_split_splitter *s, size_t from, size_t to, uint8_t half)
{
    for (size_t i = from; i < to; i++)
        s->keep[i] &= (uint8_t)~half;
}

/* Notes a text for the host's half in front of token 'at'. */
static void cuda_split_insert(struct cuda_split_splitter *s, size_t at, const char *text)
{
    if (s->n_inserts == s->cap_inserts) {
        s->cap_inserts = s->cap_inserts ? 2 * s->cap_inserts : 32;
        s->inserts = xrealloc(s->inserts, s->cap_inserts * sizeof *s->inserts);
    }
    s->inserts[s->n_inserts++] = (struct insert){at, xstrdup(text)};
}

/* ---- brackets and directives ---- */

/* Pairs ( [ {; those of a directive among themselves. False if one stays open: conditionals around halves of blocks. */
static bool cuda_split_pair_brackets(struct cuda_split_splitter *s)
{
    const struct toks *t = &s->t;
    uint32_t *stack = xcalloc(t->n + 1, sizeof *stack);
    size_t n = 0, base = 0;
    bool directive = false, ok = true;

    for (size_t i = 0; i < t->n && ok; i++) {
        char ch = t->v[i].kind == TOK_PUNCT && t->v[i].n == 1 ? t->src[t->v[i].at] : 0;

        s->mate[i] = NONE;
        if (t->v[i].directive != directive) {
            n = directive ? base : n;
            base = directive ? 0 : n;
            directive = !directive;
        }
        if (ch == '(' || ch == '[' || ch == '{') {
            stack[n++] = (uint32_t)i;
        } else if (ch == ')' || ch == ']' || ch == '}') {
            if (n > base && t->src[t->v[stack[n - 1]].at] == (ch == ')' ? '(' : ch == ']' ? '[' : '{')) {
                s->mate[i] = stack[--n];
                s->mate[stack[n]] = (uint32_t)i;
            } else {
                ok = directive;
            }
        }
    }
    ok = ok && n == 0;
    free(stack);
    return ok;
}

/* The word behind the '#' at token i, or t.n. */
static size_t cuda_split_directive_word(const struct cuda_split_splitter *s, size_t i)
{
    return tok_next(&s->t, i + 1);
}

static bool cuda_split_starts_directive(const struct cuda_split_splitter *s, size_t i)
{
    return s->t.v[i].directive && tok_is(&s->t, i, "#") && (i == 0 || !s->t.v[i - 1].directive);
}

/* May the tokens go from one half? Conditionals must be whole, and nothing may be defined there that is used behind. */
static void cuda_split_check_droppable(struct cuda_split_splitter *s, size_t from, size_t to)
{
    int depth = 0;

    for (size_t i = from; i < to; i++) {
        size_t w;

        if (!cuda_split_starts_directive(s, i))
            continue;
        w = cuda_split_directive_word(s, i);
        if (tok_is_any(&s->t, w, "if\0ifdef\0ifndef\0"))
            depth++;
        else if (tok_is(&s->t, w, "endif"))
            depth--;
        else if (tok_is_any(&s->t, w, "define\0undef\0include\0"))
            cuda_split_decline(s, "a macro or a header inside a function");
        if (depth < 0)
            break;
    }
    if (depth)
        cuda_split_decline(s, "a conditional around part of a function");
}

/* Takes tokens out of a half, if that is allowed. */
static void cuda_split_drop(struct cuda_split_splitter *s, size_t from, size_t to, uint8_t half)
{
    cuda_split_check_droppable(s, from, to);
    cuda_split_clear(s, from, to, half);
}

/* Headers that one half alone has a use for. */
static uint8_t cuda_split_header_halves(const char *name, size_t n)
{
    static const char *const host[] = {"torch/", "ATen/", "c10/", "pybind11/", "torch_musa/csrc/core/",
        "mublas.h", "mublasLt.h", "mudnn.h",
        "torch_musa/csrc/aten/musa/MUSAContext.h", "torch_musa/csrc/aten/musa/Exceptions.h",
        "cublas", "cudnn", "cufft", "curand.h", "cusolver",
        "cusparse", "vector", "string", "iostream", "iomanip", "sstream", "fstream", "map", "unordered_map", "set",
            "unordered_set",
        "memory", "functional", "mutex", "thread", "chrono", "optional", "tuple", "stdexcept", "exception",
            "numeric", "Python.h",
        "algorithm", "random", "deque", "list", "queue"};
    static const char *const device[] = {"mma.h", "cooperative_groups", "cub/", "cuda/", "cuda_pipeline",
        "curand_kernel.h",
                                         "cuda_awbarrier"};

    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        size_t k = strlen(host[i]);
        if (n >= k && !memcmp(name, host[i], k) && (n == k || strchr("/", host[i][k - 1]) || !strncmp(host[i], "cu",
            2)))
            return HOST;
    }
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (n >= strlen(device[i]) && !memcmp(name, device[i], strlen(device[i])))
            return DEVICE;
    return HOST | DEVICE;
}

/* Decides which half gets the #include of tokens [from, to). */
static void cuda_split_include(struct cuda_split_splitter *s, size_t from, size_t to)
{
    const char *line = s->t.src + s->t.v[from].at, *open, *close;
    size_t n = (to < s->t.n ? s->t.v[to].at : s->t.n_src) - s->t.v[from].at;
    uint8_t halves;

    for (open = line; open < line + n && *open != '<' && *open != '"';)
        open++;
    for (close = open + 1; close < line + n && *close != '>' && *close != '"';)
        close++;
    if (close >= line + n) {
        cuda_split_decline(s, "an #include that names no file");
        return;
    }
    halves = cuda_split_header_halves(open + 1, (size_t)(close - open - 1));
    cuda_split_clear(s, from, to, (uint8_t)~halves & (HOST | DEVICE));
}

/* Decides which half gets each preprocessor directive; declines what cannot be told. */
static void cuda_split_directives(struct cuda_split_splitter *s)
{
    for (size_t i = 0; i < s->t.n; i++) {
        size_t w, end;

        if (!cuda_split_starts_directive(s, i))
            continue;
        w = cuda_split_directive_word(s, i);
        end = tok_end_of_directive(&s->t, i);
        if (tok_is(&s->t, w, "include"))
            cuda_split_include(s, i, end);
        else if (tok_is(&s->t, w, "define"))
            for (size_t k = w; k < end; k++)
                if (tok_is_any(&s->t, k,
                                      "__global__\0__device__\0__host__\0__constant__\0__shared__\0template\0"))
                    cuda_split_decline(s, "a macro with a declaration in it");
        i = end - 1;
    }
}

/* What only one of the two compilers could answer. */
static void cuda_split_refuse_words(struct cuda_split_splitter *s)
{
    const struct toks *t = &s->t;

    for (size_t i = 0; i < t->n; i++) {
        const char *w = t->src + t->v[i].at;
        size_t n = t->v[i].n;

        if (t->v[i].kind != TOK_IDENT)
            continue;
        if (n > 9 && (!memcmp(w, "__CUDACC", 8) || !memcmp(w, "__MUSACC", 8)))
            cuda_split_decline(s, "asks which compiler reads it");
        if (tok_is_any(t, i, "__NVCC__\0__managed__\0__COUNTER__\0"))
            cuda_split_decline(s, "needs nvcc itself");
        for (size_t k = 4; n > 10 && (!memcmp(w, "cuda", 4) || !memcmp(w, "musa", 4)) && k + 6 <= n; k++)
            if (!memcmp(w + k, "Symbol", 6))
                cuda_split_decline(s, "reaches a device variable from the host");
    }
}

/* ---- reading a declaration ---- */

/* Behind the '>' that closes the '<' at i, or t.n. */
static size_t cuda_split_skip_angles(const struct cuda_split_splitter *s, size_t i)
{
    int depth = 0;

    for (; i < s->t.n; i++) {
        if (tok_is(&s->t, i, "(") || tok_is(&s->t, i, "{") || tok_is(&s->t, i, "["))
            i = s->mate[i];
        else if (tok_is(&s->t, i, "<"))
            depth++;
        else if (tok_is(&s->t, i, ">") && --depth == 0)
            return i + 1;
        else if (tok_is(&s->t, i, ";"))
            break;
    }
    return s->t.n;
}

static const char attributes[] =
    "__launch_bounds__\0__attribute__\0__align__\0alignas\0decltype\0__cluster_dims__\0__maxnreg__\0"
                                 "noexcept\0explicit\0__block_size__\0__builtin_align__\0sizeof\0alignof\0__asm__\0"
                                 "asm\0";

/* Notes what the word at token i says about the declaration. */
static void cuda_split_note_word(struct cuda_split_splitter *s, struct decl *d, size_t i)
{
    const struct toks *t = &s->t;

    d->global |= tok_is(t, i, "__global__");
    d->device |= tok_is_any(t, i, "__device__\0__constant__\0__shared__\0");
    d->host |= tok_is(t, i, "__host__");
    d->constant |= tok_is_any(t, i, "constexpr\0consteval\0");
    if (d->params == NONE && tok_is_any(t, i, "struct\0class\0union\0enum\0"))
        d->is_class = true;
    if (tok_is(t, i, "namespace"))
        d->is_scope = true;
}

/* 'operator' and its name: the last token of the name. */
static size_t cuda_split_skip_operator(const struct cuda_split_splitter *s, size_t i)
{
    size_t k = tok_next(&s->t, i + 1);

    if (tok_is(&s->t, k, "("))
        return s->mate[k];
    while (k < s->t.n && !tok_is(&s->t, tok_next(&s->t, k + 1), "("))
        k = tok_next(&s->t, k + 1);
    return k;
}

/* The brace at i: does the declaration end behind it? *ret_next is set where reading goes on. */
static bool cuda_split_brace(struct cuda_split_splitter *s, struct decl *d, size_t i, size_t *ret_next)
{
    size_t last = tok_before(&s->t, i);

    *ret_next = (size_t)s->mate[i] + 1;
    if (d->init != NONE && (tok_is_ident(&s->t, last) || tok_is(&s->t, last, ">")))
        return false; /* x{1} among a constructor's initialisers */
    if (d->is_scope || (tok_is(&s->t, d->start, "extern") && s->t.v[last].kind == TOK_STRING)) {
        d->is_scope = true;
        d->body = i;
        return true;
    }
    if (d->params != NONE && !d->has_equals && !d->is_class) {
        d->is_function = true;
        d->body = i;
        return true;
    }
    if (d->is_class && !d->has_equals && d->body == NONE)
        d->body = i;
    return false;
}

/* Reads the declaration that starts at token i of a scope that ends at to. */
static void cuda_split_read_decl(struct cuda_split_splitter *s, size_t i, size_t to, bool in_class, struct decl *d)
{
    const struct toks *t = &s->t;

    *d = (struct decl){.start = i, .head = i, .params = NONE, .init = NONE, .body = NONE};
    if (tok_is(t, i, "template")) {
        size_t open = tok_next(t, i + 1);
        d->templated = tok_is(t, open, "<");
        d->instantiates = !d->templated;
        i = d->head = d->templated ? cuda_split_next_code(s, cuda_split_skip_angles(s, open)) : open;
    }
    while (i < to) {
        size_t next = i + 1;

        cuda_split_note_word(s, d, i);
        if (tok_is(t, i, "operator")) {
            next = cuda_split_skip_operator(s, i) + 1;
        } else if (tok_is(t, i, "=")) {
            d->has_equals = true;
        } else if (tok_is(t, i, "(")) {
            if (d->params == NONE && !tok_is_any(t, tok_before(&s->t, i), attributes) && !d->has_equals)
                d->params = i;
            next = (size_t)s->mate[i] + 1;
        } else if (tok_is(t, i, "[")) {
            next = (size_t)s->mate[i] + 1;
        } else if (tok_is(t, i, ":")) {
            if (in_class && tok_is_any(t, tok_before(&s->t, i), "public\0private\0protected\0")) {
                d->end = i + 1;
                return;
            }
            if (d->params != NONE && !d->has_equals && !d->is_class && d->init == NONE)
                d->init = i;
        } else if (tok_is(t, i, ";")) {
            d->end = i + 1;
            return;
        } else if (tok_is(t, i, "{")) {
            if (cuda_split_brace(s, d, i, &next)) {
                d->end = next;
                return;
            }
        } else if (tok_is(t, i, "}") || tok_is(t, i, "#")) {
            cuda_split_decline(s, "a declaration that does not end");
        }
        i = cuda_split_next_code(s, next);
    }
    d->end = to;
    cuda_split_decline(s, "a declaration that does not end");
}

/* Names that only the host's headers declare. */
static bool cuda_split_names_host(const struct cuda_split_splitter *s, size_t from, size_t to)
{
    const struct toks *t = &s->t;

    for (size_t i = from; i < to; i++) {
        bool scope = tok_is_ident(&s->t, i) && tok_is(t, tok_next(t, i + 1), "::");
        size_t name;

        if (tok_is_any(t, i, "torch\0c10\0pybind11\0cublasHandle_t\0cudnnHandle_t\0PYBIND11_MODULE\0"
                                    "TORCH_LIBRARY\0"))
            return true;
        if (scope && tok_is_any(t, i, "at\0py\0"))
            return true;
        if (!scope || !tok_is(t, i, "std"))
            continue;
        name = tok_next(t, tok_next(t, i + 1) + 1);
        if (tok_is_any(t, name,
            "vector\0string\0map\0unordered_map\0optional\0tuple\0function\0ostream\0shared_ptr\0unique_ptr\0"
                                       "mutex\0once_flag\0runtime_error\0set\0string_view\0stringstream\0cout\0cerr\0"
                                       "deque\0"
                                       "list\0"))
            return true;
    }
    return false;
}

/* ---- kernels ---- */

/* Name of a parameter (of a function or a template) in [from, to): its last word, before '=' or '['. */
static bool cuda_split_add_param_name(const struct cuda_split_splitter *s, size_t from, size_t to, const char *with,
                                      struct buf *out)
{
    const struct toks *t = &s->t;
    size_t name = NONE, words = 0;
    bool pack = false;

    for (size_t i = from; i < to && !tok_is_any(t, i, "=\0[\0"); i++) {
        if (tok_is(t, i, "(") || tok_is(t, i, "{"))
            return false;
        if (tok_is_ident(&s->t, i)) {
            name = i;
            words++;
        } else if (tok_is(t, i, ".")) {
            pack = true;
        } else if (tok_is_any(t, i, "*\0&\0>\0")) {
            name = NONE;
        }
    }
    if (name == NONE || words + (size_t)(name > from && tok_is(t, tok_before(&s->t, name), ">")) < 2)
        return false;
    if (!tok_is(t, tok_before(&s->t, name), ".") && tok_is(t, tok_before(&s->t, name), "::"))
        return false;
    buf_addf(out, "%s%.*s%s, ", with, (int)t->v[name].n, t->src + t->v[name].at, pack ? "..." : "");
    return true;
}

/* Names of the parameters between from and to, each followed by ", ". */
static bool cuda_split_add_param_names(const struct cuda_split_splitter *s, size_t from, size_t to, const char *with,
                                       struct buf *out)
{
    const struct toks *t = &s->t;
    size_t start = tok_next(t, from);
    int angles = 0;

    if (start >= to || (tok_is(t, start, "void") && tok_next(t, start + 1) >= to))
        return true;
    for (size_t i = start; i <= to; i++) {
        if (i < to && (tok_is(t, i, "(") || tok_is(t, i, "[") || tok_is(t, i, "{")))
            i = s->mate[i];
        else if (i < to && tok_is(t, i, "<"))
            angles++;
        else if (i < to && tok_is(t, i, ">"))
            angles--;
        else if (i == to || (tok_is(t, i, ",") && angles == 0)) {
            if (!cuda_split_add_param_name(s, start, i, with, out))
                return false;
            start = i + 1;
        }
    }
    return angles == 0;
}

/* Is the word among those of "a, b, "? */
static bool cuda_split_lists(const char *list, const char *word, size_t n)
{
    for (const char *at = list; *at; at += strcspn(at, ", "), at += strspn(at, ", "))
        if (strcspn(at, ", ") == n && !memcmp(at, word, n))
            return true;
    return false;
}

/* What nvcc's stub does: the address by which the runtime knows the kernel, and the arguments. */
static void cuda_split_stub(struct cuda_split_splitter *s, const struct decl *d, size_t name)
{
    const struct toks *t = &s->t;
    size_t params;
    struct buf b;

    buf_init(&b, 1 << 16);
    buf_addf(&b, "{ LT_LAUNCH(((const void *)&%.*s", (int)t->v[name].n, t->src + t->v[name].at);
    if (d->templated) {
        size_t open = tok_next(t, d->start + 1);
        buf_addc(&b, '<');
        if (!cuda_split_add_param_names(s, open + 1, tok_before(&s->t, cuda_split_skip_angles(s, open)), "", &b))
            cuda_split_decline(s, "a kernel's template parameter without a name");
        b.n -= b.n > 1 && b.p[b.n - 2] == ',' ? 2 : 0;
        b.p[b.n] = 0;
        buf_addc(&b, '>');
    }
    buf_adds(&b, "), (");
    params = b.n;
    if (!cuda_split_add_param_names(s, d->params + 1, s->mate[d->params], "", &b))
        cuda_split_decline(s, "a kernel's parameter without a name");
    if (b.p && cuda_split_lists(b.p + params, t->src + t->v[name].at, t->v[name].n))
        cuda_split_decline(s, "a kernel's parameter of the kernel's name");
    b.n -= b.n > 1 && b.p[b.n - 2] == ',' ? 2 : 0;
    b.p[b.n] = 0;
    buf_adds(&b, ")); }");
    if (b.cut)
        cuda_split_decline(s, "a kernel with endless parameters");
    cuda_split_insert(s, d->body, b.p);
    buf_free(&b);
}

/* Takes a kernel's definition: its body to the device, a stub to the host. */
static void cuda_split_kernel(struct cuda_split_splitter *s, const struct decl *d)
{
    const struct toks *t = &s->t;
    size_t name = d->params == NONE ? SIZE_MAX : tok_before(&s->t, d->params);

    if (name == SIZE_MAX || !tok_is_ident(&s->t, name) || tok_is(t, tok_before(&s->t, name), "::") ||
        d->instantiates || d->device ||
        d->host) {
        cuda_split_decline(s, "a kernel whose name is not a plain word");
        return;
    }
    for (size_t i = d->head; i < d->params; i++)
        if (tok_is(t, i, "static")) /* one unit a side: outside linkage is the same, spelt alike */
            s->keep[i] = 0;
    if (tok_is(t, d->head, "template"))
        cuda_split_decline(s, "a template of templates");
    if (d->templated && d->is_function)
        buf_addf(s->templates, "%s%.*s", s->templates->n ? "|" : "", (int)t->v[name].n, t->src + t->v[name].at);
    if (d->is_function) {
        cuda_split_stub(s, d, name);
        cuda_split_drop(s, d->body, (size_t)s->mate[d->body] + 1, HOST);
    }
}

/* ---- other declarations ---- */

/* Takes a device function: its body goes to the device alone, the host keeps a declaration. A constexpr one stays in
 * both; of a member that is defined outside its class the host keeps nothing. */
static void cuda_split_device_function(struct cuda_split_splitter *s, const struct decl *d)
{
    size_t cut = d->init != NONE ? d->init : d->body, name = tok_before(&s->t, d->params);

    if (d->constant)
        return;
    /* a member's definition outside: no declaration */
    if (name != SIZE_MAX && tok_is(&s->t, tok_before(&s->t, name), "::")) {
        cuda_split_drop(s, d->start, d->end, HOST);
        return;
    }
    cuda_split_drop(s, cut, d->end, HOST);
    cuda_split_insert(s, cut, ";");
}

/* Takes a host's function out of the device's half; declines where it holds device code. */
static void cuda_split_host_function(struct cuda_split_splitter *s, const struct decl *d)
{
    for (size_t i = d->body; i < d->end; i++)
        if (tok_is_any(&s->t, i, "__device__\0__global__\0__host__\0"))
            cuda_split_decline(s, "device code inside a function of the host");
    if (!d->constant)
        cuda_split_drop(s, d->start, d->end, DEVICE);
}

static void cuda_split_scope(struct cuda_split_splitter *s, size_t from, size_t to, bool in_class);

/* Takes any other declaration, or declines it. */
static void cuda_split_other(struct cuda_split_splitter *s, const struct decl *d, bool in_class)
{
    if (d->instantiates)
        cuda_split_decline(s, "an explicit instantiation");
    else if (d->global)
        cuda_split_kernel(s, d);
    else if (!in_class && !d->device && cuda_split_names_host(s, d->start, d->end))
        cuda_split_drop(s, d->start, d->end, DEVICE);
    else if (d->is_class && d->body != NONE && !tok_is(&s->t, d->head, "enum"))
        cuda_split_scope(s, d->body + 1, s->mate[d->body], true);
}

/* What is inside 'namespace {' is spelled differently by the two compilers. */
static void cuda_split_open_scope(struct cuda_split_splitter *s, const struct decl *d)
{
    if (tok_is(&s->t, d->start, "namespace") && tok_next(&s->t, d->start + 1) == d->body)
        cuda_split_decline(s, "an unnamed namespace");
    cuda_split_scope(s, d->body + 1, s->mate[d->body], false);
}

/* Splits the declarations of tokens [from, to); sets s->why where it declines. */
static void cuda_split_scope(struct cuda_split_splitter *s, size_t from, size_t to, bool in_class)
{
    struct decl d;

    if (++s->depth > MAX_DEPTH)
        cuda_split_decline(s, "scopes too deep");
    for (size_t i = cuda_split_next_code(s, from); i < to && !s->why; i = cuda_split_next_code(s, d.end)) {
        if (tok_is(&s->t, i, ";")) {
            d.end = i + 1;
            continue;
        }
        cuda_split_read_decl(s, i, to, in_class, &d);
        if (s->why)
            return;
        if (d.is_scope && d.body != NONE)
            cuda_split_open_scope(s, &d);
        else if (d.is_function && d.global)
            cuda_split_kernel(s, &d);
        else if (d.is_function && d.device && !d.host)
            cuda_split_device_function(s, &d);
        else if (d.is_function && !d.device && !in_class)
            cuda_split_host_function(s, &d);
        else if (!d.is_function)
            cuda_split_other(s, &d, in_class);
    }
    s->depth--;
}

/* ---- writing ---- */

/* Appends one half; what it leaves out keeps its line breaks. */
static void cuda_split_emit(struct cuda_split_splitter *s, uint8_t half, struct buf *out)
{
    const struct toks *t = &s->t;
    size_t k = 0;

    for (size_t i = 0; i < t->n; i++) {
        while (half == HOST && k < s->n_inserts && s->inserts[k].at == i)
            buf_adds(out, s->inserts[k++].text);
        if (s->keep[i] & half) {
            buf_add(out, t->src + t->v[i].at, t->v[i].n);
            continue;
        }
        for (size_t c = 0; c < t->v[i].n; c++)
            if (t->src[t->v[i].at + c] == '\n')
                buf_addc(out, '\n');
        if (t->v[i].kind == TOK_SPACE)
            buf_addc(out, ' ');
    }
}

/* Fills out with both halves. */
static void cuda_split_emit_both(struct cuda_split_splitter *s, const char *filename, struct cuda_split *out)
{
    struct buf host;

    buf_init(&host, out->host.max);
    cuda_split_emit(s, HOST, &host);
    cuda_split_emit(s, DEVICE, &out->device);
    if (host.cut || out->device.cut || simt_rewrite_launches(host.p, host.n, filename, &out->host, NULL) < 0)
        cuda_split_decline(s, "too long");
    buf_free(&host);
}

bool cuda_split(const char *src, size_t n, const char *filename, struct cuda_split *out, const char **ret_why)
{
    struct cuda_split_splitter s = {.templates = &out->templates};

    if (n >= NONE || memchr(src, 0, n)) {
        *ret_why = "too long";
        return false;
    }
    lex(src, n, &s.t);
    s.mate = xcalloc(s.t.n + 1, sizeof *s.mate);
    s.keep = xcalloc(s.t.n + 1, 1);
    memset(s.keep, HOST | DEVICE, s.t.n);
    if (!cuda_split_pair_brackets(&s))
        cuda_split_decline(&s, "brackets that do not pair");
    cuda_split_refuse_words(&s);
    if (!s.why)
        cuda_split_directives(&s);
    if (!s.why)
        cuda_split_scope(&s, 0, s.t.n, false);
    if (!s.why)
        cuda_split_emit_both(&s, filename, out);
    for (size_t i = 0; i < s.n_inserts; i++)
        free(s.inserts[i].text);
    free(s.inserts);
    free(s.mate);
    free(s.keep);
    toks_free(&s.t);
    *ret_why = s.why;
    return !s.why;
}
