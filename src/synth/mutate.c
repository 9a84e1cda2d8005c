/* mutate.c - see mutate.h. A bug kind is a group of rows: text before, text after. Rows speak the plain style's names
 * (tmpl.h); style_dress renames afterwards. Kinds that no row can say have a function. */
#include "synth/mutate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef bool (*mutator)(struct rng *r, const char *program, struct buf *out);

static bool floor_grid(struct rng *r, const char *program, struct buf *out);
static bool wrong_constant(struct rng *r, const char *program, struct buf *out);
static bool missing_semicolon(struct rng *r, const char *program, struct buf *out);
static bool dropped_operator(struct rng *r, const char *program, struct buf *out);

struct bug {
    const char *name;
    enum bug_class class;
    const char *from, *to; /* a row whose from starts with '=' only touches operator lines, "float x2 = .." */
    mutator apply;         /* instead of from and to */
};

static const struct bug bugs[] = {
    {"drop_guard", BUG_RUN, "if (i < n) {", "{", NULL},
    {"drop_guard", BUG_RUN, "if (r < M && j < N) {", "{", NULL},
    {"drop_guard", BUG_RUN, "if (r < M) {", "{", NULL},
    {"drop_guard", BUG_RUN, "if (j < N) {", "{", NULL},
    {"drop_guard", BUG_RUN, "if (i < M * N) {", "{", NULL},
    {"off_by_one", BUG_RUN, "; i < n;", "; i <= n;", NULL},
    {"off_by_one", BUG_RUN, "; j < N;", "; j <= N;", NULL},
    {"off_by_one", BUG_RUN, "; r < M;", "; r <= M;", NULL},
    {"off_by_one", BUG_RUN, "; q < K;", "; q <= K;", NULL},
    {"off_by_one", BUG_RUN, "if (i < n)", "if (i <= n)", NULL},
    {"floor_grid", BUG_VALUE, NULL, NULL, floor_grid},
    {"wrong_identity", BUG_VALUE, " = -INFINITY", " = 0.0f", NULL},
    {"wrong_identity", BUG_VALUE, " = INFINITY", " = 0.0f", NULL},
    {"wrong_identity", BUG_VALUE, "float a = 0.0f;", "float a = 1.0f;", NULL},
    {"missing_sync", BUG_VALUE, "__syncthreads();", ";", NULL},
    {"swapped_index", BUG_VALUE, "[r * N + j]", "[j * N + r]", NULL},
    {"swapped_index", BUG_VALUE, "[j * N + r]", "[r * N + j]", NULL},
    {"swapped_index", BUG_VALUE, "[r * K + q]", "[q * K + r]", NULL},
    {"swapped_index", BUG_VALUE, "[q * N + j]", "[j * N + q]", NULL},
    {"swapped_index", BUG_VALUE, "i / N]", "i % N]", NULL},
    {"swapped_index", BUG_VALUE, "i % N]", "i / N]", NULL},
    {"wrong_stride", BUG_VALUE, "[r * K + q]", "[r * N + q]", NULL},
    {"wrong_stride", BUG_VALUE, "[q * N + j]", "[q * K + j]", NULL},
    {"wrong_stride", BUG_VALUE, "[j * K + q]", "[j * N + q]", NULL},
    {"wrong_stride", BUG_VALUE, "i = r * N + j;", "i = r * (N - 1) + j;", NULL},
    {"wrong_stride", BUG_VALUE, "x[r * N + j]", "x[r * (N - 1) + j]", NULL},
    {"wrong_constant", BUG_VALUE, NULL, NULL, wrong_constant},
    {"wrong_sign", BUG_VALUE, "= + ", " - ", NULL},
    {"wrong_sign", BUG_VALUE, "= - ", " + ", NULL},
    {"wrong_sign", BUG_VALUE, "=expf(-x", "expf(x", NULL},
    {"wrong_sign", BUG_VALUE, "== -x", "= x", NULL},
    {"wrong_operator", BUG_VALUE, "=fmaxf(x", "fminf(x", NULL},
    {"wrong_operator", BUG_VALUE, "=fminf(x", "fmaxf(x", NULL},
    {"wrong_operator", BUG_VALUE, "=sinf(", "cosf(", NULL},
    {"wrong_operator", BUG_VALUE, "=cosf(", "sinf(", NULL},
    {"wrong_operator", BUG_VALUE, "=tanhf(", "erff(", NULL},
    {"wrong_operator", BUG_VALUE, "= * ", " / ", NULL},
    {"wrong_operator", BUG_VALUE, "= / ", " * ", NULL},
    {"dropped_operator", BUG_VALUE, NULL, NULL, dropped_operator},
    {"missing_rescale", BUG_VALUE, "s = s * expf(m - q) + ", "s = s + ", NULL},
    {"no_max_subtraction", BUG_VALUE, " - m);", ");", NULL},
    {"no_max_subtraction", BUG_VALUE, " - m) / s", ") / s", NULL},
    {"missing_divide", BUG_VALUE, "a / N", "a", NULL},
    {"missing_divide", BUG_VALUE, "a / M", "a", NULL},
    {"missing_divide", BUG_VALUE, "a / n", "a", NULL},
    {"missing_divide", BUG_VALUE, "u /= N;", ";", NULL},
    {"short_shuffle", BUG_VALUE, "int d = 16;", "int d = 8;", NULL},
    {"dropped_carry", BUG_VALUE, "a = a + c;", ";", NULL},
    {"dropped_carry", BUG_VALUE, "a = a * c;", ";", NULL},
    {"inclusive_scan", BUG_VALUE, "= = a - x0;", " = a;", NULL},
    {"inclusive_scan", BUG_VALUE, "= = a;", " = a - x0;", NULL},
    {"missing_bias", BUG_VALUE, "x1 = x1 + b[j];", ";", NULL},
    {"huge_block", BUG_RUN, ", 256>>>", ", 2048>>>", NULL},
    {"huge_block", BUG_RUN, ", 128>>>", ", 2048>>>", NULL},
    {"huge_block", BUG_RUN, "block(32, 8)", "block(64, 32)", NULL},
    {"missing_import", BUG_RUN, "from torch.utils.cpp_extension import load_inline\n", "", NULL},
    {"wrong_attribute", BUG_RUN, "return m.f(", "return m.forward(", NULL},
    {"missing_semicolon", BUG_COMPILE, NULL, NULL, missing_semicolon},
    {"undeclared", BUG_COMPILE, "float x0 = ", "float v = ", NULL},
    {"undeclared", BUG_COMPILE, "int i = ", "int idx = ", NULL},
    {"undeclared", BUG_COMPILE, "int n = x.numel();\n", "", NULL},
    {"undeclared", BUG_COMPILE, "float a = ", "float acc = ", NULL},
    {"undeclared", BUG_COMPILE, "blockDim.x + threadIdx.x", "blockDimx + threadIdx.x", NULL},
    {"wrong_name", BUG_COMPILE, "[\"f\"]", "[\"forward\"]", NULL},
    {"wrong_name", BUG_COMPILE, "\n    k<<<", "\n    kernel<<<", NULL},
    {"wrong_declaration", BUG_COMPILE, "\"torch::Tensor f(", "\"torch::Tensor run(", NULL},
    {"missing_argument", BUG_COMPILE, ", n);", ");", NULL},
    {"missing_argument", BUG_COMPILE, ", M, N);", ", M);", NULL},
    {"missing_argument", BUG_COMPILE, ", N);", ");", NULL},
    {"wrong_type", BUG_COMPILE, "data_ptr<float>()", "data_ptr<float>", NULL},
    {"wrong_type", BUG_COMPILE, "__global__ void", "__global__ float", NULL},
};
#define N_BUGS ((int)(sizeof bugs / sizeof bugs[0]))

