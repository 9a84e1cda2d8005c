/* surface_window.c - see surface_window.h. Text is written axis by axis: d, h, w; an axis has an output index o, a
 * kernel index k, and an input index i. */
#include "synth/surface/surface_window.h"

struct writer {
    struct buf *out;
    const char *name;
    int axes;
    const char *axis; /* "w", "hw" or "dhw" */
};

static struct writer window_writer_of(struct buf *out, const char *name, int axes)
{
    return (struct writer){out, name, axes, &"dhw"[3 - axes]};
}

/* Adds fmt once for each axis, $ replaced by the axis' letter and # by its position in a tensor's shape. */
static void window_each(const struct writer *w, const char *fmt, const char *between)
{
    for (int i = 0; i < w->axes; i++) {
        buf_adds(w->out, i ? between : "");
        for (const char *p = fmt; *p; p++)
            if (*p == '$')
                buf_addc(w->out, w->axis[i]);
            else if (*p == '#')
                buf_addc(w->out, (char)('2' + i));
            else if (*p == '@')
                buf_addc(w->out, (char)('0' + i));
            else
                buf_addc(w->out, *p);
    }
}

/* "int ow = i % out.size(3);" from the fastest axis to the batch. */
static void window_add_indices(const struct writer *w)
{
    buf_adds(w->out, "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\nint rest = i;\n");
    for (int i = w->axes - 1; i >= 0; i--)
        buf_addf(w->out, "int o%c = rest %% out.size(%d);\nrest /= out.size(%d);\n", w->axis[i], i + 2, i + 2);
    buf_adds(w->out, "int c = rest % out.size(1);\nint b = rest / out.size(1);\n");
}

/* Appends the kernel's parameters, a letter each: x, w, b (bias), o (out). */
static void window_add_accessors(const struct writer *w, const char *names, const char *end)
{
    for (const char *p = names; *p; p++)
        if (*p == 'b')
            buf_adds(w->out, "const float* bias, ");
        else
            buf_addf(w->out, "T %s, ", *p == 'x' ? "x" : *p == 'w' ? "w" : "out");
    buf_adds(w->out, end);
}

/* Appends the launch with the arguments of those letters. */
static void window_add_launch(const struct writer *w, const char *names)
{
    buf_addf(w->out, "int n = out.numel();\n%s_kernel<<<(n + 255) / 256, 256>>>(", w->name);
    for (const char *p = names; *p; p++)
        if (*p == 'b')
            buf_adds(w->out, "bias ? bias->data_ptr<float>() : nullptr, ");
        else
            buf_addf(w->out, "%s.packed_accessor32<float, %d>(), ",
                     *p == 'x'   ? "x"
                     : *p == 'w' ? "w"
                                 : "out",
                     w->axes + 2);
    buf_adds(w->out, "n, ");
}

static void window_add_loops(const struct writer *w, const char *size)
{
    window_each(w, size, "");
}

/* Appends a host's lambda "size" of an axis; it reads the same for any number of axes. */
static void window_add_size(const struct writer *w, const char *size)
{
    buf_addf(w->out, "auto size = [&](int i) {\nreturn %s;\n};\n", size);
}

/* Appends a kernel's lambda "at": the input's index that an output's index and one of the window meet. */
static void window_add_at(const struct writer *w)
{
    buf_adds(w->out, "auto at = [](int o, int k, int s, int p, int d) {\nreturn o * s - p + k * d;\n};\n");
}

/* The channels are the innermost loop: places outside are met once, not for each channel. */
static void window_conv_body(const struct writer *w)
{
    window_add_at(w);
    buf_adds(w->out, "int first = c * (x.size(1) / w.size(1)) / out.size(1) * w.size(1);\n"
                     "float acc = bias ? bias[c] : 0.0f;\n");
    window_add_loops(w, "for (int k$ = 0; k$ < w.size(#); k$++) {\n");
    window_each(w, "int i$ = at(o$, k$, s$, p$, d$);\n", "");
    buf_adds(w->out, "if (");
    window_each(w, "i$ >= 0 && i$ < x.size(#)", " && ");
    buf_adds(w->out, ") {\nfor (int j = 0; j < w.size(1); j++) {\nacc += x[b][first + j]");
    window_each(w, "[i$]", "");
    buf_adds(w->out, " * w[c][j]");
    window_each(w, "[k$]", "");
    buf_adds(w->out, ";\n}\n}\n");
    window_each(w, "}\n", "");
}

/* Appends the body of a transposed convolution's kernel. */
static void window_transposed_body(const struct writer *w)
{
    buf_adds(w->out, "int per = x.size(1) * w.size(1) / out.size(1);\nint first = c / w.size(1) * per;\n"
                     "float acc = bias ? bias[c] : 0.0f;\n");
    window_add_loops(w, "for (int k$ = 0; k$ < w.size(#); k$++) {\n");
    window_each(w, "int i$ = o$ + p$ - k$ * d$;\n", "");
    buf_adds(w->out, "if (");
    window_each(w, "i$ >= 0 && i$ % s$ == 0 && i$ / s$ < x.size(#)", " && ");
    buf_adds(w->out, ") {\nfor (int j = first; j < first + per; j++) {\nacc += x[b][j]");
    window_each(w, "[i$ / s$]", "");
    buf_adds(w->out, " * w[j][c % w.size(1)]");
    window_each(w, "[k$]", "");
    buf_adds(w->out, ";\n}\n}\n");
    window_each(w, "}\n", "");
}

