"""test_crash.py - recipes, and single commands that write, are stopped in calls that change files, and given again
(crash.py); servers and workers likewise (crash_service.py). A few calls, spread over the whole; long_crash.py stops in
every one."""

import concurrent.futures
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crash  # noqa: E402
import crash_service  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

MOST = 6  # stops of a command
SYNTH = "{ops: activation, max-ops: 1, tasks: 8, heldout: 1, per-task: 1, knowledge: 5, verify: false, repairs: 0"
INIT = "{vocab: 400, hidden: 32, intermediate: 64, layers: 1, heads: 1, kv-heads: 1, head-dim: 32}"
RECIPE = f"""
name: tiny
stages: synth init sft
synth: {SYNTH}, prompts: 3}}
init: {INIT}
sft: {{steps: 3, batch-tokens: 512, max-length: 1500, harvest-tasks: 0, save-every: 1}}
"""
BASE = f"""
name: base
stages: synth init sft
bench-after: sft
synth: {SYNTH}, prompts: 3}}
init: {INIT}
sft: {{steps: 1, batch-tokens: 512, max-length: 1500, harvest-tasks: 0}}
bench: {{samples: 1, max-new: 8, limit: 1}}
"""
# The stages of recipes/smoke.yaml and those of the larger recipes. Answers of a model that has learned nothing hold no
# program, so that the judge has little to do.
LOOP = f"""
name: loop
stages: synth public init sft rft rl_single rl_multi control_rft
bench-after: sft rl_multi
synth: {SYNTH}, prompts: 4, harvest: 2}}
public: {{surface: public, records: 8, shard-size: 4, verify-share: 0, mutant-share: 0}}
init: {INIT}
sft: {{steps: 2, batch-tokens: 512, max-length: 1500, harvest-tasks: 2, harvest-samples: 1, save-every: 1, max-new: 8}}
rft: {{max-prompts: 2, samples: 2, max-new: 8, steps: 2, max-length: 1500}}
rl_single: {{turns: 1, steps: 2, batch-prompts: 1, group: 2, max-new: 8, max-prompt: 1500, save-every: 1}}
rl_multi: {{turns: 2, steps: 2, batch-prompts: 1, group: 2, max-new: 8, max-prompt: 1500, save-every: 1, average: 0.5}}
control_rft: {{max-prompts: 1, samples: 2, max-new: 8, steps: 1, max-length: 1500}}
bench: {{samples: 1, max-new: 8, limit: 2}}
"""


class Crash(unittest.TestCase):
    most = None  # stops of each command, where it is another number

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.dir = os.path.realpath(cls.tmp.name)
        with open(os.path.join(cls.dir, "recipe.yaml"), "w") as f:
            f.write(LOOP)
        cls.loop = crash.Command(cls.make("loop"), ("run", os.path.join(cls.dir, "recipe.yaml"), "--out", "OUT"))

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def make(cls, name):
        path = os.path.join(cls.dir, name)
        os.makedirs(path)
        return path

    def from_loop(self, *names):
        return os.path.join(self.loop.straight, *names)

    def stop_everywhere(self, c, most=MOST):
        points = c.points(self.most or most)
        wrong = c.wrong_of(points)
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(c.stops, len(points) * 0.6)

    def stop_command(self, *argv, most=3):
        """Also: what is finished and given again changes nothing."""
        c = crash.Command(self.make(self._testMethodName), argv)
        c.call(c.straight)
        self.assertEqual(c.seen(c.straight), c.want)
        self.stop_everywhere(c, most)

    def test_loop(self):
        self.assertGreater(len(self.loop.calls), 200)
        self.stop_everywhere(self.loop)

    def test_synth_records(self):
        self.stop_command("synth", "--out", "OUT", "--records", "12", "--shard-size", "4", "--verify-share", "0",
                          "--ops", "activation", "--max-ops", "1")

    def test_export(self):
        self.stop_command("export", "--model", self.from_loop("sft/model"), "--out", "OUT")

    def test_init(self):
        self.stop_command("init", "--config", self.from_loop("init/config.json"), "--out", "OUT")

    @slow
    def test_rft(self):
        self.stop_command("rft", "--model", self.from_loop("sft/model"), "--prompts",
                          self.from_loop("data/prompts.jsonl"), "--data", self.from_loop("data/train.jsonl"), "--out",
                          "OUT", "--max-prompts", "2", "--samples", "2", "--max-new", "8", "--steps", "2",
                          "--max-length", "1500")

    def test_rl_ahead(self):
        """With batches that are drawn ahead, retries, and a curve of its own."""
        self.stop_command("rl", "--model", self.from_loop("sft/model"), "--prompts",
                          self.from_loop("data/prompts.jsonl"), "--out", "OUT", "--steps", "3", "--batch-prompts", "1",
                          "--group", "2", "--max-new", "8", "--max-prompt", "1500", "--save-every", "1", "--turns", "2",
                          "--bdr-probability", "1", "--staleness", "1")

    @slow
    def test_diagnose(self):
        """Each call runs references in a Python of its own, so that these are a few stops always."""
        self.most = self.most and 12
        self.stop_command("synth", "diagnose", "--model", self.from_loop("sft/model"), "--prompts",
                          self.from_loop("data/prompts.jsonl"), "--out", "OUT", "--balanced", "2", "--samples", "1",
                          "--max-new", "8")

    @slow
    def test_bench(self):
        self.stop_command("bench", "--model", self.from_loop("sft/model"), "--tasks",
                          self.from_loop("data/tasks/heldout"), "--out", "OUT", "--samples", "2", "--max-new", "8",
                          "--turns", "2")

    def stop_service(self, who, most):
        folder = self.make(who)
        n, library = len(crash_service.calls_of(folder, self.loop.library, who)), self.loop.library
        points = range(1, n + 1) if self.most else [1 + n // 3, 1 + 2 * n // 3][:most]
        with concurrent.futures.ThreadPoolExecutor(crash.JOBS) as pool:
            found = list(pool.map(lambda k: crash_service.wrong(folder, library, who, k), points))
        wrong = [line for _, lines in found for line in lines]
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertTrue(any(struck for struck, _ in found))

    def test_serve(self):
        self.stop_service("server", 2)

    def test_worker(self):
        self.stop_service("worker", 2)


if __name__ == "__main__":
    unittest.main()
