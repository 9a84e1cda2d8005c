"""gallery.py - docs/gallery.md: programs that fail, each with the judge's own words; made from real verdicts.

    gallery.py MUSACODER           prints the page (make gallery writes it; tests/docs/test_pages.py compares it)

Each program is one of two right ones with a change. Numbers that depend on this machine's secret draws are shown as
they came; the comparison looks at the first line of a verdict, its code and the line that it names."""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TASK = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return torch.softmax(self.linear(x), dim=1)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64, 96]
'''

RIGHT = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void linear_softmax(const float *x, const float *w, const float *b, float *y, int K, int N)
{
    extern __shared__ float row[];
    __shared__ float total, top;
    int m = blockIdx.x, t = threadIdx.x;

    for (int n = t; n < N; n += blockDim.x) {
        float acc = b[n];
        for (int k = 0; k < K; k++) acc += x[m * K + k] * w[n * K + k];
        row[n] = acc;
    }
    __syncthreads();
    if (t == 0) {
        top = -INFINITY, total = 0;
        for (int n = 0; n < N; n++) top = fmaxf(top, row[n]);
        for (int n = 0; n < N; n++) total += expf(row[n] - top);
    }
    __syncthreads();
    for (int n = t; n < N; n += blockDim.x) y[m * N + n] = expf(row[n] - top) / total;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b)
{
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    linear_softmax<<<M, 64, N * sizeof(float)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                                 y.data_ptr<float>(), K, N);
    return y;
}
"""
ext = load_inline("linear_softmax", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return ext.run(x, self.linear.weight, self.linear.bias)
'''

CALL = "return ext.run(x, self.linear.weight, self.linear.bias)"

# (what it is, code, old, new)
CASES = [
    ("A name that is not declared", "MC204", "float acc = b[n];", "float acc = bias[n];"),
    ("A semicolon is missing", "MC204", "row[n] = acc;", "row[n] = acc"),
    ("A colon is missing in Python", "MC201", "def forward(self, x):", "def forward(self, x)"),
    ("The C++ function is declared under another name", "MC202", "torch::Tensor run(torch::Tensor x, torch::Tensor w, "
     "torch::Tensor b)\n{", "torch::Tensor go(torch::Tensor x, torch::Tensor w, torch::Tensor b)\n{"),
    ("The class has another name", "MC108", "class ModelNew", "class FusedModel"),
    ("One step too far in the inner loop", "MC301", "k < K; k++) acc", "k <= K; k++) acc"),
    ("Less shared memory than is used", "MC301", "<<<M, 64, N * sizeof(float)>>>", "<<<M, 64, 64 * sizeof(float)>>>"),
    ("A pointer of the host", "MC302", "b.data_ptr<float>(),\n", "nullptr,\n"),
    ("More threads than a block may have", "MC308", "<<<M, 64,", "<<<M, 2048,"),
    ("A barrier in a branch", "MC307", "    __syncthreads();\n    if (t == 0) {", "    if (t == 0) {\n        "
     "__syncthreads();"),
    ("An assert that does not hold", "MC309", "int m = blockIdx.x, t = threadIdx.x;", "int m = blockIdx.x, t = "
     "threadIdx.x;\n    assert(N % 64 == 0);"),
    ("Host code reads device memory", "MC314", "    return y;\n}\n",
     "    y.data_ptr<float>()[0] = 1;\n    return y;\n}\n"),
    ("An argument is left out", "MC317", CALL, "return ext.run(x, self.linear.weight)"),
    ("An exception of the program's own", "MC319", CALL, "raise ValueError(f'no kernel for {tuple(x.shape)}')"),
    ("A constructor that wants other arguments", "MC318", "def __init__(self, k, n):", "def __init__(self, k):"),
    ("The bias is left out", "MC413", "float acc = b[n];", "float acc = 0;"),
    ("The last column is never written", "MC402", "n += blockDim.x) y[", "n += blockDim.x) if (n < N - 1) y["),
    ("exp without the row's maximum", "MC412", "expf(row[n] - top)", "expf(row[n])"),
    ("Rounded through half precision", "MC413", "expf(row[n] - top) / total", "__half2float(__float2half(expf(row[n] - "
     "top) / total))"),
    ("The transposed answer", "MC403", "return y;\n", "return y.t();\n"),
    ("The answer in double precision", "MC404", CALL, CALL.replace("return ", "return (") + ").double()"),
    ("The answer twice", "MC405", CALL, "y = " + CALL[7:] + "\n        return y, y"),
    ("The input is overwritten", "MC406", "    __syncthreads();\n    if (t == 0) {",
     "    __syncthreads();\n    if (t == 0) {\n        ((float *)x)[m * K] = 0;"),
    ("A parameter is missing", "MC409", "self.linear = nn.Linear(k, n)", "self.linear = nn.Linear(k, n)\n        "
     "self.linear.bias = None\n        self.zero = torch.zeros(n, device='cuda')"),
    ("PyTorch does it", "MC501", CALL, "return torch.softmax(self.linear(x), dim=1)"),
    ("A fallback hides the kernel's error", "MC501", "        " + CALL, "        try:\n            return ext.run(x)\n"
     "        except TypeError:\n            return torch.softmax(self.linear(x), dim=1)"),
    ("A loop that does not end", "MC602", "k < K; k++) acc", "k < K; k += 0) acc"),
    ("A vector load at an odd address", "MC303", "float acc = b[n];",
     "float acc = b[n] + 0 * ((const float4 *)(x + 1))->x;"),
    ("A barrier is missing", "MC304", "    __syncthreads();\n    for (int n = t; n < N; n += blockDim.x) y",
     "    for (int n = t; n < N; n += blockDim.x) y"),
    ("All blocks write to the same row", "MC304", "y[m * N + n] =", "y[n] ="),
    ("One block too few", "MC402", "<<<M, 64,", "<<<M - 1, 64,"),
    ("A warp function without the lane that calls it", "MC307", "    __syncthreads();\n    if (t == 0) {",
     "    if (t < 32) __syncwarp(0xffff0000);\n    __syncthreads();\n    if (t == 0) {"),
    ("More memory than there is", "MC313", "torch::empty({M, N}", "torch::empty({M, N + (1L << 36)}"),
    ("The process ends itself", "MC315", CALL, "import os\n        os._exit(0)"),
    ("A stream that nobody waits for", "MC411", "    linear_softmax<<<M, 64, N * sizeof(float)>>>",
     "    cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n"
     "    linear_softmax<<<M, 64, N * sizeof(float), s>>>"),
    ("The first answer for ever", "MC413", CALL, "if not hasattr(self, 'y'):\n            self.y = " + CALL[7:] +
     "\n        return self.y"),
    ("No kernel at all", "MC504", CALL, "return torch.full((32, 96), 1 / 96, device=x.device)"),
    ("The extension asks PyTorch", "MC502", "    return y;\n", "    return y.cpu().mul(1).cuda();\n"),
    ("Assembly that the emulator does not know", "MC709", "int m = blockIdx.x, t = threadIdx.x;",
     "int m = blockIdx.x, t = threadIdx.x;\n    int lane;\n    asm(\"mov.u32 %0, %laneidd;\" : \"=r\"(lane));"),
    ("An answer that was cut off", "MC102", None, "Here it is:\n```python\n" + RIGHT[:400]),
    ("An answer without a program", "MC104", None, "A softmax needs the maximum of its row first.\n"),
    ("Triton", "MC701", CALL, "import triton\n        k = triton.jit(lambda x: x)\n        return k[(1,)](x)"),
]


