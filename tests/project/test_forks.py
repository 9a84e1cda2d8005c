"""test_forks.py - a test in a fork of forks.py is as one in a process of its own, and PyTorch is imported before."""
import json
import os
import signal
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import forks  # noqa: E402

SCRIPT = """import json, os, sys
print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), __name__, os.getpgrp() == os.getpid(), sys.path[0],
                  sys.modules["torch"].imported_by == os.getppid()]), flush=True)
print("error", file=sys.stderr)
if sys.argv[1:] == ["wait"]:
    __import__("signal").pause()
sys.exit(7)
"""
MODULE = """import unittest
class Some(unittest.TestCase):
    def test_passes(self):
        pass
    def test_fails(self):
        self.fail("as it shall")
"""


class Forked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir, self.running = os.path.realpath(folder.name), set()
        for name, text in (("torch.py", "import os\nimported_by = os.getpid()\n"), ("script.py", SCRIPT),
                           ("test_some.py", MODULE)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)

    def forks(self, **env):
        made = forks.Forks(sys.executable, self.dir, dict(os.environ, PYTHONPATH=self.dir, **env), self.running)
        self.addCleanup(made.close)
        return made

    def start(self, made, *argv, **env):
        """A test's process and the end of the pipe that it writes to."""
        reader, writer = os.pipe()
        p = made.fork(list(argv), self.dir, env, writer)
        os.close(writer)
        out = os.fdopen(reader)
        self.addCleanup(out.close)
        return p, out

    def test_a_script_has_what_is_its_own(self):
        made, script = self.forks(KEPT="no"), os.path.join(self.dir, "script.py")
        for word in "one", "two":  # from the same process
            p, out = self.start(made, script, word, WORD=word)
            text = out.read().split("\n")
            self.assertEqual(json.loads(text[0]),
                             [[script, word], self.dir, {"WORD": word}, "__main__", True, self.dir, True])
            self.assertEqual(text[1:], ["error", ""])
            code, cpu = p.wait()
            self.assertEqual(code, 7)
            self.assertGreater(cpu, 0)

    def test_a_module_of_unittest(self):
        p, out = self.start(self.forks(), "-m", "unittest", "discover", "-s", self.dir, "-p", "test_some.py")
        text = out.read()
        self.assertIn("Ran 2 tests", text)
        self.assertIn("as it shall", text)
        self.assertEqual(p.wait()[0], 1)

    def test_it_can_be_killed_while_another_runs(self):
        made, script = self.forks(), os.path.join(self.dir, "script.py")
        p, out = self.start(made, script, "wait")
        out.readline()
        other, more = self.start(made, script)
        self.assertTrue(more.read())
        self.assertEqual(other.wait()[0], 7)
        os.killpg(p.pid, signal.SIGKILL)
        out.read()
        self.assertEqual(p.wait()[0], -signal.SIGKILL)

    def test_where_torch_cannot_be_imported(self):
        with open(os.path.join(self.dir, "torch.py"), "w") as f:
            f.write("raise SystemExit(1)\n")
        self.assertIsNone(self.start(self.forks(), "script.py")[0])

    def test_who_asks(self):
        for text, asks in (('import os\nFORK = "torch"\n', True), ("FORK = None\n", False)):
            with open(os.path.join(self.dir, "t.py"), "w") as f:
                f.write(text)
            self.assertEqual(forks.asks(f.name), asks)
        self.assertFalse(forks.asks(sys.executable))


if __name__ == "__main__":
    unittest.main()
