"""long_crash.py - as test_crash.py, stopped in every call that changes a file."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_crash  # noqa: E402


class All(test_crash.Crash):
    most = 10 ** 6


del test_crash.Crash

if __name__ == "__main__":
    unittest.main()
