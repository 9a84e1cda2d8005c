"""test_places.py - one table: commands that write, and places where that is hard. Each cell ends well, or with one line
that names what is missing; where it was refused, the same command ends well once there is room, with the same files."""

import concurrent.futures
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crash  # noqa: E402
import test_crash  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2
ODD = "it's ä \"place\" $x; `y` %s"
NOBODY = 65534
# Of each: the options, BASE being a finished run. Those that ask the judge ask it about no program.
COMMANDS = {
    "run": "run BASE/../tiny.yaml --out OUT",
    "synth": "synth --out OUT --ops activation --max-ops 1 --tasks 8 --heldout 1 --prompts 3 --knowledge 5 --no-verify",
    "records": "synth --out OUT --ops activation --max-ops 1 --records 8 --shard-size 4 --verify-share 0",
    "init": "init --config BASE/init/config.json --out OUT",
    "sft": "sft --model BASE/init --data BASE/data/train.jsonl --out OUT --steps 2 --batch-tokens 512"
           " --max-length 1500",
    "rft": "rft --model BASE/init --prompts BASE/data/prompts.jsonl --data BASE/data/train.jsonl --out OUT"
           " --max-prompts 1 --samples 2 --max-new 8 --steps 1 --max-length 1500",
    "rl": "rl --model BASE/init --prompts BASE/data/prompts.jsonl --out OUT --steps 1 --batch-prompts 1 --group 2"
          " --max-new 8 --max-prompt 1500",
    "bench": "bench --model BASE/init --tasks BASE/data/tasks/heldout --out OUT --samples 1 --max-new 8 --limit 1"
             " --name b",
    "diagnose": "synth diagnose --model BASE/init --prompts BASE/data/prompts.jsonl --out OUT --balanced 1 --samples 1"
                " --max-new 8",
    "export": "export --model BASE/sft/model --out OUT",
    "translate": "translate --out OUT BASE/../kernel.py",
    "card": "card BASE --out OUT",
}
JUDGED = ("run", "rft", "rl", "bench", "diagnose")
WAITING = {"init", "export", "translate"} # for half a minute
LOCKED = {"run", "synth", "records", "sft", "rft", "rl", "bench", "diagnose"}


