/* build_lack.c - see build_lack.h: the sentences in which g++ and nvcc miss a name, and a search in sorted lists. */
#include "eval/build/build_lack.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))
#define MAX_LIST ((size_t)4 << 20)
#define MAX_NAME 200
#define MAX_LINE 4096

/* ---- lists ---- */

static struct buf torch_names, cuda_names;
static pthread_once_t lists_once = PTHREAD_ONCE_INIT;

/* A line break in front of the first name, so that "\nNAME\n" finds each. Without a list nothing is on it. */
static void build_lack_list_read(struct buf *list, const char *name)
{
    char *path = path_share(name);

    buf_init(list, MAX_LIST);
    buf_addc(list, '\n');
    if (file_read(path, list, NULL) < 0)
        list->n = 1;
    free(path);
}

static void build_lack_lists_read(void)
{
    build_lack_list_read(&torch_names, "litetorch/names/torch.txt");
    build_lack_list_read(&cuda_names, "litetorch/names/cuda.txt");
}

/* True where the list of names has this one; lists are read at the first question. */
static bool build_lack_list_has(const struct buf *list, const char *name)
{
    char line[MAX_NAME + 4];
    size_t n = strlen(name);

    pthread_once(&lists_once, build_lack_lists_read);
    if (!n || n > MAX_NAME)
        return false;
    line[0] = '\n';
    memcpy(line + 1, name, n);
    line[n + 1] = '\n';
    return memmem(list->p, list->n, line, n + 2) != NULL;
}

/* ---- scopes ---- */

/* True where the scope s is one of the list's or lies in it. */
static bool build_lack_scope_begins(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(list[i]);

        if (!strncmp(s, list[i], k) && (!s[k] || s[k] == ':' || s[k] == '<'))
            return true;
    }
    return false;
}

/* "const class at::Tensor" -> "at::Tensor" */
static const char *build_lack_scope_bare(const char *s)
{
    static const char *const words[] = {"const ", "class ", "struct ", "using ", "enum ", "::"};

    for (size_t i = 0; i < N_OF(words); i++)
        if (text_begins(s, words[i]))
            return build_lack_scope_bare(s + strlen(words[i]));
    return s;
}

static bool build_lack_scope_is_torch(const char *s)
{
    static const char *const list[] = {"at", "c10", "torch", "caffe2", "pybind11", "py", "lt"};

    return build_lack_scope_begins(build_lack_scope_bare(s), list, N_OF(list));
}

/* Libraries of templates: whatever they have is asked for by their scope. */
static bool build_lack_scope_is_cuda(const char *s)
{
    static const char *const list[] = {"cooperative_groups", "cg", "nvcuda", "wmma", "cuda", "cub", "thrust", "nvtx3"};

    return build_lack_scope_begins(build_lack_scope_bare(s), list, N_OF(list));
}

/* ---- one name ---- */

/* A name without a scope: a word of torch's that programs do not use for their own has a capital letter. */
static bool build_lack_has_capital(const char *s)
{
    while (*s && !isupper((unsigned char)*s))
        s++;
    return *s;
}

/* Macros of torch's that our headers have where torch's have them: who misses one did not include that header. */
static bool build_lack_is_ours(const char *name)
{
    return !strcmp(name, "C10_CUDA_CHECK") || !strcmp(name, "C10_CUDA_KERNEL_LAUNCH_CHECK");
}

/* True where the name belongs to CUDA or PyTorch and our headers lack it, so that the user is not to blame. */
static bool build_lack_name_lacks(const char *name, const char *scope)
{
    char field[MAX_NAME + 8];

    if (!*scope && build_lack_is_ours(name))
        return false;
    if (*scope && build_lack_scope_is_cuda(scope))
        return true;
    if (*scope && build_lack_scope_is_torch(scope))
        return build_lack_list_has(&torch_names, name) || build_lack_list_has(&cuda_names, name);
    if (!strncmp(build_lack_scope_bare(scope), "cuda", 4)) {
        snprintf(field, sizeof field, ".%.*s", MAX_NAME, name);
        return build_lack_list_has(&cuda_names, field);
    }
    return !*scope && (build_lack_list_has(&cuda_names, name) ||
                       (build_lack_has_capital(name) && build_lack_list_has(&torch_names, name)));
}

/* "at::cuda::X<int>" -> scope "at::cuda", name "X". */
static void build_lack_name_split(char *whole, char **ret_scope, char **ret_name)
{
    char *last = NULL;

    memmove(whole, build_lack_scope_bare(whole), strlen(build_lack_scope_bare(whole)) + 1);
    whole[strcspn(whole, "<( ")] = 0;
    for (char *s = whole; (s = strstr(s, "::")); s += 2)
        last = s;
    *ret_scope = last ? whole : whole + strlen(whole);
    *ret_name = last ? last + 2 : whole;
    if (last)
        *last = 0;
}

/* ---- sentences ---- */

/* What stands between the quotes of a sentence: its first two quoted parts. g++ quotes in UTF-8, nvcc with '"'. */
struct sentence {
    char part[2][MAX_NAME + 1];
    const char *between, *behind; /* the words behind the first part, and behind the second one */
    bool incomplete;              /* "invalid use of incomplete type 'struct X'": declared to be missed */
};

