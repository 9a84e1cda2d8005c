"""test_faults.py - a dozen hostile candidates among honest ones on the emulator, one worker killed. long_faults.py is the
whole."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402


class Faults(unittest.TestCase):
    def test_mixed(self):
        argv = ["--hostile", "12", "--honest", "8", "--workers", "2", "--jobs", "2", "--kills", "2", "--quick",
                "--limit", str(200 * float(os.environ.get("TEST_SLOWDOWN", 1)))]
        self.assertEqual(faults.Experiment(faults.options(argv)).run(), [])


if __name__ == "__main__":
    unittest.main()
