/* style.c - see style.h. Renames whole identifiers (never members, never numbers, never Python outside the
 * program's own names) and adds comments where a line ends a thought. */
#include "synth/style.h"

#include <ctype.h>
#include <string.h>

#define NAMES 4

struct rename {
    const char *from;
    const char *to[NAMES];
};

/* Column 0 keeps the short name now and then, so that both spellings are seen. */
static const struct rename renames[] = {
    {"k", {"kernel", "fused_kernel", "op_kernel", "compute_kernel"}},
    {"k2", {"final_kernel", "finish_kernel", "combine_kernel", "last_kernel"}},
    {"f", {"forward_cuda", "run", "launch", "op_forward"}},
    {"m", {"module", "ext", "native", "lib"}},
    {"src", {"cuda_source", "source", "CUDA_SRC", "kernel_source"}},
    {"o", {"out", "output", "result", "dst"}},
    {"v", {"v", "val", "value", "cur"}}, /* also x0 x1.., which keep their digits */
    {"a", {"acc", "total", "partial", "accum"}},
    {"i", {"i", "idx", "index", "gid"}},
    {"r", {"row", "r", "row_id", "irow"}},
    {"j", {"col", "j", "col_id", "jcol"}},
    {"t", {"tid", "lane", "t", "thread"}},
    {"s", {"s", "buf", "shm", "stage"}},
    {"pre", {"prologue", "transform", "load_op", "pre_op"}},
    {"e", {"e", "elem", "apply_op", "each"}},
    {"h", {"h", "branch", "saved", "side"}},
    {"n", {"n", "numel", "count", "size"}},
};
#define N_RENAMES (sizeof renames / sizeof renames[0])

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *renamed(const char *word, size_t n, const int *choice)
{
    for (size_t i = 0; i < N_RENAMES; i++)
        if (strlen(renames[i].from) == n && !memcmp(renames[i].from, word, n))
            return renames[i].to[choice[i]];
    return NULL;
}

/* Where 'm' is both the module (Python) and the row maximum (CUDA), both are renamed alike: they never meet. */
/* x0, x1..: values in the order of the task's lines. */
static bool is_value(const char *word, size_t n)
{
    return n == 2 && word[0] == 'x' && isdigit((unsigned char)word[1]);
}

static void add_value(struct buf *out, const char *word, const int *choice)
{
    static const char *const prefix[NAMES] = {"x", "v", "val", "t"};

    buf_addf(out, "%s%c", prefix[choice[0]], word[1]);
}

static void rename_all(struct buf *out, const char *s, const int *choice)
{
    for (const char *p = s; *p;) {
        size_t n = 0;
        bool member = p > s && (p[-1] == '.' || (p > s + 1 && p[-1] == '>' && p[-2] == '-'));
        const char *to;

        while (is_word(p[n]))
            n++;
        if (!n) {
            buf_addc(out, *p++);
            continue;
        }
        /* "m.f(...)" is our own function; other members (v.x, x.size) stay, and so does the prefix of r\"\"\" */
        if ((member && !(n == 1 && *p == 'f')) || isdigit((unsigned char)*p) || !strncmp(p, "r\"\"", 3))
            to = NULL;
        else
            to = renamed(p, n, choice);
        if (is_value(p, n) && !member)
            add_value(out, p, choice);
        else
            buf_add(out, to ? to : p, to ? strlen(to) : n);
        p += n;
    }
}

static const char *const openings[] = {
    "# %s: native CUDA kernel, one launch per forward\n",
    "# strategy: %s\n",
    "# ModelNew with a hand-written CUDA kernel (%s)\n",
    "# %s\n",
};

struct remark {
    const char *before; /* a line that starts like this gets the remark above it */
    const char *text[2];
};

static const struct remark remarks[] = {
    {"    __syncthreads();", {"// everyone sees the shared values from here on", "// wait for the whole block"}},
    {"    for (int d = 16;", {"// warp reduction by shuffles", "// fold the 32 lanes"}},
    {"    if (i < n) {", {"// the last block may be partial", "// guard for sizes between blocks"}},
    {"    if (t == 0) {", {"// one thread writes the result", "// lane 0 finishes"}},
    {"    if (r < M) {", {"// one row per thread", "// rows beyond M do not exist"}},
};

static void add_remark(struct rng *r, const char *line, struct buf *out)
{
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (!strncmp(line, remarks[i].before, strlen(remarks[i].before)) && rng_below(r, 2)) {
            buf_add(out, line, strspn(line, " "));
            buf_addf(out, "%s\n", remarks[i].text[rng_below(r, 2)]);
            return;
        }
}

void style_dress(struct rng *r, const struct graph *g, const char *strategy, struct buf *program)
{
    int choice[N_RENAMES];
    struct buf noted, out;
    const char *p = program->p;

    buf_init(&noted, BUF_MAX_TEXT);
    buf_init(&out, BUF_MAX_TEXT);
    for (size_t i = 0; i < N_RENAMES; i++)
        choice[i] = (int)rng_below(r, NAMES);
    buf_addf(&out, openings[rng_below(r, 4)], strategy);
    p += strcspn(p, "\n") + 1;
    while (*p) {
        size_t n = strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n');
        add_remark(r, p, &noted);
        buf_add(&noted, p, n);
        p += n;
    }
    rename_all(&out, noted.p, choice);
    buf_free(&noted);
    buf_free(program);
    *program = out;
}
