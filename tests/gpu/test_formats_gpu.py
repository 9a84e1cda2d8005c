"""test_formats_gpu.py - many shapes and public formats on a GPU, from the command line alone: a sidecar of six shapes
and two dtypes, a capsule for every row that replays without Python, definitions of FlashInfer-Bench and SOL-ExecBench
through 'bench' with times, and flash attention right after 'shrink' and at its real size.

$MUSACODER_TEST_BACKEND: cuda (default), or sim, where no times are asked for and the real size is left out."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "eval"))
import test_workloads  # noqa: E402  (its task and programs)

EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
BACKEND = os.environ.get("MUSACODER_TEST_BACKEND", "cuda")
TIMED = BACKEND != "sim"
LIMIT_S = 500

# Six shapes, each in two dtypes: the task as written is the first of twelve rows.
SHAPES = [("few", {"batch": 3}), ("wider", {"width": 96}), ("row", {"batch": 1, "width": 32}),
          ("large", {"batch": 16, "width": 128}), ("odd", {"width": 61})]
ROWS = [{"name": name, "sizes": sizes} for name, sizes in SHAPES]
ROWS += [{"name": "half", "dtype": "float16"}]
ROWS += [{"name": name + "-half", "sizes": sizes, "dtype": "float16"} for name, sizes in SHAPES]
SIZES = [512, 192, 768, 32, 2048, 488]

NORM = {"name": "rmsnorm_h256", "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 256}},
        "inputs": {"hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
                   "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
        "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
        "reference": "import torch\n\ndef run(hidden_states, weight):\n    x = hidden_states.to(torch.float32)\n"
                     "    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-5)\n"
                     "    return (y * weight.to(torch.float32)).to(torch.bfloat16)\n"}
NORM_ROWS = [{"definition": "rmsnorm_h256", "workload": {"axes": {"batch_size": n}, "inputs": {
    "hidden_states": {"type": "random"}, "weight": {"type": "random"}}}} for n in (1, 14, 64)]
NORM_PROGRAM = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = r'''
#include <cuda_bf16.h>
__global__ void norm(const __nv_bfloat16 *x, const __nv_bfloat16 *w, __nv_bfloat16 *y, int width) {
    __shared__ float sums[8];
    const __nv_bfloat16 *row = x + (size_t)blockIdx.x * width;
    float s = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) s += __bfloat162float(row[i]) * __bfloat162float(row[i]);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffff, s, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++) s += sums[i];
    float scale = rsqrtf(s / width + 1e-5f);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        y[(size_t)blockIdx.x * width + i] = __float2bfloat16(__bfloat162float(row[i]) * scale * __bfloat162float(w[i]));
}
torch::Tensor go(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    norm<<<x.size(0), 256>>>((const __nv_bfloat16 *)x.data_ptr(), (const __nv_bfloat16 *)w.data_ptr(),
                             (__nv_bfloat16 *)y.data_ptr(), x.size(1));
    return y;
}
'''
ext = load_inline(name="n", cpp_sources="torch::Tensor go(torch::Tensor x, torch::Tensor w);", cuda_sources=source,
                  functions=["go"])

class ModelNew(nn.Module):
    def forward(self, hidden_states, weight):
        return ext.go(hidden_states, weight)
"""
SCALED = {"name": "scaled_gate", "axes": {"tokens": {"type": "var"}, "width": {"type": "const", "value": 128},
                                          "both": {"type": "expr", "expression": "width * 2"}},
          "inputs": {"x": {"shape": ["tokens", "both"], "dtype": "float32"},
                     "scale": {"shape": None, "dtype": "float32"}},
          "outputs": {"y": {"shape": ["tokens", "width"], "dtype": "float32"}},
          "reference": "import torch\n\ndef run(x, scale):\n    a, b = x.chunk(2, dim=-1)\n"
                       "    return torch.nn.functional.silu(a) * b * scale\n"}
SCALED_ROWS = [{"axes": {"tokens": n}, "inputs": {"x": {"type": "random"}, "scale": {"type": "scalar", "value": s}}}
               for n, s in ((3, 0.5), (64, 2.0))]
SCALED_PROGRAM = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = r'''
__global__ void gate(const float *x, float *y, int width, int n, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float *row = x + (size_t)(i / width) * 2 * width;
    float a = row[i % width];
    y[i] = a / (1.f + expf(-a)) * row[width + i % width] * scale;
}
torch::Tensor go(torch::Tensor x, double scale) {
    int width = x.size(1) / 2, n = x.size(0) * width;
    auto y = torch::empty({x.size(0), width}, x.options());
    gate<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), width, n, scale);
    return y;
}
'''
ext = load_inline(name="g", cpp_sources="torch::Tensor go(torch::Tensor x, double scale);", cuda_sources=source,
                  functions=["go"])