/* Appends the kernel of a convolution, or of a transposed one. */
static void window_conv_kernel(const struct writer *w, bool transposed)
{
    buf_addf(w->out, "template <typename T>\n__global__ void %s_kernel(", w->name);
    window_add_accessors(w, "xwbo", "int n, ");
    window_each(w, "int s$, ", "");
    window_each(w, "int p$, ", "");
    window_each(w, "int d$", ", ");
    buf_adds(w->out, ") {\n");
    window_add_indices(w);
    transposed ? window_transposed_body(w) : window_conv_body(w);
    buf_adds(w->out, "out[b][c]");
    window_each(w, "[o$]", "");
    buf_adds(w->out, " = acc;\n}\n}\n\n");
}

#define VECTOR "at::IntArrayRef "

/* Appends the host function of a convolution. */
static void window_conv_host(const struct writer *w, bool transposed)
{
    buf_addf(
        w->out,
        "torch::Tensor %s_forward(torch::Tensor x, torch::Tensor w, torch::optional<torch::Tensor> bias, " VECTOR
        "stride, " VECTOR "padding, " VECTOR "dilation%s) {\n",
        w->name, transposed ? ", " VECTOR "extra, int groups" : "");
    window_add_size(w, transposed ? WINDOW_TRANSPOSED_SIZE : WINDOW_CONV_SIZE);
    buf_addf(w->out, "auto out = torch::empty({x.size(0), %s, ", transposed ? "w.size(1) * groups" : "w.size(0)");
    window_each(w, "size(@)", ", ");
    buf_adds(w->out, "}, x.options());\n");
    window_add_launch(w, "xwbo");
    window_each(w, "stride[@], ", "");
    window_each(w, "padding[@], ", "");
    window_each(w, "dilation[@]", ", ");
    buf_adds(w->out, ");\nreturn out;\n}\n");
}

void window_conv(struct buf *out, const char *name, int axes, bool transposed)
{
    struct writer w = window_writer_of(out, name, axes);

    window_conv_kernel(&w, transposed);
    window_conv_host(&w, transposed);
}

/* Appends a pooling's kernel. tuples: sizes differ by axis. */
static void window_pool_kernel(const struct writer *w, bool max, bool tuples)
{
    const char *parts = max ? "ksp"
                              "d"
                            : "ksp";

    buf_addf(w->out, "template <typename T>\n__global__ void %s_kernel(", w->name);
    window_add_accessors(w, "xo", "int n");
    for (const char *p = parts; *p; p++)
        for (int i = 0; i < (tuples ? w->axes : 1); i++)
            buf_addf(w->out, tuples ? ", int %c%c" : ", int %c", tuples && *p == 'k' ? 'n' : *p, w->axis[i]);
    buf_adds(w->out, ") {\n");
    window_add_indices(w);
    window_add_at(w);
    buf_addf(w->out, "float acc = %s;\n", max ? "-INFINITY" : "0.0f");
    window_add_loops(w, tuples ? "for (int k$ = 0; k$ < n$; k$++) {\n" : "for (int k$ = 0; k$ < k; k$++) {\n");
    if (tuples)
        window_each(w, max ? "int i$ = at(o$, k$, s$, p$, d$);\n" : "int i$ = at(o$, k$, s$, p$, 1);\n", "");
    else
        window_each(w, max ? "int i$ = at(o$, k$, s, p, d);\n" : "int i$ = at(o$, k$, s, p, 1);\n", "");
    buf_adds(w->out, "if (");
    window_each(w, "i$ >= 0 && i$ < x.size(#)", " && ");
    buf_adds(w->out, max ? ") {\nacc = fmaxf(acc, x[b][c]" : ") {\nacc += x[b][c]");
    window_each(w, "[i$]", "");
    buf_adds(w->out, max ? ");\n}\n" : ";\n}\n");
    window_each(w, "}\n", "");
    buf_adds(w->out, "out[b][c]");
    window_each(w, "[o$]", "");
    buf_adds(w->out, " = acc");
    if (!max && tuples)
        window_each(w, " / n$", "");
    else if (!max)
        buf_adds(w->out, w->axes == 1 ? " / k" : w->axes == 2 ? " / (k * k)" : " / (k * k * k)");
    buf_adds(w->out, ";\n}\n}\n\n");
}

/* Appends the host function of a pooling. */
static void window_pool_host(const struct writer *w, bool max, bool tuples)
{
    const char *type = tuples ? VECTOR : "int ";

    buf_addf(w->out, "torch::Tensor %s_forward(torch::Tensor x, %skernel, %sstride, %spadding%s%s) {\n", w->name,
             type, type, type, max ? tuples ? ", " VECTOR : ", int " : "", max ? "dilation" : "");
    if (tuples)
        window_add_size(w, max ? "(x.size(2 + i) + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1"
                               : "(x.size(2 + i) + 2 * padding[i] - kernel[i]) / stride[i] + 1");
    else
        window_add_size(w, max ? "(x.size(2 + i) + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1"
                               : "(x.size(2 + i) + 2 * padding - kernel) / stride + 1");
    buf_adds(w->out, "auto out = torch::empty({x.size(0), x.size(1), ");
    window_each(w, "size(@)", ", ");
    buf_adds(w->out, "}, x.options());\n");
    window_add_launch(w, "xo");
    if (tuples) {
        window_each(w, "kernel[@], ", ""), window_each(w, "stride[@], ", "");
        window_each(w, "padding[@]", ", ");
        if (max)
            buf_adds(w->out, ", "), window_each(w, "dilation[@]", ", ");
    } else {
        buf_adds(w->out, max ? "kernel, stride, padding, dilation" : "kernel, stride, padding");
    }
    buf_adds(w->out, ");\nreturn out;\n}\n");
}

void window_pool(struct buf *out, const char *name, int axes, bool max, bool tuples)
{
    struct writer w = window_writer_of(out, name, axes);

    window_pool_kernel(&w, max, tuples);
    window_pool_host(&w, max, tuples);
}
