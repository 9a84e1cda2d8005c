/* musa_python.c - a Python program: names of torch's modules, keywords, device names, flags, and the C++ in its
 * strings. Reading order: musa_python at the end, musa_python_token_at(), musa_python_text_at(). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "translate/musa_work.h"

enum py_kind { PY_NAME, PY_STRING, PY_NUMBER, PY_PUNCT, PY_LINE /* end of a line outside of brackets */, PY_END };

struct py_tok {
    enum py_kind kind;
    size_t at, n;
    size_t body, n_body; /* of a string: between the quotes */
    bool raw;
    uint32_t open; /* index of the bracket that holds it; NONE outside */
    bool starts;   /* first of its statement */
};

#define NONE UINT32_MAX

struct py {
    struct musa_work *w;       /* NULL where only names are collected */
    const char *src;
    size_t n_src;
    size_t unfinished;         /* place of a string that does not end, or SIZE_MAX */
    struct py_tok *v;
    size_t n, cap;
};

/* ---- tokens ---- */

static bool musa_python_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The string that starts at i (prefix letters included): its end, and its value's place. */
static bool musa_python_string_at(const char *s, size_t n, size_t i, struct py_tok *t)
{
    size_t q = i;
    char quote;
    bool triple;

    while (q < n && q < i + 3 && strchr("rRbBfFuU", s[q]) && s[q])
        t->raw |= s[q] == 'r' || s[q] == 'R', q++;
    if (q >= n || (s[q] != '"' && s[q] != '\''))
        return false;
    quote = s[q];
    triple = q + 2 < n && s[q + 1] == quote && s[q + 2] == quote;
    t->body = q + (triple ? 3 : 1);
    for (q = t->body; q < n; q++) {
        if (s[q] == '\\' && q + 1 < n)
            q++;
        else if (triple ? q + 2 < n && s[q] == quote && s[q + 1] == quote && s[q + 2] == quote : s[q] == quote ||
                 s[q] == '\n')
            break;
    }
    t->n_body = (q < n ? q : n) - t->body;
    q += q < n && s[q] == quote ? (triple ? 3 : 1) : 0;
    t->n = q - i;
    t->kind = PY_STRING;
    return true;
}

static struct py_tok *musa_python_add(struct py *p, enum py_kind kind, size_t at, size_t n)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 256;
        p->v = xrealloc(p->v, p->cap * sizeof *p->v);
    }
    p->v[p->n] = (struct py_tok){.kind = kind, .at = at, .n = n, .open = NONE};
    return &p->v[p->n++];
}

/* Splits Python into names, texts, marks and line ends. */
static void musa_python_lex(struct py *p)
{
    const char *s = p->src;
    size_t n = p->n_src, i = 0, k;
    uint32_t open = NONE;
    bool fresh = true;

    while (i < n) {
        struct py_tok t = {.open = open, .starts = fresh}, *at;

        if (s[i] == '#') {
            while (i < n && s[i] != '\n')
                i++;
            continue;
        }
        if (s[i] == '\n' && open == NONE && p->n && p->v[p->n - 1].kind != PY_LINE)
            musa_python_add(p, PY_LINE, i, 1), fresh = true;
        if (isspace((unsigned char)s[i]) || s[i] == '\\') {
            i++;
            continue;
        }
        t.at = i;
        if (!musa_python_string_at(s, n, i, &t)) {
            for (k = i; k < n && musa_python_word_char(s[k]); k++)
                ;
            t.kind = k == i ? PY_PUNCT : isdigit((unsigned char)s[i]) ? PY_NUMBER : PY_NAME;
            t.n = k == i ? 1 : k - i;
        }
        if (t.kind == PY_STRING && t.body + t.n_body == t.at + t.n)
            p->unfinished = i;
        at = musa_python_add(p, t.kind, i, t.n);
        *at = t;
        if (t.kind == PY_PUNCT && strchr("([{", s[i]))
            open = (uint32_t)(p->n - 1);
        else if (t.kind == PY_PUNCT && strchr(")]}", s[i]) && open != NONE)
            at->open = open, open = p->v[open].open;
        fresh = t.kind == PY_PUNCT && s[i] == ';' && open == NONE;
        i += t.n;
    }
    musa_python_add(p, PY_END, n, 0);
}

