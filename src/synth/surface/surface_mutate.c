/* surface_mutate.c - see surface_mutate.h. Programs are text here: a kind is a function that rewrites one line.
 * mutate_KIND appends the edited line; false: nothing in it fits. */
#include "synth/surface/surface_mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "synth/heldout.h"
#include "synth/surface/kind.h"
#include "synth/surface/surface.h"
#include "synth/surface/surface_wiring.h"

/* Writes the line anew, without its end; false: the kind has no place in it. */
typedef bool mutate_line(struct rng *r, const char *line, struct buf *out);

static const char *mutate_pick(struct rng *r, const char *const *list, size_t n)
{
    return list[rng_below(r, n)];
}
#define PICK(r, list) mutate_pick(r, list, sizeof(list) / sizeof *(list))

/* One of the places where the text occurs. */
static const char *mutate_find(struct rng *r, const char *line, const char *text)
{
    const char *found = NULL;
    uint64_t n = 0;

    for (const char *p = line; (p = strstr(p, text)); p++)
        if (rng_below(r, ++n) == 0)
            found = p;
    return found;
}

/* The line with n bytes at this place replaced. */
static bool mutate_put(struct buf *out, const char *line, const char *at, size_t n, const char *new)
{
    if (strlen(new) == n && !strncmp(at, new, n))
        return false;
    buf_addf(out, "%.*s%s%s", (int)(at - line), line, new, at + n);
    return true;
}

/* The length of the identifier at p. */
static size_t mutate_word(const char *p)
{
    size_t n = 0;

    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* ---- lines of forward() ---- */

/* Calls another function of the module. */
static bool mutate_function(struct rng *r, const char *line, struct buf *out)
{
    static const char *const others[] = {"linear_forward", "conv2d_forward", "matmul_forward",     "relu_forward",
                                         "mean_forward",   "sum_forward",    "layer_norm_forward", "softmax_forward",
                                         "linear_kernel",  "conv2d_kernel",  "max_pool2d_forward", "scale_forward"};
    const char *p = mutate_find(r, line, "ops.");

    return p && mutate_put(out, line, p + 4, mutate_word(p + 4), PICK(r, others));
}

/* Reads an attribute that the class does not have. */
static bool mutate_attribute(struct rng *r, const char *line, struct buf *out)
{
    static const char *const others[] = {"alpha",    "beta",   "eps",         "value",  "dim",       "axis",
                                         "size",     "weight", "kernel_size", "stride", "num_groups", "lambd",
                                         "threshold", "scale",  "min_value",   "factor", "in_channels", "p"};
    const char *p = mutate_find(r, line, "self.");
    size_t n;

    if (!p)
        return false;
    p += 5;
    while (n = mutate_word(p), p[n] == '.')
        p += n + 1;
    return mutate_put(out, line, p, n, PICK(r, others));
}

/* The last argument of the line's call, from its comma on; NULL: there is but one. */
static const char *mutate_last_argument(const char *line)
{
    const char *end = strrchr(line, ')'), *p = end;

    while (p && p > line && *p != ',' && *p != '(')
        p--;
    return p && *p == ',' ? p : NULL;
}

/* Drops the last argument of the call. */
static bool mutate_fewer(struct rng *r, const char *line, struct buf *out)
{
    const char *p = strstr(line, "ops.") ? mutate_last_argument(line) : NULL;

    (void)r;
    return p && mutate_put(out, line, p, (size_t)(strrchr(line, ')') - p), "");
}

/* Adds an argument to the call. */
static bool mutate_more(struct rng *r, const char *line, struct buf *out)
{
    static const char *const more[] = {", 1.0)", ", 0)", ", 1)", ", None)", ", 1e-5)"};
    const char *end = strstr(line, "ops.") ? strrchr(line, ')') : NULL;

    return end && mutate_put(out, line, end, 1, PICK(r, more));
}

/* A line of a chain goes: nothing is written. */
static bool mutate_leave_out(struct rng *r, const char *line, struct buf *out)
{
    (void)r, (void)out;
    return strstr(line, " = ops.") != NULL;
}

/* ---- lines of kernels and of what calls them ---- */

/* "expf(" becomes "exp_f(", another name loses its last letter, or gets one. */
static bool mutate_name(struct rng *r, const char *line, struct buf *out)
{
    const char *p = line + rng_below(r, strlen(line) + 1), *new;
    size_t n;
    char *name;

    while (p > line && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))
        p--;
    n = mutate_word(p);
    if (n < 2 || isdigit((unsigned char)*p))
        return false;
    new = p[n] == '(' && p[n - 1] == 'f' ? "_f" : rng_below(r, 2) ? "" : "s";
    name = xasprintf("%.*s%s", (int)n - (*new != 's'), p, new);
    mutate_put(out, line, p, n, name);
    free(name);
    return true;
}