/* Copies the next quoted name of a compiler's message in [s, end) to out. Returns where to go on; NULL: there is
 * none. */
static const char *build_lack_quote_next(const char *s, const char *end, char out[MAX_NAME + 1])
{
    static const char left[] = "\xe2\x80\x98", right[] = "\xe2\x80\x99";
    const char *open = memmem(s, (size_t)(end - s), left, 3), *close, *plain = memchr(s, '"', (size_t)(end - s));
    size_t n;

    if (open && (!plain || open < plain)) {
        s = open + 3;
        close = memmem(s, (size_t)(end - s), right, 3);
    } else {
        s = plain ? plain + 1 : end;
        close = memchr(s, '"', (size_t)(end - s));
    }
    if (!close)
        return NULL;
    n = (size_t)(close - s) < MAX_NAME ? (size_t)(close - s) : MAX_NAME;
    memcpy(out, s, n);
    out[n] = 0;
    return close + (*close == '"' ? 1 : 3);
}

/* Takes a compiler's sentence apart: one or two quoted names, and the words around them. False: it has none. */
static bool build_lack_sentence_read(const char *s, const char *end, struct sentence *ret)
{
    ret->part[1][0] = 0;
    ret->behind = end;
    ret->incomplete = text_begins(s, "invalid use of incomplete type");
    if (!(ret->between = build_lack_quote_next(s, end, ret->part[0])))
        return false;
    if ((s = build_lack_quote_next(ret->between, end, ret->part[1])))
        ret->behind = s;
    return true;
}

/* The sentence's name and scope; false: it misses no name. */
static bool build_lack_sentence_name(struct sentence *s, char **ret_scope, char **ret_name)
{
    static const char *const alone[] = {" was not declared in this scope", " has not been declared",
                                        " does not name a ",
                                        " is not a namespace-name", " is not a class, namespace", " is undefined",
                                        " that depend on a template parameter", " is not a template"};
    static const char *const member[] = {" is not a member of ", " in namespace ", " in "};
    static const char *const owner[] = {" has no member named ", " has no member "};

    if (text_begins(s->between, " has not been declared in ") && s->part[1][0]) {
        *ret_scope = s->part[1] + (strcmp(s->part[1], "::") ? 0 : 2);
        *ret_name = s->part[0];
        return true;
    }
    for (size_t i = 0; i < N_OF(alone); i++)
        if (text_begins(s->between, alone[i]) || s->incomplete) {
            build_lack_name_split(s->part[0], ret_scope, ret_name);
            return true;
        }
    for (size_t i = 0; i < N_OF(member) + N_OF(owner); i++) {
        bool owns = i >= N_OF(member);

        if (!text_begins(s->between, owns ? owner[i - N_OF(member)] : member[i]) || !s->part[1][0] ||
            (i > 0 && !owns && !text_begins(s->behind, " does not name a ")))
            continue;
        *ret_scope = s->part[!owns], *ret_name = s->part[owns];
        (*ret_name)[strcspn(*ret_name, "<( ")] = 0;
        return true;
    }
    return false;
}

/* One line of a log without what g++ adds about aliases: "'T' {aka 'class at::Tensor'} has no member" names T. */
static size_t build_lack_line_plain(const char *s, const char *end, char out[MAX_LINE])
{
    size_t n = 0;

    while (s < end && n + 1 < MAX_LINE) {
        const char *close = text_begins(s, " {aka ") ? memchr(s, '}', (size_t)(end - s)) : NULL;

        if (close)
            s = close + 1;
        else
            out[n++] = *s++;
    }
    out[n] = 0;
    return n;
}

/* Writes the name with its scope as a reader would spell it; false: this line misses nothing that is on a list. */
static bool build_lack_line_lacks(const char *line, size_t n, char whole[2 * MAX_NAME + 4])
{
    const char *error = strstr(line, "error: ");
    char *scope, *name;
    struct sentence said;

    if (!error || !build_lack_sentence_read(error + 7, line + n, &said) ||
        !build_lack_sentence_name(&said, &scope, &name) || !*name ||
        !build_lack_name_lacks(name, scope))
        return false;
    snprintf(whole, 2 * MAX_NAME + 4, "%s%s%s", build_lack_scope_bare(scope), *scope ? "::" : "", name);
    return true;
}

void build_lack_names(const char *log, void (*f)(const char *name, void *ctx), void *ctx)
{
    char line[MAX_LINE], whole[2 * MAX_NAME + 4];

    for (const char *s = log; *s;) {
        const char *end = s + strcspn(s, "\n");

        if (build_lack_line_lacks(line, build_lack_line_plain(s, end, line), whole))
            f(whole, ctx);
        s = end + (*end == '\n');
    }
}

/* ---- headers ---- */

bool build_lack_header(const char *name)
{
    static const char *const folders[] = {"thrust/", "cuda/", "cub/", "nv/", "cooperative_groups/", "crt/", "nvtx3/",
                                          "ATen/", "c10/", "torch/", "pybind11/", "caffe2/", "torch_musa/", "cccl/"};

    for (size_t i = 0; i < N_OF(folders); i++)
        if (text_begins(name, folders[i]))
            return true;
    return !strcmp(name, "Python.h") || !strcmp(name, "nvToolsExt.h") ||
           (strchr(name, '.') && build_lack_list_has(&cuda_names, name));
}
