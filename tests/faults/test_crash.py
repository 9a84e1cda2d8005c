"""test_crash.py - a recipe of three stages, and single commands that write, are stopped in calls that change files, and
given again (crash.py). A few calls, spread over the whole; long_crash.py stops in every one."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crash  # noqa: E402

MOST = 6  # stops of a command
RECIPE = """
name: tiny
stages: synth init sft
synth: {ops: activation, max-ops: 1, tasks: 8, heldout: 1, prompts: 3, per-task: 1, knowledge: 5, verify: false,
        repairs: 0}
init: {vocab: 400, hidden: 32, intermediate: 64, layers: 1, heads: 1, kv-heads: 1, head-dim: 32}
sft: {steps: 3, batch-tokens: 512, max-length: 1500, harvest-tasks: 0, save-every: 1}
"""
# All kinds of stages: answers of a model that has learned nothing hold no program, so that the judge has little to do.
LOOP = """
name: loop
stages: synth init sft rft rl_single rl_multi
bench-after: sft rl_multi
synth: {ops: activation, max-ops: 1, tasks: 8, heldout: 1, prompts: 4, per-task: 1, knowledge: 5, verify: false,
        repairs: 0, harvest: 2}
init: {vocab: 400, hidden: 32, intermediate: 64, layers: 1, heads: 1, kv-heads: 1, head-dim: 32}
sft: {steps: 2, batch-tokens: 512, max-length: 1500, harvest-tasks: 2, harvest-samples: 1, save-every: 1, max-new: 8}
rft: {max-prompts: 2, samples: 2, max-new: 8, steps: 2, max-length: 1500}
rl_single: {turns: 1, steps: 2, batch-prompts: 1, group: 2, max-new: 8, max-prompt: 1500, save-every: 1}
rl_multi: {turns: 2, steps: 2, batch-prompts: 1, group: 2, max-new: 8, max-prompt: 1500, save-every: 1}
bench: {samples: 1, max-new: 8}
"""


class Crash(unittest.TestCase):
    most = None  # stops of each command, where it is another number

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.dir = os.path.realpath(self.tmp.name)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def stop_everywhere(self, *argv, most=MOST):
        c = crash.Command(self.dir, argv)
        points = c.points(self.most or most)
        wrong = c.wrong_of(points)
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(c.stops, len(points) * 0.6)
        return c

    def test_run(self):
        c = self.stop_everywhere("run", self.write("recipe.yaml", RECIPE), "--out", "OUT")
        self.assertGreater(len(c.calls), 80)

    def test_loop(self):
        c = self.stop_everywhere("run", self.write("recipe.yaml", LOOP), "--out", "OUT", most=3)
        self.assertGreater(len(c.calls), 200)

    def test_synth_records(self):
        self.stop_everywhere("synth", "--out", "OUT", "--records", "12", "--shard-size", "4", "--verify-share", "0",
                             "--ops", "activation", "--max-ops", "1")

    def test_export(self):
        out = os.path.join(self.dir, "from")
        recipe = self.write("recipe.yaml", RECIPE)
        made = crash.Command(self.make("made"), ("run", recipe, "--out", "OUT"))
        shutil.copytree(os.path.join(made.straight, "sft", "model"), out)
        self.stop_everywhere("export", "--model", out, "--out", "OUT")

    def make(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(path)
        return path


if __name__ == "__main__":
    unittest.main()
