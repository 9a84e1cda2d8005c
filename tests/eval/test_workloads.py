"""test_workloads.py - many shapes, one verdict, end to end: six shapes and two dtypes; a kernel that is right at all
but one of them fails, and the words name that one; tasks in another dtype or layout as if they were written so."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "runner"))
import reference  # noqa: E402
import test_answers  # noqa: E402
import torch  # noqa: E402

FORK = "torch"
TASK = """import torch
import torch.nn as nn

batch, width = 8, 64
shape = (batch, width)

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 0.5

def get_inputs():
    return [torch.randn(shape)]

def get_init_inputs():
    return []
"""
SIDECAR = """workloads:
  - {name: few, sizes: {batch: 3}}
  - {name: wider, sizes: {width: 96}}
  - {name: row, sizes: {batch: 1, width: 32}}
  - {name: large, sizes: {batch: 16, width: 128}}
  - {name: odd, sizes: {width: 61}}
  - {name: half, dtype: float16}
  - {name: half-wide, dtype: float16, sizes: {width: 128}}
"""
PROGRAM = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = r'''
#include <cuda_fp16.h>
__global__ void full(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f) * 0.5f;
}
__global__ void half_(const __half *x, __half *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2half(fmaxf(__half2float(x[i]), 0.f) * 0.5f);
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel(), blocks = (n + 63) / 64;
    if (x.scalar_type() == torch::kHalf)
        half_<<<blocks, 64>>>((const __half *)x.data_ptr(), (__half *)y.data_ptr(), n);
    else
        full<<<blocks, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''
ext = load_inline(name="w", cpp_sources="torch::Tensor go(torch::Tensor x);", cuda_sources=source, functions=["go"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
"""