def seen(path):
    """As crash.files; of one file, that."""
    if os.path.isfile(path):
        with open(path, "rb") as f:
            return {"": f.read()}
    return crash.files(path)


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.dir = os.path.realpath(cls.tmp.name)
        os.chmod(cls.dir, 0o755)  # another user works here too
        for name, text in ("tiny.yaml", test_crash.RECIPE), ("base.yaml", test_crash.BASE):
            with open(os.path.join(cls.dir, name), "w") as f:
                f.write(text)
        shutil.copy(os.path.join(crash.ROOT, "docs/example/kernel.py"), cls.dir)
        cls.base, cls.library = os.path.join(cls.dir, "base"), crash.library(cls.dir)
        cls.run_argv(["run", os.path.join(cls.dir, "base.yaml"), "--out", cls.base])
        with concurrent.futures.ThreadPoolExecutor(crash.JOBS) as pool:
            cls.want = dict(zip(COMMANDS, pool.map(cls.plain, COMMANDS)))

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def plain(cls, name):
        out = os.path.join(cls.dir, "plain", name)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        code, said = cls.call(name, out)
        assert code == 0, f"{name}: {said}"
        return seen(out)

    @classmethod
    def argv(cls, name, out):
        return [w.replace("BASE", cls.base).replace("OUT", out) for w in COMMANDS[name].split()]

    @classmethod
    def run_argv(cls, argv, cwd=None, drop=(), user=None, **env):
        env = {k: v for k, v in dict(os.environ, **{**crash.SETTING, **env}).items() if k not in drop}
        p = subprocess.run([crash.EXE, *argv], env=env, text=True, capture_output=True, cwd=cwd, user=user, group=user,
                           extra_groups=[] if user else None, timeout=300 * crash.SLOWDOWN)
        return p.returncode, p.stderr

    @classmethod
    def call(cls, name, out, **how):
        return cls.run_argv(cls.argv(name, out), **how)

    def each(self, cell, names=COMMANDS):
        """Some cells at a time; what was wrong in any of them."""
        def one(name):
            try:
                cell(name)
            except (AssertionError, OSError, subprocess.SubprocessError) as e:
                return f"{name}: {e}"
        with concurrent.futures.ThreadPoolExecutor(crash.JOBS) as pool:
            wrong = [line for line in pool.map(one, names) if line]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def expect_well(self, name, out, **how):
        code, said = self.call(name, out, **how)
        self.assertEqual(code, 0, said)
        got, want = seen(out), self.want[name]
        self.assertEqual({k for k in {**got, **want} if got.get(k) != want.get(k)}, set())

    def expect_refused(self, name, out, words, **how):
        code, said = self.call(name, out, **how)
        self.assertIn(code, (2, 3), said)
        self.assertTrue(any(w in said.splitlines()[-1] for w in words), said)

    def place(self, *parts):
        path = os.path.join(self.dir, self._testMethodName, *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def disk(self, options):
        path = tempfile.mkdtemp(dir=self.dir)
        if LIBC.mount(b"none", path.encode(), b"tmpfs", 0, options.encode()):
            self.skipTest("no file system can be mounted here")
        self.addCleanup(LIBC.umount2, path.encode(), MNT_DETACH)
        return path

    @staticmethod
    def remount(path, options="", flags=0):
        assert LIBC.mount(b"none", path.encode(), b"tmpfs", MS_REMOUNT | flags, options.encode()) == 0

    def test_odd_names(self):
        def cell(name):
            place = self.place(ODD, name)
            self.expect_well(name, os.path.join(place, "out"), TMPDIR=place)
        self.each(cell)
        for name in "run", "export":
            place = self.place("relative", name)
            code, said = self.call(name, "out there", cwd=place)
            self.assertEqual(code, 0, said)

    @slow
    def test_no_home(self):
        place = self.place()
        self.each(lambda name: self.expect_well(name, os.path.join(place, name), drop=("HOME",)))

    def test_another_user(self):
        """Who owns nothing here but a folder. The judge may have no Python for them, which it says."""
        if os.geteuid() != 0:
            self.skipTest("only root becomes another user")

        def cell(name):
            place = self.place(name)
            os.chown(place, NOBODY, NOBODY)
            how = {"user": NOBODY, "cwd": place, "HOME": place, "TMPDIR": place, "MUSACODER_RUN_DIR": place,
                   "MUSACODER_CACHE_DIR": os.path.join(place, "cache"), "MUSACODER_OWNER": "none"}
            out = os.path.join(place, "out")
            lacks = ("Python", "MUSACODER_PYTHON", "jail", "doctor")
            lack = () if name not in JUDGED or self.judge_of(NOBODY) else lacks
            if lack:
                self.expect_refused(name, out, lack, **how)
            else:
                self.expect_well(name, out, **how)
            self.expect_refused(name, os.path.join(self.dir, "not-mine", name), ("Permission denied", *lack), **how)
        os.makedirs(os.path.join(self.dir, "not-mine"))
        self.each(cell)

    @staticmethod
    def judge_of(user):
        """Can this user start the judge's Python?"""
        python = os.environ.get("MUSACODER_PYTHON", sys.executable)
        try:
            return subprocess.run([python, "-c", "import torch"], user=user, group=user, extra_groups=[],
                                  capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def test_full_disk(self):
        path = self.disk("size=64k")
        full = os.path.join(path, "full")
        with open(full, "wb") as f, self.assertRaises(OSError):
            f.write(bytes(128 << 10))
            f.flush()
        self.each(lambda name: self.expect_refused(name, os.path.join(path, name), ("No space left", "full")))
        self.remount(path, "size=256m")
        self.each(lambda name: self.expect_well(name, os.path.join(path, name)))

    def test_read_only(self):
        path = self.disk("size=64m")
        self.remount(path, flags=MS_RDONLY)
        self.each(lambda name: self.expect_refused(name, os.path.join(path, name), ("Read-only",)))

    @slow
    def test_clock_steps(self):
        """An hour back, and an hour ahead, soon after the start; what the command starts sees it too."""
        library, place = crash.library(self.dir, "clock"), self.place()
        for step in "-3600", "3600":
            self.each(lambda name: self.expect_well(name, os.path.join(place, step, name), LD_PRELOAD=library,
                                                    CLOCK_STEP=step, CLOCK_AFTER="12"))

    def calls_of(self, name, out):
        calls = out + ".calls"
        code, said = self.call(name, out, LD_PRELOAD=self.library, CRASH_UNDER=out, CRASH_LIST=calls)
        self.assertEqual(code, 0, said)
        with open(calls) as f:
            return f.read().count("\n")

    def test_a_second_process(self):
        """The first one stands still in the middle of its work. Who locks refuses the second, and goes on untouched; of
        the others the second one's files are right, and the first one's are, or it says what is missing."""
        def cell(name):
            place = self.place(name)
            n, out = self.calls_of(name, os.path.join(place, "count")), os.path.join(place, "out")
            env = dict(os.environ, **crash.SETTING, LD_PRELOAD=self.library, CRASH_UNDER=out, CRASH_HALT="1",
                       CRASH_AT=str(max(1, n // 2)))
            first = subprocess.Popen([crash.EXE, *self.argv(name, out)], env=env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
            try:
                self.await_halt(first)
                if name in LOCKED | WAITING:
                    self.expect_refused(name, out, ("another ",))
                else:
                    self.assertEqual(self.call(name, out)[0], 0)
            finally:
                first.send_signal(signal.SIGCONT)
                said = first.communicate(timeout=300 * crash.SLOWDOWN)[1]
            self.assertIn(first.returncode, (0,) if name in LOCKED | WAITING else (0, 3), said)
            self.expect_well(name, out)
        self.each(cell)

    def await_halt(self, p):
        until = time.monotonic() + 120 * crash.SLOWDOWN
        while True:
            self.assertIsNone(p.poll(), "it ended before it stood still")
            with open(f"/proc/{p.pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "T":
                    return
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
