"""test_values.py - values in the judge's shared memory, streamed: the same verdicts as with values in frames. The
draws are others, so numbers of elements and values differ. $MUSACODER_VALUES streams small tasks too, on the
emulator."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402
import judges  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))


def judged(how, task, sources, *options, trace=""):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{i}.py") for i in range(len(sources))]
        for path, text in [(os.path.join(folder, "task.py"), task), *zip(paths, sources)]:
            with open(path, "w") as f:
                f.write(text)
        p = subprocess.run([EXE, "eval", "--task", os.path.join(folder, "task.py"), "--json", "--no-cache", *options,
                            *paths],
                           capture_output=True, text=True, timeout=280 * SLOWDOWN,
                           env=dict(os.environ, MUSACODER_VALUES=how, MUSACODER_TRACE=trace))
    verdicts = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(verdicts) == len(sources), p.stderr
    return [{k: v[k] for k in ("status", "category", "correctness", "legality", "reward", "feedback")}
            for v in verdicts]


def outline(v):
    """A verdict without its numbers of draws: values in frames have kinds of draws that streamed ones lack (edges,
    influence)."""
    c = v["correctness"] or {}
    worst = c.get("worst") or {}
    whole = c.get("trials") == c.get("passed") or c.get("passed") == 0
    return {"status": v["status"], "category": v["category"], "legality": v["legality"],
            "reward": v["reward"] if whole else "partial", "none": c.get("passed") == 0, "stopped": c.get("stopped"),
            "kind": worst.get("kind"), "output": worst.get("output")}


def some(rows, *names):
    table = {r[0]: r[3] for r in rows}
    return [table[n] for n in names]


LARGE = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(17 << 20))
    def forward(self, x):
        return x + self.w[:4]
def get_inputs():
    return [torch.rand(4)]
def get_init_inputs():
    return []
"""

LARGE_KERNEL = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
__global__ void k(const float *x, const float *w, float *y) { y[threadIdx.x] = x[threadIdx.x] + w[threadIdx.x]; }
torch::Tensor run(torch::Tensor x, torch::Tensor w)
{
    torch::Tensor y = torch::empty_like(x);
    k<<<1, 4>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
"""
mod = load_inline("large", "torch::Tensor run(torch::Tensor x, torch::Tensor w);", SOURCE, functions=["run"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(17 << 20))

    def forward(self, x):
        return mod.run(x, self.w)
'''


class Values(unittest.TestCase):
    maxDiff = None

    def same(self, task, sources, *options):
        want = judged("frames", task, sources, *options)
        self.assertEqual([outline(v) for v in judged("streamed", task, sources, *options)], [outline(v) for v in want])
        return want

    def test_one_output(self):
        kinds = {}
        for name, category, _, source in corpus.RELU:
            if category in (None, "correctness_error", "cheating") and "class" in source and "```" not in source:
                kinds.setdefault(category, []).append(name)
        want = self.same(corpus.RELU_TASK, some(corpus.RELU, *(n for names in kinds.values() for n in names[:2])),
                         "--trials", "2")
        self.assertEqual({v["category"] for v in want}, set(kinds))

    def test_what_is_convicted_runs_no_further(self):
        [v] = self.same(corpus.RELU_TASK, some(corpus.RELU, "torch in forward"), "--trials", "3")
        self.assertEqual((v["category"], v["correctness"]["trials"]), ("cheating", 0))

    def test_the_published_code_convicts_nobody(self):
        [v] = self.same(corpus.RELU_TASK, some(corpus.RELU, "torch in forward"), "--trials", "3", "--protocol",
                        "kernelbench")
        self.assertEqual((v["category"], v["correctness"]["passed"], v["legality"]["ok"]), (None, 3, False))

    @slow
    def test_several_outputs(self):
        self.same(corpus.SEVERAL_TASK, [r[3] for r in corpus.SEVERAL], "--trials", "2")

    def test_parameters(self):
        self.same(corpus.LINEAR_TASK, [r[3] for r in corpus.LINEAR[:4]], "--trials", "1")

    @slow
    def test_large_parameters(self):
        """Of 68 MB: they are asked for in parts, and lie in no frame."""
        [v] = self.same(LARGE, [LARGE_KERNEL], "--trials", "1", "--protocol", "kernelbench", "--max-elements",
                        str(1 << 25))
        self.assertEqual(v["correctness"]["passed"], 1)

    @slow
    def test_published_protocol(self):
        names = [r[0] for r in corpus.RELU if r[1] is None and "class" in r[3] and "```" not in r[3]]
        self.same(corpus.RELU_TASK, some(corpus.RELU, *names[:1]), "--protocol", "kernelbench", "--trials", "2")


if __name__ == "__main__":
    unittest.main()
