"""slow_stored.py - what is stored is believed only where it still answers the question: another device profile is
another verdict; references and secrets that were damaged, and tasks that another PyTorch made small, are made again."""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
TASK, KERNEL = (os.path.join(ROOT, "docs/example", n) for n in ("task.py", "kernel.py"))
SHARED = "    __shared__ float room[10000];\n    room[threadIdx.x] = 0.5f;\n    __syncthreads();\n    int i ="


class Stored(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.cache = os.path.join(cls.tmp.name, "cache")
        os.makedirs(cls.cache)
        shared = os.path.abspath(os.environ.get("MUSACODER_CACHE_DIR", "/none"))
        if os.path.isdir(os.path.join(shared, "build")):  # compiled headers and builds are no verdicts
            os.symlink(os.path.join(shared, "build"), os.path.join(cls.cache, "build"))

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    def judge(self, path, *more, secret=True, task=TASK):
        env = dict(os.environ, MUSACODER_CACHE_DIR=self.cache, MUSACODER_OWNER="none")
        if not secret:  # the file of the cache counts only where no variable says another
            env.pop("MUSACODER_SECRET", None)
        p = subprocess.run([EXE, "eval", "--json", "--trials", "1", "--task", task, *more, path], capture_output=True,
                           text=True, env=env, timeout=280 * SLOWDOWN)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        v = json.loads(p.stdout)
        return v["status"], v.get("cached", False), p.stderr

    def test_a_profile_is_another_verdict(self):
        with open(KERNEL) as f:
            text = f.read().replace("    int i =", SHARED).replace("x[i] * 0.5f", "x[i] * room[255 - threadIdx.x]")
        path = os.path.join(self.tmp.name, "shared.py")
        with open(path, "w") as f:
            f.write(text)
        self.assertEqual(self.judge(path)[:2], ("passed", False))
        self.assertEqual(self.judge(path, "--profile", "s80")[:2], ("failed", False))
        self.assertEqual(self.judge(path)[:2], ("passed", True))
        self.assertEqual(self.judge(path, "--profile", "s80")[:2], ("failed", True))

    def damage(self, change):
        paths = glob.glob(os.path.join(self.cache, "reference", "**", "*.ref"), recursive=True)
        self.assertTrue(paths)
        for path in paths:
            with open(path, "rb") as f:
                data = bytearray(f.read())
            with open(path, "wb") as f:
                f.write(change(data))

    def test_without_a_jail_nothing_is_kept(self):
        """What a program includes, or a task reads, is known to nobody there: a change of it is another verdict."""
        header, number = os.path.join(self.tmp.name, "h.cuh"), os.path.join(self.tmp.name, "number")
        kernel, task = os.path.join(self.tmp.name, "inc.py"), os.path.join(self.tmp.name, "reads.py")
        with open(KERNEL) as f, open(kernel, "w") as g:
            g.write(f.read().replace("__global__", f'#include "{header}"\n\n__global__', 1).replace("0.5f", "SC"))
        with open(TASK) as f, open(task, "w") as g:
            g.write(f'SC = float(open("{number}").read())\n' + f.read().replace("0.5", "SC"))

        def judged(scale, of):
            for path, text in (header, f"#define SC {scale}f\n"), (number, of):
                with open(path, "w") as f:
                    f.write(text)
            return self.judge(kernel, "--jail", "none", task=task)[:2]

        self.assertEqual(judged("0.5", "0.5"), ("passed", False))
        self.assertEqual(judged("0.6", "0.5"), ("failed", False))
        self.assertEqual(judged("0.6", "0.6"), ("passed", False))

    def test_damaged_references_are_made_again(self):
        self.assertEqual(self.judge(KERNEL, "--no-cache")[0], "passed")
        half = lambda d: d[:len(d) // 2]  # noqa: E731
        flip = lambda d: d[:-1000] + bytes(255 - b for b in d[-1000:])  # noqa: E731
        for change in half, flip:
            self.damage(change)
            status, _, said = self.judge(KERNEL, "--no-cache")
            self.assertEqual(status, "passed", said)
            self.assertIn("damaged", said)
        self.assertNotIn("damaged", self.judge(KERNEL, "--no-cache")[2])

    def test_references_of_other_tasks_are_made_again(self):
        with open(TASK) as f:
            text = f.read()
        other = os.path.join(self.cache, "other.py")
        with open(other, "w") as f:
            f.write(text.replace("x * 0.5", "x * 0.25"))
        where = os.path.join(self.cache, "reference", "**", "*.ref")
        found = lambda: set(glob.glob(where, recursive=True))  # noqa: E731
        self.assertEqual(self.judge(KERNEL, "--no-cache")[0], "passed")
        right = found()
        self.assertEqual(self.judge(KERNEL, "--no-cache", task=other)[0], "failed")
        wrong = found() - right
        self.assertEqual(len(wrong), 1)
        for path in right:
            shutil.copy(next(iter(wrong)), path)
        self.assertEqual(self.judge(KERNEL, "--no-cache")[0], "passed")

    def test_an_empty_secret_is_made_again(self):
        path = os.path.join(self.cache, "judge-secret")
        for text in "", "abc":
            with open(path, "w") as f:
                f.write(text)
            self.assertIn("judge-secret' is damaged", self.judge(KERNEL, secret=False)[2])
            with open(path) as f:
                self.assertEqual(len(f.read()), 64)

    def shrink(self):
        p = subprocess.run([EXE, "shrink", "--max-elements", "64", TASK], capture_output=True, text=True,
                           env=dict(os.environ, MUSACODER_CACHE_DIR=self.cache), timeout=280 * SLOWDOWN)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_a_task_made_small_by_another_torch_is_made_again(self):
        small = self.shrink()
        path, = glob.glob(os.path.join(self.cache, "shrunk", "**", "*.json"), recursive=True)
        with open(path) as f:
            kept = json.loads(f.read()[80:])
        self.assertEqual(len(kept["watch"]), 2)
        kept["reply"]["source"] = "from the cache"
        self.seal(path, kept)
        self.assertEqual(self.shrink(), "from the cache")
        torch = next(p for p in kept["watch"] if p.endswith("torch/version.py"))
        kept["watch"][torch] = "another"
        self.seal(path, kept)
        self.assertEqual(self.shrink(), small)

    @staticmethod
    def seal(path, kept):
        text = json.dumps(kept)
        name = "/".join(path.split("/")[-2:])
        words = b"".join(len(w).to_bytes(8, "little") + w.encode() for w in ("musacoder seal", name))
        seal = hashlib.sha256(words + text.encode()).hexdigest()
        with open(path, "w") as f:
            f.write(f"{'musacoder/2 ' + seal:<79}\n{text}")



if __name__ == "__main__":
    unittest.main()