static bool musa_python_is(const struct py *p, size_t i, const char *text)
{
    return i < p->n && p->v[i].n == strlen(text) && !memcmp(p->src + p->v[i].at, text, p->v[i].n);
}

static bool musa_python_any_of(const struct py *p, size_t i, const char *words)
{
    for (const char *w = words; *w; w += strlen(w) + 1)
        if (musa_python_is(p, i, w))
            return true;
    return false;
}

static const char *musa_python_text_of(const struct py *p, size_t i)
{
    return p->src + p->v[i].at;
}

/* ---- strings that hold C++ ---- */

static bool musa_python_find(const char *s, size_t n, const char *what)
{
    return memmem(s, n, what, strlen(what)) != NULL;
}

/* 'cudaX' as the start of a word, for short pieces of code. */
static bool musa_python_names_runtime(const char *s, size_t n, const char *prefix)
{
    for (size_t i = 0; i + 5 < n; i++)
        if (!memcmp(s + i, prefix, 4) && isupper((unsigned char)s[i + 4]) &&
            (i == 0 || !musa_python_word_char(s[i - 1])))
            return true;
    return false;
}

/* True where a text seems to be a C++ or CUDA source. */
static bool musa_python_holds_code(const char *s, size_t n)
{
    static const char *const marks[] = {"__global__", "#include", "torch::Tensor", "at::Tensor",
                                        "PYBIND11_MODULE", "__device__",
                                        "TORCH_CHECK", "is_cuda()", "is_privateuseone()", "kCUDA",
                                            "kPrivateUse1", "::cuda::",
                                        "::musa::", "_bfloat16", "__CUDA", "__MUSA", NULL};

    for (int i = 0; marks[i]; i++)
        if (musa_python_find(s, n, marks[i]))
            return true;
    return musa_python_names_runtime(s, n, "cuda") || musa_python_names_runtime(s, n, "musa");
}

/* A statement that is a string and nothing else: documentation. */
static bool musa_python_is_doc(const struct py *p, size_t i)
{
    return p->v[i].starts && (p->v[i + 1].kind == PY_LINE || p->v[i + 1].kind == PY_END);
}

/* True for a string that holds CUDA or C++ source. */
static bool musa_python_string_is_code(const struct py *p, size_t i)
{
    const struct py_tok *t = &p->v[i];

    return t->kind == PY_STRING && !musa_python_is_doc(p, i) && musa_python_holds_code(p->src + t->body, t->n_body);
}

/* The string's value and where each of its bytes stands. Only escapes that end or begin a word matter: the
 * others stay. */
static void musa_python_decode(const struct py *p, size_t i, char *out, size_t *map, struct musa_text *ret)
{
    const struct py_tok *t = &p->v[i];
    const char *s = p->src;
    size_t n = 0, at = t->body, end = t->body + t->n_body;

    while (at < end) {
        size_t k = 1;
        char c = s[at];
        if (!t->raw && c == '\\' && at + 1 < end) {
            k = 2;
            c = s[at + 1] == 'n' ? '\n' : s[at + 1] == 't' ? ' ' : s[at + 1] == '\n' ? ' ' : s[at + 1];
        }
        map[n] = at;
        out[n++] = c;
        at += k;
    }
    map[n] = end;
    *ret = (struct musa_text){out, n, t->body, map};
}

/* The text of each string that holds code: its names are added, or it is translated (names is NULL). */
static void musa_python_each_code(struct py *p, struct musa_names *names)
{
    for (size_t i = 0; i + 1 < p->n; i++) {
        struct musa_text text;
        size_t *map;
        char *out;

        if (!musa_python_string_is_code(p, i))
            continue;
        out = xmalloc(p->v[i].n_body + 1);
        map = xcalloc(p->v[i].n_body + 1, sizeof *map);
        musa_python_decode(p, i, out, map, &text);
        if (names)
            musa_cxx_names(names, &text);
        else
            musa_cxx(p->w, &text);
        free(out);
        free(map);
    }
}

/* ---- other strings ---- */

