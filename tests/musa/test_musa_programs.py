"""test_musa_programs.py - a few MUSA programs on the emulator; long_musa_programs.py runs all of them."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(HERE, "..", "..", os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
sys.path.insert(0, os.path.join(HERE, "..", "eval"))
import judges  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from slow import slow  # noqa: E402

judges.share_owner()
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))


class Programs(unittest.TestCase):
    def run_some(self, *args):
        p = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), *args], capture_output=True, text=True,
                           timeout=260 * SLOWDOWN, check=False)
        self.assertEqual(p.returncode, 0, p.stdout[-3000:] + p.stderr[-1000:])

    def test_written_by_hand(self):
        self.run_some("--profiles", "s4000", "--only", "m0[1-3]*")

    @slow
    def test_more_written_by_hand(self):
        self.run_some("--profiles", "s4000", "--only", "m0[4-6]*")

    def test_refused(self):
        self.run_some("--profiles", "s4000", "--only", "r01*")

    @slow
    def test_more_refused(self):
        self.run_some("--profiles", "s4000", "--only", "r05*")


if __name__ == "__main__":
    unittest.main()
