/* surface_wiring.c - see surface_wiring.h. A function's four places are found by its name; edits are ranges of text. */
#include "synth/surface/surface_wiring.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "synth/surface/surface_window.h"

enum { WIRING_ARGUMENTS = 32, WIRING_FUNCTIONS = 16, WIRING_EDITS = 8 };

/* ---- edits ---- */

/* Text [from, to) becomes this one. */
struct wiring_edit {
    const char *from, *to;
    char *text; /* owned */
};

struct wiring_edits {
    struct wiring_edit v[WIRING_EDITS];
    int n;
};

static void wiring_put(struct wiring_edits *e, const char *from, const char *to, char *text)
{
    int at = e->n++;

    for (; at > 0 && e->v[at - 1].from > from; at--)
        e->v[at] = e->v[at - 1];
    e->v[at] = (struct wiring_edit){from, to, text};
}

/* The program with all edits made, which are freed; NULL where there are none. */
static char *wiring_made(const char *program, struct wiring_edits *e)
{
    const char *at = program;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < e->n; i++) {
        buf_add(&b, at, (size_t)(e->v[i].from - at));
        buf_adds(&b, e->v[i].text);
        at = e->v[i].to;
        free(e->v[i].text);
    }
    buf_adds(&b, at);
    if (e->n)
        return buf_detach(&b);
    buf_free(&b);
    return NULL;
}

/* ---- lists of arguments ---- */

struct wiring_list {
    const char *from[WIRING_ARGUMENTS], *to[WIRING_ARGUMENTS]; /* without blanks around */
    int n;
    const char *close; /* its bracket */
};

static bool wiring_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* How deep in brackets the text is, of which a template's are those that follow a name at once. */
struct wiring_depth {
    int brackets, angles;
};

static void wiring_step(struct wiring_depth *d, const char *p)
{
    d->brackets += strchr("([{", *p) ? 1 : strchr(")]}", *p) ? -1 : 0;
    d->angles += *p == '<' && wiring_in_name(p[-1]) ? 1 : *p == '>' && d->angles ? -1 : 0;
}

/* Reads the list behind an opening bracket at 'open'; false: it does not end in its line, is empty or too long. */
static bool wiring_read(const char *open, struct wiring_list *ret)
{
    struct wiring_depth d = {0, 0};
    const char *start = open + 1;

    ret->n = 0;
    for (const char *p = start; *p && *p != '\n'; p++) {
        bool outside = !d.brackets && !d.angles;

        wiring_step(&d, p);
        if (!outside || (*p != ',' && *p != ')'))
            continue;
        if (ret->n == WIRING_ARGUMENTS || p == start)
            return false;
        ret->from[ret->n] = start + strspn(start, " "), ret->to[ret->n++] = p;
        start = p + 1, ret->close = p;
        if (*p == ')')
            return true;
    }
    return false;
}

/* Takes an argument away with the comma in front of it; it is not the first. */
static void wiring_take(struct wiring_edits *e, const struct wiring_list *l, int i)
{
    wiring_put(e, l->to[i - 1], l->to[i], xstrdup(""));
}

/* ---- a function and what belongs to it ---- */

struct wiring_function {
    char name[96];                                    /* "softplus", of softplus_forward */
    struct wiring_list kernel, function, launch, call; /* their arguments */
};

/* The list behind the text "BEFORE name BEHIND"; false: there is none. */
static bool wiring_find(const char *program, const char *before, const char *name, const char *behind,
                        struct wiring_list *ret)
{
    char *text = xasprintf("%s%s%s", before, name, behind);
    const char *p = strstr(program, text);

    p = p ? p + strlen(text) - 1 : NULL;
    if (p && *p == '<') /* a launch: <<<blocks, threads>>>( */
        p = strstr(p, ">>>(") ? strstr(p, ">>>(") + 3 : NULL;
    free(text);
    return p && *p == '(' && wiring_read(p, ret);
}

/* Fills f by its name; false where one of the four places is missing, or it is called twice. */
static bool wiring_function_of(const char *program, const char *name, size_t n, struct wiring_function *f)
{
    char *call;
    const char *first;
    bool once;

    if (n >= sizeof f->name)
        return false;
    snprintf(f->name, sizeof f->name, "%.*s", (int)n, name);
    call = xasprintf("ops.%s_forward(", f->name);
    first = strstr(program, call);
    once = first && !strstr(first + 1, call);
    free(call);
    return once && wiring_find(program, "__global__ void ", f->name, "_kernel(", &f->kernel) &&
        wiring_find(program, "torch::Tensor ", f->name, "_forward(", &f->function) &&
        wiring_find(program, " ", f->name, "_kernel<<<", &f->launch) &&
        wiring_find(program, "ops.", f->name, "_forward(", &f->call) && f->call.n == f->function.n;
}

/* One of the program's functions whose four places are plain; false: there is none. */
static bool wiring_draw_function(struct rng *r, const char *program, struct wiring_function *ret)
{
    static const char mark[] = "\ntorch::Tensor ";
    uint64_t n = 0;

    for (const char *p = program; (p = strstr(p, mark)); p++) {
        const char *name = p + strlen(mark), *end = strstr(name, "_forward(");
        struct wiring_function f;

        if (end && wiring_function_of(program, name, (size_t)(end - name), &f) && rng_below(r, ++n) == 0)
            *ret = f;
    }
    return n > 0;
}

/* ---- a parameter too few ---- */

/* The name that a declaration ends with, "const float* bias": its place; *n its length. */
static const char *wiring_declared(const struct wiring_list *l, int i, size_t *n)
{
    const char *p = l->to[i];

    while (p > l->from[i] && wiring_in_name(p[-1]))
        p--;
    *n = (size_t)(l->to[i] - p);
    return p;
}

