"""test_places.py - one table: commands that write, and places where that is hard. Each cell ends well, or with one line
that names what is missing; where it was refused, the same command ends well once there is room, with the same files."""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crash  # noqa: E402
import test_crash  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2
ODD = "it's ä \"place\" $x"


def mount(path, options="", flags=0):
    return LIBC.mount(b"none", path.encode(), b"tmpfs", flags, options.encode()) == 0


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.dir = os.path.realpath(cls.tmp.name)
        recipe = os.path.join(cls.dir, "recipe.yaml")
        with open(recipe, "w") as f:
            f.write(test_crash.RECIPE)
        model = os.path.join(cls.dir, "plain", "run", "sft", "model")
        cls.commands = {"run": ("run", recipe, "--out", "OUT"),
                        "synth": ("synth", "--out", "OUT", "--ops", "activation", "--max-ops", "1", "--tasks", "8",
                                  "--heldout", "1", "--prompts", "3", "--knowledge", "5", "--no-verify"),
                        "export": ("export", "--model", model, "--out", "OUT")}
        cls.want = {}
        for name in cls.commands:
            code, said = cls.call(name, os.path.join(cls.dir, "plain", name))
            assert code == 0, said
            cls.want[name] = crash.files(os.path.join(cls.dir, "plain", name))

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def call(cls, name, out, cwd=None, drop=(), **env):
        env = {k: v for k, v in dict(os.environ, OMP_NUM_THREADS="1", **env).items() if k not in drop}
        p = subprocess.run([crash.EXE, *(a.replace("OUT", out) for a in cls.commands[name])], env=env, text=True,
                           capture_output=True, cwd=cwd, timeout=120 * crash.SLOWDOWN)
        return p.returncode, p.stderr

    def expect_well(self, name, out, **how):
        code, said = self.call(name, out, **how)
        self.assertEqual(code, 0, f"{name}: {said}")
        self.assertEqual(crash.files(out), self.want[name], name)

    def expect_refused(self, name, out, words):
        code, said = self.call(name, out)
        self.assertIn(code, (2, 3), f"{name}: {said}")
        self.assertTrue(any(w in said.splitlines()[-1] for w in words), f"{name}: {said}")

    def disk(self, options):
        path = tempfile.mkdtemp(dir=self.dir)
        if not mount(path, options):
            self.skipTest("no file system can be mounted here")
        self.addCleanup(LIBC.umount2, path.encode(), MNT_DETACH)
        return path

    def test_odd_names(self):
        for name in self.commands:
            place = os.path.join(self.dir, ODD, name)
            os.makedirs(place)
            self.expect_well(name, os.path.join(place, "out"), TMPDIR=place)
            code, said = self.call(name, "out there", cwd=place)
            self.assertEqual(code, 0, said)

    def test_no_home(self):
        for name in self.commands:
            self.expect_well(name, os.path.join(self.dir, "no home", name), drop=("HOME",))

    def test_full_disk(self):
        path = self.disk("size=64k")
        for name in self.commands:
            out = os.path.join(path, name)
            self.expect_refused(name, out, ("No space left", "full"))
            self.assertTrue(mount(path, "size=64m", MS_REMOUNT))
            self.expect_well(name, out)
            subprocess.run(["rm", "-rf", out], check=True)
            self.assertTrue(mount(path, "size=64k", MS_REMOUNT))

    def test_read_only(self):
        path = self.disk("size=64m")
        self.assertTrue(mount(path, "", MS_REMOUNT | MS_RDONLY))
        for name in self.commands:
            self.expect_refused(name, os.path.join(path, name), ("Read-only",))

    def test_a_second_process(self):
        """The first one has more to do than the test lasts."""
        out = os.path.join(self.dir, "second")
        first = subprocess.Popen([crash.EXE, *(a.replace("OUT", out) for a in self.commands["run"]), "--set",
                                  "sft.steps=100000"], stderr=subprocess.PIPE, text=True)
        try:
            while not os.path.exists(os.path.join(out, "sft", "lock")):
                self.assertIsNone(first.poll())
                time.sleep(0.05)
            self.expect_refused("run", out, ("another 'musacoder run' works in",))
            self.expect_refused("synth", os.path.join(out), ("another 'musacoder synth' works in",))
        finally:
            first.kill()
            first.communicate()
        self.expect_well("run", out)


if __name__ == "__main__":
    unittest.main()
