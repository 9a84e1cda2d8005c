"""slow.py - tests that take long and say little more than those beside them: 'make test' leaves them out, 'make test
ARGS=--slow', .ci/run and 'make test-all' run them. In C: slow() of slow.h."""
import os
import unittest

slow = unittest.skipUnless(os.environ.get("TEST_SLOW"), "slow: make test ARGS=--slow")