/* The declaration of that name; -1: none. */
static int wiring_declaration_of(const struct wiring_list *l, const char *name, size_t n)
{
    for (int i = 1; i < l->n; i++) {
        size_t its;
        const char *p = wiring_declared(l, i, &its);

        if (its == n && !strncmp(p, name, n))
            return i;
    }
    return -1;
}

/* The argument that is that name, or begins with it and a full stop; -1: none, or more. */
static int wiring_argument_of(const struct wiring_list *l, const char *name, size_t n)
{
    int found = -1;

    for (int i = 0; i < l->n; i++) {
        size_t its = (size_t)(l->to[i] - l->from[i]);

        if (its < n || strncmp(l->from[i], name, n) || (its > n && l->from[i][n] != '.'))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

char *surface_wiring_drop(struct rng *r, const char *program)
{
    struct wiring_function f;
    struct wiring_edits e = {.n = 0};
    size_t n;

    if (!wiring_draw_function(r, program, &f) || f.function.n < 2)
        return NULL;
    int at = 1 + (int)rng_below(r, (uint64_t)f.function.n - 1);
    const char *name = wiring_declared(&f.function, at, &n);
    int kernel = wiring_declaration_of(&f.kernel, name, n), launch = wiring_argument_of(&f.launch, name, n);
    if (kernel < 1 || launch < 1)
        return NULL;
    wiring_take(&e, &f.kernel, kernel), wiring_take(&e, &f.function, at);
    wiring_take(&e, &f.launch, launch), wiring_take(&e, &f.call, at);
    return wiring_made(program, &e);
}

/* ---- a parameter too many ---- */

/* "self.NAME", or "self.norm.NAME" of a module that the call reads from. */
static char *wiring_attribute(struct rng *r, const struct wiring_list *call, const char *name)
{
    const char *arg = call->from[rng_below(r, (uint64_t)call->n)];
    size_t n = strncmp(arg, "self.", 5) ? 0 : 5;

    while (n && wiring_in_name(arg[n]))
        n++;
    return n && arg[n] == '.' ? xasprintf(", %.*s.%s", (int)n, arg, name) : xasprintf(", self.%s", name);
}

char *surface_wiring_add(struct rng *r, const char *program)
{
    static const char *const names[] = {"alpha", "min_value", "max_value", "max_val", "value",   "divisor", "scale2",
                                        "eps2",  "beta",      "factor",    "shift",   "lambd",   "constant", "slope",
                                        "scaling_factor2", "add_value", "negative_slope", "bias_value"};
    const char *name = names[rng_below(r, sizeof names / sizeof *names)];
    struct wiring_function f;
    struct wiring_edits e = {.n = 0};

    if (strstr(program, name) || !wiring_draw_function(r, program, &f))
        return NULL;
    wiring_put(&e, f.kernel.close, f.kernel.close, xasprintf(", float %s", name));
    wiring_put(&e, f.function.close, f.function.close, xasprintf(", float %s", name));
    wiring_put(&e, f.launch.close, f.launch.close, xasprintf(", %s", name));
    wiring_put(&e, f.call.close, f.call.close, wiring_attribute(r, &f.call, name));
    return wiring_made(program, &e);
}

/* ---- another name ---- */

/* Another operator in place of one of the words of a name that joins several, or of all of it. */
static char *wiring_other_name(struct rng *r, const char *name)
{
    static const char *const others[] = {"relu",  "softmax", "sigmoid", "tanh",      "clamp", "scale",   "bias_add",
                                         "elu",   "gelu",    "linear",  "leaky_relu", "sum",   "max_pool2d", "mean",
                                         "conv2d", "matmul",  "silu",    "group_norm", "abs",   "log_softmax"};
    const char *new = others[rng_below(r, sizeof others / sizeof *others)], *cut = strchr(name, '_');

    switch (cut ? rng_below(r, 3) : 0) {
    case 1: return xasprintf("%s%s", new, cut);
    case 2: return xstrdup(cut + 1);
    default: return xstrdup(new);
    }
}

char *surface_wiring_rename(struct rng *r, const char *program)
{
    struct wiring_function f;
    struct wiring_edits e = {.n = 0};
    char *new, *bound, *taken;
    const char *at;

    if (!wiring_draw_function(r, program, &f))
        return NULL;
    new = wiring_other_name(r, f.name);
    bound = xasprintf("m.def(\"%s_forward\", &%s_forward)", f.name, f.name);
    taken = xasprintf("torch::Tensor %s_forward(", new);
    if ((at = strstr(program, bound)) && !strstr(program, taken) && strcmp(new, f.name)) {
        const char *open = f.call.from[0] - 1 - strlen("_forward");

        wiring_put(&e, at, at + strlen(bound), xasprintf("m.def(\"%s_forward\", &%s_forward)", new, new));
        wiring_put(&e, open - strlen(f.name), open, xstrdup(new));
    }
    free(new), free(bound), free(taken);
    return wiring_made(program, &e);
}

/* ---- sizes ---- */

char *surface_wiring_sizes(struct rng *r, const char *program)
{
    static const char alone[] =
        "(x.size(2 + i) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.size(2 + i) - 1) + 1";
    struct wiring_edits e = {.n = 0};
    const char *plain = strstr(program, WINDOW_CONV_SIZE), *up = strstr(program, WINDOW_TRANSPOSED_SIZE);

    (void)r;
    if (plain)
        wiring_put(&e, plain, plain + strlen(WINDOW_CONV_SIZE), xstrdup(alone));
    if (up)
        wiring_put(&e, up, up + strlen(WINDOW_TRANSPOSED_SIZE), xstrdup(WINDOW_CONV_SIZE));
    return wiring_made(program, &e);
}