/* Drops the space behind a type. */
static bool mutate_join(struct rng *r, const char *line, struct buf *out)
{
    static const char *const types[] = {"void ", "int ", "float ", "auto "};
    const char *type = PICK(r, types), *p = mutate_find(r, line, type);

    return p && mutate_put(out, line, p + strlen(type) - 1, 1, "");
}

/* A statement on v becomes that of another taught map. */
static bool mutate_statement(struct rng *r, const char *line, struct buf *out)
{
    const struct kind *k;
    int n = 0;

    if (strncmp(line + strspn(line, " "), "v = ", 4))
        return false;
    while (map_kinds[n].name)
        n++;
    k = &map_kinds[rng_below(r, (uint64_t)n)];
    if (k->form != FORM_MAP || strchr(k->code, '$') || strchr(k->code, '\n')[1] ||
        heldout_name_class(kind_operator(k->name)) != OP_TAUGHT)
        return false;
    buf_addf(out, "%.*s%.*s", (int)strspn(line, " "), line, (int)strlen(k->code) - 1, k->code);
    return strcmp(out->p, line) != 0;
}

/* One text becomes another, at one of its places. */
struct mutate_swap {
    const char *from, *to;
};

/* Puts a drawn replacement into the line; false: nothing in it fits. */
static bool mutate_by(struct rng *r, const char *line, struct buf *out, const struct mutate_swap *s, size_t n)
{
    const struct mutate_swap *pick = &s[rng_below(r, n)];
    const char *p = mutate_find(r, line, pick->from);

    return p && mutate_put(out, line, p, strlen(pick->from), pick->to);
}
#define SWAP(r, line, out, list) mutate_by(r, line, out, list, sizeof(list) / sizeof *(list))

static bool mutate_operator(struct rng *r, const char *line, struct buf *out)
{
    static const struct mutate_swap s[] = {{" + ", " - "}, {" - ", " + "}, {" * ", " / "}, {" / ", " * "},
                                           {"+= ", "= "},  {"fmaxf(", "fminf("}, {"fminf(", "fmaxf("},
                                           {" > ", " < "}, {"sqrtf(", "fabsf("}, {"expf(", "logf("}};

    return SWAP(r, line, out, s);
}

static bool mutate_constant(struct rng *r, const char *line, struct buf *out)
{
    static const struct mutate_swap s[] = {{"1.0f", "0.0f"}, {"0.0f", "1.0f"}, {"0.5f", "2.0f"}, {"= 0", "= 1"},
                                           {"- 1", "- 0"},   {"1.0f", "0.5f"}, {"* 2", "* 4"},   {"-INFINITY", "0.0f"}};

    return SWAP(r, line, out, s);
}

static bool mutate_index(struct rng *r, const char *line, struct buf *out)
{
    static const struct mutate_swap s[] = {
        {"size(1)", "size(0)"}, {"size(0)", "size(1)"}, {"size(2)", "size(1)"}, {"size(3)", "size(2)"},
        {"size(2)", "size(3)"}, {"j * inner", "j"},     {"* inner", "* n"},     {"[i]", "[0]"},
        {"% inner", "/ inner"}, {"i * n + j", "i + j * n"}, {"size(dim)", "size(0)"}, {"[1]", "[0]"},
        {"packed_accessor32<float, 4>", "packed_accessor32<float, 3>"}};

    return SWAP(r, line, out, s);
}

static bool mutate_guard(struct rng *r, const char *line, struct buf *out)
{
    static const struct mutate_swap s[] = {{" < n)", " <= n)"}, {" < n;", " < n - 1;"}, {" < rows)", " <= rows)"},
                                           {">= 0 && ", "> 0 && "}, {"+ 255) / 256", ") / 256"}};

    return SWAP(r, line, out, s);
}

/* ---- the table ---- */

enum mutate_where { IN_FORWARD, IN_SOURCE, SEVERAL_LINES };

