"""test_backend_musa.py - the backend 'musa' without a card: a recorded mcc (an sh script that knows its command line
and reads kernels with g++ behind our own MUSA headers) and a driver of ours (tests/device/fake_musa.c), which knows one
kernel, "scale". A candidate goes through compile, correctness, legality and replay; without them one line, code 3."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(BUILD, "musacoder"))
DRIVER = os.path.join(BUILD, "lib", "libfakemusa.so")
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
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
from torch_musa.utils.musa_extension import load_inline

source = r'''
#include "torch_musa/csrc/core/MUSAStream.h"
#include "torch_musa/csrc/core/MUSAGuard.h"
#include "torch_musa/csrc/core/MUSAException.h"
#include <torch/extension.h>
%(top)s
__global__ void %(kernel)s(const float *x, float *y, int n, float f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * f;
    %(inside)s
}
torch::Tensor run(torch::Tensor x)
{
    TORCH_CHECK(x.is_privateuseone());
    c10::musa::MUSAGuard guard(x.device());
    auto y = torch::empty_like(x);
    int n = x.numel();
    %(launch)s
    C10_MUSA_KERNEL_LAUNCH_CHECK();
    return y;
}
'''
ext = load_inline(name="ext", cpp_sources="torch::Tensor run(torch::Tensor x);", musa_sources=source, functions=["run"],
                  extra_musa_cflags=["-O3", "--offload-arch=mp_31", "-DNAMED=1", "--maxrregcount=32"])


class ModelNew(nn.Module):
    def forward(self, x):
        return %(forward)s
"""
LAUNCH = """scale<<<(n + 255) / 256, 256, 0, c10::musa::getCurrentMUSAStream()>>>(x.data_ptr<float>(),
        y.data_ptr<float>(), n, %sf);"""
TYPED = """const float *p = x.data_ptr<float>(); float *q = y.data_ptr<float>(), f = 2.0f;
    void *args[] = {&p, &q, &n, &f};
    musaLaunchKernel(scale, dim3((n + 255) / 256), dim3(256), args, 0, c10::musa::getCurrentMUSAStream());"""
PLAIN = {"top": "", "kernel": "scale", "inside": "", "launch": LAUNCH % "2.0", "forward": "ext.run(x)"}
# name, what differs, category, a word of reasons or feedback
PROGRAMS = [
    ("plain", {}, None, ""),
    ("musaLaunchKernel", {"launch": TYPED}, None, ""),
    ("wrong", {"launch": LAUNCH % "3.0"}, "correctness_error", ""),
    ("torch computes", {"forward": "ext.run(x) * 1.0"}, "cheating", "aten::mul"),
    ("the host computes", {"forward": "(ext.run(x).cpu() * 1.0).to(x.device)"}, "cheating", ""),
    ("no kernel of the image", {"kernel": "other", "launch": (LAUNCH % "2.0").replace("scale", "other")},
     "runtime_error", ""),
    ("an error in a kernel", {"inside": "undeclared = 1;"}, "compile_error", "undeclared"),
    ("CUDA's name", {"launch": "cudaDeviceSynchronize(); " + LAUNCH % "2.0"}, "compile_error", "name of CUDA"),
    ("cannot be parted", {"top": "#define KERNEL __global__ void\nKERNEL hidden(float *p) { p[0] = 1; }"},
     "unsupported", "parted"),
]
# What this project knows of mcc's command line; anything else ends it. The kernels' text is then read by g++.
MCC = """#!/bin/sh
[ "$1" = --version ] && { echo 'mcc version 5.2.0 (recorded)'; exit 0; }
case "$*" in
"-x musa -mtgpu --offload-arch=mp_22 -O2 -std=c++17 --cuda-device-only -I"*" -O3 -DNAMED=1 -o device.mubin "*) ;;
*) echo "device.mu:1:1: error: arguments that mcc was never seen with: $*"; exit 1;;
esac
for f; do :; done
g++ -x c++ -std=c++17 -w -fsyntax-only -D__MUSACC__ -D__MUSA_ARCH__=220 -I%(root)s/litetorch/musa \\
    -I"$(dirname "$0")/../include" -I%(root)s/simt/include "$f" || exit 1
grep -q '#include .torch' "$f" && { echo 'device.mu:1:1: error: headers of the host'; exit 1; }
printf 'fake' >device.mubin
"""
# The SDK's headers, as far as our own alias headers know its names.
HEADERS = {"musa_runtime.h": '#pragma once\n#include <cuda_runtime.h>\n'
                             '#include "%(root)s/litetorch/include/litetorch/musa_names.h"\n',
           "musa_fp16.h": "#pragma once\n#include <musa_runtime.h>\n#include <cuda_fp16.h>\n",
           "musa_bf16.h": "#pragma once\n#include <musa_runtime.h>\n#include <cuda_bf16.h>\n"}


def in_cuda(text):
    """A program of this file, in the dialect that the backend does not speak."""
    text = text.replace("torch_musa.utils.musa_extension", "torch.utils.cpp_extension")
    text = text.replace("musa_sources=", "cuda_sources=").replace("extra_musa_cflags", "extra_cuda_cflags")
    for name in ("Stream", "Guard", "Exception"):
        text = text.replace(f"torch_musa/csrc/core/MUSA{name}.h", f"c10/cuda/CUDA{name}.h")
    return text.replace("musa", "cuda").replace("MUSA", "CUDA")


