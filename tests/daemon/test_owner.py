"""test_owner.py - one process judges for all callers: it is started once, another secret or jail has another one, and
it leaves when nobody asks."""

import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from owners import EXE, KERNEL, LONG, RIGHT, SLOWDOWN, TASK, WRONG, Owners  # noqa: E402


class Owner(Owners):
    def test_one_for_all(self):
        """Two that begin together start one; the next finds it, and does not import torch."""
        both = [self.start(KERNEL), self.start(self.file(WRONG, "wrong"))]
        (code, right, err), (bad, wrong, _) = map(self.end, both)
        self.assertEqual((code, right[0]["status"], right[0]["candidate"]), (0, "passed", KERNEL), err)
        self.assertEqual((bad, wrong[0]["category"]), (1, "correctness_error"))
        owners = self.owners()
        self.assertEqual(len(owners), 1)
        t0 = time.monotonic()
        code, verdicts, err = self.judge("--no-cache", KERNEL)
        self.assertLess(time.monotonic() - t0, 2 * SLOWDOWN)
        self.assertEqual((code, verdicts[0]["status"], verdicts[0].get("cached", False)), (0, "passed", False), err)
        self.assertEqual(self.owners(), owners)

    def test_same_record(self):
        """What comes back is what this process alone would say."""
        accent = self.file(WRONG + "# \u00e9 \n", "accent")
        for argv, text in (([KERNEL, accent], None), (["-"], "```python\n" + RIGHT + "```\n")):
            here = self.judge("--no-cache", *argv, text=text, MUSACODER_OWNER="none")
            there = self.judge("--no-cache", *argv, text=text)
            self.assertEqual(here[0], there[0], there[2])
            for a, b in zip(here[1], there[1]):
                for key in ("task", "candidate", "status", "category", "stage", "reward", "feedback", "extraction"):
                    self.assertEqual(a.get(key), b.get(key), key)

    def test_who_is_another(self):
        """Another secret, jail or setting: another owner."""
        self.judge(KERNEL)
        before = set(self.owners())
        self.judge(KERNEL, "--secret", "abcd")
        self.assertEqual(len(set(self.owners()) - before), 1)
        self.judge(KERNEL, "--secret", "abcd", "--no-cache")
        self.assertEqual(len(set(self.owners()) - before), 1)
        with open(f"/proc/{(set(self.owners()) - before).pop()}/environ", "rb") as f:
            self.assertNotIn(b"abcd", f.read())

    def test_bench(self):
        """The workers of 'bench' hand over too: no other process judges."""
        self.judge(KERNEL)
        owner = self.owners()
        suite, samples, out = (os.path.join(self.dir, n) for n in ("kb", "samples", "run-bench"))
        os.makedirs(os.path.join(suite, "KernelBench/level1"))
        os.makedirs(samples)
        shutil.copy(TASK, os.path.join(suite, "KernelBench/level1/1_Half_tanh.py"))
        shutil.copy(KERNEL, os.path.join(samples, "level_1_problem_1_sample_0_kernel.py"))
        before = self.requests(owner)
        p = subprocess.run([EXE, "bench", "--suite", "kernelbench:" + suite, "--samples", samples, "--out", out],
                           env=self.env, capture_output=True, text=True, timeout=LONG)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertGreater(self.requests(owner), before)
        self.assertEqual(self.owners(), owner)

    def test_broken_task(self):
        path = self.file("import torch.nn as nn\nclass Model(nn.Module):\n  pass\ndef get_inputs():\n"
                         "  raise ValueError('none today')\ndef get_init_inputs():\n  return []\n", "task")
        p = subprocess.run([EXE, "eval", "--task", path, KERNEL], env=self.env, capture_output=True, text=True,
                           timeout=LONG)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("none today", p.stderr)

    def test_cannot_start(self):
        """What an owner lacks is said to its caller, with the remedy."""
        code, verdicts, err = self.judge(KERNEL, MUSACODER_PYTHON="/bin/false")
        self.assertEqual((code, verdicts), (3, []))
        self.assertIn("fork server", err)

    def test_leaves(self):
        """When nobody has asked for so long; and when it is asked to."""
        self.judge(KERNEL, MUSACODER_OWNER_IDLE="1")
        self.judge(KERNEL)
        p = subprocess.run([EXE, "owner", "--stop"], env=self.env, capture_output=True, text=True, timeout=60)
        self.assertIn("asked to leave", p.stdout)
        self.wait(lambda: not [n for n in os.listdir(self.run_dir) if n.endswith(".sock")])

    def test_strangers(self):
        """A runtime folder that others may write holds no owner: the command judges by itself."""
        folder = os.path.join(self.dir, "open")
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        code, _, err = self.judge(KERNEL, MUSACODER_RUN_DIR=folder)
        self.assertEqual(code, 0)
        self.assertIn("alone", err)
        self.assertEqual(os.listdir(folder), [])

    def test_standard_input_is_known(self):
        """A verdict is found again however it was asked for, and no owner is started for it."""
        self.judge("-", text=RIGHT)
        self.assertTrue(self.judge("-", text=RIGHT)[1][0]["cached"])


if __name__ == "__main__":
    unittest.main()
