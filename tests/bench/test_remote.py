"""test_remote.py - 'bench --model URL': what is asked for is what is judged."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
sys.path.insert(0, os.path.join(ROOT, "tests/lib"))
from fake_openai import Server  # noqa: E402


class Remote(unittest.TestCase):
    def ask(self, *more):
        with Server([]) as server, tempfile.TemporaryDirectory() as out:
            model = ("--model", server.url(), "--model-name", "m", "--samples", "1")
            tasks = ("--tasks", os.path.join(ROOT, "docs/example/task.py"))
            p = subprocess.run([EXE, "bench", *model, *tasks, "--out", out, *more], capture_output=True, text=True,
                               timeout=60 * SLOWDOWN)
        self.assertNotEqual(p.returncode, 0, p.stdout)
        return "".join(m["content"] for m in server.asked[0]["messages"])

    def test_the_dialect_reaches_the_server(self):
        self.assertIn("native MUSA", self.ask("--dialect", "musa"))
        self.assertIn("native CUDA", self.ask())


if __name__ == "__main__":
    unittest.main()
