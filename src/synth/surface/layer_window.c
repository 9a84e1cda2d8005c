/* layer_window.c - convolutions and poolings. */
#include "synth/surface/layer_parts.h"

#include <stdlib.h>
#include <string.h>

#include "synth/surface/surface_window.h"

/* ---- windows ---- */

struct window {
    int kernel[3], stride[3], padding[3], dilation[3], extra[3], groups;
    bool tuple, full;
};

/* One number where all axes agree, else a tuple. */
static const char *window_axes_value(struct making *m, const int v[3], int axes, bool tuple)
{
    const char *s = "";
    bool same = true;

    for (int i = 1; i < axes; i++)
        same = same && v[i] == v[0];
    if (same && !tuple)
        return layer_number(m, v[0]);
    for (int i = 0; i < axes; i++)
        s = making_format(m, "%s%s%d", s, i ? ", " : "", v[i]);
    return making_format(m, axes == 1 ? "(%s,)" : "(%s)", s);
}

/* The output's size along axis i. */
static int window_out_size(int n, const struct window *w, int i, bool transposed)
{
    int reach = w->dilation[i] * (w->kernel[i] - 1);

    return transposed ? (n - 1) * w->stride[i] - 2 * w->padding[i] + reach + w->extra[i] + 1
                      : (n + 2 * w->padding[i] - reach - 1) / w->stride[i] + 1;
}

/* Draws a number an axis; 'plain': how often all are the lowest. */
static void window_draw_numbers(struct making *m, int axes, int v[3], int lo, int hi, bool same, double plain)
{
    bool first = making_chance(m, plain);

    for (int i = 0; i < axes; i++)
        v[i] = first ? lo : same && i ? v[0] : making_draw(m, lo, hi);
}

/* True where PyTorch takes the window on this input and the result is not too large. */
static bool window_fits(const struct making *m, const struct window *w, int axes, bool transposed, bool pool)
{
    for (int i = 0; i < axes; i++) {
        int n = m->d[2 + i];
        if (pool && (2 * w->padding[i] > w->kernel[i] || n < w->kernel[i]))
            return false;
        if (!transposed && n + 2 * w->padding[i] < w->dilation[i] * (w->kernel[i] - 1) + 1)
            return false;
        if (w->extra[i] && w->extra[i] >= (w->stride[i] > w->dilation[i] ? w->stride[i] : w->dilation[i]))
            return false;
        if (window_out_size(n, w, i, transposed) < 1 || window_out_size(n, w, i, transposed) > 40)
            return false;
    }
    return true;
}

/* Draws kernel, stride, padding and dilation of a window. */
static void window_draw(struct making *m, int axes, struct window *w, bool transposed, bool pool)
{
    bool plain = m->chain && making_chance(m, 0.6);
    bool same_k = making_chance(m, pool ? 0.9 : 0.6), same = same_k || making_chance(m, 0.5);
    int most = axes == 3 ? 3 : 5;

    w->tuple = making_chance(m, pool ? 0.05 : 0.1);
    window_draw_numbers(m, axes, w->kernel, pool ? 2 : 1, most, same_k, 0);
    window_draw_numbers(m, axes, w->stride, 1, 3, same, plain ? 1 : 0.4);
    window_draw_numbers(m, axes, w->padding, 0, 2, same, plain ? 1 : 0.4);
    window_draw_numbers(m, axes, w->dilation, 1, 3, same, m->chain ? 1 : 0.6);
    window_draw_numbers(m, axes, w->extra, 0, 1, same, !transposed ? 1 : 0.6);
}

/* In the order of their arguments. */
struct part {
    const char *name, *doc, *def;
    const int *v;
    const char *arg; /* the constructor's word for it; NULL: name */
};

/* True if the constructor need not say this argument. */
static bool window_is_default(const struct part *p, int axes)
{
    for (int i = 0; i < axes; i++)
        if (p->v[i] != atoi(p->def))
            return false;
    return true;
}

static const char *window_part_type(struct making *m, const char *value)
{
    return *value == '(' ? making_pick(m, "tuple|tuple|tuple|Tuple", '|') : "int";
}

