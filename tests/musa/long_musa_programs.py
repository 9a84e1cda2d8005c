"""long_musa_programs.py - sixty MUSA programs, written and translated, on the emulator under two profiles."""
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))


class Programs(unittest.TestCase):
    def test_all(self):
        p = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--all"], capture_output=True, text=True,
                           timeout=3000 * SLOWDOWN, check=False)
        self.assertEqual(p.returncode, 0, p.stdout[-4000:] + p.stderr[-1000:])
        counts = [int(n) for n in re.findall(r": (\d+) programs must pass", p.stdout)]
        self.assertEqual(len(counts), 2)
        self.assertGreaterEqual(min(counts), 60, p.stdout)


if __name__ == "__main__":
    unittest.main()
