"""test_thrift.py - the direct run plays the launches of its first call alone, where that call looks at no value: what
later calls compute on the same inputs is computed by each replay. Who looks in a later call lives once more, played."""
import json
import os
import subprocess
import tempfile
import unittest

import judges

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(8)]


def get_init_inputs():
    return []
"""
# All calls of the direct run have the same inputs, those of the first replays have not: the third launch of a process
# faults where it sees what the first one saw.
CANDIDATE = r"""
import torch
from torch.utils.cpp_extension import load_inline

source = '''
#include <torch/extension.h>
__device__ int calls;
__device__ float seen[8];
__global__ void twice(const float *x, float *y, int n)
{
    if (threadIdx.x == 0) {
        int same = 0;
        for (int i = 0; i < n; i++) {
            same += seen[i] == x[i];
            if (calls == 0)
                seen[i] = x[i];
        }
        if (++calls == 3 && same == n)
            *(volatile int *)8 = 1;
    }
    if (threadIdx.x < n)
        y[threadIdx.x] = x[threadIdx.x] * 2.0f;
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    twice<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
'''
module = load_inline(name="thrift", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                     functions=["run"])


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        y = module.run(x)
        return LOOK
"""


def verdict(look):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("task.py", TASK), ("candidate.py", CANDIDATE.replace("LOOK", look))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        p = subprocess.run([EXE, "eval", "--task", os.path.join(folder, "task.py"), "--backend", "sim", "--json",
                            "--no-cache", "--trials", "1", os.path.join(folder, "candidate.py")],
                           capture_output=True, text=True, timeout=240 * SLOWDOWN)
    return json.loads(p.stdout)


class Thrift(unittest.TestCase):
    def test_who_looks_at_nothing_plays_one_call(self):
        v = verdict("y")
        self.assertIsNone(v["category"], v["feedback"])

    def test_who_looks_plays_all(self):
        v = verdict("y if torch.equal(y, y) else x")
        self.assertEqual(v["category"], "runtime_error", v["feedback"])

    def test_who_looks_in_a_later_call_lives_once_more(self):
        v = verdict("x if self.calls == 2 and not torch.equal(y, y) else y")
        self.assertEqual(v["category"], "runtime_error", v["feedback"])
        self.assertNotIn("nothing was computed", json.dumps(v))


if __name__ == "__main__":
    unittest.main()