class ModelNew(nn.Module):
    def forward(self, x, scale):
        return ext.go(x, scale)
"""

ATTENTION = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

batch_size = 32
num_heads = 32
sequence_length = 512
embedding_dimension = 1024

def get_inputs():
    return [torch.rand(batch_size, num_heads, sequence_length, embedding_dimension) for _ in range(3)]

def get_init_inputs():
    return []
"""
# A block keeps 8 rows of queries and walks the keys 32 at a time: a warp has four keys, a lane every 32nd column.
FLASH = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = r'''
#define ROWS 8
#define KEYS 32
#define WIDE 1024
__global__ void flash(const float *q, const float *k, const float *v, float *o, int n, int d, float scale) {
    extern __shared__ float mine[];
    __shared__ float score[ROWS][KEYS], top[ROWS], sum[ROWS], keep[ROWS];
    size_t head = (size_t)blockIdx.y * n * d;
    int first = blockIdx.x * ROWS, t = threadIdx.x, warp = t / 32, lane = t % 32;
    float acc[ROWS][WIDE / 256] = {};
    for (int i = t; i < ROWS * d; i += blockDim.x)
        mine[i] = first + i / d < n ? q[head + (size_t)first * d + i] : 0.f;
    if (t < ROWS) { top[t] = -INFINITY; sum[t] = 0.f; }
    __syncthreads();
    for (int at = 0; at < n; at += KEYS) {
        for (int j = warp; j < KEYS; j += 8) {
            float part[ROWS] = {};
            if (at + j < n)
                for (int c = lane; c < d; c += 32) {
                    float x = k[head + (size_t)(at + j) * d + c];
                    for (int r = 0; r < ROWS; r++) part[r] += x * mine[r * d + c];
                }
            for (int r = 0; r < ROWS; r++) {
                for (int s = 16; s; s /= 2) part[r] += __shfl_xor_sync(0xffffffff, part[r], s);
                if (lane == 0) score[r][j] = at + j < n ? part[r] * scale : -INFINITY;
            }
        }
        __syncthreads();
        if (t < ROWS) {
            float m = top[t], s = 0.f;
            for (int j = 0; j < KEYS; j++) m = fmaxf(m, score[t][j]);
            for (int j = 0; j < KEYS; j++) { score[t][j] = expf(score[t][j] - m); s += score[t][j]; }
            keep[t] = expf(top[t] - m);
            sum[t] = sum[t] * keep[t] + s;
            top[t] = m;
        }
        __syncthreads();
        for (int u = 0; u < WIDE / 256; u++) {
            int c = u * 256 + t;
            if (c >= d) break;
            for (int r = 0; r < ROWS; r++) acc[r][u] *= keep[r];
            for (int j = 0; j < KEYS && at + j < n; j++) {
                float x = v[head + (size_t)(at + j) * d + c];
                for (int r = 0; r < ROWS; r++) acc[r][u] += score[r][j] * x;
            }
        }
        __syncthreads();
    }
    for (int u = 0; u < WIDE / 256; u++)
        for (int r = 0; r < ROWS; r++)
            if (u * 256 + t < d && first + r < n)
                o[head + (size_t)(first + r) * d + u * 256 + t] = acc[r][u] / sum[r];
}
torch::Tensor go(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
    auto o = torch::empty_like(q);
    int n = q.size(2), d = q.size(3);
    flash<<<dim3((n + ROWS - 1) / ROWS, q.size(0) * q.size(1)), 256, ROWS * d * sizeof(float)>>>(
        q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(), o.data_ptr<float>(), n, d, 1.f / sqrtf(d));
    return o;
}
'''
ext = load_inline(name="f", cpp_sources="torch::Tensor go(torch::Tensor q, torch::Tensor k, torch::Tensor v);",
                  cuda_sources=source, functions=["go"])

