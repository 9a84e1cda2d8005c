"""test_ablations.py - recipes/ablations: each changes what it says and nothing else, and runs through in small.

One corpus and one SFT model serve all recipes whose stages before RL are the same; a model that has learned nothing
writes no programs, so that the judge has little to do."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
FOLDER = os.path.join(ROOT, "recipes/ablations")
NAMES = sorted(n[:-5] for n in os.listdir(FOLDER) if n.endswith(".yaml"))
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
import judges  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

judges.share_owner()

SMALL = {
    "synth": {"tasks": 12, "heldout": 0, "prompts": 4, "harvest": 0, "knowledge": 20, "repairs": 0, "verify-share": 0},
    "init": {"vocab": 400, "hidden": 32, "intermediate": 64, "layers": 1, "heads": 2, "kv-heads": 1, "head-dim": 16},
    "sft": {"steps": 2, "harvest-tasks": 0, "batch-tokens": 512, "val-every": 2},
    "diagnose": {"balanced": 2, "samples": 1, "max-new": 8},
    "rft": {"max-prompts": 2, "samples": 2, "max-new": 8, "steps": 1, "batch-tokens": 512},
    "rl_single": {"steps": 2, "batch-prompts": 2, "group": 2, "max-new": 8},
    "rl_multi": {"steps": 2, "batch-prompts": 2, "group": 2, "max-new": 8, "turns": 2},
}
SETS = [f"--set={section}.{key}={value}" for section, keys in SMALL.items() for key, value in keys.items()]


def plan(name, sets=()):
    r = subprocess.run([EXE, "run", os.path.join(FOLDER, name + ".yaml"), "--plan", *sets], capture_output=True,
                       text=True, check=True)
    return json.JSONDecoder().raw_decode(r.stdout)[0]


def differences(a, b):
    """section.key of two resolved recipes that differ, of the sections that both have."""
    return {f"{s}.{k}" for s in a.keys() & b.keys() if isinstance(a[s], dict)
            for k in a[s].keys() | b[s].keys() if a[s].get(k) != b[s].get(k)}


def said(name):
    """What a recipe's own file names."""
    with open(os.path.join(FOLDER, name + ".yaml"), encoding="utf-8") as f:
        return f.read()


class Ablations(unittest.TestCase):
    def test_each_changes_what_it_says_and_nothing_else(self):
        full = plan("full")
        for name in NAMES:
            if name == "full":
                continue
            with self.subTest(name):
                base = name.replace("-no-mirrorpop", "") if name.startswith("stale") and "no-" in name else "full"
                there = differences(full if base == "full" else plan(base), plan(name))
                stages = plan(name)["stages"] != full["stages"]
                self.assertTrue(there or stages, "it changes nothing")
                self.assertLessEqual(len({d.split(".")[1] for d in there}),
                                     {"no-questions": 3, "moments": 2}.get(name, 1))
                for d in there:
                    self.assertIn(d.split(".")[1], said(name))

    def test_the_readme_lists_them(self):
        with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as f:
            text = f.read()
        for name in NAMES:
            self.assertIn(f"{name}.yaml", text)

    def run_recipe(self, name, out, sets=()):
        r = subprocess.run([EXE, "run", os.path.join(FOLDER, name + ".yaml"), "--out", out, "--set=bench-after=", *SETS,
                            *sets], capture_output=True, text=True, timeout=600)
        self.assertEqual(r.returncode, 0, f"{name}: {r.stderr[-2000:]}")

    def test_a_harvest_is_of_a_model_at_rest_and_rft_learns_from_it(self):
        with tempfile.TemporaryDirectory() as out:
            self.run_recipe("full", out, ["--set=stages=synth init sft rft", "--set=synth.harvest=2",
                                          "--set=sft.harvest-tasks=2", "--set=sft.max-new=8", "--set=sft.steps=4"])
            options = {}
            for stage in ("sft/first", "sft", "rft"):
                with open(os.path.join(out, stage, "options.json"), encoding="utf-8") as f:
                    options[stage] = json.load(f)
        self.assertEqual(options["sft/first"]["schedule"], "wsd")  # its rate has fallen when it is asked
        self.assertTrue(options["sft"]["moments"])
        self.assertIn("sft/harvest/own.jsonl", options["rft"]["data"])

    @slow
    def test_each_runs_through(self):
        with tempfile.TemporaryDirectory() as folder:
            first = os.path.join(folder, "first")
            self.run_recipe("full", first, ["--set=stages=synth init sft"])
            for name in NAMES:
                out = os.path.join(folder, name)
                shutil.copytree(first, out, ignore=shutil.ignore_patterns("recipe.yaml"))  # as lab/ablations.sh does
                self.run_recipe(name, out)
                self.assertTrue(os.path.exists(os.path.join(out, "rl_multi/model/model.safetensors")), name)
                shutil.rmtree(out)


if __name__ == "__main__":
    unittest.main()
