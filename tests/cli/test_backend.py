"""test_backend.py - a backend that cannot be used ends 'eval' and 'bench' before anything runs: code 3, one line."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
TASK, KERNEL = (os.path.join(ROOT, "docs/example", n) for n in ("task.py", "kernel.py"))


def run(*argv, **env):
    env = dict(os.environ, MUSACODER_LIBCUDA="/no/such/libcuda.so.1", **env)
    return subprocess.run([EXE, *argv], env=env, capture_output=True, text=True, timeout=60 * SLOWDOWN)


class Backend(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.suite, self.samples, self.out = (os.path.join(self.dir.name, n) for n in ("kb", "samples", "run"))
        os.makedirs(os.path.join(self.suite, "KernelBench/level1"))
        os.makedirs(self.samples)
        shutil.copy(TASK, os.path.join(self.suite, "KernelBench/level1/1_Half_tanh.py"))
        shutil.copy(KERNEL, os.path.join(self.samples, "level_1_problem_1_sample_0_kernel.py"))

    def bench(self, *more, **env):
        where = ("--suite", "kernelbench:" + self.suite, "--samples", self.samples, "--out", self.out)
        return run("bench", *where, *more, **env)

    def expect_unfit(self, p, *words):
        self.assertEqual(p.returncode, 3, p.stdout + p.stderr)
        said = [line for line in p.stderr.splitlines() if not line.startswith("first run: ")]  # an empty cache's word
        self.assertEqual(len(said), 1, p.stderr)
        self.assertEqual(p.stdout, "")
        for w in words:
            self.assertIn(w, p.stderr)

    def test_no_gpu(self):
        self.expect_unfit(run("eval", "--backend", "cuda", "--task", TASK, KERNEL), "'cuda' cannot be used", "install")
        self.expect_unfit(self.bench("--backend", "cuda"), "'cuda' cannot be used", "install")
        self.assertFalse(os.path.exists(self.out))

    def test_no_compiler(self):
        p = run("eval", "--task", TASK, KERNEL, MUSACODER_CXX="/no/such/g++")
        self.expect_unfit(p, "'sim' cannot be used", "g++")
        self.expect_unfit(self.bench(MUSACODER_CXX="/no/such/g++"), "'sim' cannot be used", "g++")
        self.assertFalse(os.path.exists(self.out))

    def test_no_such_backend(self):
        for p in (run("eval", "--backend", "sin", "--task", TASK, KERNEL), self.bench("--backend", "sin")):
            self.assertEqual(p.returncode, 2, p.stdout + p.stderr)
            self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)


if __name__ == "__main__":
    unittest.main()