class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return ext.go(q, k, v)
"""


def lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


class OnTheCard(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.dir.cleanup()

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def call(self, *argv, code=0, env=None):
        p = subprocess.run([EXE, *argv], capture_output=True, text=True, timeout=LIMIT_S, env=env)
        self.assertEqual(p.returncode, code, f"{' '.join(argv)}\n{p.stdout[-3000:]}\n{p.stderr[-3000:]}")
        return p.stdout

    def judge(self, task, *words, code=0):
        out = self.call("eval", "--json", "--backend", BACKEND, "--task", task, *words, code=code)
        return [json.loads(line) for line in out.splitlines()]

    def assert_timed(self, performance, where):
        if TIMED:
            self.assertGreater(performance["candidate_ms"] or 0, 0, where)
            self.assertGreater(performance["speedup_eager"] or 0, 0, where)

    def test_wrong_at_the_sixth_shape(self):
        """Six rows, one draw each, no times: what a card does of it in less than a minute."""
        self.write("t.yaml", json.dumps({"workloads": ROWS[:5]}))
        task = self.write("t.py", test_workloads.TASK)
        wrong = self.write("wrong.py", test_workloads.PROGRAM.replace("int n = x.numel(),",
                                                                      "int n = x.numel() / 32 * 32,"))
        wrong, = self.judge(task, "--no-perf", "--trials", "1", wrong, code=1)
        self.assertEqual([r["status"] for r in wrong["workloads"]], ["passed"] * 5 + ["failed"], wrong["feedback"])
        self.assertEqual((wrong["status"], wrong["workload"]["name"]), ("failed", "odd"))
        self.assertIn("Workload 'odd' (width = 61)", wrong["feedback"])

    def test_six_shapes_and_two_dtypes(self):
        self.write("t.yaml", json.dumps({"workloads": ROWS}))
        task, right = self.write("t.py", test_workloads.TASK), self.write("right.py", test_workloads.PROGRAM)
        right, = self.judge(task, "--no-compile-baseline", right)
        self.assertEqual((right["status"], {r["status"] for r in right["workloads"]}), ("passed", {"passed"}),
                         right["feedback"])
        self.assertEqual([r["name"] for r in right["workloads"]], ["as written"] + [r["name"] for r in ROWS])
        for r in right["workloads"]:
            self.assert_timed(r["performance"], r["name"])
            print(f"{r['name']}: {json.dumps(r)}")

    def test_each_row_replays_without_python(self):
        self.write("t.yaml", json.dumps({"workloads": ROWS}))
        task, right = self.write("t.py", test_workloads.TASK), self.write("right.py", test_workloads.PROGRAM)
        self.judge(task, right, "--capsule", self.path("a.capsule"), "--trials", "1", "--no-perf")
        bare = {"PATH": self.path("nothing"), "MUSACODER_PYTHON": self.path("no-python"), "HOME": self.dir.name,
                "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "MUSACODER_OWNER": "none"}
        for i in range(len(ROWS) + 1):
            name = self.path(f"a.{i}.capsule" if i else "a.capsule")
            said = json.loads(self.call("replay", "--json", *(["--time", "20"] if TIMED else []), name, env=bare))
            self.assertEqual((said["right"], said["elements"]), (True, SIZES[i % len(SIZES)]), said)
            print(f"{os.path.basename(name)}: {json.dumps(said)}")

    def test_definitions_through_bench(self):
        self.write("from/trace/definitions/norm/rmsnorm_h256.json", json.dumps(NORM))
        self.write("from/trace/workloads/norm/rmsnorm_h256.jsonl", lines(NORM_ROWS))
        self.write("from/sol/gate/definition.json", json.dumps(SCALED))
        self.write("from/sol/gate/workload.jsonl", lines(SCALED_ROWS))
        self.call("tasks", self.path("from"), "--out", self.path("tasks"))
        self.write("samples/rmsnorm_h256/0.py", NORM_PROGRAM)
        self.write("samples/scaled_gate/0.py", SCALED_PROGRAM)
        print(self.call("bench", "--tasks", self.path("tasks"), "--samples", self.path("samples"), "--backend", BACKEND,
                        "--out", self.path("run")))
        with open(self.path("run/verdicts.jsonl")) as f:
            verdicts = [json.loads(line)["verdict"] for line in f]
        rows = {"rmsnorm_h256": len(NORM_ROWS), "scaled_gate": len(SCALED_ROWS)}
        self.assertEqual(len(verdicts), len(rows))
        for v in verdicts:
            self.assertEqual(v["status"], "passed", v["feedback"])
            self.assertEqual(len(v["workloads"]), rows[v["task"]])
            self.assert_timed(v["performance"], v["task"])
            print(f"{v['task']}: {json.dumps(v['performance'])}")

    def attention(self, task, *words):
        v, = self.judge(task, self.write("flash.py", FLASH), "--trials", "1", "--timeout", "200", *words)
        self.assertEqual(v["status"], "passed", v["feedback"])
        self.assert_timed(v["performance"], "attention")
        print(f"attention: {json.dumps(v['performance'])}")

    def test_attention_made_small(self):
        text = self.call("shrink", self.write("attention.py", ATTENTION))
        self.assertIn("sequence_length = 32\n", text)
        self.attention(self.write("small.py", text))

    @unittest.skipUnless(TIMED, "the real size is a card's")
    def test_attention_at_its_real_size(self):
        self.attention(self.write("attention.py", ATTENTION))


if __name__ == "__main__":
    unittest.main()
