"""test_streamed_front.py - candidates of streamed tasks, judged by replay: what lies astray, in other layouts, or in
the inputs is found where outputs are compared in tiles and inputs are nobody's copy."""
import json
import os
import subprocess
import tempfile
import unittest

import judges

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
judges.share_owner()

TASK = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.rand(n))

    def forward(self, x, y):
        return (x + y) * self.w, (x - y).sum(1)


def get_inputs():
    return [torch.rand(40, 70), torch.rand(40, 70)]


def get_init_inputs():
    return [70]
'''

PROGRAM = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void k(float *x, float *y, const float *w, float *a, float *b, int n, int d)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    double t = 0;
    for (int i = 0; i < d; i++) {
        float u = x[row * d + i], v = y[row * d + i];
        a[AT] = (u + v) * w[i];
        t += (double)u - v;
        MORE
    }
    b[row] = (float)t;
}
std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor y, torch::Tensor w)
{
    auto a = OUT;
    auto b = torch::empty({x.size(0)}, x.options());
    k<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), w.data_ptr<float>(), a.data_ptr<float>(),
                 b.data_ptr<float>(), x.size(0), x.size(1));
    return {RETURN, b};
}
"""
mod = load_inline("streamed",
                  cpp_sources="std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor y, torch::Tensor w);",
                  cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.rand(n))

    def forward(self, x, y):
        return tuple(mod.run(x, y, self.w))
'''
PLAIN = {"AT": "row * d + i", "MORE": "", "OUT": "torch::empty_like(x)", "RETURN": "a"}


class Streamed(unittest.TestCase):
    def judge(self, *options, **changes):
        return self.judge_all([changes], *options)[0]

    def judge_all(self, programs, *options):
        with tempfile.TemporaryDirectory() as d:
            files = {"task.py": TASK}
            for i, changes in enumerate(programs):
                files[f"kernel{i}.py"] = PROGRAM
                for key, value in dict(PLAIN, **changes).items():
                    files[f"kernel{i}.py"] = files[f"kernel{i}.py"].replace(key, value)
            for name, content in files.items():
                with open(os.path.join(d, name), "w", encoding="utf-8") as f:
                    f.write(content)
            env = dict(os.environ, MUSACODER_VALUES="streamed")
            p = subprocess.run([EXE, "eval", "--task", os.path.join(d, "task.py"), "--json", "--no-cache",
                                "--trials", "2", *options] + [os.path.join(d, f) for f in list(files)[1:]], env=env,
                               capture_output=True, check=False)
            return [json.loads(line) for line in p.stdout.splitlines()]

    def test_honest(self):
        v = self.judge()
        self.assertEqual((v["status"], v["correctness"]["trials"]), ("passed", 12), v)
        self.assertEqual(v["schema"], "musacoder.verdict/2")

    def test_other_layouts(self):
        v = self.judge(AT="i * n + row", OUT="torch::empty({x.size(1), x.size(0)}, x.options())", RETURN="a.t()")
        self.assertEqual(v["status"], "passed", v)
        v = self.judge(AT="row * 2 * d + 2 * i", OUT="torch::empty({x.size(0), 2 * x.size(1)}, x.options())",
                       RETURN="a.as_strided({x.size(0), x.size(1)}, {2 * x.size(1), 2})")
        self.assertEqual(v["status"], "passed", v)

    def test_the_last_element(self):
        v = self.judge(MORE="if (row == n - 1 && i == d - 1) a[AT] *= 1.001f;".replace("AT", PLAIN["AT"]))
        self.assertEqual(v["category"], "correctness_error", v)
        worst = v["correctness"]["worst"]
        self.assertEqual((worst["wrong"], worst["first"]["index"]), (1, "[39, 69]"))

    def test_changes_an_input(self):
        v = self.judge(MORE="if (row == 3 && i == 5) y[row * d + i] = 0;")
        self.assertEqual(v["category"], "correctness_error", v)
        self.assertEqual(v["correctness"]["worst"]["kind"], "input_modified")

    def test_many_at_once(self):
        wrong = {"MORE": "t += i == 0;"}
        all_of = self.judge_all([{"MORE": f"if (i < 0) t += {i};"} if i % 2
                                 else dict(wrong, AT=f"row * d + i + {i} - {i}")
                                 for i in range(6)], "--jobs", "4")
        self.assertEqual([v["status"] for v in all_of], ["failed", "passed"] * 3)

    def test_another_shape(self):
        v = self.judge(RETURN="a.reshape({x.size(1), x.size(0)})")
        self.assertEqual((v["category"], v["correctness"]["worst"]["kind"]), ("correctness_error", "shape"), v)

    def test_the_published_protocol(self):
        """Parameters are those of the construction, from one seed: who draws something else first has others. strict
        lays its own."""
        other = {"self.w = nn.Parameter": "torch.rand(1); self.w = nn.Parameter"}
        same, others = self.judge_all([{}, other], "--protocol", "kernelbench")
        self.assertEqual((same["status"], same["correctness"]["params"]), ("passed", "seed"), same)
        self.assertEqual(others["category"], "correctness_error", others)
        self.assertEqual(self.judge(**other)["status"], "passed")


if __name__ == "__main__":
    unittest.main()
