"""cases.py - candidates of the ReLU task for a real GPU. Rows as in tests/eval/candidates.py: name, expected category
(None: passed; a tuple: any of them), words that the feedback must hold, source."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "eval"))
from candidates import GOOD, KERNEL, MODEL, RELU_TASK, build, with_forward  # noqa: E402,F401


def host(body, kernel_body="if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;", extra="", extra_host=""):
    """A kernel with this body, launched by this host code (x, y, n, grid, block are there)."""
    return build(extra + '''
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ''' + kernel_body + '''
}
''' + extra_host + '''
torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel(), block = 256, grid = (n + 255) / 256;
    ''' + body + '''
    return y;
}
''') + MODEL


LAUNCH = "relu_kernel<<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);"

STREAM = build(KERNEL.replace("<<<(n + 255) / 256, 256>>>", "<<<(n + 255) / 256, 256, 0, "
                                                            "at::cuda::getCurrentCUDAStream()>>>")
               .replace("__global__", "#include <ATen/cuda/CUDAContext.h>\n__global__", 1)) + MODEL

DEVICE = [
    ("honest", None, [], GOOD),
    ("honest, torch's stream", None, [], STREAM),
    ("honest, through views and copies", None, [], with_forward(
        "y = torch.empty_like(x)\ny[:8].copy_(ext.relu(x[:8].contiguous()))\n"
        "y[8:].copy_(ext.relu(x[8:].contiguous()))\nreturn y")),
    ("wrong values", "correctness_error", ["wrong"], host(LAUNCH, "if (i < n) y[i] = x[i];")),
    ("unwritten tail", "correctness_error", ["nan"], host(LAUNCH, "if (i < n - 5) y[i] = x[i] > 0.0f ? x[i] : 0.0f;")),
    ("stale memory", "correctness_error", [], with_forward(
        "y = ext.relu(x)\nz = torch.empty_like(x)\ndel y\nreturn torch.empty_like(x)")),
    ("illegal address", "runtime_error", ["illegal"], host(LAUNCH, "y[(size_t)i + (1ull << 42)] = x[i];")),
    ("null pointer", "runtime_error", ["illegal"],
     host("relu_kernel<<<grid, block>>>(x.data_ptr<float>(), nullptr, n);")),
    ("host pointer", "runtime_error", ["illegal"], host(
        "float *p = (float *)malloc(n * 4); relu_kernel<<<grid, block>>>(x.data_ptr<float>(), p, n);")),
    ("misaligned", "runtime_error", ["misaligned"], host(LAUNCH,
        "if (i == 0) *(float4 *)((char *)y + 4) = make_float4(1, 2, 3, 4);")),
    # Open (docs/threat-model.md): red zones are not compared on a GPU.
    ("writes past the end", None, [], host(LAUNCH,
        "if (i < n + 3) y[i] = i < n ? (x[i] > 0.0f ? x[i] : 0.0f) : 1.0f;")),
    ("writes before the start", None, [], host(LAUNCH,
        "if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f; if (i == 0) y[-1] = 0.0f;")),
    ("device assert", "runtime_error", ["assert"],
     host(LAUNCH, "assert(n < 0); if (i < n) y[i] = x[i];", "#include <cassert>\n")),
    ("trap", "runtime_error", [], host(LAUNCH, "__trap();")),
    ("block too large", "runtime_error", ["refused"], host(
        "relu_kernel<<<1, 2048>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);")),
    ("empty grid", "runtime_error", ["refused"], host(
        "relu_kernel<<<0, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);")),
    ("too much shared memory", "runtime_error", ["refused"], host(
        "relu_kernel<<<grid, block, 400000>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);")),
    ("memory, torch's", "runtime_error", ["out of memory"], with_forward(
        "a = torch.empty(1 << 45, dtype=torch.uint8, device='cuda')\nreturn ext.relu(x)")),
    ("memory, piece by piece", "runtime_error", ["out of memory"], with_forward(
        "keep = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(400)]\nreturn ext.relu(x)")),
    ("memory, cudaMalloc", "runtime_error", [], host(
        'for (;;) { void *p; if (cudaMalloc(&p, (size_t)4 << 30) != cudaSuccess) throw std::runtime_error("out of '
        'memory"); }')),
    ("host crash", "runtime_error", ["signal"], host("*(volatile int *)8 = 1; " + LAUNCH)),
    ("exits", "runtime_error", ["exit"], host("_exit(3);", extra="#include <unistd.h>\n")),
    ("torch in forward", "cheating", ["relu"], with_forward("return torch.relu(x)")),
    ("torch beside a kernel", "cheating", ["relu"], with_forward("ext.relu(x)\nreturn torch.relu(x)")),
    ("decoy kernel", "cheating", [], with_forward("ext.relu(x)\nreturn x * (x > 0)")),
    ("kept from init", "cheating", [],
     with_forward("return self.y", init="self.y = ext.relu(torch.randn(16, 37).cuda())")),
    ("no kernel", ("cheating", "compile_error"), [], with_forward("return x")),
    ("writes its input", ("correctness_error", "runtime_error"), [],
     with_forward("y = ext.relu(x)\nx.copy_(y)\nreturn y")),
    ("side stream", None, [], build(KERNEL.replace(
        "relu_kernel<<<(n + 255) / 256, 256>>>(",
        "cudaStream_t s; cudaStreamCreate(&s);\n    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(")
        .replace("return y;", "cudaStreamSynchronize(s); cudaStreamDestroy(s);\n    return y;")) + MODEL),
    ("again honest", None, [], GOOD + "\n# judged after all of the above\n"),
]

SLOW = [
    ("hanging kernel", "timeout", ["still running"], host(LAUNCH, "while (x[0] == x[0] || n) { if (i < 0) y[0]++; "
                                                                  "__nanosleep(100); }")),
    ("hanging host", "timeout", ["still running"], host("for (;;) {} ")),
    ("honest beside them", None, [], GOOD + "\n# judged while others hang\n"),
]

CUBLAS = ("cuBLAS", "cheating", ["cublas"], '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="mm_ext", cpp_sources="torch::Tensor mm(torch::Tensor a, torch::Tensor b);", cuda_sources=r"""
#include <cublas_v2.h>
torch::Tensor mm(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    cublasHandle_t h; cublasCreate(&h);
    float one = 1, zero = 0; int n = b.size(1), m = a.size(0), k = a.size(1);
    cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n, a.data_ptr<float>(), k,
                &zero, c.data_ptr<float>(), n);
    cublasDestroy(h);
    return c;
}
""", functions=["mm"], extra_ldflags=["-lcublas"])
class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.mm(a, b)
''')

MATMUL_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(33, 65), torch.randn(65, 17)]

def get_init_inputs():
    return []
'''

CONV_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3, padding=1)

    def forward(self, x):
        return self.conv(x)

def get_inputs():
    return [torch.randn(4, 16, 32, 32)]

def get_init_inputs():
    return []
'''

# Exact fp32 convolution: right under strict (TF32 off on both sides).
CONV = ("fp32 convolution", None, [], '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="conv_ext", cpp_sources="torch::Tensor conv(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=r"""
__global__ void conv_kernel(const float *x, const float *w, const float *b, float *y, int C, int K, int H,
                            int W, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = i % W, p = i / W % H, k = i / (W * H) % K, m = i / (W * H * K);
    float s = b[k];
    for (int c = 0; c < C; c++)
        for (int r = 0; r < 3; r++)
            for (int t = 0; t < 3; t++) {
                int yy = p + r - 1, xx = q + t - 1;
                if (yy >= 0 && yy < H && xx >= 0 && xx < W)
                    s += x[((m * C + c) * H + yy) * W + xx] * w[((k * C + c) * 3 + r) * 3 + t];
            }
    y[i] = s;
}
torch::Tensor conv(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), w.size(0), x.size(2), x.size(3)}, x.options());
    int n = y.numel();
    conv_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                          y.data_ptr<float>(), x.size(1), w.size(0), x.size(2), x.size(3), n);
    return y;
}
""", functions=["conv"])
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3, padding=1)
    def forward(self, x):
        return ext.conv(x, self.conv.weight, self.conv.bias)
''')
