"""long_faults.py - 200 hostile and 200 honest candidates on the emulator, ten workers and fork servers killed."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402


class Faults(unittest.TestCase):
    def test_mixed(self):
        argv = ["--n", "200", "--workers", "3", "--jobs", "2", "--table"]
        self.assertEqual(faults.Experiment(faults.options(argv)).run(), [])


if __name__ == "__main__":
    unittest.main()
