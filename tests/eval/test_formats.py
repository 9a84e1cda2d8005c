"""test_formats.py - tasks in the forms of other benchmarks: small ones of our own, read by 'musacoder tasks', loaded
and run by the reference's side, and one judged with its custom_kernel from end to end."""
import json
import os
import struct
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
GPU_MODE = {
    "problems/half_py/task.yml": """files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: |
  Half of what is positive.
tests:
  - {"size": 40, "seed": 4, "bias": 0.5, "mask": True}
  - {"size": 33, "seed": 5, "bias": 0.0, "mask": False}
benchmarks:
  - {"size": 512, "seed": 6, "bias": 0.5, "mask": True}
""",
    "problems/half_py/task.py": "import torch\nfrom typing import TypeVar\ninput_t = TypeVar('input_t')\n"
                                "output_t = TypeVar('output_t')\n",
    "problems/utils.py": "import torch\n\ndef to_half(x):\n    return x * 0.5\n",
    "problems/half_py/reference.py": """from utils import (
    to_half,
)
import torch
from task import input_t, output_t

def ref_kernel(data: input_t) -> output_t:
    return to_half(torch.relu(data))

def generate_input(size: int, seed: int, bias: float, mask: bool) -> input_t:
    gen = torch.Generator(device='cuda')
    gen.manual_seed(seed)
    return torch.randn(size, 8, device='cuda', generator=gen) + bias
"""}
DEFINITION = {"name": "scaled", "axes": {"rows": {"type": "var"}, "width": {"type": "const", "value": 12},
                                         "half": {"type": "expr", "expression": "width // 2"}},
              "inputs": {"x": {"shape": ["rows", "width"], "dtype": "float16"},
                         "i": {"shape": ["rows"], "dtype": "int32"}, "eps": {"shape": None, "dtype": "float32"}},
              "outputs": {"y": {"shape": ["rows", "half"], "dtype": "float16"}},
              "reference": "import torch\n\ndef run(x, i, eps):\n"
                           "    return x[:, :x.shape[1] // 2] * (i[:, None] + eps)\n"}
WORKLOADS = [{"axes": {"rows": 3}, "inputs": {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 0.5}}},
             {"axes": {"rows": 7}, "inputs": {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 0.25}}}]
CUSTOM = dict(DEFINITION, custom_inputs_entrypoint="make", reference=DEFINITION["reference"] +
              "\ndef make(axes, device):\n    n = axes['rows']\n"
              "    return {'x': torch.ones(n, axes['width'], device=device).half(), "
              "'i': torch.arange(n, device=device)}\n")
ROBUST = {"tasks/fc/func_forward.py": """import torch
import torch.nn.functional as F

def forward_fn(x, w):
    return F.linear(x, w)

class Model(torch.nn.Module):
    def __init__(self, n_in: int = 4, n_out: int = 4, init_method: str = "normal"):
        super(Model, self).__init__()
        assert init_method in ("normal", "zero")
        self.w = torch.nn.Parameter(torch.randn(n_out, n_in))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.w)

def get_inputs(rows: int = 2, n_in: int = 4):
    return [torch.randn(rows, n_in)]

input_names = ["x"]
""", "tasks/fc/config_forward.json": json.dumps({
        "single_input_configs": [{"rows": 5}], "single_init_configs": [{"n_out": 6, "init_method": "normal"}],
        "single_shared_configs": [{"n_in": 8, "rows": 5}], "multi_input_configs": [{"rows": 5}, {"rows": 2}],
        "multi_init_configs": [{"n_out": 6, "init_method": "zero"}], "multi_shared_configs": [{"n_in": 8}]})}
