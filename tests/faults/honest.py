"""honest.py - candidates that mean well: right ones in many shapes, and wrong ones whose error has a size. Each is a
function of a number, so that as many as needed can be made; those with the same 'kind' have the same verdict."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "eval"))
from candidates import RELU_TASK  # noqa: E402

MATMUL_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(19, 33), torch.randn(33, 17)]

def get_init_inputs():
    return []
'''

SCALE_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return x * self.weight

def get_inputs():
    return [torch.randn(11, 29)]

def get_init_inputs():
    return [29]
'''

HEAD = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
'''


def program(decl, kernel, model):
    return (HEAD + f'ext = load_inline(name="honest", cpp_sources="{decl};", cuda_sources=r"""{kernel}""", '
            'functions=["run"])\n' + model)


def relu(block, value="x[i] > 0.0f ? x[i] : 0.0f", grid="(n + {b} - 1) / {b}"):
    return program("torch::Tensor run(torch::Tensor x)", '''
__global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = VALUE;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu<<<GRID, BLOCK>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''.replace("VALUE", value).replace("GRID", grid.format(b=block)).replace("BLOCK", str(block)), '''
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
''')


def matmul(tile, first="0.0f", last="k"):
    return program("torch::Tensor run(torch::Tensor a, torch::Tensor b)", '''
__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    float s = FIRST;
    for (int t = 0; t < LAST; t++) s += a[i * k + t] * b[t * n + j];
    c[i * n + j] = s;
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    matmul<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
    return c;
}
'''.replace("TILE", str(tile)).replace("FIRST", first).replace("LAST", last), '''
class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.run(a, b)
''')


def scale(block, value="x[i] * w[i % n]"):
    return program("torch::Tensor run(torch::Tensor x, torch::Tensor w)", '''
__global__ void scale(const float *x, const float *w, float *y, int n, int total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) y[i] = VALUE;
}
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    scale<<<2, BLOCK>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), w.numel(), x.numel());
    return y;
}
'''.replace("VALUE", value).replace("BLOCK", str(block)), '''
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return ext.run(x, self.weight)
''')


# (task's name, task, kind, expected category, source)
KINDS = [("relu", RELU_TASK, f"relu, {b} threads", None, relu(b)) for b in (32, 64, 96, 128, 256)]
KINDS += [("matmul", MATMUL_TASK, f"matmul, {t} x {t} threads", None, matmul(t)) for t in (4, 8, 16)]
KINDS += [("scale", SCALE_TASK, f"scale, {b} threads", None, scale(b)) for b in (32, 64, 128, 256)]
KINDS += [
    ("relu", RELU_TASK, "leaky", "correctness_error", relu(64, "x[i] > 0.0f ? x[i] : 0.01f * x[i]")),
    ("relu", RELU_TASK, "short grid", "correctness_error", relu(64, grid="n / {b}")),
    ("matmul", MATMUL_TASK, "a column left out", "correctness_error", matmul(8, last="k - 1")),
    ("matmul", MATMUL_TASK, "an offset", "correctness_error", matmul(8, first="0.125f")),
    ("scale", SCALE_TASK, "rows for columns", "correctness_error", scale(64, "x[i] * w[i / n]")),
    ("relu", RELU_TASK, "does not compile", "compile_error", relu(64, "x[j]")),
]


def make(i, quick=False):
    """-> (task's name, task, kind, expected category, source); the source is unique, what it builds is its kind's."""
    table = [k for k in KINDS if k[0] == "relu"] if quick else KINDS
    name, task, kind, category, source = table[i % len(table)]
    return name, task, kind, category, source + f"\n# honest {i}\n"
