"""test_broken_python.py - 'shrink' over a Python that dies, says nonsense, or loses its children: a word at once, no
waiting, no spinning, and nothing is kept."""

import os
import resource
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.abspath(os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
SERVER = f"""#!{sys.executable}
import os, socket, sys
sys.path.insert(0, {os.path.join(ROOT, "runner")!r})
import frame
way, end = os.path.basename(sys.argv[0]), dict(status=256, cpu_s=0, max_rss=0, peak=0, oom=False, outside=False,
                                               spared=True)
if way == "ends":
    sys.exit(1)
if way == "noise":
    os.write(3, os.urandom(100000))
s = socket.socket(fileno=3)
frame.send(s, dict(op="hello", device="front", python="3", torch="2", numpy="1", paths=[], import_s=0))
while True:
    request, _, fds = frame.recv_fds(s)
    if way == "dies":
        os._exit(1)
    if way == "babbles":
        os.write(3, os.urandom(100000))
    if way == "refuses":
        frame.send(s, dict(op="failed", id=request["id"], error="no more", memory=False))
    if request["op"] == "spawn" and way.startswith("child"):
        frame.send(s, dict(op="spawned", id=request["id"], pid=os.getpid()))
        if way == "child-babbles":
            os.write(fds[0], os.urandom(100000))
        for fd in fds:
            os.close(fd)
        if way == "child-ends":
            frame.send(s, dict(end, op="exit", id=request["id"]))
        if way == "child-dies-with-it":
            os._exit(1)
"""
WAYS = {"ends": "did not start", "noise": "did not start", "dies": "server died", "babbles": "server died",
        "refuses": "no more", "child-closes": "process died", "child-ends": "process died",
        "child-babbles": "process died", "child-dies-with-it": "process died"}


class Broken(unittest.TestCase):
    def test_all_ways(self):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, MUSACODER_CACHE_DIR=os.path.join(folder, "cache"))
            for way, words in WAYS.items():
                with self.subTest(way):
                    self.shrink(os.path.join(folder, way), env, words)

    def shrink(self, python, env, words):
        with open(python, "w") as f:
            f.write(SERVER)
        os.chmod(python, 0o755)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        p = subprocess.run([EXE, "shrink", "--max-elements", "64", os.path.join(ROOT, "docs/example/task.py")],
                           capture_output=True, text=True, env=dict(env, MUSACODER_PYTHON=python),
                           timeout=100 * SLOWDOWN)
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertIn(words, p.stderr)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 5 * SLOWDOWN)
        self.assertEqual([f for _, _, files in os.walk(env["MUSACODER_CACHE_DIR"]) for f in files
                          if f.endswith(".json")], [])


if __name__ == "__main__":
    unittest.main()
