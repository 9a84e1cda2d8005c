"""test_proxy_cuda.py - what candidates call of the CUDA runtime, in a process without a device: built by nvcc, judged
by replays over a driver without a GPU (tests/device/fake_cuda.c), which knows one kernel, "scale". Skipped without
nvcc. One program of each outcome here; slow_proxy_cuda.py has the others, each a compilation by nvcc."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
PROBE = os.path.join(HERE, "proxy_probe.py")
TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(64, 33)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void scale(const float *x, float *y, int n, float f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * f;
}
%(head)s
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    %(before)s
    scale<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n,
                                                                         %(factor)sf);
    %(after)s
    return y;
}
'''
ext = load_inline("ext", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return %(forward)s
"""
GRAPH = """
static cudaGraphExec_t exec;
static float *here, *there;
static int size;
static void record(int n) {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaMalloc(&here, n * sizeof(float));
    cudaMalloc(&there, n * sizeof(float));
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    scale<<<(n + 255) / 256, 256, 0, s>>>(here, there, n, 2.0f);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
    size = n;
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    if (n != size)
        record(n);
    cudaMemcpyAsync(here, x.data_ptr<float>(), n * sizeof(float), cudaMemcpyDeviceToDevice, 0);
    cudaGraphLaunch(exec, 0);
    cudaMemcpyAsync(y.data_ptr<float>(), there, n * sizeof(float), cudaMemcpyDeviceToDevice, 0);
    return y;
}
torch::Tensor other(torch::Tensor x)"""
TORCH_GRAPH = """graphed(x)


def graphed(x):
    static = x.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        between = static.clone()
        out = %s
        del between
    torch.empty(10000, device="cuda").fill_(7)
    static.copy_(x)
    graph.replay()
    return out"""
PLAIN = {"before": "", "after": "", "factor": "2.0", "forward": "ext.run(x)",
         "head": "torch::Tensor run(torch::Tensor x)"}
# name, what differs, category, a word of the reason
FIRST = ("plain", "wrong", "torch computes", "managed memory", "a graph of torch")
PROGRAMS = [
    ("plain", {}, None, ""),
    ("wrong", {"factor": "3.0"}, "correctness_error", ""),
    ("torch computes", {"forward": "ext.run(x) * 1.0"}, "cheating", "aten::mul"),
    ("managed memory", {"before": "float *m; cudaMallocManaged(&m, 64); "
                                  "TORCH_CHECK(!cudaGetLastError(), \"managed\");"}, "unsupported", "managed"),
    ("driver", {"before": "TORCH_CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess, \"peer\");"}, "unsupported",
     "several devices"),
    ("not a function of ours", {"before": "void *p; cudaGetExportTable((const void **)&p, nullptr);"}, "unsupported",
     "cudaGetExportTable"),
    ("reads back", {"after": "float f; cudaMemcpy(&f, y.data_ptr<float>(), 4, cudaMemcpyDeviceToHost);"}, None, ""),
    ("a graph of the runtime", {"head": GRAPH}, None, ""),
    ("a graph of torch", {"forward": TORCH_GRAPH % "ext.run(between)"}, None, ""),
    ("torch's arithmetic in a graph", {"forward": TORCH_GRAPH % "between * 2.0"}, "cheating", "aten::mul"),
    ("another stream", {"before": "cudaStream_t s; cudaStreamCreate(&s); cudaStreamSynchronize(s);"}, None, ""),
]


def has_nvcc():
    return any(os.access(p, os.X_OK) for p in ("/usr/local/cuda/bin/nvcc", shutil.which("nvcc") or ""))


class Judged(unittest.TestCase):
    """A folder with the task and programs, and the judge."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.write("task.py", TASK)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    @classmethod
    def judge(cls, paths, env):
        env = {**os.environ, "MUSACODER_LIBCUDA": os.path.join(BUILD, "lib", "libfakecuda.so"),
               "MUSACODER_TEST_REFERENCE": "cpu", **env}
        argv = [os.path.join(BUILD, "musacoder"), "eval", "--json", "--no-cache", "--trials", "1", "--jobs", "2",
                "--timeout", "60", "--no-compile-baseline", "--backend", "cuda", "--task",
                os.path.join(cls.dir, "task.py"), *paths]
        p = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=250)
        lines = p.stdout.splitlines()
        if len(lines) != len(paths):
            raise AssertionError(p.stderr)
        return [json.loads(x) for x in lines]

    @classmethod
    def judge_all(cls, programs, *more):
        return cls.judge([cls.write(f"c{i}.py", CANDIDATE % {**PLAIN, **row[1]}) for i, row in enumerate(programs)] +
                         list(more), {})

    def check(self, programs, verdicts):
        for (name, _, category, word), v in zip(programs, verdicts):
            with self.subTest(name):
                self.assertEqual(v["category"], category, v["feedback"])
                self.assertIn(word, json.dumps(v["reasons"]))

    def check_probe(self, v):
        self.assertIsNone(v["category"], v["feedback"])
        self.assertEqual(v["replay"]["kernels"], 1)


@unittest.skipUnless(has_nvcc(), "no nvcc")
class ProxyTest(Judged):
    def test_one_program_of_each_outcome_and_the_probe(self):
        """In one call: each imports PyTorch twice."""
        programs = [row for row in PROGRAMS if row[0] in FIRST]
        *verdicts, probe = self.judge_all(programs, PROBE)
        self.check(programs, verdicts)
        self.check_probe(probe)  # of what the host asks the runtime


if __name__ == "__main__":
    unittest.main()
