"""test_timed_replay.py - times by replay, with the machine's clock in place of a GPU's ($MUSACODER_TEST_TIMED): small
tasks, and streamed ones, whose inputs are drawn in place for each call and whose outputs are looked at in random
places. The figures mean nothing here; who is timed, how often, and what is found wrong do."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from test_streamed_front import EXE, PLAIN, PROGRAM, TASK

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

# Programs that behave while they are young: in judged calls. The clock is in no state that a replay brings back. A few
# random calls of all timed ones are looked at, so those who are to be found need to be old in nearly all: LONG.
LATE = """static __device__ unsigned long long born;
        unsigned long long now = clock64(), first = atomicCAS(&born, 0ULL, now);
        bool late = first && now - first > 250000000ULL;
        """
LONG = ["--calls", "600"]
WRONG = {"MORE": LATE + "if (late && i % 2) a[row * d + i] = 0;"}
FAULTY = {"MORE": LATE + "if (late) a[1 << 20] = 0;"}
SLOW = {"MORE": "if (row == 0 && i == 0) for (long long t = clock64(); clock64() - t < 150000000LL;);"}
TRANSPOSED = {"AT": "i * n + row", "OUT": "torch::empty({x.size(1), x.size(0)}, x.options())", "RETURN": "a.t()"}
FULL = """        import sys
        f = sys._getframe()
        while f:
            if f.f_code.co_filename.endswith("timing.py"):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB")
            f = f.f_back
        return (x + y)"""


class Timed(unittest.TestCase):
    def judge(self, *programs, options=(), task=TASK, streamed=True, test="1"):
        with tempfile.TemporaryDirectory() as d:
            files = {"task.py": task}
            for i, changes in enumerate(programs):
                files[f"{i}.py"] = PROGRAM
                for key, value in dict(PLAIN, **changes).items():
                    files[f"{i}.py"] = files[f"{i}.py"].replace(key, value)
            for name, content in files.items():
                with open(os.path.join(d, name), "w", encoding="utf-8") as f:
                    f.write(content)
            env = dict(os.environ, MUSACODER_TEST_TIMED=test, **({"MUSACODER_VALUES": "streamed"} if streamed else {}))
            p = subprocess.run([EXE, "eval", "--task", os.path.join(d, "task.py"), "--json", "--no-cache", "--trials",
                                "2", "--no-compile-baseline", *options] + [os.path.join(d, f) for f in list(files)[1:]],
                               env=env, capture_output=True, check=False)
            self.assertIn(p.returncode, (0, 1), p.stderr)
            return [json.loads(line) for line in p.stdout.splitlines()]

    def timed(self, v):
        p = v["performance"]
        self.assertEqual((v["status"], v["category"]), ("passed", None), v)
        self.assertEqual(p["by"], "replay")
        self.assertGreater(p["candidate_ms"], 0)
        self.assertGreater(p["eager_ms"], 0)
        self.assertGreater(p["speedup_eager"], 0)
        self.assertEqual(p["log_sha256"], v["replay"]["log_sha256"])
        return p["calls"]

    def untimed(self, v, why):
        self.assertEqual((v["status"], v["category"]), ("passed", None), v)
        self.assertEqual((v["performance"]["trusted"], v["performance"]["reasons"]), (False, ["not_measured"]))
        self.assertIn(why, v["performance"]["error"])
        self.assertNotIn("candidate_ms", v["performance"])

    def wrong(self, v):
        self.assertEqual((v["status"], v["category"]), ("failed", "correctness_error"), v)
        self.assertEqual(v["reasons"][0]["stage"], "performance")
        self.assertEqual(v["correctness"]["passed"], v["correctness"]["trials"])
        self.assertEqual(v["reasons"][0]["worst"]["kind"], "values")
        self.assertFalse(v["performance"]["trusted"])
        self.assertIn("output_wrong", v["performance"]["reasons"])

    def test_streamed(self):
        """A fault in a timed call (memory that others took, a kernel's) is no verdict on the program."""
        honest, transposed, slow = self.judge({}, TRANSPOSED, SLOW)
        wrong, faulty = self.judge(WRONG, FAULTY, options=LONG)
        calls = self.timed(honest)
        self.assertGreaterEqual(calls["cold"], 30)
        self.assertGreaterEqual(calls["eager"], 30)
        self.assertGreaterEqual(calls["checked"], 2)
        self.assertNotIn("whole_lives", calls)
        self.assertGreaterEqual(self.timed(transposed)["checked"], 2)
        self.wrong(wrong)
        self.untimed(faulty, "a timed call fails")
        calls = self.timed(slow)
        self.assertLess(calls["cold"], 30)
        self.assertEqual(calls["fewer_than"], 30)

    def test_small(self):
        honest, wrong = self.judge({}, WRONG, streamed=False, options=[*LONG, "--trials", "8"])
        calls = self.timed(honest)
        self.assertGreaterEqual(calls["cold"], 30)
        self.assertGreaterEqual(calls["checked"], 1)
        self.wrong(wrong)

    @slow
    def test_as_published(self):
        for streamed in True, False:
            v = self.judge({}, options=["--protocol", "kernelbench"], streamed=streamed)[0]
            # and its weights are those that are timed
            self.assertEqual(v["correctness"]["regimes"]["secret"]["passed"], 3)
            calls = self.timed(v)
            self.assertEqual(calls["cold"], 100)
            self.assertGreaterEqual(calls["checked"], 2)

    @slow
    def test_whole_lives(self):
        """Where the state before the last call is too large to be kept, each timed call is a whole life's last one."""
        calls = self.timed(self.judge({}, options=["--calls", "6"], test="whole")[0])
        self.assertTrue(calls["whole_lives"])
        self.assertGreaterEqual(calls["checked"], 2)

    def test_the_baseline_runs_out_of_memory(self):
        self.untimed(self.judge({}, task=TASK.replace("        return (x + y)", FULL))[0], "out of memory")


if __name__ == "__main__":
    unittest.main()