/* ---- kinds are runs of rows with one name ---- */

static int kind_of(int row)
{
    int kind = 0;

    for (int i = 1; i <= row; i++)
        kind += strcmp(bugs[i].name, bugs[i - 1].name) != 0;
    return kind;
}

static int first_row(int kind)
{
    int i = 0;

    while (kind_of(i) != kind)
        i++;
    return i;
}

int mutate_kinds(void)
{
    return kind_of(N_BUGS - 1) + 1;
}

const char *mutate_name(int kind)
{
    return bugs[first_row(kind)].name;
}

enum bug_class mutate_class(int kind)
{
    return bugs[first_row(kind)].class;
}

/* ---- text surgery ---- */

static void splice(const char *program, size_t at, size_t cut, const char *insert, struct buf *out)
{
    buf_add(out, program, at);
    buf_adds(out, insert);
    buf_adds(out, program + at + cut);
}

/* Is p on a line such as "float x2 = tanhf(x1);"? */
static bool on_operator_line(const char *program, const char *p)
{
    while (p > program && p[-1] != '\n')
        p--;
    p += strspn(p, " ");
    return !strncmp(p, "float x", 7) && isdigit((unsigned char)p[7]);
}

/* One occurrence, each equally likely; false if there is none. */
static bool replace_one(struct rng *r, const char *program, const char *from, const char *to, struct buf *out)
{
    bool operators = *from == '=';
    const char *found = NULL, *text = from + operators;
    uint64_t seen = 0;

    for (const char *p = program; (p = strstr(p, text)); p++)
        if ((!operators || on_operator_line(program, p)) && rng_below(r, ++seen) == 0)
            found = p;
    if (found)
        splice(program, (size_t)(found - program), strlen(text), to, out);
    return found != NULL;
}