/* The whole source as one text. */
static const struct musa_text *musa_python_whole(const struct py *p, struct musa_text *t)
{
    *t = (struct musa_text){p->src, p->n_src, 0, NULL};
    return t;
}

/* Replaces n bytes at 'at' by the row's other side. */
static void musa_python_swap(struct py *p, size_t at, size_t n, const struct musa_row *r)
{
    struct musa_text t;
    bool back = musa_back(p->w);

    musa_replace(p->w, musa_python_whole(p, &t), at, n, back ? r->cuda : r->musa);
    musa_used(p->w, &t, at, back ? r->musa : r->cuda, back ? r->cuda : r->musa, r->evidence, r->one_way);
}

/* Removes an element of a list with the comma behind it; where that cannot be, a flag without effect remains. */
static void musa_python_leave_out(struct py *p, size_t i, const char *why)
{
    struct musa_text t;
    size_t open = p->v[i].open, end = p->v[i].at + p->v[i].n, next = i + 1;
    bool list = open != NONE && musa_python_is(p, open, "[") && (musa_python_is(p, i - 1, ",") || i - 1 == open);

    musa_note(p->w, musa_python_whole(p, &t), p->v[i].at, MUSA_LOSSY, "flag", '-', "%.*s is left out: %s",
              (int)p->v[i].n, musa_python_text_of(p, i), why);
    if (!list || !musa_python_any_of(p, next, ",\0]\0")) {
        musa_replace(p->w, &t, p->v[i].body, p->v[i].n_body, "-fPIC");
        return;
    }
    if (musa_python_is(p, next, ","))
        end = p->v[next + 1].at;
    musa_replace(p->w, &t, p->v[i].at, end - p->v[i].at, "");
}

static const struct { const char *flag; bool prefix, takes; const char *why; } dropped[] = {
    {"--ptxas-options", true, false, "there is no ptxas"},  {"-Xptxas", true, true, "there is no ptxas"},
    {"-lineinfo", false, false, "mcc has no such flag"},     {"--generate-line-info", false, false,
                                                              "mcc has no such flag"},
    {"-maxrregcount", true, false, "mcc has no such flag"},  {"--maxrregcount", true, false, "mcc has no such flag"},
    {"--expt-", true, false, "clang needs no flag for that"}, {"-expt-", true, false, "clang needs no flag for that"},
    {"--extended-lambda", false, false, "clang needs no flag for that"}, {"-extended-lambda", false, false,
        "clang needs no flag for that"},
    {"-Xcompiler", false, false, "mcc takes the host's flags directly"},
    {"--compiler-options", false, false, "mcc takes the host's flags directly"},
    {"-Xcudafe", false, true, "mcc has no cudafe"},          {"--diag-suppress", true, false, "mcc has no such flag"},
    {"--threads", true, false, "mcc has no such flag"},      {"-t=", true, false, "mcc has no such flag"},
    {"--prec-", true, false, "mcc has no such flag"},        {"-prec-", true, false, "mcc has no such flag"},
    {"--default-stream", true, false, "mcc has no such flag"}, {"-gencode", false, false, "the next flag says it"},
    {"--disable-warnings", false, false, "mcc has no such flag"}, {"-split-compile", true, false,
                                                                   "mcc has no such flag"},
    {"--split-compile", true, false, "mcc has no such flag"}, {"-dlcm", true, false, "there is no ptxas"},
    {"--ftz=false", false, false, "it is the default"},      {"-ftz=false", false, false, "it is the default"},
    {"--restrict", false, false, "mcc has no such flag"},    {"-restrict", false, false, "mcc has no such flag"},
    {"-Wno-deprecated-gpu-targets", false, false, "mcc has no such flag"}, {"-Xcompiler=", true, false,
        "mcc takes the host's flags directly"},
};

/* The architecture's number in a flag; 0: none. */
static int musa_python_arch_in(const char *s, size_t n)
{
    static const char *const marks[] = {"sm_", "compute_", NULL};

    for (int m = 0; marks[m]; m++) {
        const char *at = memmem(s, n, marks[m], strlen(marks[m]));
        if (at)
            return atoi(at + strlen(marks[m]));
    }
    return 0;
}

