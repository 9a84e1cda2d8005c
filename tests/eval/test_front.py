"""test_front.py - a candidate's view of a device that is in another process: front_cases.py, judged on sim."""
import json
import os
import subprocess
import tempfile
import unittest

import judges

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(7, 9)]
def get_init_inputs():
    return []
"""

WEIGHTED = """import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return x * self.weight
def get_inputs():
    return [torch.randn(2, 65536)]
def get_init_inputs():
    return [65536]
"""
WEIGHTED_KERNEL = """import torch
from torch.utils.cpp_extension import load_inline
cuda = r'''#include <torch/extension.h>
__global__ void scale(const float *x, const float *w, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * w[i % m];
}
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    scale<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), x.numel(),
                                            w.numel());
    return y;
}'''
m = load_inline("scale", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w);", cuda_sources=cuda,
                functions=["run"])
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return m.run(x, self.weight)
"""


class Front(unittest.TestCase):
    def test_parameters_drawn_by_the_published_seed_are_no_table(self):
        with tempfile.TemporaryDirectory() as folder:
            task, kernel = os.path.join(folder, "task.py"), os.path.join(folder, "kernel.py")
            for path, text in ((task, WEIGHTED), (kernel, WEIGHTED_KERNEL)):
                with open(path, "w") as f:
                    f.write(text)
            p = subprocess.run([EXE, "eval", "--task", task, "--backend", "sim", "--json", "--no-cache", "--protocol",
                                "kernelbench", "--timeout", f"{60 * SLOWDOWN:g}", kernel], capture_output=True,
                               text=True, timeout=400 * SLOWDOWN)
        v = json.loads(p.stdout)
        self.assertEqual((p.returncode, v["reasons"]), (0, []), p.stderr)

    def test_the_device_from_all_sides(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as task:
            task.write(TASK)
            task.flush()
            p = subprocess.run([EXE, "eval", "--task", task.name, "--backend", "sim", "--json", "--no-cache",
                                "--trials",
                                "1", "--timeout", f"{60 * SLOWDOWN:g}", os.path.join(HERE, "front_cases.py")],
                               capture_output=True, text=True, timeout=400 * SLOWDOWN)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        v = json.loads(p.stdout)
        reason = v["reasons"][0] if v["reasons"] else {}
        self.assertEqual(reason.get("name", "host_table"), "host_table", v["feedback"])  # it uploads much for its cases


if __name__ == "__main__":
    unittest.main()