/* ", stride=(stride_h, stride_w)": an argument for each axis. */
static const char *window_split_part(struct making *m, const struct part *p, bool positional)
{
    const char *name[2];

    for (int i = 0; i < 2; i++) {
        name[i] = making_format(m, "%s_%c", p->name, "hw"[i]);
        making_arg(m, name[i], "int", making_constant(m, name[i], layer_number(m, p->v[i])),
                   strcmp(p->def, "-1") && making_chance(m, 0.8) ? p->def : NULL, p->doc);
    }
    return making_format(m, positional ? ", (%s, %s)" : ", %s=(%s, %s)", positional ? name[0] : p->name,
                         positional ? name[1] : name[0], name[1]);
}

/* ", stride=stride" or "": an argument, a number, or nothing where it is what PyTorch assumes. */
static const char *window_say_part(struct making *m, const struct part *p, int axes, bool tuple, bool positional,
                                   bool forced)
{
    const char *value = window_axes_value(m, p->v, axes, tuple), *said = value, *name = p->arg ? p->arg : p->name;
    bool plain = window_is_default(p, axes);

    if (axes == 2 && *value == '(' && !forced && !m->chain && making_chance(m, 0.3))
        return window_split_part(m, p, positional);
    if (plain && !forced && making_chance(m, m->chain ? 0.95 : 0.35))
        return "";
    if (making_chance(m, 0.9)) {
        const char *def = *value == '('
                              ? window_axes_value(m, (int[3]){atoi(p->def), atoi(p->def), atoi(p->def)}, axes, true)
                              : p->def;
        said = making_arg(m, name, window_part_type(m, value), making_constant(m, name, value),
                          strcmp(p->def, "-1") && making_chance(m, 0.8) && !m->chain ? def : NULL, p->doc);
    }
    return making_format(m, positional ? ", %s" : ", %s=%s", positional ? said : p->name, said);
}

/* The expression of the output's channels; *in and *groups are those of the input's and the groups. */
static const char *window_conv_channels(struct making *m, const struct kind *k, int out, const char **in,
                                        const char **groups, struct window *w)
{
    bool depthwise = k->flags & KIND_DEPTHWISE;
    const char *given = m->n_kinds ? NULL : m->input[0].dim[1];

    *in = m->channels ? m->channels
                      : making_arg(m, "in_channels", "int", given ? given : layer_number(m, m->d[1]), NULL,
                                   "channels of the input");
    *groups = "";
    if (depthwise) {
        w->groups = m->d[1];
        *groups = making_format(m, ", groups=%s", *in);
        if (out == m->d[1] && making_chance(m, 0.7))
            return *in;
    }
    return making_arg(
        m, m->channels ? making_pick(m, "out_channels|hidden_channels|mid_channels", '|') : "out_channels", "int",
        making_constant(m, "out_channels", layer_number(m, out)), NULL, "channels of the result");
}

/* Is the kernel one number on each axis, or 1? Then people write "(kernel_size, kernel_size)". */
static bool window_repeats(const struct window *w, int axes)
{
    for (int i = 1; i < axes; i++)
        if (w->kernel[i] != w->kernel[0] && w->kernel[i] != 1)
            return false;
    return axes > 1;
}

/* A tuple of the kernel's name, once an axis. */
static const char *window_say_repeated(struct making *m, const struct part *kernel, int axes)
{
    const char *name = making_arg(m, "kernel_size", "int", layer_number(m, kernel->v[0]), NULL, kernel->doc),
               *s = name;

    for (int i = 1; i < axes; i++)
        s = making_format(m, "%s, %s", s, kernel->v[i] == kernel->v[0] ? name : "1");
    return making_format(m, making_pick(m, ", (%s)|, kernel_size=(%s)", '|'), s);
}