/* Translates a compiler's architecture flag in text i. False: it is none. */
static bool musa_python_arch_flag(struct py *p, size_t i, const char *s, size_t n)
{
    struct musa_text t;
    bool computed = musa_python_find(s, n, "sm_{") || musa_python_find(s, n, "compute_{"); /* f"-arch=sm_{arch}" */
    int sm = musa_python_arch_in(s, n), mp;

    if (musa_back(p->w)) {
        static const char flag[] = "--offload-arch=mp_";
        if (n < sizeof flag || memcmp(s, flag, sizeof flag - 1))
            return false;
        mp = atoi(s + sizeof flag - 1);
        musa_replace(p->w, musa_python_whole(p, &t), p->v[i].body, n, mp >= 31 ? "-arch=sm_90" : mp >= 22 ?
                     "-arch=sm_80" : "-arch=sm_70");
        return true;
    }
    if (computed && !(p->w->o->target && p->w->o->target->arch)) {
        musa_note(p->w, musa_python_whole(p, &t), p->v[i].at, MUSA_REFUSED, "flag", '-',
                  "the architecture is computed; name a profile");
        return true;
    }
    if ((!sm && !computed) || !(musa_python_find(s, n, "arch=") || s[0] != '-'))
        return false;
    mp = p->w->o->target && p->w->o->target->arch ? p->w->o->target->arch / 10 : sm >= 90 ? 31 : sm >= 80 ? 22 : 21;
    if (n != 11 || memcmp(s, "-arch=sm_", 9) || mp != (sm == 90 ? 31 : sm == 80 ? 22 : sm == 70 ? 21 : 0))
        musa_note(p->w, musa_python_whole(p, &t), p->v[i].at, MUSA_LOSSY, "flag", 'V', "'%.*s' becomes mp_%d", (int)n,
                  s, mp);
    musa_replace(p->w, musa_python_whole(p, &t), p->v[i].body, n, mp == 31 ? "--offload-arch=mp_31" :
                 mp == 22 ? "--offload-arch=mp_22" :
                 "--offload-arch=mp_21");
    return true;
}

/* -DNAME, -UNAME */
static bool musa_python_macro_flag(struct py *p, size_t i, const char *s, size_t n)
{
    struct musa_text t;
    size_t k = 2;

    if (n < 3 || s[0] != '-' || (s[1] != 'D' && s[1] != 'U'))
        return false;
    while (k < n && musa_python_word_char(s[k]))
        k++;
    musa_word(p->w, musa_python_whole(p, &t), p->v[i].body + 2, k - 2, false);
    return true;
}

/* Translates a compiler's flag in text i. False: it is none. */
static bool musa_python_flag_at(struct py *p, size_t i, const char *s, size_t n)
{
    const struct musa_row *r = musa_row_find(ROW_FLAG, s, n, musa_back(p->w));

    if (r) {
        musa_python_swap(p, p->v[i].body, n, r);
        return true;
    }
    if (n < 3 || (s[0] != '-' && !(n > 8 && !memcmp(s, "arch=", 5))))
        return false;
    if (musa_python_arch_flag(p, i, s, n) || musa_python_macro_flag(p, i, s, n) || musa_back(p->w))
        return true;
    for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++) {
        size_t len = strlen(dropped[k].flag);
        if (dropped[k].prefix ? n < len || memcmp(s, dropped[k].flag, len) : n != len || memcmp(s,
            dropped[k].flag, len))
            continue;
        musa_python_leave_out(p, i, dropped[k].why);
        if (dropped[k].takes && n == len && musa_python_is(p, i + 1, ",") && p->v[i + 2].kind == PY_STRING)
            musa_python_leave_out(p, i + 2, dropped[k].why);
        return true;
    }
    return true;
}

