"""test_musa_names.py - the engine for MUSA: each name of CUDA that its operators use has its MUSA spelling in one
header, as the tables have it that candidates are held to; an operator compiles against headers without CUDA's."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPS = os.path.join(ROOT, "src/nn/ops/cuda")
NAMES = r"\b(cuda[A-Z]\w*|CUDA_\w+|cublas[A-Z]\w*[a-z_](?<!_)|CUBLAS\w*|__nv_\w+|nccl[A-Z]\w*)\b"
sys.path.insert(0, os.path.join(ROOT, "litetorch/musa"))
import headers  # noqa: E402


def text_of(path):
    with open(path) as f:
        return f.read()


def code_of(path):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text_of(path), flags=re.S)
    return re.sub(r'"[^"\n]*"|<\w+\.h>', '""', text)


class Names(unittest.TestCase):
    def setUp(self):
        self.aliases = dict(re.findall(r"^#define (\w+) (\w+)$", text_of(os.path.join(OPS, "engine_musa.h")), re.M))

    def test_no_name_is_missing(self):
        missing = {}
        for path in glob.glob(OPS + "/*.cu") + glob.glob(OPS + "/*.cuh"):
            for name in set(re.findall(NAMES, code_of(path))) - set(self.aliases):
                if name != "ncclComm":  # a tag of our own
                    missing.setdefault(name, os.path.basename(path))
        self.assertEqual(missing, {}, "add them to engine_musa.h; 'make MUSA=1' compiles with it")

    def test_spelling_is_the_tables(self):
        known = headers.aliases()
        wrong = {c: m for c, m in self.aliases.items() if known.get(c, m) != m}
        self.assertEqual(wrong, {})

    def test_it_compiles_without_names_of_cuda(self):
        with tempfile.TemporaryDirectory() as out:
            headers.main(out)
            argv = ["g++", "-std=gnu++17", "-fsyntax-only", "-w", "-x", "c++", "-DNN_MUSA", "-DNN_COMPILE_ONLY",
                    "-I" + os.path.join(ROOT, "src"), "-I" + out, os.path.join(OPS, "embed.cu")]
            done = subprocess.run(argv, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            bare = "void *p; auto rc = cudaMalloc(&p, 1);"
            done = subprocess.run(argv[:-1] + ["-include", os.path.join(out, "musa_runtime.h"), "-"], input=bare,
                                  capture_output=True, text=True)
            self.assertIn("cudaMalloc", done.stderr)


if __name__ == "__main__":
    unittest.main()
