"""test_main.py - the fork server's own book: has the kernel killed for memory in a child's time?"""

import mmap
import os
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "runner"))

import main  # noqa: E402


HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"


class HugePages(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(HUGE), "a kernel without huge pages")
    def test_forks_copy_few_pages(self):
        """Memory that is there when the server has had some children lies in huge pages, with its contents."""
        with open(HUGE) as f:
            if "[never]" in f.read():
                self.skipTest("huge pages are off here")
        place = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE)
        place.write(bytes(range(256)) * (32 << 10))
        before = self.huge()
        main.collapse()
        self.assertGreaterEqual(self.huge() - before, 4 << 10)
        self.assertEqual(place[:], bytes(range(256)) * (32 << 10))

    def huge(self):
        with open("/proc/self/smaps_rollup") as f:
            return next(int(row.split()[1]) for row in f if row.startswith("AnonHugePages"))


class Kills(unittest.TestCase):
    def setUp(self):
        self.was = main.oom_kills
        self.addCleanup(setattr, main, "oom_kills", self.was)

    def count(self, text):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(text)
            f.flush()
            return self.was(f.name)

    def test_what_the_kernel_says(self):
        self.assertEqual(self.count("pgfault 9\noom_kill 12\ndrop_pagecache 0\n"), 12)
        self.assertIsNone(self.count("pgfault 9\noom_kill_other 12\n"))
        self.assertIsNone(self.count("oom_kill\noom_kill x\n"))
        self.assertIsNone(self.was("/no/such/file"))

    def spared(self, before, after):
        main.oom_kills = lambda: before
        child = main.Child(1, os.getpid(), None)
        main.oom_kills = lambda: after
        return child.spared()

    def test_who_was_spared(self):
        self.assertTrue(self.spared(7, 7))
        self.assertFalse(self.spared(7, 8))  # it may have been this one
        self.assertFalse(self.spared(None, None))
        self.assertFalse(self.spared(7, None))

    def ended(self, own, before, after, peak=1):
        """Of a child in a cgroup in which the kernel killed 'own', while the machine's count rose from before to
        after."""
        main.oom_kills = lambda: before
        child = main.Child(1, os.getpid(), types.SimpleNamespace(end=lambda: own, peak=lambda: peak, memory=100))
        main.oom_kills = lambda: after
        child.end_box()
        return child.spared(), child.oom, child.outside

    def test_own_group(self):
        self.assertEqual(self.ended(0, 7, 9), (True, False, False))  # others were killed, this one was not
        self.assertEqual(self.ended(0, None, None), (True, False, False))
        self.assertEqual(self.ended(1, 7, 8, peak=99), (False, True, False))
        self.assertEqual(self.ended(1, 7, 8, peak=50), (False, False, True))  # taken although it was far from its limit
        self.assertEqual(self.ended(None, 7, 7), (True, False, False))  # a group that does not tell
        self.assertEqual(self.ended(None, 7, 8), (False, False, False))


if __name__ == "__main__":
    unittest.main()