class Workloads(unittest.TestCase):
    def test_one_wrong_shape_fails_all(self):
        wrong = PROGRAM.replace("int n = x.numel(),", "int n = x.numel() / 32 * 32,")
        with tempfile.TemporaryDirectory() as d:
            for name, text in (("t.py", TASK), ("t.yaml", SIDECAR), ("right.py", PROGRAM), ("wrong.py", wrong)):
                with open(os.path.join(d, name), "w") as f:
                    f.write(text)
            p = test_answers.judge(*(os.path.join(d, name) for name in ("t.py", "right.py", "wrong.py")))
        right, wrong = (json.loads(line) for line in p.stdout.splitlines())
        rows = right["workloads"]
        self.assertEqual((right["status"], right["reward"], {r["status"] for r in rows}), ("passed", 1, {"passed"}))
        self.assertEqual([r["name"] for r in rows], ["as written", "few", "wider", "row", "large", "odd", "half",
                                                     "half-wide"])
        self.assertEqual(right["correctness"]["trials"], sum(r["trials"] for r in rows))
        self.assertEqual((wrong["status"], wrong["workload"]["name"]), ("failed", "odd"))
        self.assertEqual([r["name"] for r in wrong["workloads"] if r["status"] != "passed"], ["odd"])
        self.assertIn("Workload 'odd' (width = 61)", wrong["feedback"])

    def test_each_row_has_its_capsule(self):
        with tempfile.TemporaryDirectory() as d:
            sidecar = "".join(SIDECAR.splitlines(True)[:2])
            for name, text in (("t.py", TASK), ("t.yaml", sidecar), ("right.py", PROGRAM)):
                with open(os.path.join(d, name), "w") as f:
                    f.write(text)
            p = test_answers.judge(os.path.join(d, "t.py"), "--capsule", os.path.join(d, "a.capsule"),
                                   os.path.join(d, "right.py"))
            self.assertEqual(p.returncode, 0, p.stderr)
            for name, elements in (("a.capsule", 512), ("a.1.capsule", 192)):
                p = subprocess.run([test_answers.EXE, "replay", "--json", os.path.join(d, name)], text=True,
                                   capture_output=True)
                self.assertEqual([json.loads(p.stdout)[k] for k in ("right", "elements")], [True, elements], p.stderr)

    def test_a_workload_that_cannot_be_judged_is_named(self):
        """And the others decide. Where none can be judged '--json' has a record nevertheless."""
        task = TASK.replace("shape = ", "kept = 1\nshape = ").replace("* 0.5", "* 0.5 * min(kept, 1)")
        rows = "  - {name: few, sizes: {batch: 3}}\n"
        wrong = PROGRAM.replace("int n = x.numel(),", "int n = x.numel() / 512 * 512,")
        with tempfile.TemporaryDirectory() as d:
            path = [os.path.join(d, name) for name in ("t.py", "right.py", "wrong.py")]
            for p, text in zip(path, (task, PROGRAM, wrong)):
                with open(p, "w") as f:
                    f.write(text)
            with open(os.path.join(d, "t.yaml"), "w") as f:
                f.write("workloads:\n  - {name: nothing, sizes: {kept: 0}}\n" + rows)
            p = test_answers.judge(*path)
            right, wrong = (json.loads(line) for line in p.stdout.splitlines())
            self.assertEqual((p.returncode, right["status"], right["reward"]), (1, "passed", 1), p.stderr)
            self.assertEqual([r["status"] for r in right["workloads"]], ["passed", "infra", "passed"])
            self.assertIn("cannot be judged", right["workloads"][1]["refused"])
            self.assertIn("2 of 3 workloads passed", right["feedback"])
            self.assertIn("Workload 'nothing' cannot be judged", right["feedback"])
            self.assertEqual((wrong["status"], wrong["workload"]["name"]), ("failed", "few"))
            with open(path[0], "w") as f:
                f.write(task.replace("kept = 1", "kept = 0"))
            p = test_answers.judge(*path)
            self.assertEqual(p.returncode, 2)
            records = [json.loads(line) for line in p.stdout.splitlines()]
            self.assertEqual([(r["candidate"], r["status"], r["at_fault"]) for r in records],
                             [(c, "infra", "request") for c in path[1:]])
            self.assertIn("cannot be judged", records[0]["feedback"])

    def test_the_failing_row_is_written_down(self):
        """'--repro' holds the row that the verdict is about, and nothing of the others; PyTorch alone repeats it."""
        half = PROGRAM.replace("y[i] = __float2half(fmaxf(__half2float(x[i]), 0.f) * 0.5f)", "y[i] = x[i]")
        odd = PROGRAM.replace("int n = x.numel(),", "int n = x.numel() / 32 * 32,")
        with tempfile.TemporaryDirectory() as d:
            for name, text in (("t.py", TASK), ("t.yaml", SIDECAR), ("odd.py", odd), ("half.py", half)):
                with open(os.path.join(d, name), "w") as f:
                    f.write(text)
            for name, shape in (("odd", "(8, 61) torch.float32"), ("half", "(8, 64) torch.float16")):
                out = os.path.join(d, "repro-" + name)
                p = test_answers.judge(os.path.join(d, "t.py"), "--repro", out, os.path.join(d, name + ".py"))
                self.assertEqual(json.loads(p.stdout)["workload"]["name"], name, p.stderr)
                self.assertEqual([x for x in os.listdir(out) if x.startswith("workload")], [])
                p = subprocess.run([sys.executable, os.path.join(out, "repro.py")], capture_output=True, text=True)
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertIn(f"input 0: {shape}", p.stdout)
                self.assertRegex(p.stdout, r"reference: output 0: all \d+ elements match")
                self.assertRegex(p.stdout, r"kernel, as judged: output 0: \d+ of \d+ elements are wrong")


class Line(unittest.TestCase):
    def test_every_reader_obeys_it(self):
        t = reference.load(TASK + '\n#@workload: {"sizes": {"width": 7}, "dtype": "bfloat16"}\n')
        x, = t.get_inputs()
        self.assertEqual((tuple(x.shape), x.dtype), ((8, 7), torch.bfloat16))
        linear = TASK.replace("class Model(nn.Module):\n", "class Model(nn.Module):\n    def __init__(self):\n"
                              "        super(Model, self).__init__()\n        self.fc = nn.Linear(3, 3)\n\n")
        t = reference.load(linear + '\n#@workload: {"dtype": "float16", "layout": "transposed"}\n')
        self.assertEqual({p.dtype for p in reference.construct(t, [], 0).parameters()}, {torch.float16})
        self.assertEqual(t.get_inputs()[0].stride(), (1, 8))
        with self.assertRaisesRegex(reference.Refused, "wdth"):
            reference.load(TASK + '\n#@workload: {"sizes": {"wdth": 7}}\n')


if __name__ == "__main__":
    unittest.main()