/* The CUDA text between the triple quotes. */
static const char *cuda_start(const char *program)
{
    const char *p = strstr(program, "r\"\"\"");

    return p ? p + 4 : program;
}

static const char *cuda_end(const char *program)
{
    const char *p = strstr(cuda_start(program), "\"\"\"");

    return p ? p : program + strlen(program);
}

/* "(n + 255) / 256" -> "n / 256" */
static bool floor_grid(struct rng *r, const char *program, struct buf *out)
{
    const char *found = NULL;
    size_t cut = 0;
    uint64_t seen = 0;

    for (const char *p = cuda_start(program); (p = strchr(p, '(')) && p < cuda_end(program); p++) {
        const char *q = p + 1;
        if (!isalpha((unsigned char)*q) || strncmp(q + 1, " + ", 3) || !isdigit((unsigned char)q[4]))
            continue;
        q += 4;
        while (isdigit((unsigned char)*q))
            q++;
        if (!strncmp(q, ") / ", 4) && rng_below(r, ++seen) == 0)
            found = p, cut = (size_t)(q + 1 - p);
    }
    if (found)
        splice(program, (size_t)(found - program), cut, (char[2]){found[1], 0}, out);
    return found != NULL;
}

/* A float literal of the arithmetic, not a zero and not 1e-12: its last digit before the f changes. */
static bool wrong_constant(struct rng *r, const char *program, struct buf *out)
{
    const char *found = NULL;
    uint64_t seen = 0;
    char digit[2] = {0};

    for (const char *p = cuda_start(program); p < cuda_end(program); p++) {
        const char *q = p;
        if (p[-1] == '.' || isalnum((unsigned char)p[-1]) || !isdigit((unsigned char)*p))
            continue;
        q += strspn(q, "0123456789.");
        if (*q == 'f' && strncmp(p, "0.0f", 4) && rng_below(r, ++seen) == 0)
            found = q - 1;
    }
    if (!found)
        return false;
    digit[0] = (char)('0' + (*found - '0' + 1 + (int)rng_below(r, 8)) % 10);
    splice(program, (size_t)(found - program), 1, digit, out);
    return true;
}

static bool missing_semicolon(struct rng *r, const char *program, struct buf *out)
{
    const char *found = NULL;
    uint64_t seen = 0;

    for (const char *p = cuda_start(program); (p = strstr(p, ";\n")) && p < cuda_end(program); p++)
        if (rng_below(r, ++seen) == 0)
            found = p;
    if (found)
        splice(program, (size_t)(found - program), 1, "", out);
    return found != NULL;
}

/* "float x3 = tanhf(x2);" becomes "float x3 = x2;": one operator of the task is forgotten. */
static bool dropped_operator(struct rng *r, const char *program, struct buf *out)
{
    const char *found = NULL, *at, *end;
    char keep[] = "x0";
    uint64_t seen = 0;

    for (const char *p = cuda_start(program); (p = strstr(p, "float x")) && p < cuda_end(program); p++)
        if (isdigit((unsigned char)p[7]) && p[7] > '0' && !strncmp(p + 8, " = ", 3) && rng_below(r, ++seen) == 0)
            found = p + 11;
    if (!found)
        return false;
    end = found + strcspn(found, ";");
    keep[1] = (char)(found[-4] - 1);
    at = strstr(found, keep);
    if (!at || at > end) /* not made from the value before: leave it alone */
        return false;
    splice(program, (size_t)(found - program), (size_t)(end - found), keep, out);
    return true;
}

/* ---- choosing ---- */

static bool apply_row(const struct bug *b, struct rng *r, const char *program, struct buf *out)
{
    return b->apply ? b->apply(r, program, out) : replace_one(r, program, b->from, b->to, out);
}

bool mutate_apply(int kind, struct rng *r, const char *program, struct buf *out)
{
    int first = first_row(kind), n = 0, order[16];

    while (first + n < N_BUGS && n < 16 && kind_of(first + n) == kind)
        order[n] = first + n, n++;
    rng_shuffle(r, order, (size_t)n, sizeof *order);
    for (int i = 0; i < n; i++) {
        buf_clear(out);
        if (apply_row(&bugs[order[i]], r, program, out) && strcmp(out->p, program))
            return true;
    }
    return false;
}

int mutate_any(struct rng *r, int *count, const char *program, struct buf *out)
{
    int n = mutate_kinds(), order[64];

    for (int i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(r, order, (size_t)n, sizeof *order);
    for (int i = 1; i < n; i++) /* stable insertion sort: rare kinds first, ties as shuffled */
        for (int k = i; k > 0 && count[order[k]] < count[order[k - 1]]; k--) {
            int t = order[k];
            order[k] = order[k - 1], order[k - 1] = t;
        }
    for (int i = 0; i < n; i++)
        if (mutate_apply(order[i], r, program, out)) {
            count[order[i]]++;
            return order[i];
        }
    return -1;
}
