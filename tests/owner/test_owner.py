"""test_owner.py - one process judges for all callers: it is started once, its death loses nothing, another secret or jail
has another one, and it leaves when nobody asks."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
TASK, KERNEL = (os.path.join(ROOT, "docs/example", n) for n in ("task.py", "kernel.py"))
LONG = 120 * SLOWDOWN

with open(KERNEL) as kernel_file:
    RIGHT = kernel_file.read()
WRONG = RIGHT.replace("0.5f", "0.4f")
# Its construction takes so long that somebody can be killed meanwhile.
SLOW = RIGHT.replace("class ModelNew(nn.Module):\n",
                     "class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                     "        import time\n        time.sleep(%g)\n\n")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except OSError:
                pass
    return found


class Owner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="mc-owner-")
        cls.cache, cls.run_dir = (os.path.join(cls.dir, n) for n in ("cache", "run"))
        os.mkdir(cls.run_dir)
        cls.env = dict(os.environ, MUSACODER_CACHE_DIR=cls.cache, XDG_RUNTIME_DIR=cls.run_dir,
                       MUSACODER_OWNER_IDLE="30")
        cls.env.pop("MUSACODER_OWNER", None)
        cls.env.pop("MUSACODER_SECRET", None)

    @classmethod
    def tearDownClass(cls):
        for pid in cls.owners():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def owners(cls, **env):
        p = subprocess.run([EXE, "owner"], env=dict(cls.env, **env), capture_output=True, text=True, timeout=60)
        return [int(line.split("process ")[1].split(",")[0]) for line in p.stdout.splitlines() if "process " in line]

    def start(self, *argv, text=None, **env):
        p = subprocess.Popen([EXE, "eval", "--json", "--task", TASK, *argv], env=dict(self.env, **env), text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.kill)
        if text is not None:
            p.stdin.write(text)
        p.stdin.close()
        p.stdin = None
        return p

    def end(self, p):
        out, err = p.communicate(timeout=LONG)
        return p.returncode, [json.loads(line) for line in out.splitlines()], err

    def judge(self, *argv, **more):
        return self.end(self.start(*argv, **more))

    def file(self, text, name):
        path = os.path.join(self.dir, name + ".py")
        with open(path, "w") as f:
            f.write(text)
        return path

    def wait(self, what, seconds=30):
        until = time.monotonic() + seconds * SLOWDOWN
        while not what():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

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
        self.wait(lambda: not [n for n in os.listdir(os.path.join(self.run_dir, "musacoder")) if n.endswith(".sock")])

    def test_strangers(self):
        """A runtime folder that others may write holds no owner: the command judges by itself."""
        folder = os.path.join(self.dir, "open")
        os.makedirs(os.path.join(folder, "musacoder"))
        os.chmod(os.path.join(folder, "musacoder"), 0o777)
        self.assertEqual(self.judge(KERNEL, XDG_RUNTIME_DIR=folder)[0], 0)
        self.assertEqual(os.listdir(os.path.join(folder, "musacoder")), [])


if __name__ == "__main__":
    unittest.main()