/* The value of TORCH_CUDA_ARCH_LIST, where it is written behind the name. */
static void musa_python_arch_list(struct py *p, size_t i)
{
    size_t k = i + 1;
    struct musa_text t;
    const char *to;
    double v;

    while (musa_python_any_of(p, k, "]\0,\0=\0:\0"))
        k++;
    if (p->v[k].kind != PY_STRING || k == i + 1)
        return;
    v = atof(p->src + p->v[k].body);
    if (musa_back(p->w))
        to = v >= 31 ? "9.0" : v >= 22 ? "8.0" : "7.0";
    else
        to = v >= 9 ? "31" : v >= 8 ? "22" : "21";
    if (!musa_back(p->w) && p->v[k].n_body != 3)
        musa_note(p->w, musa_python_whole(p, &t), p->v[k].at, MUSA_LOSSY, "flag", 'V',
                  "the list of architectures becomes '%s'", to);
    musa_replace(p->w, musa_python_whole(p, &t), p->v[k].body, p->v[k].n_body, to);
}

static bool musa_python_starts_with(const char *s, size_t n, const char *head)
{
    return n >= strlen(head) && !memcmp(s, head, strlen(head));
}

/* Arguments that name the module or its functions, not a device. */
static bool musa_python_names_module(const struct py *p, size_t i)
{
    uint32_t open = p->v[i].open;
    size_t k = open != NONE && musa_python_is(p, open, "[") ? open : i;

    return k > 1 && musa_python_is(p, k - 1, "=") && musa_python_any_of(p, k - 2, "name\0functions\0");
}

/* f"cuda:{i}" */
static bool musa_python_device_prefix(struct py *p, size_t at, size_t n)
{
    struct musa_text t;

    if (!musa_python_starts_with(p->src + at, n, musa_back(p->w) ? "musa:{" : "cuda:{"))
        return false;
    musa_replace(p->w, musa_python_whole(p, &t), at, 4, musa_back(p->w) ? "cuda" : "musa");
    return true;
}

/* Translates the text literal i: device names, flags, or embedded sources. */
static void musa_python_text_at(struct py *p, size_t i)
{
    const struct py_tok *v = &p->v[i];
    const char *s = p->src + v->body;
    size_t n = v->n_body;
    struct musa_text t;
    bool back = musa_back(p->w);
    const struct musa_row *r;

    if (musa_python_is_doc(p, i) || n == 0)
        return;
    if (p->w->o->device_only) {
        if (!musa_python_names_module(p, i) && !musa_device_name(p->w, musa_python_whole(p, &t), v->body, n))
            musa_python_device_prefix(p, v->body, n);
        return;
    }
    if ((r = musa_row_find(ROW_KEYWORD, s, n, back)) || (r = musa_row_find(ROW_STRING, s, n, back))) {
        musa_python_swap(p, v->body, n, r);
        if (musa_python_find(s, n, "ARCH_LIST"))
            musa_python_arch_list(p, i);
    } else if (!musa_python_names_module(p, i) && musa_device_name(p->w, musa_python_whole(p, &t), v->body, n)) {
        return;
    } else if (musa_python_device_prefix(p, v->body, n) || musa_python_flag_at(p, i, s, n)) {
        return;
    } else if (!back && n < 16 && musa_python_arch_in(s, n) &&
               (musa_python_starts_with(s, n, "sm_") || musa_python_starts_with(s, n, "compute_"))) {
        musa_note(p->w, musa_python_whole(p, &t), v->at, MUSA_REFUSED, "flag", '-',
                  "'%.*s': the flag of the architecture is put together from parts", (int)n, s);
    } else if (n == 4 && !memcmp(s, "nvcc", 4) && !back) {
        musa_note(p->w, musa_python_whole(p, &t), v->at, MUSA_REFUSED, "nvcc", '-', "the program calls nvcc by itself");
    }
}

/* ---- names ---- */

static const char module_cuda[] = "torch.utils.cpp_extension", module_musa[] = "torch_musa.utils.musa_extension";

/* Does the dotted name at i read as 'dotted'? Returns the token behind it, or 0. */
static size_t musa_python_dotted_at(const struct py *p, size_t i, const char *dotted)
{
    while (*dotted) {
        size_t n = strcspn(dotted, ".");
        if (p->v[i].kind != PY_NAME || p->v[i].n != n || memcmp(musa_python_text_of(p, i), dotted, n))
            return 0;
        dotted += n;
        i++;
        if (*dotted == '.') {
            if (!musa_python_is(p, i, "."))
                return 0;
            i++;
            dotted++;
        }
    }
    return i;
}