/* The window's numbers behind the channels: "kernel_size, stride=stride". */
static const char *window_conv_arguments(struct making *m, const struct kind *k, const struct window *w, int axes)
{
    const struct part parts[] = {{"stride", "stride of the window", "1", w->stride, NULL},
                                 {"padding", "zeros added at each side", "0", w->padding, NULL},
                                 {"output_padding", "size added to one side of the result", "0", w->extra, NULL},
                                 {"dilation", "spacing of the kernel's elements", "1", w->dilation, NULL}};
    const struct part kernel = {"kernel_size", "size of the window", "-1", w->kernel, NULL};
    bool pointwise = k->flags & KIND_POINTWISE;
    const char *s = pointwise ? making_pick(m, ", kernel_size=1|, 1", '|')
                    : window_repeats(w, axes) && !m->chain && making_chance(m, 0.35)
                        ? window_say_repeated(m, &kernel, axes)
                        : window_say_part(m, &kernel, axes, w->tuple, making_chance(m, 0.7), false);

    for (int i = 0; i < 4; i++)
        if ((i != 2 || k->flags & KIND_TRANSPOSED) && !(pointwise && i != 0 && window_is_default(&parts[i], axes)))
            s = making_format(m, "%s%s", s, window_say_part(m, &parts[i], axes, w->tuple, false, false));
    return s;
}

static const char *window_say_groups(struct making *m, const struct window *w, const char *groups)
{
    const struct part p = {"groups", "blocks of channels that are connected", "1", &w->groups, NULL};

    return *groups ? groups : window_say_part(m, &p, 1, false, false, false);
}

/* The constructor's bias argument; mostly left out where it is True. */
static const char *window_say_bias(struct making *m, bool bias)
{
    const char *value = bias ? "True" : "False";

    if (bias && making_chance(m, m->chain ? 0.95 : 0.4))
        return "";
    if (making_chance(m, 0.85))
        return making_format(m, ", bias=%s",
                             making_arg(m, "bias", "bool", value,
                                        making_chance(m, 0.6) ? value : making_pick(m, "True|False", '|'),
                                        "whether a bias is added"));
    return making_format(m, ", bias=%s", value);
}

/* The drawn name of the module's attribute, numbered where it is taken; counts the module. */
static const char *window_conv_module(struct making *m, bool transposed, int axes, const char *own)
{
    const char *choices =
        transposed ? "conv_transpose|conv_transpose%dd|deconv|upconv|conv" : "conv|conv%dd|conv|convolution|conv1";
    const char *base = making_format(m, making_pick(m, choices, '|'), axes);

    return layer_name_module(m, *own && making_chance(m, 0.8) ? own : base);
}

static int window_draw_out_channels(struct making *m, const struct kind *k, const struct window *w)
{
    if (k->flags & KIND_DEPTHWISE)
        return m->d[1] * (making_chance(m, 0.8) ? 1 : 2);
    return w->groups * making_draw(m, 1, w->groups > 2 ? 2 : 8 / w->groups) * (m->chain && w->groups == 1 ? 2 : 1);
}

/* Draws a convolution's window until one fits. False: none did. */
static bool window_draw_conv(struct making *m, const struct kind *k, struct window *w)
{
    bool transposed = k->flags & KIND_TRANSPOSED;

    for (int tries = 0; tries < 60; tries++) {
        window_draw(m, k->rank, w, transposed, false);
        w->groups = 1;
        if (k->flags & KIND_POINTWISE)
            for (int i = 0; i < 3; i++)
                w->kernel[i] = w->stride[i] = w->dilation[i] = 1, w->padding[i] = 0;
        if (!(k->flags & (KIND_DEPTHWISE | KIND_POINTWISE)) && !m->chain && making_chance(m, 0.3))
            w->groups = layer_draw_groups(m, m->d[1]);
        if (window_fits(m, w, k->rank, transposed, false))
            return true;
    }
    return false;
}

static void window_conv_shape(struct making *m, const struct window *w, int axes, int out, bool transposed)
{
    m->d[1] = out;
    for (int i = 0; i < axes; i++)
        m->d[2 + i] = window_out_size(m->d[2 + i], w, i, transposed);
}

