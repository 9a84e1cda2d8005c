"""large_kernels.py - plain, honest CUDA kernels for the large level-1 tasks of KernelBench, as samples for 'bench'.

    large_kernels.py FOLDER     writes FOLDER/level_1_problem_N_sample_0_kernel.py
    musacoder bench --suite kernelbench:DIR --samples FOLDER --backend cuda --out RUN

They are simple on purpose: a thread an element, a block a row, sums in double. What they prove is that the judge takes
programs for tasks of 4 to 16 GiB; none of them is meant to be fast.
"""

import os
import sys

HEAD = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#define THREADS 256
typedef long long i64;
static unsigned blocks_for(i64 n) { i64 b = (n + THREADS - 1) / THREADS; return (unsigned)(b < 65536 ? b : 65536); }
#define EACH(i, n) for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
__device__ double block_sum(double v)
{
    __shared__ double s[THREADS];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int k = THREADS / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    v = s[0];
    __syncthreads();
    return v;
}
__device__ float block_max(float v)
{
    __shared__ float s[THREADS];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int k = THREADS / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
        __syncthreads();
    }
    v = s[0];
    __syncthreads();
    return v;
}
%s
"""
mod = load_inline(name="large_%s", cpp_sources=%r, cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self%s):
        super().__init__()
        %s

    def forward(self, %s):
        return %s
'''

samples = {}


def add(n, cuda, declares="torch::Tensor run(torch::Tensor x);", init="", body="pass", takes="x", call="mod.run(x)"):
    samples[n] = HEAD % (cuda, n, declares, init, body, takes, call)


# A thread an element ----------------------------------------------------------------------------------------------

EACH = '''__global__ void k(const float *x, float *y, i64 n)
{
    EACH(i, n) {
        float v = x[i];
        y[i] = %s;
    }
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    k<<<blocks_for(x.numel()), THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}'''

UNARY = {
    19: "v > 0 ? v : 0",
    20: "v > 0 ? v : 0.01f * v",
    21: "1.0f / (1.0f + expf(-v))",
    22: "tanhf(v)",
    25: "v / (1.0f + expf(-v))",
    26: "0.5f * v * (1.0f + erff(v * 0.70710678118654752f))",
    27: "1.0507009873554805f * (v > 0 ? v : 1.6732632423543772f * expm1f(v))",
    28: "fminf(fmaxf(v / 6.0f + 0.5f, 0.0f), 1.0f)",
    29: "v > 20.0f ? v : log1pf(expf(v))",
    30: "v / (1.0f + fabsf(v))",
    31: "v > 0 ? v : expm1f(v)",
    32: "fminf(fmaxf(v, -1.0f), 1.0f)",
    88: "0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)))",
}
for number, text in UNARY.items():
    alpha = {20: ", negative_slope=0.01", 31: ", alpha=1.0"}.get(number, "")
    add(number, EACH % text, init=alpha)

add(5, '''__global__ void k(const float *x, float s, float *y, i64 n)
{
    EACH(i, n) y[i] = x[i] * s;
}
torch::Tensor run(torch::Tensor x, double s)
{
    auto y = torch::empty_like(x);
    k<<<blocks_for(x.numel()), THREADS>>>(x.data_ptr<float>(), (float)s, y.data_ptr<float>(), x.numel());
    return y;
}''', "torch::Tensor run(torch::Tensor x, double s);", takes="x, s", call="mod.run(x, s)")

# A block a row ----------------------------------------------------------------------------------------------------

ROW = '''__global__ void k(const float *x, float *y, i64 d)
{
    const float *in = x + blockIdx.x * d;
    float *out = y + blockIdx.x * d;
    %s
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    i64 rows = %s;
    k<<<(unsigned)rows, THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel() / rows);
    return y;
}'''

SUM = '''double t = 0;
    for (i64 i = threadIdx.x; i < d; i += THREADS) t += %s;
    t = block_sum(t);
'''
TOP = '''float m = -INFINITY;
    for (i64 i = threadIdx.x; i < d; i += THREADS) m = fmaxf(m, in[i]);
    m = block_max(m);
    '''
OUT = "    for (i64 i = threadIdx.x; i < d; i += THREADS) out[i] = %s;"

add(23, ROW % (TOP + SUM % "expf(in[i] - m)" + OUT % "(float)(expf(in[i] - m) / t)", "x.size(0)"))
add(24, ROW % (TOP + SUM % "expf(in[i] - m)" + "    float l = m + (float)log(t);\n" + OUT % "in[i] - l", "x.size(0)"),
    init=", dim=1")
add(38, ROW % (SUM % "fabsf(in[i])" + "    float r = (float)(d / t);\n" + OUT % "in[i] * r", "x.size(0)"))
add(39, ROW % (SUM % "(double)in[i] * in[i]" + "    float r = (float)(1 / sqrt(t));\n" + OUT % "in[i] * r",
               "x.size(0)"))
NORM = (SUM % "in[i]" + '''    double mean = t / d, q = 0;
    for (i64 i = threadIdx.x; i < d; i += THREADS) q += (in[i] - mean) * (in[i] - mean);
    float r = (float)rsqrt(block_sum(q) / d + 1e-5), c = (float)mean;
''')
add(34, ROW % (NORM + OUT % "(in[i] - c) * r", "x.size(0) * x.size(1)"), init=", num_features=64")

add(35, '''__global__ void k(const float *x, const float *w, const float *b, float *y, i64 d, i64 plane, int groups)
{
    const float *in = x + blockIdx.x * d;
    float *out = y + blockIdx.x * d;
    i64 first = (blockIdx.x % groups) * (d / plane);
    ''' + NORM + OUT % "(in[i] - c) * r * w[first + i / plane] + b[first + i / plane]" + '''
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t groups)
{
    auto y = torch::empty_like(x);
    i64 rows = x.size(0) * groups;
    k<<<(unsigned)rows, THREADS>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                   x.numel() / rows, x.size(2) * x.size(3), (int)groups);
    return y;
}''', "torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t groups);",
    init=", num_features=64, num_groups=8", body='''self.groups = num_groups
        self.gn = nn.GroupNorm(num_groups, num_features)''',
    call="mod.run(x, self.gn.weight, self.gn.bias, self.groups)")

# Sums over everything: partial sums of blocks, then one block -----------------------------------------------------

PARTS = '''__global__ void parts(%s, double *p, i64 n)
{
    double t = 0;
    EACH(i, n) { %s }
    t = block_sum(t);
    if (threadIdx.x == 0) p[blockIdx.x] = t;
}
__global__ void all(const double *p, int n, double *out)
{
    double t = 0;
    for (int i = threadIdx.x; i < n; i += THREADS) t += p[i];
    t = block_sum(t);
    if (threadIdx.x == 0) *out = t;
}
'''
add(37, PARTS % ("const float *x", "t += (double)x[i] * x[i];") + '''
__global__ void k(const float *x, const double *t, float *y, i64 n)
{
    float r = (float)(1 / sqrt(*t));
    EACH(i, n) y[i] = x[i] * r;
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    auto p = torch::empty({4097}, x.options().dtype(torch::kFloat64));
    double *d = p.data_ptr<double>();
    parts<<<4096, THREADS>>>(x.data_ptr<float>(), d, x.numel());
    all<<<1, THREADS>>>(d, 4096, d + 4096);
    k<<<blocks_for(x.numel()), THREADS>>>(x.data_ptr<float>(), d + 4096, y.data_ptr<float>(), x.numel());
    return y;
}''')
LOSS = '''__global__ void end(const double *t, float *y, i64 n) { *y = (float)(*t / n); }
torch::Tensor run(torch::Tensor x, torch::Tensor z)
{
    auto y = torch::empty({}, x.options());
    auto p = torch::empty({4097}, x.options().dtype(torch::kFloat64));
    double *d = p.data_ptr<double>();
    parts<<<4096, THREADS>>>(x.data_ptr<float>(), z.data_ptr<float>()%s, d, x.numel());
    all<<<1, THREADS>>>(d, 4096, d + 4096);
    end<<<1, 1>>>(d + 4096, y.data_ptr<float>(), x.numel());
    return y;
}'''
TWO = "torch::Tensor run(torch::Tensor x, torch::Tensor z);"
add(94, PARTS % ("const float *x, const float *z", "double v = x[i] - z[i]; t += v * v;") + LOSS % "", TWO,
    takes="x, z", call="mod.run(x, z)")
add(96,
    PARTS % ("const float *x, const float *z", "double v = fabsf(x[i] - z[i]); t += v < 1 ? 0.5 * v * v : v - 0.5;") +
    LOSS % "", TWO, takes="x, z", call="mod.run(x, z)")
add(100, PARTS % ("const float *x, const float *z, i64 w", "float v = 1 - x[i] * z[i % w]; t += v > 0 ? v : 0;") +
    LOSS % ", z.numel()", TWO, takes="x, z", call="mod.run(x, z)")

# Along the middle of (outer, d, inner): a thread an output --------------------------------------------------------

ALONG = '''__global__ void k(const float *x, %s *y, i64 outer, i64 d, i64 inner)
{
    EACH(i, outer * inner) {
        const float *in = x + i / inner * d * inner + i %% inner;
        %s
    }
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty(%s, x.options()%s);
    k<<<blocks_for(y.numel()), THREADS>>>(x.data_ptr<float>(), y.data_ptr<%s>(), x.size(0), x.size(1),
                                          x.numel() / x.size(0) / x.size(1));
    return y;
}'''
SUMS = "double t = 0; for (i64 q = 0; q < d; q++) t += in[q * inner]; y[i] = (float)(%s);"
BEST = "i64 at = 0; for (i64 q = 1; q < d; q++) if (in[q * inner] %s in[at * inner]) at = q; y[i] = %s;"
add(47, ALONG % ("float", SUMS % "t", "{x.size(0), 1, x.size(2)}", "", "float"), init=", dim=1")
add(48, ALONG % ("float", SUMS % "t / d", "{x.size(0), x.size(2)}", "", "float"), init=", dim=1")
add(49, ALONG % ("float", BEST % (">", "in[at * inner]"), "{x.size(0), x.size(2)}", "", "float"), init=", dim=1")
add(53, ALONG % ("float", BEST % ("<", "in[at * inner]"), "{x.size(0), x.size(2)}", "", "float"), init=", dim=1")
LONG = ".dtype(torch::kInt64)"
add(51, ALONG % ("int64_t", BEST % (">", "at"), "{x.size(0), x.size(2)}", LONG, "int64_t"), init=", dim=1")
add(52, ALONG % ("int64_t", BEST % ("<", "at"), "{x.size(0), x.size(2)}", LONG, "int64_t"), init=", dim=1")
add(36, '''__global__ void k(const float *x, float *y, i64 outer, i64 d, i64 inner)
{
    EACH(i, outer * inner) {
        i64 first = i / inner * d * inner + i % inner;
        double t = 0;
        for (i64 q = 0; q < d; q++) t += (double)x[first + q * inner] * x[first + q * inner];
        float r = (float)rsqrt(t / d + 1e-5);
        for (i64 q = 0; q < d; q++) y[first + q * inner] = x[first + q * inner] * r;
    }
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    i64 inner = x.size(2) * x.size(3);
    k<<<blocks_for(x.size(0) * inner), THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1),
                                                        inner);
    return y;
}''', init=", num_features=64, eps=1e-5")
add(33, '''__global__ void stats(const float *x, double *p, i64 outer, i64 d, i64 inner, int parts)
{
    i64 c = blockIdx.x / parts, part = blockIdx.x % parts;
    double t = 0, q = 0;
    for (i64 i = part * THREADS + threadIdx.x; i < outer * inner; i += (i64)parts * THREADS) {
        double v = x[(i / inner * d + c) * inner + i % inner];
        t += v;
        q += v * v;
    }
    t = block_sum(t);
    q = block_sum(q);
    if (threadIdx.x == 0) {
        p[2 * blockIdx.x] = t;
        p[2 * blockIdx.x + 1] = q;
    }
}
__global__ void k(const float *x, const double *p, const float *w, const float *b, float *y, i64 d, i64 inner,
                  int parts)
{
    i64 c = blockIdx.x % d;
    double t = 0, q = 0, n = (double)(gridDim.x / d) * inner;
    for (int i = threadIdx.x; i < parts; i += THREADS) {
        t += p[2 * (c * parts + i)];
        q += p[2 * (c * parts + i) + 1];
    }
    t = block_sum(t) / n;
    q = block_sum(q) / n - t * t;
    float r = (float)rsqrt(q + 1e-5) * w[c], m = (float)t;
    for (i64 i = threadIdx.x; i < inner; i += THREADS)
        y[blockIdx.x * inner + i] = (x[blockIdx.x * inner + i] - m) * r + b[c];
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b)
{
    auto y = torch::empty_like(x);
    auto p = torch::empty({2 * 64 * x.size(1)}, x.options().dtype(torch::kFloat64));
    i64 inner = x.size(2) * x.size(3);
    stats<<<(unsigned)(64 * x.size(1)), THREADS>>>(x.data_ptr<float>(), p.data_ptr<double>(), x.size(0),
                                                       x.size(1), inner,
                                                       64);
    k<<<(unsigned)(x.size(0) * x.size(1)), THREADS>>>(x.data_ptr<float>(), p.data_ptr<double>(), w.data_ptr<float>(),
                                                      b.data_ptr<float>(), y.data_ptr<float>(), x.size(1), inner, 64);
    return y;
}''', "torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);", init=", num_features=64",
    body="self.bn = nn.BatchNorm2d(num_features)", call="mod.run(x, self.bn.weight, self.bn.bias)")

# Scans: a block a row, a part of it each thread -------------------------------------------------------------------

SCAN = '''__global__ void k(const float *x, %s float *y, i64 d)
{
    __shared__ double s[THREADS];
    i64 row = blockIdx.x * d, per = (d + THREADS - 1) / THREADS, a = threadIdx.x * per, b = a + per < d ? a + per : d;
    double t = %s;
    for (i64 i = a; i < b; i++) t = t %s AT(i);
    s[threadIdx.x] = t;
    __syncthreads();
    t = %s;
    for (int i = 0; i < threadIdx.x; i++) t = t %s s[i];
    for (i64 i = a; i < b; i++) { %s }
}
torch::Tensor run(torch::Tensor x%s)
{
    auto y = torch::empty_like(x);
    k<<<(unsigned)x.size(0), THREADS>>>(x.data_ptr<float>(), %s y.data_ptr<float>(), x.size(1));
    return y;
}'''


def scan(at, zero="0", op="+", mask="", step="t = t + AT(i); y[row + i] = (float)t;"):
    return "#define AT(i) %s\n" % at + SCAN % (
        "const bool *m," if mask else "", zero, op, zero, op, step, ", torch::Tensor m" if mask else "",
        "m.data_ptr<bool>()," if mask else "")


add(89, scan("x[row + (i)]"), init=", dim=1")
add(90, scan("x[row + (i)]", "1", "*", step="t = t * AT(i); y[row + i] = (float)t;"), init=", dim=1")
add(91, scan("x[row + d - 1 - (i)]", step="t = t + AT(i); y[row + d - 1 - i] = (float)t;"), init=", dim=1")
add(92, scan("x[row + (i)]", step="y[row + i] = (float)t; t = t + AT(i);"), init=", dim=1")
add(93, scan("(m[row + (i)] ? x[row + (i)] : 0.0f)", mask="m"),
    "torch::Tensor run(torch::Tensor x, torch::Tensor m);",
    init=", dim=1", takes="x, m", call="mod.run(x, m)")

# Products ---------------------------------------------------------------------------------------------------------

add(4, '''__global__ void k(const float *a, const float *b, float *y, i64 d)
{
    double t = 0;
    for (i64 i = threadIdx.x; i < d; i += THREADS) t += (double)a[blockIdx.x * d + i] * b[i];
    t = block_sum(t);
    if (threadIdx.x == 0) y[blockIdx.x] = (float)t;
}
torch::Tensor run(torch::Tensor a, torch::Tensor b)
{
    auto y = torch::empty({a.size(0), 1}, a.options());
    k<<<(unsigned)a.size(0), THREADS>>>(a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), a.size(1));
    return y;
}''', "torch::Tensor run(torch::Tensor a, torch::Tensor b);", takes="a, b", call="mod.run(a, b)")
PRODUCT = '''#define T 16
__global__ void k(const float *a, const float *b, float *y, i64 m, i64 n, i64 d)
{
    __shared__ float p[T][T + 1], q[T][T + 1];
    i64 row = blockIdx.y * (i64)T + threadIdx.y, col = blockIdx.x * (i64)T + threadIdx.x;
    float t = 0;
    for (i64 at = 0; at < d; at += T) {
        p[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < d ? a[row * d + at + threadIdx.x] : 0;
        q[threadIdx.y][threadIdx.x] = col < n && at + threadIdx.y < d ? b[(at + threadIdx.y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < T; i++) t += p[threadIdx.y][i] * q[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) y[row * n + col] = t;
}
torch::Tensor run(torch::Tensor a, torch::Tensor b)
{
    i64 m = a.size(0), d = a.size(1), n = b.size(1);
    auto y = torch::empty({m, n}, a.options());
    k<<<dim3((unsigned)((n + T - 1) / T), (unsigned)((m + T - 1) / T)), dim3(T, T)>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), m, n, d);
    return y;
}'''
for number in (7, 9):
    add(number, PRODUCT, "torch::Tensor run(torch::Tensor a, torch::Tensor b);", takes="a, b", call="mod.run(a, b)")

# Pooling: a thread an output --------------------------------------------------------------------------------------

POOL = '''__global__ void k(const float *x, float *y, i64 planes, %s)
{
    EACH(i, planes * %s) {
        %s
    }
}
torch::Tensor run(torch::Tensor x, int64_t ks, int64_t st, int64_t pad, int64_t dil)
{
    %s
    return y;
}'''
POOLED = "torch::Tensor run(torch::Tensor x, int64_t ks, int64_t st, int64_t pad, int64_t dil);"
ONE = '''i64 n = x.size(2), on = (n + 2 * pad - dil * (ks - 1) - 1) / st + 1;
    auto y = torch::empty({x.size(0), x.size(1), on}, x.options());
    k<<<blocks_for(y.numel()), THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0) * x.size(1), n, on, ks,
                                            st, pad, dil);'''
ARGS1 = "i64 n, i64 on, i64 ks, i64 st, i64 pad, i64 dil"
add(41, POOL % (ARGS1, "on", '''const float *in = x + i / on * n;
        float m = -INFINITY;
        for (i64 q = 0; q < ks; q++) {
            i64 at = i % on * st - pad + q * dil;
            if (at >= 0 && at < n) m = fmaxf(m, in[at]);
        }
        y[i] = m;''', ONE), POOLED, init=", kernel_size, stride=None, padding=0, dilation=1, return_indices=False",
    body="self.a = (kernel_size, stride or kernel_size, padding, dilation)", call="mod.run(x, *self.a)")
add(44, POOL % (ARGS1, "on", '''const float *in = x + i / on * n;
        float t = 0;
        for (i64 q = 0; q < ks; q++) {
            i64 at = i % on * st - pad + q;
            if (at >= 0 && at < n) t += in[at];
        }
        y[i] = t / ks;''', ONE), POOLED, init=", kernel_size, stride=1, padding=0",
    body="self.a = (kernel_size, stride, padding, 1)", call="mod.run(x, *self.a)")
TWO_D = '''i64 h = x.size(2), w = x.size(3), oh = (h + 2 * pad - dil * (ks - 1) - 1) / st + 1;
    i64 ow = (w + 2 * pad - dil * (ks - 1) - 1) / st + 1;
    auto y = torch::empty({x.size(0), x.size(1), oh, ow}, x.options());
    k<<<blocks_for(y.numel()), THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0) * x.size(1), h, w, oh, ow,
                                            ks, st, pad, dil);'''
ARGS2 = "i64 h, i64 w, i64 oh, i64 ow, i64 ks, i64 st, i64 pad, i64 dil"
WINDOW = '''const float *in = x + i / (oh * ow) * h * w;
        i64 r0 = i / ow %% oh * st - pad, c0 = i %% ow * st - pad;
        %s
        for (i64 p = 0; p < ks; p++)
            for (i64 q = 0; q < ks; q++) {
                i64 r = r0 + p * dil, c = c0 + q * dil;
                if (r >= 0 && r < h && c >= 0 && c < w) %s;
            }
        %s'''
add(42, POOL % (ARGS2, "oh * ow", WINDOW % ("float m = -INFINITY;", "m = fmaxf(m, in[r * w + c])", "y[i] = m;"), TWO_D),
    POOLED, init=", kernel_size, stride, padding, dilation", body="self.a = (kernel_size, stride, padding, dilation)",
    call="mod.run(x, *self.a)")
add(45, POOL % (ARGS2, "oh * ow", WINDOW % ("double t = 0;", "t += in[r * w + c]", "y[i] = (float)(t / (ks * ks));"),
               TWO_D), POOLED, init=", kernel_size, stride=None, padding=0",
    body="self.a = (kernel_size, stride or kernel_size, padding, 1)", call="mod.run(x, *self.a)")


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for n, text in samples.items():
        with open(os.path.join(folder, f"level_1_problem_{n}_sample_0_kernel.py"), "w", encoding="utf-8") as f:
            f.write(text)
    print(len(samples), "samples in", folder)


if __name__ == "__main__":
    main(sys.argv[1])