/* 'from torch.utils import cpp_extension' */
static bool musa_python_import_of_extension(struct py *p, size_t i)
{
    const char *from = musa_back(p->w) ? "torch_musa.utils" : "torch.utils";
    const char *name = musa_back(p->w) ? "musa_extension" : "cpp_extension";
    size_t k = musa_python_dotted_at(p, i, from), at;
    struct musa_text t;

    if (!k || i == 0 || !musa_python_is(p, i - 1, "from") || !musa_python_is(p, k, "import"))
        return false;
    at = k + (musa_python_is(p, k + 1, "(") ? 2 : 1);
    if (!musa_python_is(p, at, name))
        return false;
    musa_replace(p->w, musa_python_whole(p, &t), p->v[i].at, p->v[k - 1].at + p->v[k - 1].n - p->v[i].at,
                 musa_back(p->w) ? "torch.utils" :
                 "torch_musa.utils");
    if (musa_python_is(p, at + 1, "as"))
        musa_replace(p->w, &t, p->v[at].at, p->v[at].n, musa_back(p->w) ? "cpp_extension" : "musa_extension");
    else
        musa_replace(p->w, &t, p->v[at].at, p->v[at].n, musa_back(p->w) ? "cpp_extension" :
                     "musa_extension as cpp_extension");
    if (!musa_python_is(p, at + 1, "as"))
        musa_note(p->w, &t, p->v[at].at, MUSA_LOSSY, "import", 'V', "the module keeps its name by 'as'");
    return true;
}

/* Translates an import of the extension's module. False: it is none. */
static bool musa_python_extension_module(struct py *p, size_t i)
{
    const char *from = musa_back(p->w) ? module_musa : module_cuda, *to = musa_back(p->w) ? module_cuda : module_musa;
    size_t k = musa_python_dotted_at(p, i, from);
    struct musa_text t;

    if (!k)
        return musa_python_import_of_extension(p, i);
    musa_replace(p->w, musa_python_whole(p, &t), p->v[i].at, p->v[k - 1].at + p->v[k - 1].n - p->v[i].at, to);
    musa_used(p->w, &t, p->v[i].at, from, to, 'V', false);
    return true;
}

/* cuda_sources= among the arguments of a call; a parameter or variable of that name stays. */
static bool musa_python_keyword(struct py *p, size_t i)
{
    const struct musa_row *r = musa_row_find(ROW_KEYWORD, musa_python_text_of(p, i), p->v[i].n, musa_back(p->w));
    uint32_t open = p->v[i].open;

    if (!r || open == NONE || open == 0 || !musa_python_is(p, open, "(") || !musa_python_is(p, i + 1, "=") ||
        musa_python_is(p, i + 2, "="))
        return false;
    if (p->v[open - 1].kind != PY_NAME || (open > 1 && musa_python_is(p, open - 2, "def")))
        return false;
    if (!musa_python_any_of(p, i - 1, "(\0,\0"))
        return false;
    musa_python_swap(p, p->v[i].at, p->v[i].n, r);
    return true;
}

/* torch.cuda, x.cuda(), torch.version.cuda, torch.backends.cuda,
    from torch import cuda; self.cuda_ext and so on stay. */
static bool musa_python_attribute_cuda(struct py *p, size_t i)
{
    bool back = musa_back(p->w), import;
    struct musa_text t;

    if (!musa_python_is(p, i, back ? "musa" : "cuda"))
        return false;
    import = i > 3 && musa_python_is(p, i - 1, "import") && musa_python_any_of(p, i - 2, "torch\0version\0backends\0");
    if (!import) {
        if (i == 0 || !musa_python_is(p, i - 1, "."))
            return false;
        if (!musa_python_is(p, i + 1, "(") && !musa_python_any_of(p, i - 2, "torch\0version\0backends\0"))
            return false;
    }
    musa_replace(p->w, musa_python_whole(p, &t), p->v[i].at, p->v[i].n, back ? "cuda" : "musa");
    return true;
}