/* Adds the convolution's module and forward's line. */
static void window_conv_lines(struct making *m, const struct kind *k, const struct window *w, int out)
{
    bool transposed = k->flags & KIND_TRANSPOSED, bias = making_chance(m, m->chain ? 0.9 : 0.45);
    const char *in, *groups, *outs = window_conv_channels(m, k, out, &in, &groups, (struct window *)(uintptr_t)w);
    const char *name = window_conv_module(m, transposed, k->rank,
                                          k->flags & KIND_DEPTHWISE   ? "depthwise"
                                          : k->flags & KIND_POINTWISE ? "pointwise"
                                                                      : ""),
               *window = window_conv_arguments(m, k, w, k->rank);
    const char *more = window_say_groups(m, w, groups), *with = window_say_bias(m, bias), *fn;
    bool keywords = making_chance(m, 0.1);
    struct buf text;

    layer_add_init(m, making_format(m,
                                    keywords ? "self.%s = nn.Conv%s%dd(in_channels=%s, out_channels=%s%s%s%s)"
                                             : "self.%s = nn.Conv%s%dd(%s, %s%s%s%s)",
                                    name, transposed ? "Transpose" : "", k->rank, in, outs,
                                    keywords && strncmp(window, ", kernel_size=", 14)
                                        ? making_format(m, ", kernel_size=%s", window + 2)
                                        : window,
                                    more, with));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)"));
    buf_init(&text, BUF_MAX_TEXT);
    window_conv(&text, "$k", k->rank, transposed);
    fn = making_function(m, making_format(m, transposed ? "conv_transpose%dd" : "conv%dd", k->rank), text.p);
    buf_free(&text);
    layer_say_call(
        m,
        making_format(
            m,
            "ops.%s_forward(%s, self.%s.weight, self.%s.bias, self.%s.stride, self.%s.padding, self.%s.dilation%s)",
            fn, making_expand(m, "$x"), name, name, name, name, name,
            transposed ? making_format(m, ", self.%s.output_padding, self.%s.groups", name, name) : ""));
    m->channels = outs;
}

bool layer_add_conv(struct making *m, const struct kind *k)
{
    struct window w = {.groups = 1};
    int out;

    if (m->rank < 0)
        layer_draw_image(m, k->rank,
                         k->flags & KIND_DEPTHWISE || making_chance(m, 0.4) ? 2 * making_draw(m, 1, 3)
                                                                            : making_draw(m, 1, 6));
    if (m->rank != k->rank + 2 || !window_draw_conv(m, k, &w))
        return false;
    layer_flush(m);
    if (k->flags & KIND_DEPTHWISE)
        w.groups = m->d[1];
    out = window_draw_out_channels(m, k, &w);
    window_conv_lines(m, k, &w, out);
    window_conv_shape(m, &w, k->rank, out, k->flags & KIND_TRANSPOSED);
    return true;
}

/* ---- pooling ---- */

/* The pooling's arguments as text, in the making's memory. */
static const char *window_pool_arguments(struct making *m, const struct window *w, int axes, bool max, bool strided)
{
    const struct part parts[] = {
        {"kernel_size", "size of the window", "-1", w->kernel, m->chain ? "pool_kernel_size" : NULL},
        {"stride", "stride of the window", "-1", w->stride, m->chain ? "pool_stride" : NULL},
        {"padding", "zeros added at each side", "0", w->padding, m->chain ? "pool_padding" : NULL},
        {"dilation", "spacing of the window's elements", "1", w->dilation, NULL}};
    bool positional = making_chance(m, 0.5);
    const char *s = "";

    for (int i = 0; i < (max ? 4 : 3); i++)
        if (i != 1 || strided)
            s = making_format(m, "%s%s", s,
                              window_say_part(m, &parts[i], axes, w->tuple, positional && i == 0, w->tuple));
    for (int i = 0; i < 2 && max && !m->chain; i++)
        if (making_chance(m, 0.12)) {
            const char *name = i ? "ceil_mode" : "return_indices";
            s = making_format(m, "%s, %s=%s", s, name,
                              making_arg(m, name, "bool", "False", "False", "as PyTorch has it"));
        }
    return s;
}