CASES = {"reference/3_add.py": """import torch
import torch.nn as nn
import json
import os

class Model(nn.Module):
    def forward(self, x, alpha=None):
        return x if alpha is None else x + alpha

def get_input_groups():
    path = os.path.join(os.path.dirname(__file__), "3_add.json")
    with open(path, "r") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    kinds = {"float32": torch.float32, "float16": torch.float16}
    return [[torch.randn(c["inputs"][0]["shape"], dtype=kinds[c["inputs"][0]["dtype"]]), c["inputs"][1]["value"]]
            for c in cases]

def get_init_inputs():
    return []
""", "reference/3_add.json": "".join(json.dumps({"inputs": [{"name": "x", "dtype": d, "shape": s},
                                                            {"name": "alpha", "value": a}]}) + "\n"
                                     for d, s, a in (("float32", [2, 3], 1.5), ("float16", [4], None)))}
LEETGPU = {"easy/3_mix/challenge.py": """import ctypes
from typing import Any, Dict, List

import torch
from core.challenge_base import ChallengeBase, OutTensor, RandTensor


class Challenge(ChallengeBase):
    name = "Mix"
    num_gpus = 1

    def reference_impl(self, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, N: int, by: float):
        assert A.shape == C.shape
        B.add_(A)
        torch.mul(A, by, out=C)

    def get_solve_signature(self) -> Dict[str, tuple]:
        return {
            "A": (ctypes.POINTER(ctypes.c_float), "in"),
            "B": (ctypes.POINTER(ctypes.c_float), "inout"),
            "C": (ctypes.POINTER(ctypes.c_float), "out"),
            "N": (ctypes.c_size_t, "in"),
            "by": (ctypes.c_float, "in"),
        }

    def test_of(self, n):
        return {"A": torch.rand(n, device=self.device), "B": torch.rand(n, device=self.device),
                "C": torch.zeros(n, device=self.device), "N": n, "by": 3.0}

    def generate_functional_test(self) -> List[Dict[str, Any]]:
        same = dict(self.test_of(9), A=torch.zeros(9, device=self.device))
        by_hand = dict(self.test_of(0), A=torch.arange(1024.0), B=torch.arange(1024.0), C=torch.zeros(1024), N=1024)
        still = dict(self.test_of(9), A=torch.full((9,), 1e-30, device=self.device) * torch.arange(1, 10))
        return [by_hand, same, still] + [self.test_of(n) for n in range(10, 20)]

    def generate_performance_test(self) -> Dict[str, Any]:
        return dict(self.test_of(100), A=RandTensor((100,), 2.0, 3.0), C=OutTensor((100,)))
"""}
SOLVE = """#include <cuda_runtime.h>

__global__ void mix(const float *A, float *B, float *C, int N, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) { B[i] += A[i]; C[i] = A[i] * by; }
}

// A, B, C are device pointers
extern "C" void solve(const float* A, float* B, float* C, size_t N, float by) {
    mix<<<(N + 127) / 128, 128>>>(A, B, C, N, by);
    cudaDeviceSynchronize();
}
"""