/* torch.cuda.cudart().cudaMemcpy: the runtime's names behind a dot. */
static bool musa_python_runtime_name(struct py *p, size_t i)
{
    struct musa_text t;

    if (i == 0 || !musa_python_is(p, i - 1, ".") || !musa_python_names_runtime(musa_python_text_of(p, i), p->v[i].n + 1,
                                                                               musa_back(p->w) ? "musa" : "cuda"))
        return false;
    return musa_word(p->w, musa_python_whole(p, &t), p->v[i].at, p->v[i].n, false);
}

/* Notes a module that MUSA lacks. False: it is none of these. */
static bool musa_python_lacking_module(struct py *p, size_t i)
{
    const struct musa_lack *l = musa_lack_find(musa_py_lacks, musa_python_text_of(p, i), p->v[i].n);
    struct musa_text t;

    if (!l || musa_back(p->w) || i == 0 || !musa_python_any_of(p, i - 1, "import\0from\0") || !p->v[i - 1].starts)
        return false;
    musa_note(p->w, musa_python_whole(p, &t), p->v[i].at, MUSA_REFUSED, l->rule, '-', "'%s': %s", l->name, l->why);
    return true;
}

/* Translates a name such as torch.cuda at token i. False: it is none. */
static bool musa_python_attribute(struct py *p, size_t i)
{
    const struct musa_row *r = musa_row_find(ROW_PYTHON, musa_python_text_of(p, i), p->v[i].n, musa_back(p->w));
    bool dot = i > 0 && musa_python_is(p, i - 1, ".");

    if (!r || (i + 1 < p->n && musa_python_is(p, i + 1, "=") && !musa_python_is(p, i + 2, "=") && p->v[i].open != NONE))
        return false;
    if (!dot && !musa_python_any_of(p, i, "CUDAExtension\0MUSAExtension\0CUDA_HOME\0MUSA_HOME\0"))
        return false;
    if (dot && musa_python_any_of(p, i, "cudnn\0mudnn\0") && !musa_python_is(p, i - 2, "backends"))
        return false;
    if (!dot && musa_owns(p->w, musa_python_text_of(p, i), p->v[i].n))
        return false;
    musa_python_swap(p, p->v[i].at, p->v[i].n, r);
    return true;
}

/* Translates token i and what belongs to it behind it; returns the last token that was dealt with. */
static size_t musa_python_token_at(struct py *p, size_t i)
{
    size_t k;

    if (p->v[i].kind == PY_STRING && !musa_python_string_is_code(p, i))
        musa_python_text_at(p, i);
    if (p->v[i].kind != PY_NAME || musa_python_lacking_module(p, i))
        return i;
    if (!p->w->o->device_only && (i == 0 || !musa_python_is(p, i - 1, ".")) && musa_python_extension_module(p, i)) {
        k = musa_python_dotted_at(p, i, musa_back(p->w) ? module_musa : module_cuda);
        if (!k)
            /* behind 'import NAME' */
            k = musa_python_dotted_at(p, i, musa_back(p->w) ? "torch_musa.utils" : "torch.utils") + 2;
        return k - 1;
    }
    if (p->w->o->device_only && musa_python_any_of(p, i, "MUSAExtension\0MUSA_HOME\0"))
        return i;
    if ((p->w->o->device_only || !musa_python_keyword(p, i)) && !musa_python_attribute_cuda(p, i) &&
        !musa_python_runtime_name(p, i))
        musa_python_attribute(p, i);
    return i;
}

void musa_python_names(struct musa_names *names, const char *src, size_t n)
{
    struct py p = {.src = src, .n_src = n};

    musa_python_lex(&p);
    musa_python_each_code(&p, names);
    free(p.v);
}

void musa_python(struct musa_work *w)
{
    struct py p = {.w = w, .src = w->src, .n_src = w->n, .unfinished = SIZE_MAX};
    struct musa_text t;

    musa_python_lex(&p);
    if (p.unfinished != SIZE_MAX)
        musa_note(w, musa_python_whole(&p, &t), p.unfinished, MUSA_REFUSED, "python", '-',
                  "a string that does not end");
    if (!w->o->device_only)
        musa_python_each_code(&p, NULL);
    for (size_t i = 0; i + 1 < p.n; i++)
        i = musa_python_token_at(&p, i);
    free(p.v);
}
