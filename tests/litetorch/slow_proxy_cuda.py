"""slow_proxy_cuda.py - the programs of test_proxy_cuda.py that it leaves out, and its probe compiled whole."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_proxy_cuda as base  # noqa: E402


@unittest.skipUnless(base.has_nvcc(), "no nvcc")
class More(base.Judged):
    def test_the_other_programs(self):
        programs = [row for row in base.PROGRAMS if row[0] not in base.FIRST]
        self.check(programs, self.judge_all(programs))

    def test_a_source_that_is_not_parted(self):
        self.check_probe(self.judge([base.PROBE], {"MUSACODER_CUDA_WHOLE": "1"})[0])


if __name__ == "__main__":
    unittest.main()