/* weight: about the shares of the failures that were read. */
static const struct mutate_kind {
    struct surface_mutation m;
    enum mutate_where where;
    unsigned weight;
    mutate_line *edit;
    surface_wiring *wiring; /* of SEVERAL_LINES, instead of edit */
} mutate_kinds[] = {
    {{"other_function", "forward calls another function"}, IN_FORWARD, 5, mutate_function},
    {{"no_attribute", "the module has no such attribute, or it is another one"}, IN_FORWARD, 3, mutate_attribute},
    {{"argument_missing", "an argument is missing"}, IN_FORWARD, 2, mutate_fewer},
    {{"argument_added", "there is an argument too many"}, IN_FORWARD, 1, mutate_more},
    {{"layer_left_out", "a layer is missing"}, IN_FORWARD, 2, mutate_leave_out},
    {{"unknown_name", "no such name is declared"}, IN_SOURCE, 4, mutate_name},
    {{"words_joined", "a blank is missing"}, IN_SOURCE, 1, mutate_join},
    {{"other_statement", "that is another operator"}, IN_SOURCE, 3, mutate_statement},
    {{"other_operator", "the arithmetic is wrong"}, IN_SOURCE, 3, mutate_operator},
    {{"other_constant", "the constant is wrong"}, IN_SOURCE, 2, mutate_constant},
    {{"other_index", "the index or the axis is wrong"}, IN_SOURCE, 4, mutate_index},
    {{"other_bound", "the bound is wrong"}, IN_SOURCE, 2, mutate_guard},
    {{"parameter_dropped", "a parameter is handed to nobody"}, SEVERAL_LINES, 7, .wiring = surface_wiring_drop},
    {{"parameter_invented", "there is no such parameter"}, SEVERAL_LINES, 7, .wiring = surface_wiring_add},
    {{"function_renamed", "the function has another name"}, SEVERAL_LINES, 4, .wiring = surface_wiring_rename},
    {{"other_sizes", "the result has other sizes"}, SEVERAL_LINES, 4, .wiring = surface_wiring_sizes},
};
#define N_KINDS (sizeof mutate_kinds / sizeof *mutate_kinds)

/* One of the kinds of edits, by weights. */
static const struct mutate_kind *mutate_draw_kind(struct rng *r)
{
    unsigned total = 0;
    uint64_t at;

    for (size_t i = 0; i < N_KINDS; i++)
        total += mutate_kinds[i].weight;
    at = rng_below(r, total);
    for (const struct mutate_kind *k = mutate_kinds;; k++) {
        if (at < k->weight)
            return k;
        at -= k->weight;
    }
}

/* Where the lines of a kind are; an empty range where the program has none. */
static void mutate_range(const char *program, enum mutate_where where, const char **from, const char **to)
{
    const char *end = program + strlen(program), *binding = strstr(program, "PYBIND11_MODULE");

    *from = strstr(program, where == IN_FORWARD ? "def forward(" : "__global__");
    *from = *from ? *from : end;
    if (where == IN_FORWARD)
        *from += strcspn(*from, "\n");
    *to = where == IN_SOURCE && binding && binding > *from ? binding : end;
}

/* One of the lines in [from, to) that is not blank, as a string; *at: where it begins. NULL: none. */
static char *mutate_draw_line(struct rng *r, const char *from, const char *to, const char **at)
{
    uint64_t n = 0;

    *at = NULL;
    for (const char *p = from; p < to; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'))
        if (strcspn(p, "\n") > 1 && rng_below(r, ++n) == 0)
            *at = p;
    return *at ? xstrndup(*at, strcspn(*at, "\n")) : NULL;
}

static int mutate_count(const char *text, const char *what)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* One bug of a kind; NULL if that does not fit. */
static char *mutate_try(const char *program, struct rng *r, const struct mutate_kind *k)
{
    const char *from, *to, *at;
    char *line, *mutant = NULL;
    struct buf new;

    if (k->where == SEVERAL_LINES)
        return k->wiring(r, program);
    mutate_range(program, k->where, &from, &to);
    if (!(line = mutate_draw_line(r, from, to, &at)))
        return NULL;
    buf_init(&new, BUF_MAX_TEXT);
    buf_adds(&new, "");
    if (k->edit(r, line, &new) && (new.n || mutate_count(from, " = ops.") > 1)) {
        const char *rest = at + strlen(line);
        mutant = xasprintf("%.*s%s%s", (int)(at - program), program, new.n ? new.p : "",
                           rest + (new.n == 0 && *rest == '\n'));
    }
    buf_free(&new);
    free(line);
    return mutant;
}

char *surface_mutate(const char *program, struct rng *r, const struct surface_mutation **ret)
{
    for (int tries = 0; tries < 1000; tries++) {
        const struct mutate_kind *k = mutate_draw_kind(r);
        char *mutant = mutate_try(program, r, k);

        for (int again = 0; !mutant && again < 20; again++) /* another line: kinds keep their weights */
            mutant = mutate_try(program, r, k);
        if (mutant) {
            *ret = &k->m;
            return mutant;
        }
    }
    return NULL;
}