class Formats(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.dir.name, "out")

    def tearDown(self):
        self.dir.cleanup()

    def read(self, files, *options, code=0):
        for name, text in files.items():
            path = os.path.join(self.dir.name, "from", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text if isinstance(text, str) else json.dumps(text))
        p = subprocess.run([test_answers.EXE, "tasks", os.path.join(self.dir.name, "from"), "--out", self.out, "--json",
                            *options], capture_output=True, text=True)
        self.assertEqual(p.returncode, code, p.stderr)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def sidecar(self, name):
        with open(os.path.join(self.out, name + ".yaml")) as f:
            return json.load(f)

    def rows(self, name):
        """(inputs, output) of each row, as the judge's side makes them."""
        with open(os.path.join(self.out, name + ".py")) as f:
            code = f.read()
        with open(os.path.join(self.out, name + ".yaml")) as f:
            workloads = json.load(f).get("workloads", [])
        for w in [{}, *workloads]:
            t = reference.load(code + f"\n#@workload: {json.dumps({'sizes': w.get('sizes', {})})}\n")
            reference.seed_all(0)
            inputs = t.get_inputs()
            yield inputs, reference.construct(t, t.get_init_inputs(), 0)(*inputs)

    def test_gpu_mode(self):
        said = self.read(GPU_MODE)
        self.assertEqual([(x["format"], x["name"], x["rows"]) for x in said], [("gpu-mode", "half_py", 3)])
        rows = list(self.rows("half_py"))
        self.assertEqual([tuple(i[0].shape) for i, _ in rows], [(40, 8), (33, 8), (512, 8)])
        for (x,), y in rows:
            torch.testing.assert_close(y, torch.relu(x) * 0.5)

    def test_definitions(self):
        lines = "".join(json.dumps(w) + "\n" for w in WORKLOADS)
        traced = "".join(json.dumps({"definition": "scaled", "workload": w}) + "\n" for w in WORKLOADS)
        said = self.read({"sol/a/definition.json": DEFINITION, "sol/a/workload.jsonl": lines,
                          "trace/definitions/op/scaled.json": DEFINITION, "trace/workloads/op/scaled.jsonl": traced,
                          "sol/b/definition.json": dict(CUSTOM, name="made"),
                          "sol/b/workload.jsonl": lines.replace("random", "custom")})
        self.assertEqual([(x["format"], x["name"], x["rows"]) for x in said],
                         [("definition", "scaled", 2), ("definition", "made", 2), ("definition", "scaled_2", 2)])
        for name, origin in (("scaled", "sol-execbench"), ("scaled_2", "flashinfer-bench")):
            with open(os.path.join(self.out, name + ".yaml")) as f:
                self.assertEqual(json.load(f)["format"], origin)
            rows = list(self.rows(name))
            self.assertEqual([tuple(i[0].shape) for i, _ in rows], [(3, 12), (7, 12)])
            self.assertEqual([i[2] for i, _ in rows], [0.5, 0.25])
            self.assertEqual((rows[0][0][0].dtype, rows[0][0][1].dtype), (torch.float16, torch.int32))
        self.assertEqual(list(self.rows("made"))[1][1][6, 0].item(), 6.25)

    def test_the_published_tolerance(self):
        lines = "".join(json.dumps(dict(w, tolerance=t)) + "\n" for w, t in zip(WORKLOADS, (
            {"max_atol": 0.5, "required_matched_ratio": 0.9}, {"max_rtol": 0.25, "max_error_cap": 2.0})))
        self.read({"sol/a/definition.json": DEFINITION, "sol/a/workload.jsonl": lines,
                   "trace/definitions/op/other.json": dict(DEFINITION, name="other"),
                   "trace/workloads/op/other.jsonl": lines.replace("tolerance", "t")}, "--tolerance", "published")
        said = [self.sidecar(name) for name in ("scaled", "other")]
        self.assertEqual([s["tolerance"] for s in said], [{"abs": 0.5, "rel": 0.01, "matched": 0.9},
                                                          {"abs": 0.01, "rel": 0.01, "matched": 1}])
        self.assertEqual([s["workloads"][0]["tolerance"] for s in said], [
            {"abs": 0.01, "rel": 0.25, "matched": 0.99, "most": 2}, {"abs": 0.01, "rel": 0.01, "matched": 1}])
        self.read({}, code=0)
        self.assertNotIn("tolerance", self.sidecar("scaled"))

    def stored(self, path="blob/it.safetensors", key="rows"):
        """A definition whose 'i' comes from a file; its two rows have other values there."""
        folder = os.path.join(self.dir.name, "from", "blob")
        os.makedirs(folder, exist_ok=True)
        values = [torch.arange(n, dtype=torch.int32) * 5 for n in (3, 7)]
        head = json.dumps({"rows0": {"dtype": "I32", "shape": [3], "data_offsets": [0, 12]},
                           "rows1": {"dtype": "I32", "shape": [7], "data_offsets": [12, 40]}}).encode()
        with open(os.path.join(folder, "it.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(head)) + head + b"".join(v.numpy().tobytes() for v in values))
        rows = [dict(w, inputs=dict(w["inputs"], i={"type": "safetensors", "path": path, "tensor_key": f"{key}{n}"}))
                for n, w in enumerate(WORKLOADS)]
        return values, {"definitions/op/scaled.json": DEFINITION,
                        "workloads/op/scaled.jsonl": "".join(json.dumps({"workload": w}) + "\n" for w in rows)}

    def test_stored_inputs(self):
        values, files = self.stored()
        self.assertEqual([x["rows"] for x in self.read(files)], [2])
        for want, (inputs, _) in zip(values, self.rows("scaled")):
            self.assertEqual(inputs[1].dtype, torch.int32)
            torch.testing.assert_close(inputs[1], want)
        for path, key, words in (("../it.safetensors", "rows", "not below"), ("/etc/passwd", "rows", "not below"),
                                 ("blob/it.safetensors", "columns", "no tensor 'columns0'")):
            said = self.read(self.stored(path, key)[1], code=1)
            self.assertIn(words, said[0]["refused"])

    def test_robust_kbench(self):
        back = {name.replace("forward.", "backward."): text for name, text in ROBUST.items()}
        said = self.read(dict(ROBUST, **back))
        self.assertEqual([(x["name"], x["rows"]) for x in said], [("fc_backward", 3), ("fc", 3)])
        self.assertEqual([tuple(y.shape) for _, y in self.rows("fc")], [(5, 6), (5, 6), (2, 6)])
        for (x, grad), (of_x, of_w) in self.rows("fc_backward"):
            self.assertEqual((grad.shape, of_x.shape), ((len(x), 6), x.shape))
            torch.testing.assert_close(of_w, grad.T @ x)

    def test_lists_of_cases(self):
        said = self.read(CASES)
        self.assertEqual([(x["format"], x["rows"]) for x in said], [("multikernel", 2)])
        (a, x), (b, y) = self.rows("3_add")
        torch.testing.assert_close(x, a[0] + 1.5)
        self.assertEqual((b[1], y.dtype, tuple(y.shape)), (None, torch.float16, (4,)))

    def test_kernelbook(self):
        text = "import torch\nfrom torch import nn\n\nclass Part(nn.Module):\n" \
            "    def forward(self, x):\n        return x\n" \
            "\nclass Scale(nn.Module):\n    def __init__(self, width, by=1):\n        super(Scale, self).__init__()\n" \
            "        self.by = by * width\n    def forward(self, x):\n        return x * self.by\n" \
            "\ndef get_inputs():\n    return [torch.rand([4, 4])]\n\ndef get_init_inputs():\n" \
            "    return [[3], {'by': 2}]\n"
        said = self.read({"7_Scale.py": text, "8_other.py": text})
        self.assertEqual([(x["format"], x["name"]) for x in said],
                         [("kernelbook", "7_Scale"), ("kernelbook", "8_other")])
        for name in ("7_Scale", "8_other"):
            (x,), y = next(self.rows(name))
            torch.testing.assert_close(y, x * 6)

    def test_kernelbook_with_modules_that_are_missing(self):
        """What is imported and not used, what another class uses, a configuration, and a base that is called Model."""
        text = "from _paritybench_helpers import _mock_config\nimport torch\nfrom torch import nn\n" \
            "import no_such_module.idle\nimport no_such_module.used as used\nfrom no_such_module.all import *\n" \
            "\nclass Model(nn.Module):\n    def __init__(self):\n        super(Model, self).__init__()\n" \
            "\nclass Other(nn.Module):\n    def forward(self, x):\n        return used.go(x)\n" \
            "\nclass Times(Model):\n    def __init__(self, config):\n        super(Times, self).__init__()\n" \
            "        self.by = config.by\n    def forward(self, x):\n        return x * self.by\n" \
            "\ndef get_inputs():\n    return [torch.rand([4, 4])]\n\ndef get_init_inputs():\n" \
            "    return [[], {'config': _mock_config(by=3)}]\n"
        self.assertEqual([x["format"] for x in self.read({"9_Times.py": text})], ["kernelbook"])
        (x,), y = next(self.rows("9_Times"))
        torch.testing.assert_close(y, x * 3)
        with open(os.path.join(self.out, "9_Times.py")) as f:
            self.assertNotIn("idle", f.read())

    def test_leetgpu(self):
        """Three functional tests and the performance test; a .cu with 'solve' is an answer, whatever its name."""
        said = self.read(LEETGPU)
        self.assertEqual([(x["format"], x["name"], x["rows"]) for x in said], [("leetgpu", "3_mix", 4)])
        rows = list(self.rows("3_mix"))
        self.assertEqual([i[3] for i, _ in rows], [19, 18, 17, 100])
        for (a, b, _, _, by), (sums, scaled) in rows:
            torch.testing.assert_close(sums, a + b)
            torch.testing.assert_close(scaled, a * by)
        files = [os.path.join(self.dir.name, name) for name in ("My answer.cu", "wrong.cu")]
        platform = "#include \"solve.h\"\n" + SOLVE  # a header of LeetGPU's, which nobody has at home
        for path, text in zip(files, (platform, SOLVE.replace("i < N", "i < N && (N != 17 || i < 16)"))):
            with open(path, "w") as f:
                f.write(text)
        self.read(LEETGPU, "--rows", "3")
        p = test_answers.judge(os.path.join(self.out, "3_mix.py"), *files)
        right, wrong = (json.loads(line) for line in p.stdout.splitlines())
        self.assertEqual((right["status"], len(right["workloads"])), ("passed", 3), right["feedback"])
        self.assertEqual(wrong["workload"]["name"], "test-2")
        bad = {name: text.replace('"inout"', '"in"').replace('"out"', '"in"') for name, text in LEETGPU.items()}
        self.assertIn("no argument that is written", self.read(bad, code=1)[0]["refused"])

    def test_rows_limits_and_refusals(self):
        self.assertEqual([x["rows"] for x in self.read(GPU_MODE, "--rows", "1")], [1])
        bad = dict(DEFINITION, axes=dict(DEFINITION["axes"], half={"type": "expr", "expression": "__import__('os')"}))
        said = self.read({"sol/x/definition.json": bad, "sol/x/workload.jsonl": json.dumps(WORKLOADS[0]) + "\n",
                          "sol/y/definition.json": DEFINITION,
                          "sol/y/workload.jsonl": json.dumps({"axes": {"rows": 1}, "inputs": {
                              "x": {"type": "safetensors", "path": "x"}}}) + "\n"}, "--format", "definition", code=1)
        self.assertEqual([bool(x["refused"]) for x in said], [True, True])
        self.assertIn("unknown kind", said[0]["refused"])
        self.assertIn("safetensors", said[1]["refused"])
        named = dict(DEFINITION, name="../../a/b")
        line = json.dumps(WORKLOADS[0]) + "\n"
        said = self.read({"two/a/definition.json": named, "two/a/workload.jsonl": line, "two/b/definition.json": named,
                          "two/b/workload.jsonl": line}, "--format", "definition", code=1)
        names = [x["name"] for x in said if not x["refused"]]
        self.assertTrue(all("/" not in n for n in names) and len(set(names)) == len(names) >= 2, names)
        self.assertFalse(os.path.exists(os.path.join(self.dir.name, "a")), "written beside --out")
        spec = "task_id: CUDA/0\nbuild_command: nvcc -o test.out solution.cu test/*.cu\ntest_command: ./test.out\n"
        said = self.read({"ce/CUDA-0/problem-spec.yaml": spec}, "--format", "compute-eval", code=1)
        self.assertIn("hidden test program", said[0]["refused"])
        p = subprocess.run([test_answers.EXE, "tasks", self.out, "--format", "nonsense"], capture_output=True)
        self.assertEqual(p.returncode, 2)

    def test_judged_from_end_to_end(self):
        self.read(GPU_MODE, "--rows", "2")
        with open(os.path.join(self.dir.name, "submission.py"), "w") as f:
            f.write(test_answers.CUSTOM)
        p = test_answers.judge(os.path.join(self.out, "half_py.py"), os.path.join(self.dir.name, "submission.py"))
        v = json.loads(p.stdout)
        self.assertEqual((v["status"], len(v["workloads"])), ("passed", 2), v["feedback"])
        self.assertEqual(v["correctness"]["sidecar"]["format"], "gpu-mode")


if __name__ == "__main__":
    unittest.main()
