"""test_owner_faults.py - an owner, what it started and its callers end at any time: nothing is lost, nothing comes
twice."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from owners import EXE, KERNEL, RIGHT, SLOW, SLOWDOWN, WRONG, Owners, alive, children  # noqa: E402


class Faults(Owners):
    def test_ctrl_c(self):
        """Ctrl-C of a caller ends its candidates, at once, and nobody else's."""
        self.judge(KERNEL)
        owner = self.owners()
        mine, other = self.start("-", text=SLOW % 20), self.start("-", text=SLOW % 3)
        time.sleep(1.5)
        t0 = time.monotonic()
        mine.send_signal(signal.SIGINT)
        self.assertEqual(self.end(mine)[0], 130)
        self.assertLess(time.monotonic() - t0, 2 * SLOWDOWN)
        self.assertEqual(self.end(other)[1][0]["status"], "passed")
        p = subprocess.run([EXE, "owner", "--json"], env=self.env, capture_output=True, text=True, timeout=60)
        calls = [o["calls"] for o in json.loads(p.stdout) if o["pid"] in owner]
        self.assertEqual(calls, [1])  # the one that asks

    def test_killed(self):
        """The owner, its fork server and a caller are killed: nothing is lost, nothing comes twice, nothing stays."""
        texts = [self.file(RIGHT + f"# {i}\n" if i % 2 else WRONG + f"# {i}\n", f"k{i}") for i in range(6)]
        slow = self.file(SLOW % 2, "slow")
        self.judge(KERNEL)
        first = self.owners()
        p = self.start(*texts, slow)
        time.sleep(1)
        gone = [c for pid in first for c in children(pid)]
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        code, verdicts, err = self.end(p)
        self.assertEqual([v["status"] for v in verdicts], ["failed", "passed"] * 3 + ["passed"], err)
        self.assertEqual(code, 1)
        self.assertFalse(set(first) & set(self.owners()))
        self.wait(lambda: not any(map(alive, gone)))
        p = self.start("--no-cache", *texts, slow)
        time.sleep(1)
        for pid in [c for o in self.owners() for c in children(o)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.assertEqual([v["status"] for v in self.end(p)[1]], ["failed", "passed"] * 3 + ["passed"])
        p = self.start("--no-cache", slow)
        time.sleep(1)
        p.kill()
        self.assertEqual(self.judge(slow)[1][0]["status"], "passed")

    def test_ends_while_it_judges(self):
        """SIGTERM of a busy owner: its callers ask the next one."""
        self.judge(KERNEL)
        p = self.start("-", text=SLOW % 3)
        time.sleep(1)
        for pid in self.owners():
            os.kill(pid, signal.SIGTERM)
        code, verdicts, err = self.end(p)
        self.assertEqual((code, verdicts[0]["status"]), (0, "passed"), err)


if __name__ == "__main__":
    unittest.main()
