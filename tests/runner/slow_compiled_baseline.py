"""slow_compiled_baseline.py - runner/baseline.py with torch's own compiler, for the host: a task is compiled, with
the device asked for once, and timed over the same socket. In a process of its own: here the compiler runs in a thread,
and torch wants it to stay there."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
CACHE = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE.name
import test_timing  # noqa: E402
import torch  # noqa: E402


class Baseline(unittest.TestCase):
    def test_a_task_is_compiled_and_timed(self):
        j = test_timing.Judge(test_timing.task("torch.relu(x[0] * 2 + x[1]).sum(-1)"))
        self.addCleanup(j.close)
        j.put([torch.rand(64, 33), torch.rand(33)])
        head, _ = j.ask({"op": "compile", "mode": "default"})
        self.assertEqual((head["op"], head["asked"]), ("ok", 1))
        self.assertTrue(head["seconds"] > 0 and head["waited_s"] >= 0)
        for which in ("eager", "compile"):
            calls, end = j.block([1, 2, 3], which=which)
            self.assertEqual((len(calls), end["op"]), (3, "timed"))


if __name__ == "__main__":
    unittest.main()