def programs():
    for what, code, old, new in CASES:
        if old is None:
            yield what, code, "", new, new
            continue
        if old not in RIGHT:
            raise ValueError(f"'{what}': its change does not fit the program")
        text = RIGHT.replace(old, new)
        if "__half" in new:
            text = text.replace("#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#include <cuda_fp16.h>")
        if "assert(" in new:
            text = text.replace("#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#include <cassert>")
        yield what, code, old, new, text


def verdicts(exe, folder):
    """The words of each program's verdict, in order."""
    names = []
    with open(os.path.join(folder, "task.py"), "w", encoding="utf-8") as f:
        f.write(TASK)
    for i, (_, _, old, _, text) in enumerate(programs()):
        names.append(f"program_{i}.{'py' if old else 'md'}")  # a whole answer is Markdown
        with open(os.path.join(folder, names[-1]), "w", encoding="utf-8") as f:
            f.write(text)
    p = subprocess.run([exe, "eval", "--task", "task.py", "--timeout", "10", "--color", "never", *names], cwd=folder,
                       capture_output=True, text=True, check=False)
    parts = re.split(r"^(?=(?:PASS|FAIL|SKIP|ERROR) program_)", p.stdout, flags=re.M)[1:]
    if len(parts) != len(names):
        raise RuntimeError(p.stdout + p.stderr)
    return [re.sub(r"program_\d+\.(py|md)", r"program.\1", x) for x in parts]


def diff(old, new):
    if not old:
        return "\n".join("+ " + x for x in new.strip("\n").split("\n"))
    lines = [("- " + x) for x in old.strip("\n").split("\n")] + [("+ " + x) for x in new.strip("\n").split("\n")]
    return "\n".join(lines)


def page(exe):
    with tempfile.TemporaryDirectory() as folder:
        said = verdicts(exe, folder)
    out = ["# A gallery of verdicts", "", "Made by `make gallery` from real runs on `sim`. Each program is the right "
           "one at the end of this page", "with one change; the judge's words stand below it. `musacoder explain "
           "CODE` says more of a code.", ""]
    for (what, _, old, new, _), words in zip(programs(), said):
        words = re.sub(r"^\d+ passed.*\n?", "", words, flags=re.M)
        words = re.sub(r"^  --timeout counts.*\n", "", words, flags=re.M)
        out += [f"## {what}", "```diff", diff(old, new), "```", "```text", words.rstrip(), "```", ""]
    return "\n".join(out + ["## The task", "```python", TASK.rstrip(), "```", "", "## The right program", "```python",
                            RIGHT.rstrip(), "```", ""])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(page(os.path.abspath(sys.argv[1])), end="")
