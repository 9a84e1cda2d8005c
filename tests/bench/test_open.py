"""test_open.py - 'bench --suite open' lists and judges its tasks: right programs pass, others fail, also at the
sizes of a sidecar's variants. long_open.py does all tasks, and the lint."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
RIGHT = os.path.join(ROOT, "tests/bench/open")
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
import judges  # noqa: E402

judges.share_owner()


def bench(samples, out, *more):
    return subprocess.run([EXE, "bench", "--suite", "open", "--samples", samples, "--out", out, "--trials", "1",
                           "--json",
                           *more], capture_output=True, text=True, check=False)


def verdicts(out):
    rows = {}
    with open(os.path.join(out, "verdicts.jsonl"), encoding="utf-8") as f:
        for v in map(json.loads, f):
            rows.setdefault(v["task"], []).append(v["verdict"]["status"])
    return rows


class Open(unittest.TestCase):
    def test_every_task_has_a_right_program(self):
        tasks = {os.path.basename(p)[:-3] for p in glob.glob(os.path.join(ROOT, "suites/open/*.py"))}
        self.assertEqual(tasks, set(os.listdir(RIGHT)))
        self.assertEqual({t.rsplit("_", 1)[0] for t in tasks}, {"dynamic", "csr", "coo", "chain"})

    def test_right_passes_and_wrong_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            samples, out = os.path.join(folder, "samples"), os.path.join(folder, "run")
            for task, right, wrong in (("dynamic_1", "j < n", "j < 257"), ("csr_1", "crow[row + 1]", "crow[row] + 3")):
                shutil.copytree(os.path.join(RIGHT, task), os.path.join(samples, task))
                with open(os.path.join(RIGHT, task, "right.py"), encoding="utf-8") as f:
                    text = f.read()
                self.assertIn(right, text)
                with open(os.path.join(samples, task, "wrong.py"), "w", encoding="utf-8") as f:
                    f.write(text.replace(right, wrong))
            done = bench(samples, out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({t: sorted(v) for t, v in verdicts(out).items()},
                             {t: ["failed", "passed"] for t in ("dynamic_1", "csr_1")})

    def test_it_has_no_levels(self):
        with tempfile.TemporaryDirectory() as folder:
            done = bench(RIGHT, folder + "/run", "--levels", "1")
            self.assertEqual((done.returncode, "no levels" in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