class MusaBackend(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = os.environ.get("MUSACODER_PREFIX_DIR")  # headers are precompiled for a compiler of this name
        cls.dir = os.path.join(kept, "fake-mcc") if kept else tempfile.mkdtemp()
        shutil.rmtree(cls.dir, ignore_errors=True)
        for name in ("sdk/bin", "sdk/include"):
            os.makedirs(os.path.join(cls.dir, name))
        for name, text in HEADERS.items():
            cls.write(f"sdk/include/{name}", text % {"root": ROOT} if "%" in text else text)
        cls.mcc = cls.write("sdk/bin/mcc", MCC % {"root": ROOT})
        os.chmod(cls.mcc, 0o755)
        for path in (cls.dir, os.path.join(cls.dir, "sdk"), os.path.join(cls.dir, "sdk/bin")):
            os.chmod(path, 0o755)
        cls.write("task.py", TASK)
        cls.plumbing = cls.write("exec.mubin", "fake")
        cls.names = [cls.write(f"c{i}.py", CANDIDATE % {**PLAIN, **p[1]}) for i, p in enumerate(PROGRAMS)]
        cls.judged = None

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def eval(self, paths, env=(), more=()):
        env = {**os.environ, "MUSACODER_LIBMUSA": DRIVER, "MUSACODER_MCC": self.mcc,
               "MUSACODER_EXEC_MUBIN": self.plumbing, **dict(env)}
        argv = [EXE, "eval", "--json", "--no-cache", "--trials", "1", "--jobs", "2", "--timeout", "60", "--backend",
                "musa", "--task", os.path.join(self.dir, "task.py"), *more, *paths]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300 * SLOWDOWN)

    def verdicts(self):
        """Of PROGRAMS, and of one that speaks CUDA: one call, as each imports PyTorch twice."""
        if not MusaBackend.judged:
            p = self.eval([*self.names, self.write("cuda.py", in_cuda(CANDIDATE % PLAIN))])
            MusaBackend.judged = [json.loads(x) for x in p.stdout.splitlines()]
            self.assertEqual(len(MusaBackend.judged), len(PROGRAMS) + 1, p.stderr)
        return MusaBackend.judged

    def test_programs(self):
        verdicts = self.verdicts()
        for (name, _, category, word), v in zip(PROGRAMS, verdicts):
            with self.subTest(name):
                self.assertEqual(v["category"], category, v["feedback"])
                self.assertIn(word, json.dumps(v["reasons"]) + v["feedback"])
                self.assertEqual((v["backend"], v["dialect"]), ("musa", "musa"))
        first = verdicts[0]
        self.assertEqual(first["replay"]["kernels"], 1)
        self.assertIsNone(first["performance"])
        self.assertIn("MTT S4000", json.dumps(first["environment"]))
        self.assertEqual(first["compile"]["dropped"], ["--maxrregcount=32"])

    def test_capsule(self):
        capsule = os.path.join(self.dir, "c.capsule")
        self.assertEqual(self.eval(self.names[:1], more=("--capsule", capsule)).returncode, 0)
        env = {**os.environ, "MUSACODER_LIBMUSA": DRIVER,
               "MUSACODER_EXEC_MUBIN": self.plumbing}
        p = subprocess.run([EXE, "replay", capsule], env=env, capture_output=True, text=True, timeout=60 * SLOWDOWN)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("musa", p.stdout)

    def expect_unfit(self, env, *words):
        p = self.eval(self.names[:1], env)
        self.assertEqual((p.returncode, p.stdout), (3, ""), p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        for w in ("backend 'musa' cannot be used", *words):
            self.assertIn(w, p.stderr)

    def test_what_is_missing(self):
        self.expect_unfit({"MUSACODER_LIBMUSA": "/no/such/libmusa.so"}, "no MUSA driver", "--profile s4000")
        self.expect_unfit({"MUSACODER_MCC": "/no/such/mcc", "PATH": "/usr/bin:/bin"}, "no mcc")
        self.expect_unfit({"MUSACODER_EXEC_MUBIN": "/no/such/exec.mubin"}, "exec.mubin", "make")
        self.expect_unfit({"MUSACODER_LIBMUSA": os.path.join(BUILD, "lib", "libfakecuda.so")}, "has no muInit")

    def test_doctor(self):
        env = {**os.environ, "MUSACODER_LIBMUSA": DRIVER, "MUSACODER_MCC": self.mcc}
        for plumbing, word in ((self.plumbing, "the backend has all"), ("/no/such", "exec.mubin")):
            p = subprocess.run([EXE, "doctor"], env={**env, "MUSACODER_EXEC_MUBIN": plumbing}, capture_output=True,
                               text=True, timeout=120 * SLOWDOWN)
            line = [x for x in p.stdout.splitlines() if re.match(r"\S+ +musa +(?!card)", x)]
            self.assertIn(word, line[0])

    def test_cuda_program(self):
        v = self.verdicts()[-1]
        self.assertEqual(v["category"], "compile_error", v["feedback"])
        self.assertIn("speaks MUSA", v["feedback"])


if __name__ == "__main__":
    unittest.main()
