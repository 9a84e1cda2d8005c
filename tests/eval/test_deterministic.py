"""test_deterministic.py - the emulator gives the same bytes at any number of cores: programs without float atomics,
judged on the same secret inputs on one core alone, on all of them, and beside others."""
import json
import os
import subprocess
import unittest

import judges

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
CORPUS = os.path.join(ROOT, "tests", "corpus")
judges.share_owner()  # one for each set of cores
# Shuffles, shared memory, several streams, integer atomics, blocks that wait for blocks.
PROGRAMS = {"softmax_wide": 1, "rowsum": 2, "linear": 2}


def programs_of(task, most):
    found = []
    for name in sorted(os.listdir(os.path.join(CORPUS, "passed"))):
        path = os.path.join(CORPUS, "passed", name)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if f"# task: {task}\n" in text and "# backends: cuda" not in text and "# options" not in text \
                and "atomicAdd" not in text:
            found.append(path)
    return found[:most]


class Deterministic(unittest.TestCase):
    def judge(self, task, paths, cores, jobs):
        p = subprocess.run([EXE, "eval", "--json", "--no-cache", "--trials", "1", "--seed", "7", "--secret", "5a" * 32,
                            "--jobs", str(jobs), "--task", os.path.join(CORPUS, "tasks", task + ".py"), *paths],
                           capture_output=True, text=True, timeout=400 * SLOWDOWN,
                           preexec_fn=lambda: os.sched_setaffinity(0, cores))
        verdicts = [json.loads(x) for x in p.stdout.splitlines()]
        self.assertEqual(len(verdicts), len(paths), p.stderr)
        return [(v["category"], v["correctness"], (v["replay"] or {}).get("outputs_sha256")) for v in verdicts]

    def test_any_number_of_cores(self):
        cores, judged = sorted(os.sched_getaffinity(0)), 0
        for task, most in PROGRAMS.items():
            paths = programs_of(task, most)
            alone = self.judge(task, paths, cores[:1], 1)
            for seen in alone:
                self.assertIsNone(seen[0])
                self.assertEqual(len(seen[2]), 64)
            self.assertEqual(self.judge(task, paths, cores, 2), alone, task)
            judged += len(paths)
        self.assertGreaterEqual(judged, 4)


if __name__ == "__main__":
    unittest.main()
