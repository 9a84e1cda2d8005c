"""test_lost_device.py - a GPU that falls off, and one that is full. A driver that finds a device which then answers
nobody (tests/device/fake_cuda.c) stands for it: a candidate is not judged, never scored; and which errors of a device
are taken as its loss."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import hostile  # noqa: E402

EXE = os.path.abspath(os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")))
DRIVER = os.path.join(ROOT, "build", "lib", "libfakecuda.so")


@unittest.skipUnless(os.path.exists(DRIVER) and (shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc")),
                     "no driver to stand for a device, or no nvcc")
class NoDevice(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.symlink(DRIVER, os.path.join(self.folder, "libcuda.so.1"))
        self.put("task.py", hostile.RELU_TASK)
        self.put("good.py", hostile.GOOD)

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(text)

    def start(self, *names):
        task, *good = (os.path.join(self.folder, n) for n in ("task.py", *names))
        argv = [EXE, "eval", "--task", task, "--backend", "cuda", "--trials", "1", "--no-perf", "--no-cache", "--json",
                *good]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, LD_LIBRARY_PATH=self.folder, MUSACODER_CACHE_DIR=self.folder))

    def infra(self, p):
        out, err = p.communicate()
        self.assertEqual(p.returncode, 3, out + err)
        if not out and "has no CUDA" in err:
            self.skipTest("PyTorch was built without CUDA")
        v = json.loads(out)
        self.assertEqual((v["status"], v["category"], v["reward"]), ("infra", "infra", None))
        self.assertIn("did not start", v["feedback"])
        return v

    def test_lost(self):
        self.assertNotIn("no other job", self.infra(self.start("good.py"))["feedback"])

    def test_full(self):
        """Two candidates of one process on a GPU without memory: each finds out alone, and says so."""
        self.put("full", "")
        self.put("other.py", hostile.GOOD + "\n# another text\n")
        p = self.start("good.py", "other.py")
        out, err = p.communicate()
        self.assertEqual(p.returncode, 3, out + err)
        if not out and "has no CUDA" in err:
            self.skipTest("PyTorch was built without CUDA")
        verdicts = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(verdicts), 2)
        for v in verdicts:
            self.assertEqual((v["status"], v["reward"]), ("infra", None))
            self.assertIn("out of memory", v["feedback"])
            self.assertIn("with no other job on the device", v["feedback"])


class Errors(unittest.TestCase):
    def test_out_of_memory(self):
        """Of which exceptions the harness says that the device's memory ran out: by class or code, and CUDA's own
        words."""
        code = """
import torch, values
def chained(e, cause):
    e.__cause__ = cause
    return e
class Odd(RuntimeError):
    def __str__(self):
        raise ValueError
driver, other = RuntimeError("cuMemMap fails with error 2"), RuntimeError("cuMemMap fails with error 1")
driver.driver_error, other.driver_error = 2, 1
ring = RuntimeError("a")
ring.__cause__ = chained(RuntimeError("b"), ring)
short = torch.OutOfMemoryError("CUDA out of memory")
print([values.out_of_memory(e) for e in (short, driver, chained(ValueError("x"), short),
       RuntimeError("CUDA error: out of memory\\nadvice"), RuntimeError("Unexpected. Error 2: out of memory"),
       other, ring, Odd(),
       ValueError("CUDA error: out of memory"),
       RuntimeError("boom\\nCUDA error: out of memory"), MemoryError())])
"""
        p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "runner")))
        self.assertEqual(p.stdout.strip(), str([True] * 5 + [False] * 6), p.stderr)


if __name__ == "__main__":
    unittest.main()
