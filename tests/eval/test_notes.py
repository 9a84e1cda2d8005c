"""test_notes.py - what a verdict of the emulator notes without judging by it: what kernels print, bounded, and the
first read of device or shared memory that nothing wrote. Such a read explains a wrong value and convicts nobody who
got right ones."""
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
#include <cstdio>
#include <iostream>
__global__ void first(const float *x, float *t, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - %(short)d)
        t[i] = x[i];
    %(print)s
}
__global__ void second(const float *t, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n + %(over)d ? t[i] : 0;
    %(shared)s
    if (i < n)
        y[i] = 2 * v;
}
torch::Tensor run(torch::Tensor x)
{
    int n = x.numel();%(host)s
    auto t = torch::empty({n + 64}, x.options()), y = torch::empty_like(x);
    first<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), t.data_ptr<float>(), n);
    second<<<(n + 255) / 256, 256>>>(t.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''
ext = load_inline("ext", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):%(said)s
        return ext.run(x)
"""
PLAIN = {"short": 0, "over": 0, "print": "", "shared": "", "said": "", "host": ""}
SHARED = "__shared__ float s[512]; s[threadIdx.x] = v; __syncthreads(); "
LINE = next(i for i, line in enumerate(CANDIDATE.split("source = r'''")[1].splitlines(), 1) if "t[i] : 0" in line)


class Notes(unittest.TestCase):
    def judge(self, *changes):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in [("task.py", TASK)] + [(f"c{i}.py", CANDIDATE % {**PLAIN, **c})
                                                     for i, c in enumerate(changes)]:
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    f.write(text)
            p = subprocess.run([EXE, "eval", "--json", "--no-cache", "--trials", "1", "--task", *paths],
                               capture_output=True, text=True, timeout=300 * SLOWDOWN)
        verdicts = [json.loads(x) for x in p.stdout.splitlines()]
        self.assertEqual(len(verdicts), len(changes), p.stderr)
        return verdicts

    def test_unwritten(self):
        right, wrong, harmless = self.judge({}, {"short": 5}, {"over": 9})
        self.assertIsNone(right["category"], right["feedback"])
        self.assertNotIn("unwritten", right)
        self.assertEqual(wrong["category"], "correctness_error", wrong["feedback"])
        self.assertEqual((wrong["unwritten"]["kernel"], wrong["unwritten"]["line"]), ("second", LINE))
        self.assertIn("nothing has written", wrong["feedback"])
        self.assertIn(f"cuda_source:{LINE}", wrong["feedback"])
        self.assertIsNone(harmless["category"], harmless["feedback"])
        self.assertEqual(harmless["unwritten"]["line"], LINE)
        self.assertNotIn("nothing has written", harmless["feedback"])

    def test_unwritten_shared(self):
        harmless, wrong = self.judge({"shared": SHARED + "s[threadIdx.x + 256] += 1; v = s[threadIdx.x];"},
                                     {"shared": SHARED + "v = fmaxf(v, s[threadIdx.x + 256]);"})  # drops a NaN
        self.assertIsNone(harmless["category"], harmless["feedback"])
        self.assertEqual(harmless["unwritten"]["line"], LINE + 1)
        self.assertEqual(wrong["category"], "correctness_error", wrong["feedback"])
        self.assertIn("which no thread of the block has written", wrong["feedback"])

    def test_all_that_was_found(self):
        """Two races of one kernel in one verdict, and the parameter's name for memory of the program's own."""
        two, = self.judge({"shared": "__shared__ float s[512];\n    s[threadIdx.x] = v;\n"
                                     "    v += s[255 - threadIdx.x];\n    y[threadIdx.x] = v;\n"})
        reason = two["reasons"][0]
        found = [reason["finding"], *reason["more"]]
        self.assertEqual({f["kind"] for f in found}, {"race"}, found)
        self.assertEqual(len({(f["line"], f["text"]) for f in found}), len(found), found)
        self.assertIn("y[threadIdx.x] = v;", [f["text"] for f in found])
        self.assertIn("'y' (argument 1 of second, 2112 float32)", two["feedback"])
        self.assertIn("\nAlso: ", two["feedback"])

    def test_printed(self):
        few, many, python, none = self.judge({"print": 'if (i == 7) printf("seven \\"%d\\"\\n", i);'},
                                             {"print": 'printf("%d of many many words in a row\\n", i);'},
                                             {"print": 'if (i == 7) printf("seven\\n");',
                                              "said": "\n        print('a shape', *x.shape)"}, {})
        self.assertTrue(few["printed"].startswith('seven "7"\n'), few)
        self.assertNotIn("seven", few["feedback"])
        self.assertEqual(len(many["printed"]), 2000)
        self.assertTrue(many["printed"].startswith("0 of many"), many["printed"][:80])
        self.assertNotIn("printed", none)
        self.assertTrue(python["printed"].startswith("a shape "), python["printed"])
        self.assertTrue(python["printed"].endswith("seven\n"), python["printed"])
        for v in (few, many, python, none):
            self.assertIsNone(v["category"], v["feedback"])

    def test_printed_by_the_host(self):
        """printf and std::cout of binding code, after Python's print; a line without its end; up to a crash."""
        wrote = 'printf("host %d\\n", (int)x.numel()); std::cout << "cout " << x.dim() << std::endl; printf("no end");'
        said = {"host": wrote, "said": "\n        print('python')"}
        crash = wrote.replace('printf("no', '*(volatile int *)8 = 1; ("no')
        all_of_it, crashed = self.judge(said, dict(said, host=crash))
        self.assertIsNone(all_of_it["category"], all_of_it["feedback"])
        self.assertRegex(all_of_it["printed"], r"^python\nhost \d+\ncout 2\nno end")
        self.assertRegex(crashed["printed"], r"^python\nhost \d+\ncout 2\n$")
        self.assertEqual(crashed["category"], "runtime_error")


if __name__ == "__main__":
    unittest.main()
