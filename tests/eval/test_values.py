"""test_values.py - values in the judge's shared memory: the same verdicts as with values in frames, word for word. The
simulated device shares the host's memory for this ($MUSACODER_VALUES); a budget of almost nothing makes every draw anew."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))


def judged(how, task, sources, *options, trace=""):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{i}.py") for i in range(len(sources))]
        for path, text in [(os.path.join(folder, "task.py"), task), *zip(paths, sources)]:
            with open(path, "w") as f:
                f.write(text)
        p = subprocess.run([EXE, "eval", "--task", os.path.join(folder, "task.py"), "--json", "--no-cache", *options, *paths],
                           capture_output=True, text=True, timeout=280 * SLOWDOWN, env=dict(os.environ, MUSACODER_VALUES=how, MUSACODER_TRACE=trace))
    verdicts = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(verdicts) == len(sources), p.stderr
    return [{k: v[k] for k in ("status", "category", "correctness", "legality", "reward", "feedback")} for v in verdicts]


def some(rows, *names):
    table = {r[0]: r[3] for r in rows}
    return [table[n] for n in names]


LARGE = """import torch
class Model%s(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(17 << 20))
    def forward(self, x):
        return x + self.w[:4]
def get_inputs():
    return [torch.ones(4)]
def get_init_inputs():
    return []
"""


class Values(unittest.TestCase):
    maxDiff = None

    def same(self, task, sources, *options, budget=True):
        want = judged("frames", task, sources, *options)
        self.assertEqual(judged("host", task, sources, *options), want)
        if budget:
            self.assertEqual(judged("host:200", task, sources, *options), want)
        return want

    def test_one_output(self):
        kinds = {}
        for name, category, _, source in corpus.RELU:
            if category in (None, "correctness_error", "cheating") and "class" in source and "```" not in source:
                kinds.setdefault(category, []).append(name)
        want = self.same(corpus.RELU_TASK, some(corpus.RELU, *(n for names in kinds.values() for n in names[:2])), "--trials", "2")
        self.assertEqual({v["category"] for v in want}, set(kinds))

    def test_what_is_convicted_runs_no_further(self):
        for options, trials in (("--trials", "3"), 1), (("--trials", "3", "--protocol", "kernelbench"), 3):
            [v] = self.same(corpus.RELU_TASK, some(corpus.RELU, "torch in forward"), *options, budget=False)
            self.assertEqual((v["category"], v["correctness"]["trials"]), ("cheating", trials))
            self.assertEqual(v["correctness"].get("stopped"), "legality" if trials == 1 else None)

    def test_several_outputs(self):
        self.same(corpus.SEVERAL_TASK, [r[3] for r in corpus.SEVERAL], "--trials", "2")

    def test_parameters(self):
        self.same(corpus.LINEAR_TASK, [r[3] for r in corpus.LINEAR[:4]], "--trials", "1", budget=False)

    def test_parameters_too_large_for_frames(self):
        """Over the budget they are laid onto the desk all the same: what takes time is that, not facts with all bytes."""
        with tempfile.TemporaryDirectory() as folder:
            trace, took = os.path.join(folder, "trace.json"), {"facts": 0, "fill": 0}
            [v] = judged("host:200", LARGE % "", [LARGE % "New"], "--trials", "1", "--protocol", "kernelbench",
                         "--max-elements", str(1 << 25), trace=trace)
            with open(trace) as f:
                for e in json.loads(f.read().rstrip(",\n") + "]"):
                    took[e["name"]] = max(took.get(e["name"], 0), e["dur"])
        self.assertEqual(v["correctness"]["passed"], 1)
        self.assertGreater(took["fill"], took["facts"])

    def test_published_protocol(self):
        names = [r[0] for r in corpus.RELU if r[1] is None and "class" in r[3] and "```" not in r[3]]
        self.same(corpus.RELU_TASK, some(corpus.RELU, *names[:1]), "--protocol", "kernelbench", "--trials", "2",
                  budget=False)


if __name__ == "__main__":
    unittest.main()
