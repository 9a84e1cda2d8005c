"""owners.py - what the tests of owners share: a place of their own, and callers."""


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


class Owners(unittest.TestCase):
    """A cache and a place for owners of their own; no tests."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="mc-owner-")
        cls.cache, cls.run_dir = (os.path.join(cls.dir, n) for n in ("cache", "run"))
        os.mkdir(cls.run_dir, 0o700)
        cls.env = dict(os.environ, MUSACODER_CACHE_DIR=cls.cache, MUSACODER_RUN_DIR=cls.run_dir,
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

    def requests(self, pids):
        p = subprocess.run([EXE, "owner", "--json"], env=self.env, capture_output=True, text=True, timeout=60)
        return sum(o["requests"] for o in json.loads(p.stdout) if o["pid"] in pids)

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