/* What nn keeps: AvgPool1d keeps tuples. */
static const char *window_pool_call(struct making *m, const char *fn, const char *name, int axes, bool max,
                                    bool tuples)
{
    static const char *const attrs[] = {"kernel_size", "stride", "padding", "dilation"};
    const char *s = making_format(m, "ops.%s_forward(%s", fn, making_expand(m, "$x"));

    for (int i = 0; i < (max ? 4 : 3); i++)
        s = making_format(m, "%s, self.%s.%s%s", s, name, attrs[i], !max && axes == 1 && !tuples ? "[0]" : "");
    return making_format(m, "%s)%s", s, making_expand(m, "$back"));
}

/* Draws a window that fits the input; false: none was found. */
static bool window_draw_pool(struct making *m, int axes, struct window *w, bool *strided)
{
    *strided = making_chance(m, 0.65);
    for (int tries = 0; tries < 60; tries++) {
        window_draw(m, axes, w, false, true);
        if (!*strided)
            memcpy(w->stride, w->kernel, sizeof w->stride);
        if (window_fits(m, w, axes, false, true))
            return true;
    }
    return false;
}

/* All of a pooling's numbers are numbers, or all are tuples: its host takes one kind. */
static void window_settle_tuples(struct window *w, int axes)
{
    const int *v[] = {w->kernel, w->stride, w->padding, w->dilation};

    for (int k = 0; k < 4; k++)
        for (int i = 1; i < axes; i++)
            w->tuple |= v[k][i] != v[k][0];
    w->tuple = axes > 1 && w->tuple;
}

static bool window_add_pool(struct making *m, const struct kind *k)
{
    struct window w = {.groups = 1};
    bool max = !strncmp(k->name, "max", 3), strided;
    const char *name, *arguments, *fn;
    struct buf text;

    if (m->rank < 0)
        layer_draw_image(m, k->rank, making_draw(m, 1, 6));
    if (m->rank != k->rank + 2 || !window_draw_pool(m, k->rank, &w, &strided))
        return false;
    if (!max)
        w.dilation[0] = w.dilation[1] = w.dilation[2] = 1;
    if (!window_fits(m, &w, k->rank, false, true))
        return false;
    layer_flush(m);
    window_settle_tuples(&w, k->rank);
    name = layer_name_module(
        m, making_format(
               m, making_pick(m, max ? "pool|max_pool|maxpool|maxpool%dd" : "pool|avg_pool|avgpool|avg_pool%dd", '|'),
               k->rank));
    arguments = window_pool_arguments(m, &w, k->rank, max, strided);
    layer_add_init(
        m, making_format(m, "self.%s = nn.%sPool%dd(%s)", name, max ? "Max" : "Avg", k->rank, arguments + 2));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)$back"));
    buf_init(&text, BUF_MAX_TEXT);
    window_pool(&text, "$k", k->rank, max, w.tuple);
    fn = making_function(m, k->name, text.p);
    buf_free(&text);
    layer_say_call(m, window_pool_call(m, fn, name, k->rank, max, w.tuple));
    window_conv_shape(m, &w, k->rank, m->d[1], false);
    return true;
}

/* A table of rows becomes one channel for a 1D pooling, and back; its columns are then no channels any more. */
static void window_fold_rows(struct making *m, bool fold)
{
    m->rank = fold ? 3 : 2;
    m->d[fold ? 2 : 1] = m->d[fold ? 1 : 2];
    if (fold)
        m->d[1] = 1;
    else
        m->channels = NULL;
}

/* A pooling over the columns of a table: "self.pool(x.unsqueeze(1)).squeeze(1)". */
static bool window_add_row_pool(struct making *m, const struct kind *k)
{
    bool added;

    window_fold_rows(m, true);
    making_set(m, "x", "x.unsqueeze(1)");
    making_set(m, "back", ".squeeze(1)");
    added = window_add_pool(m, k);
    making_set(m, "x", "x");
    if (added)
        window_fold_rows(m, false);
    else
        m->rank = 2, m->d[1] = m->d[2];
    return added;
}

bool layer_add_pool(struct making *m, const struct kind *k)
{
    making_set(m, "back", "");
    return m->chain && m->rank == 2 && k->rank == 1 ? window_add_row_pool(m, k) : window_add_pool(m, k);
}
