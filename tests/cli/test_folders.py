"""test_folders.py - commands that write: nobody else's folder is emptied, no old result is believed for new inputs, and
what a killed writer left is mended by the same command."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "faults"))
import crash  # noqa: E402

EXE = os.path.abspath(os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
SYNTH = ("--ops", "activation", "--max-ops", "1", "--tasks", "8", "--heldout", "1", "--prompts", "3", "--per-task", "1",
         "--knowledge", "5", "--no-verify", "--repairs", "0")
RECIPE = """
name: %s
stages: %s
synth: {ops: activation, max-ops: 1, tasks: 8, heldout: 1, prompts: 3, per-task: 1, knowledge: 5, verify: false,
        repairs: 0}
init: {vocab: 400, hidden: 32, intermediate: 64, layers: 1, heads: 1, kv-heads: 1, head-dim: 32}
sft: {steps: 2, batch-tokens: 512, max-length: 1500, harvest-tasks: 0}
control_sft: {steps: 1, batch-tokens: 512, max-length: 1500, harvest-tasks: 0}
"""


class Folders(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.dir = self.tmp.name

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def call(self, *argv, **env):
        return subprocess.run([EXE, *argv], cwd=self.dir, env=dict(os.environ, OMP_NUM_THREADS="1", **env),
                              capture_output=True, text=True, timeout=120 * SLOWDOWN)

    def succeed(self, *argv):
        p = self.call(*argv)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stderr

    def take_away(self, name):
        if os.path.exists(self.path(name)):
            os.remove(self.path(name))

    def refuse(self, words, *argv):
        p = self.call(*argv)
        self.assertEqual(p.returncode, 2, p.stdout + p.stderr)
        self.assertIn(words, p.stderr)

    def recipe(self, stages, name="tiny"):
        return self.write("recipe.yaml", RECIPE % (name, stages))

    def test_translate_writes_over_no_source(self):
        source = self.write("k.py", "x = 1\n")
        here = os.path.dirname(source)
        self.refuse("would be written over", "translate", "--out", here, source)
        other = os.path.join(here, "other")
        os.makedirs(other)
        twin = os.path.join(other, "k.py")
        shutil.copy(source, twin)
        self.refuse("would both be written", "translate", "--out", os.path.join(here, "musa"), source, twin)
        self.succeed("translate", "--out", os.path.join(here, "musa"), source)
        self.succeed("translate", "--out", os.path.join(here, "musa"), source)

    def test_translate_takes_folders(self):
        self.write("src/rms.cu", '#include "part/sum.cuh"\nvoid f() { cudaDeviceSynchronize(); }\n')
        self.write("src/part/sum.cuh", "void g() { cudaDeviceSynchronize(); }\n")
        self.write("src/notes.txt", "cuda\n")
        self.assertNotIn("warning", self.succeed("translate", "--out", "musa", "src"))
        self.assertEqual(self.read("musa/rms.mu"), '#include "part/sum.muh"\nvoid f() { musaDeviceSynchronize(); }\n')
        self.assertIn("musaDeviceSynchronize", self.read("musa/part/sum.muh"))
        self.assertFalse(os.path.exists(self.path("musa/notes.txt")))
        self.assertIn("'rms.mu' includes 'part/sum.muh', which nobody has translated",
                      self.succeed("translate", "--out", "alone", "src/rms.cu"))
        os.makedirs(self.path("empty"))
        self.refuse("'empty' holds no sources", "translate", "--out", "x", "empty")

    def test_tasks_leaves_foreign_folders(self):
        mine = self.write("mine/task.py", "precious\n")
        self.refuse("mine", "tasks", os.path.join(ROOT, "docs/example/task.py"), "--out", os.path.dirname(mine))
        with open(mine) as f:
            self.assertEqual(f.read(), "precious\n")

    def test_run_leaves_foreign_folders(self):
        self.write("proj/data/mydataset.csv", "precious")
        self.write("proj/recipe.yaml", "my recipe")
        self.refuse("are not of this run", "run", self.recipe("synth"), "--out", "proj")
        self.assertEqual(self.read("proj/data/mydataset.csv"), "precious")
        self.assertEqual(self.read("proj/recipe.yaml"), "my recipe")

    def test_a_recipes_name_is_one_folder(self):
        self.write("data/a.csv", "precious")
        for name in ("'..'", "'.'", "a/b", "/tmp", "''"):
            self.refuse("no name of a folder", "run", self.recipe("synth", name))
        self.assertEqual(self.read("data/a.csv"), "precious")

    def test_a_folder_put_into_a_run_stays(self):
        recipe = self.recipe("synth")
        self.succeed("run", recipe, "--out", "r", "--plan")
        os.makedirs(self.path("r"))
        self.write("r/.musacoder", "")
        self.write("r/data/mydataset.csv", "precious")
        self.refuse("are not of this stage", "run", recipe, "--out", "r")
        self.assertEqual(self.read("r/data/mydataset.csv"), "precious")

    def test_a_folder_of_another_command_stays(self):
        """Each is a folder of ours; a stamp alone would let the second command fill or empty it."""
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        train = ("--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--batch-tokens", "512",
                 "--max-length", "1500")
        self.succeed("sft", *train, "--out", "r/sft")
        was = crash.files(self.path("r/sft"))
        self.refuse("'r' is a folder of this run; name another one for this training", "sft", *train, "--out", "r")
        self.refuse("is a folder of this training; name another one for this corpus", "synth", *SYNTH, "--out",
                    "r/sft")
        self.refuse("is a folder of this training; name another one for this stage", "run",
                    self.recipe("synth init sft"), "--out", "r")
        self.assertEqual(crash.files(self.path("r/sft")), was)

    def test_a_stages_folder_put_in_anothers_place_stays(self):
        """The stage's marker names the folder, but its user has put his own there."""
        self.finish()
        for make, words in ((lambda: os.mkdir(self.path("r/data")), "are not of this stage"),
                            (lambda: os.symlink("../mine", self.path("r/data")), "'r/data' is a link")):
            shutil.move(self.path("r/data"), self.path("away"))
            make()
            self.write("mine/thesis.txt", "precious")
            self.write("r/data/thesis.txt", "precious")
            was = crash.files(self.path("r/data"))
            self.refuse(words, "run", "recipe.yaml", "--out", "r", "--set", "synth.tasks=9")
            self.assertEqual(crash.files(self.path("r/data")), was)
            self.assertFalse(os.path.exists(self.path("mine/.musacoder")))
            (os.unlink if os.path.islink(self.path("r/data")) else shutil.rmtree)(self.path("r/data"))
            shutil.move(self.path("away"), self.path("r/data"))

    def test_names_of_files_make_no_folder_ours(self):
        """options.json, settings.json and the like are names that anybody gives; nothing goes before the refusal."""
        self.finish()
        train = ("--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--max-length", "1500")
        for name in ("options.json", "settings.json", "answers.jsonl", "mined.jsonl", "traced.jsonl"):
            self.write("p/" + name, '{"mine": 1}\n{"mine"')
        self.write("p/notes.tmp.12", "precious")
        self.write("p/sub/notes.tmp.0123456789abcdef", "precious")
        self.write("p/verdicts.log.jsonl", "precious")
        self.write("t/a.py", "import torch")
        was = crash.files(self.path("p"))
        for argv in (("sft", *train), ("bench", "--model", "r/init", "--tasks", "r/data/tasks/heldout"),
                     ("rl", "--model", "r/init", "--prompts", "r/data/prompts.jsonl", "--steps", "1"),
                     ("rft", "--model", "r/init", "--prompts", "r/data/prompts.jsonl", "--steps", "1"),
                     ("synth", *SYNTH), ("synth", "--records", "2"), ("synth", "teach", "--tasks", "t"),
                     ("synth", "mine", "t"), ("synth", "diagnose", "--tasks", "t")):
            self.refuse("'p' holds files that are not of", *argv, "--out", "p")
            self.assertEqual(crash.files(self.path("p")), was, argv)

    def test_a_stages_folder_is_the_recipes(self):
        self.finish()
        was = crash.files(self.path("r/data"))
        self.refuse("is a folder of this stage", "synth", *SYNTH, "--seed", "2", "--out", "r/data")
        self.assertEqual(crash.files(self.path("r/data")), was)

    def test_profiles_leave_foreign_folders(self):
        self.write("csv/a.csv", '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit",'
                                '"Metric Value"\n"0","k","(1, 1, 1)","(1, 1, 1)","Duration","us","1"\n')
        self.write("csv/a.py", "import torch")
        self.write("p/report.json", "precious")
        self.refuse("are not of these profiles", "synth", "profile", "csv", "--out", "p")
        self.assertEqual(self.read("p/report.json"), "precious")

    def test_what_a_user_puts_beside_a_model_stays(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("sft", "--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--max-length", "1500",
                "--out", "o")
        self.succeed(*argv)
        weights, mine = self.path("o/model/model.safetensors"), ("README.md", ".gitattributes", "gguf/a.gguf")
        for name in mine:
            self.write("o/model/" + name, "precious")
        was = os.stat(weights)
        self.succeed(*argv)  # there is nothing to do
        self.assertEqual((os.stat(weights).st_ino, os.stat(weights).st_mtime_ns), (was.st_ino, was.st_mtime_ns))
        self.write("o/model/generation_config.json", "{}\n")
        os.remove(self.path("o/model/tokenizer.json"))
        self.write("o/model/model-00001-of-00002.safetensors", "half of another model")
        self.assertIn("'o/model/generation_config.json' was changed", self.succeed(*argv))
        self.assertEqual(self.read("o/model/generation_config.json.edited"), "{}\n")
        self.assertTrue(os.path.exists(self.path("o/model/tokenizer.json")))
        self.assertFalse(os.path.exists(self.path("o/model/model-00001-of-00002.safetensors")))
        for name in mine:
            self.assertEqual(self.read("o/model/" + name), "precious")

    def test_options_that_are_gone_are_not_made_up(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("sft", "--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--max-length", "1500",
                "--out", "o")
        self.succeed(*argv)
        os.remove(self.path("o/options.json"))
        self.refuse("or remove 'o/checkpoint' to start", *argv, "--lr", "1e-3")
        shutil.rmtree(self.path("o/checkpoint"))
        self.succeed(*argv, "--lr", "1e-3")

    def test_only_a_stamp_is_a_stamp(self):
        self.write("o/train.jsonl", "mine\n")
        os.makedirs(self.path("o/.musacoder"))
        self.refuse("are not of this corpus", "synth", *SYNTH, "--out", "o")
        self.assertEqual(self.read("o/train.jsonl"), "mine\n")

    def test_nothing_is_written_through_a_link(self):
        self.succeed("synth", *SYNTH, "--out", "o")
        shutil.rmtree(self.path("o/tasks/train"))
        self.write("mine/task_0099.py", "mine\n")
        os.symlink("../../mine", self.path("o/tasks/train"))
        self.refuse("'o/tasks/train' is a link", "synth", *SYNTH, "--out", "o")
        os.remove(self.path("o/tasks/train"))
        os.remove(self.path("o/train.jsonl"))
        os.symlink("../mine/task_0099.py", self.path("o/train.jsonl"))
        self.refuse("'o/train.jsonl' is a link", "synth", *SYNTH, "--out", "o")
        self.assertEqual((os.listdir(self.path("mine")), self.read("mine/task_0099.py")), (["task_0099.py"], "mine\n"))

    def test_what_a_user_puts_into_a_stage_stays(self):
        argv = ("run", self.recipe("synth init"), "--out", "r")
        self.succeed(*argv)
        self.refuse("lies in the folder of a recipe's stage", "synth", *SYNTH, "--out", "r/data/mine")
        self.write("r/data/tasks/heldout/mine.py", "mine\n")
        self.refuse("'r/data/tasks/heldout/mine.py' is not of it; move it away", *argv, "--set", "synth.knowledge=6")
        self.assertEqual(self.read("r/data/tasks/heldout/mine.py"), "mine\n")
        os.remove(self.path("r/data/tasks/heldout/mine.py"))
        self.succeed(*argv, "--set", "synth.knowledge=6")

    def test_no_file_of_a_users_goes_with_a_stage(self):
        """Wherever it lies, and where it was one of the stage's own that somebody has edited."""
        self.finish()
        argv = ("run", "recipe.yaml", "--out", "r", "--set", "synth.knowledge=6", "--set", "init.layers=2", "--set",
                "sft.steps=3")
        for name in ("data/notes.txt", "data/sub/mine.jsonl", "sft/mine.py", "sft/checkpoint/notes", "init/README.md",
                     "sft/model/sub/mine"):
            self.write("r/" + name, "mine\n")
            self.refuse("is not of it; move it away", *argv)
            self.assertEqual(self.read("r/" + name), "mine\n")
            os.remove(self.path("r", name))
        shutil.rmtree(self.path("r/sft/model/sub"))
        os.symlink("../init", self.path("r/sft/mine"))
        self.refuse("'r/sft/mine' is not of it; move it away", *argv)
        os.remove(self.path("r/sft/mine"))
        for name in ("data/train.jsonl", "init/config.json"):
            was = self.read("r/" + name)
            self.write("r/" + name, was + "\n")
            self.refuse(f"'r/{name}' is not of it; move it away", *argv)
            self.write("r/" + name, was)
        self.succeed(*argv)

    def test_a_stage_of_another_run_is_not_believed(self):
        """Which has the same recipe with other options; its folder says nothing else of itself."""
        argv, other = ("run", self.recipe("synth init sft"), "--out"), ("--set", "sft.lr=1e-2", "--set",
                                                                        "synth.knowledge=6")
        self.succeed(*argv, "r")
        self.succeed(*argv, "other", *other)
        was = crash.files(self.path("r/data"))
        for name in "sft", "data":
            shutil.move(self.path("r", name), self.path("kept"))
            shutil.copytree(self.path("other", name), self.path("r", name))
            p = self.call(*argv, "r")
            self.assertIn("its result is gone or damaged", p.stderr)
            if name == "sft":
                self.assertIn("was started with", p.stderr)
            shutil.rmtree(self.path("r/sft" if name == "sft" else "kept"))
            if name == "sft":
                shutil.move(self.path("kept"), self.path("r/sft"))
        self.assertEqual(crash.files(self.path("r/data")), was)
        self.assertEqual(self.succeed(*argv, "r").count("done before"), 3)

    def test_weights_of_another_model_are_not_believed(self):
        """Of the same size, as all models of one shape have."""
        argv = ("run", self.recipe("synth init sft"), "--out", "r")
        self.succeed(*argv)
        was = crash.files(self.path("r/sft/model"))
        shutil.copy(self.path("r/init/model.safetensors"), self.path("r/sft/model/model.safetensors"))
        self.assertNotEqual(crash.files(self.path("r/sft/model")), was)
        self.assertIn("sft: its result is gone or damaged", self.succeed(*argv))
        self.assertTrue(filecmp.cmp(self.path("r/init/model.safetensors"),
                                    self.path("r/sft/model/model.safetensors.edited"), shallow=False))
        self.take_away("r/sft/model/model.safetensors.edited")
        self.assertEqual(crash.files(self.path("r/sft/model")), was)
        self.assertEqual(self.succeed(*argv).count("done before"), 3)

    def test_what_is_not_read_blocks_no_training(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("sft", "--model", "r/init", "--data", "d", "--out", "s", "--steps", "1", "--batch-tokens", "512",
                "--max-length", "1500")
        os.makedirs(self.path("d"))
        shutil.copy(self.path("r/data/train.jsonl"), self.path("d/a.jsonl"))
        self.succeed(*argv)
        self.write("d/notes.txt", "mine")
        self.write("r/init/trainer_state.json", "{}")
        self.succeed(*argv)
        lines = self.read("s/metrics.jsonl")
        self.write("s/metrics.jsonl", lines[:40])
        self.assertIn("'s/metrics.jsonl' has lost the rows of 1 of the 1 steps", self.succeed(*argv))
        self.write("d/b.jsonl", self.read("d/a.jsonl"))
        self.refuse("as 'data' has changed since", *argv)

    def test_a_training_goes_on_where_its_folders_moved(self):
        """Inputs are what they hold, whatever their path is called."""
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("--steps", "1", "--max-length", "1500")
        self.succeed("sft", "--model", "r/init", "--data", "r/data/train.jsonl", "--out", "o", *argv)
        was = crash.files(self.path("o"))
        for name in "o", "r":
            os.rename(self.path(name), self.path("moved-" + name))
        self.succeed("sft", "--model", self.path("moved-r/init/"), "--data", "moved-r/data/../data/train.jsonl",
                     "--out", "moved-o/", *argv)
        self.assertEqual(crash.files(self.path("moved-o")), was)
        os.remove(self.path("moved-r/data/.musacoder.sums"))  # as older versions left it
        self.write("moved-r/data/train.jsonl", self.read("moved-r/data/train.jsonl") + "\n")
        self.refuse("as 'data' has changed since", "sft", "--model", "moved-r/init", "--data",
                    "moved-r/data/train.jsonl", "--out", "moved-o", *argv)

    def test_every_file_that_is_read_counts(self):
        self.write("weights.json", '{"activation": 1}')
        argv = ("run", self.recipe("synth"), "--out", "r", "--set", "synth.family-weights=weights.json")
        self.succeed(*argv)
        self.assertIn("synth: done before", self.succeed(*argv))
        self.write("weights.json", '{"activation": 2}')
        self.assertIn("synth: what it reads has changed", self.succeed(*argv))

    def test_a_stop_before_the_pointer_keeps_the_curve(self):
        """Of rft, whose first row is written before its training begins."""
        self.finish()
        argv = ("rft", "--model", "r/init", "--prompts", "r/data/prompts.jsonl", "--data", "r/data/train.jsonl",
                "--out", "o", "--max-prompts", "1", "--samples", "1", "--max-new", "4", "--steps", "2",
                "--max-length", "1500")
        p = self.call(*argv, LD_PRELOAD=crash.library(self.dir), CRASH_UNDER=self.path("o"),
                      CRASH_ONLY="/checkpoint/latest", CRASH_AT="1", OMP_WAIT_POLICY="passive")
        self.assertEqual(p.returncode, -9, p.stderr)
        self.assertIn("00000002", os.listdir(self.path("o/checkpoint")))
        self.succeed(*argv)
        steps = [json.loads(line)["step"] for line in self.read("o/metrics.jsonl").splitlines()]
        self.assertEqual(steps, [0, 1, 2])

    def test_a_linked_folder_of_a_stage_is_not_emptied(self):
        """Runs that share a corpus, or a stage that was moved to a larger disk: finished is fine, anew is not."""
        self.finish()
        for name in "sft", "data":
            shutil.copytree(self.path("r"), self.path("other"))
            shutil.rmtree(self.path("other", name))
            os.symlink("../r/" + name, self.path("other", name))
            was, argv = crash.files(self.path("r")), ("run", "recipe.yaml", "--out", "other")
            self.assertEqual(self.succeed(*argv).count("done before"), 3)
            self.refuse(f"'other/{name}' is a link", *argv, "--set", "synth.knowledge=9")
            self.assertEqual(crash.files(self.path("r")), was)
            self.assertTrue(os.path.exists(self.path("other/summary.json")))
            shutil.rmtree(self.path("other"))

    def test_what_is_another_is_named(self):
        """An option that a newer version knows is none that a user could give back."""
        self.finish()
        argv = ("run", "recipe.yaml", "--out", "r")
        self.assertIn("sft: 'steps' is another than in the run before", self.succeed(*argv, "--set", "sft.steps=3"))
        claim = json.loads(self.read("r/sft/options.json"))
        del claim["weight-decay"]
        self.write("r/sft/options.json", json.dumps(claim))
        shutil.rmtree(self.path("r/sft/model"))
        self.refuse("was started without 'weight-decay'; leave it out, or, where another version of musacoder", *argv,
                    "--set", "sft.steps=3")

    def test_a_benchmark_that_cannot_be_is_no_plan(self):
        recipe = self.recipe("synth init sft")
        with open(recipe, "a") as f:
            f.write("bench-after: sft\nbench: {suite: open}\n")
        self.refuse("section 'bench': a benchmark needs either a folder of tasks or a suite", "run", recipe, "--plan")

    def leave_as_older_versions(self, stage, folder):
        """Without a listing, and a marker that does not know what was made."""
        os.remove(self.path("r", folder, ".musacoder.sums"))
        marker = json.loads(self.read(f"r/stages/{stage}.json"))
        del marker["result"]
        self.write(f"r/stages/{stage}.json", json.dumps(marker))

    def test_nothing_goes_for_what_cannot_be_read(self):
        was = self.finish()
        argv = ("run", "recipe.yaml", "--out", "r")
        self.leave_as_older_versions("synth", "data")  # what is gone is not known
        os.rename(self.path("r/data/train.jsonl"), self.path("away"))
        self.refuse("r/data/train.jsonl", *argv)
        os.rename(self.path("away"), self.path("r/data/train.jsonl"))
        os.remove(self.path("r/init/tokenizer.json"))
        said = self.succeed(*argv)
        self.assertIn("init: its result is gone or damaged", said)
        self.assertIn("sft: done before", said)
        self.assertEqual(crash.files(self.path("r/sft/model")), was[1])
        shutil.rmtree(self.path("r/init"))
        said = self.succeed(*argv)
        self.assertIn("init: its folder is gone, starting anew", said)
        self.assertIn("sft: done before", said)
        self.refuse("has a comma in its name", *argv[:3], "a,b")

    def test_synth_leaves_foreign_tasks(self):
        self.write("p/tasks/train/my_task.py", "mine")
        self.refuse("are not of this corpus", "synth", *SYNTH, "--out", "p")
        self.assertEqual(self.read("p/tasks/train/my_task.py"), "mine")

    def test_stages_follow_what_they_read(self):
        recipe = self.recipe("synth init sft")
        argv = ("run", recipe, "--out", "r")
        self.succeed(*argv)
        self.assertEqual(self.succeed(*argv).count("done before"), 3)
        data = self.read("r/data/train.jsonl").splitlines(True)
        self.leave_as_older_versions("synth", "data")
        self.write("r/data/train.jsonl", "".join(data[1:]))
        said = self.succeed(*argv)
        self.assertIn("init: what it reads has changed", said)
        self.assertIn("sft: what it reads has changed", said)
        self.assertEqual(self.succeed(*argv).count("done before"), 3)
        self.assertIn("synth: options changed", self.succeed(*argv, "--set", "synth.tasks=9"))
        os.remove(self.path("r/.musacoder"))  # as older versions left it
        os.remove(self.path("r/sft/.musacoder"))
        other = (*argv, "--set", "synth.tasks=9", "--set", "sft.steps=3")
        for stamp in "r/.musacoder", "r/sft/.musacoder":
            self.refuse("'touch %s'" % stamp, *other)
            self.write(stamp, "")
        self.assertIn("sft: options changed", self.succeed(*other))

    def finish(self, stages="synth init sft"):
        """A run of three stages, and what is in its folder of the last one."""
        self.succeed("run", self.recipe(stages), "--out", "r")
        return self.read("r/recipe.yaml"), crash.files(self.path("r/sft/model"))

    def test_a_marker_that_is_done_says_what_was_made(self):
        """Stopped in each call that writes it."""
        recipe, n = self.recipe("synth init"), 0
        while n < 40:
            n += 1
            p = self.call("run", recipe, "--out", "r", LD_PRELOAD=crash.library(self.dir), CRASH_UNDER=self.path("r"),
                          CRASH_ONLY="/stages/init.json", CRASH_AT=str(n), OMP_WAIT_POLICY="passive")
            if os.path.exists(self.path("r/stages/init.json")):
                marker = json.loads(self.read("r/stages/init.json"))
                self.assertTrue(marker.get("result") or not marker["done"], n)
            if p.returncode != -9:
                break
            shutil.rmtree(self.path("r"))
        self.assertGreater(n, 6)
        self.assertTrue(marker["done"])

    def test_a_run_does_not_empty_its_own_input(self):
        was = self.finish()
        shutil.copytree(self.path("r/init"), self.path("r/data/base"))
        recipe = self.write("again.yaml", RECIPE % ("tiny", "synth sft"))
        for model in ("r/sft/model", "r/data/base", "r/sft/checkpoint/00000002"):
            self.refuse("which this run empties; copy it", "run", recipe, "--out", "r", "--set", "model=" + model)
        self.write("r/data/weights.json", "{}")
        self.refuse("which this run empties; copy it", "run", "recipe.yaml", "--out", "r", "--set",
                    "synth.family-weights=r/data/weights.json")
        self.assertEqual(crash.files(self.path("r/sft/model")), was[1])

    def test_a_missing_marker_empties_nothing(self):
        was = self.finish()
        os.remove(self.path("r/stages/sft.json"))
        self.refuse("'r/stages/sft.json' is gone, which says how 'r/sft' was made", "run", "recipe.yaml", "--out", "r")
        self.assertEqual(crash.files(self.path("r/sft/model")), was[1])
        self.succeed("run", "recipe.yaml", "--out", "r", "--anew")

    def test_settings_that_are_gone_are_not_made_up(self):
        argv = ("synth", "--records", "6", "--shard-size", "3", "--ops", "activation", "--max-ops", "1",
                "--verify-share", "0", "--mutant-share", "0", "--out", "c")
        self.succeed(*argv)
        os.remove(self.path("c/options.json"))
        self.refuse("'c/options.json' is gone, which says what 'c' was started with", *argv, "--seed", "7")
        self.finish()
        self.write("bs/t/s.py", "x = 1\n")
        self.write("bt/t.py", "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n")
        self.write("b/verdicts.jsonl", "")
        self.write("b/.musacoder", "")
        self.refuse("'b/settings.json' is gone", "bench", "--samples-dir", "bs", "--tasks", "bt", "--out", "b")
        self.write("f/chunks/00000000.json", "{}")
        self.write("f/.musacoder", "")
        self.refuse("'f/options.json' is gone", "rft", "--model", "r/init", "--prompts", "r/data/prompts.jsonl",
                    "--out", "f")

    def test_a_corpus_of_one_form_takes_no_others_place(self):
        records = ("synth", "--records", "3", "--shard-size", "3", "--ops", "activation", "--max-ops", "1",
                   "--verify-share", "0", "--mutant-share", "0", "--out")
        self.succeed(*records, "c")
        was = crash.files(self.path("c"))
        self.refuse("'c' holds a corpus of another form", "synth", *SYNTH, "--out", "c")
        self.assertEqual(crash.files(self.path("c")), was)
        self.succeed("synth", *SYNTH, "--out", "d")
        self.refuse("'d' holds a corpus of another form", *records, "d")

    def test_hours_are_not_lost_unasked(self):
        was = self.finish()
        with open(self.path("r/stages/sft.json")) as f:
            marker = json.load(f)
        self.write("r/stages/sft.json", json.dumps(dict(marker, seconds=7200)))
        for change in "sft.steps=3", "synth.tasks=9":
            self.refuse("stage 'sft' has taken 2h00m and would start anew", "run", "recipe.yaml", "--out", "r", "--set",
                        change)
            self.assertEqual((self.read("r/recipe.yaml"), crash.files(self.path("r/sft/model"))), was)
        self.assertIn("sft: done before", self.succeed("run", "recipe.yaml", "--out", "r"))
        self.assertIn("starting anew", self.succeed("run", "recipe.yaml", "--out", "r", "--anew", "--set",
                                                    "sft.steps=3"))

    def test_another_seed_is_another_run(self):
        """Whoever meant a second run has --out; nothing of the first goes, and no page mixes the two."""
        was = self.finish()
        self.refuse("holds a run of another seed, of which stage 'synth' would start anew; name another --out", "run",
                    "recipe.yaml", "--out", "r", "--set", "seed=3")
        self.refuse("stage 'sft' would start anew", "run", "recipe.yaml", "--out", "r", "--set", "sft.seed=3")
        self.assertEqual((self.read("r/recipe.yaml"), crash.files(self.path("r/sft/model"))), was)
        p = self.call("run", "recipe.yaml", "--out", "r", "--set", "seed=3", "--anew", CRASH_UNDER=self.path("r"),
                      LD_PRELOAD=crash.library(self.dir), CRASH_ONLY="init/model.safe", CRASH_AT="2",
                      OMP_WAIT_POLICY="passive")
        self.assertEqual(p.returncode, -9, p.stderr)  # stopped behind synth: nothing of seed 1 is left
        self.assertFalse(os.path.exists(self.path("r/sft/model")))
        self.assertFalse(os.path.exists(self.path("r/summary.json")))
        self.assertFalse(os.path.exists(self.path("r/report.html")))

    def test_another_recipe_is_another_run(self):
        was = self.finish()
        other = self.write("other.yaml", RECIPE % ("other", "synth init"))
        self.refuse("'r' is the run of the recipe 'tiny', and this one is 'other'", "run", other, "--out", "r")
        self.assertEqual((self.read("r/recipe.yaml"), crash.files(self.path("r/sft/model"))), was)

    def test_a_card_says_what_the_run_made(self):
        self.finish()
        self.succeed("card", "r")
        for name, old, new in (("summary.json", '"seconds"', '"Seconds"'), ("recipe.yaml", "tiny", "huge"),
                               ("data/stats.json", '"train": ', '"train": 9')):
            was = self.read("r/" + name)
            self.assertIn(old, was)
            self.write("r/" + name, was.replace(old, new, 1))
            self.refuse(f"r/{name}' has changed since it was made", "card", "r")
            self.write("r/" + name, was)
        self.write("r/recipe.yaml", self.read("r/recipe.yaml") + "\n# my note\n")
        self.succeed("run", "recipe.yaml", "--out", "r")
        self.assertIn("# my note", self.read("r/recipe.yaml.edited"))

    def test_a_card_beside_a_stages_model(self):
        """It is no content of the model for the stages after it, and does not go with the stage unasked."""
        self.finish("synth init sft control_sft")
        self.write("r/sft/model/README.md", "mine")
        self.assertEqual(self.succeed("run", "recipe.yaml", "--out", "r").count("done before"), 4)
        self.refuse("'r/sft/model/README.md' is not of it; move it away", "run", "recipe.yaml", "--out", "r", "--set",
                    "sft.steps=3")
        self.assertEqual(self.read("r/sft/model/README.md"), "mine")
        self.assertEqual(self.succeed("run", "recipe.yaml", "--out", "r").count("done before"), 4)

    def test_curves_of_another_training_stay(self):
        self.finish()
        train = ("--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--max-length", "1500")
        self.succeed("sft", *train, "--out", "a")
        self.write("mine/metrics.jsonl", '{"stage":"sft","step":99}')
        for metrics, words in (("a", "'a' is a folder of this training"), ("r", "'r' is a folder of this run"),
                               ("mine", "'mine' holds files that are not of these curves")):
            was = self.read(metrics + "/metrics.jsonl")
            self.refuse(words, "sft", *train, "--out", "b", "--metrics", metrics, "--lr", "1e-3")
            self.assertEqual(self.read(metrics + "/metrics.jsonl"), was)
        self.succeed("sft", *train, "--out", "c", "--metrics", "curves")
        self.assertTrue(self.read("curves/metrics.jsonl"))

    def test_a_result_that_is_gone_is_made_again(self):
        """Of the finished stage's own records: nothing is trained or drawn again."""
        was = self.finish()
        for harm in (lambda: shutil.rmtree(self.path("r/sft/model")),
                     lambda: os.truncate(self.path("r/sft/model/model.safetensors"), 5000)):
            harm()
            said = self.succeed("run", "recipe.yaml", "--out", "r")
            self.assertIn("sft: its result is gone or damaged", said)
            self.assertNotIn("step 1", said)
            self.take_away("r/sft/model/model.safetensors.edited")
            self.assertEqual(crash.files(self.path("r/sft/model")), was[1])

    def test_shards_are_known_by_what_they_hold(self):
        argv = ("synth", "--records", "6", "--shard-size", "3", "--ops", "activation", "--max-ops", "1",
                "--verify-share", "0", "--mutant-share", "0", "--out", "c")
        self.succeed(*argv)
        was, first = crash.files(self.path("c")), self.path("c/data/train-00000.jsonl")
        for harm in (lambda: os.truncate(first, 10), lambda: os.remove(first),
                     lambda: shutil.copy(self.path("c/data/train-00001.jsonl"), first)):
            harm()
            self.assertIn("shard 0 of 'c' is not what was written; it is made again", self.succeed(*argv))
            self.take_away("c/data/train-00000.jsonl.edited")
            self.assertEqual(crash.files(self.path("c")), was)

    def test_what_somebody_changes_in_a_corpus_of_shards_stays(self):
        argv = ("synth", "--records", "6", "--shard-size", "3", "--ops", "activation", "--max-ops", "1",
                "--verify-share", "0", "--mutant-share", "0", "--out", "c")
        self.succeed(*argv)
        was, names = crash.files(self.path("c")), ("data/train-00001.jsonl", "README.md", "plots/schedules.svg")
        for name in names:
            with open(self.path("c/" + name), "a") as f:
                f.write("mine")
        said = self.succeed(*argv)
        for name in names:
            self.assertTrue(self.read(f"c/{name}.edited").endswith("mine"))
            self.assertIn(f"it is kept as 'c/{name}.edited'", said)
            os.remove(self.path(f"c/{name}.edited"))
        self.assertEqual(crash.files(self.path("c")), was)
        for name in names:
            self.write("mine", "mine")
            os.remove(self.path("c/" + name))
            os.symlink(self.path("mine"), self.path("c/" + name))
            self.refuse("is a link, and what it names may be somebody's", *argv)
            self.assertEqual(self.read("mine"), "mine")
            os.remove(self.path("c/" + name))
            self.succeed(*argv)
        self.assertEqual(crash.files(self.path("c")), was)

    def test_a_finished_corpus_is_known_by_what_it_holds(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        was = {name: self.read("r/data/" + name) for name in ("train.jsonl", "prompts.jsonl")}
        lines = was["train.jsonl"].splitlines(keepends=True)
        self.write("r/data/train.jsonl", "".join(lines[1:]))
        os.remove(self.path("r/data/prompts.jsonl"))
        self.refuse("'%s' has changed since it was made" % os.path.realpath(self.path("r/data/train.jsonl")),
                    "sft", "--model", "r/init", "--data", "r/data/train.jsonl", "--steps", "1", "--out", "s")
        said = self.succeed("run", self.recipe("synth init"), "--out", "r")
        self.assertIn("synth: its result is gone or damaged", said)
        self.assertIn("init: done before", said)  # the same bytes were made again
        self.assertEqual({name: self.read("r/data/" + name) for name in was}, was)
        self.write("c/train.jsonl", "".join(lines[1:]))  # a copy is a user's own
        self.succeed("sft", "--model", "r/init", "--data", "c/train.jsonl", "--steps", "1", "--out", "s")

    def test_shards_that_a_stage_made_are_checked_where_they_are_read(self):
        self.succeed("synth", *SYNTH[:6], "--no-verify", "--records", "4", "--shard-size", "2", "--out", "c")
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        with open(self.path("c/data/train-00000.jsonl"), "a") as f:
            f.write("{}\n")
        self.refuse("has changed since it was made", "sft", "--model", "r/init", "--data", "c/data", "--steps", "1",
                    "--out", "s")

    def test_an_unfinished_corpus_of_shards_is_refused(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("synth", *SYNTH[:6], "--no-verify", "--shard-size", "2", "--out", "c")
        self.assertEqual(self.call(*argv, "--records", "4", "--part", "0/2").returncode, 0)
        train = ("sft", "--model", "r/init", "--data", "c/data", "--steps", "1", "--max-length", "1500", "--out", "s")
        self.refuse("is unfinished", *train)
        self.succeed(*argv, "--records", "4", "--part", "1/2")
        self.succeed(*train)

    def test_tasks_of_files_that_went_go(self):
        for name in ("one", "two"):
            shutil.copy(os.path.join(ROOT, "docs/example/task.py"), self.write(f"t/{name}.py", ""))
        self.succeed("tasks", "t", "--out", "o")
        self.write("o/mine.py", "precious\n")
        os.remove(self.path("t/one.py"))
        self.succeed("tasks", "t", "--out", "o")
        self.assertEqual(sorted(x for x in os.listdir(self.path("o")) if x[0] != "."),
                         ["mine.py", "two.py", "two.yaml"])
        os.rename(self.path("t"), self.path("u"))
        self.refuse("holds what was made of", "tasks", "u", "--out", "o")
        self.refuse("lies in 'u', whose files are read", "tasks", "u", "--out", "u/out")
        self.write("o/two.py", "# edited\n")
        self.refuse("has changed since it was made", "tasks", "o", "--out", "again")
        os.rename(self.path("u"), self.path("t"))
        self.assertIn("'o/two.py' is not what its command left there", self.succeed("tasks", "t", "--out", "o"))
        self.assertEqual(self.read("o/two.py.edited"), "# edited\n")

    def test_a_users_task_in_a_corpus_stays(self):
        self.succeed("synth", *SYNTH, "--out", "c")
        self.write("c/tasks/train/my_task.py", "mine")
        self.write("c/tasks/train/task_9999.py", "of a larger corpus")
        told = "'c' holds a corpus of other options, which this one replaces"
        self.assertIn(told, self.succeed("synth", *SYNTH, "--seed", "2", "--out", "c"))
        self.assertEqual(self.read("c/tasks/train/my_task.py"), "mine")
        self.assertEqual(self.read("c/tasks/train/task_9999.py"), "of a larger corpus")
        task = "c/tasks/train/" + min(x for x in os.listdir(self.path("c/tasks/train")) if x.startswith("task_"))
        was = self.read(task)
        self.write(task, "edited")
        self.succeed("synth", *SYNTH, "--seed", "2", "--out", "c")
        self.assertEqual((self.read(task), self.read(task + ".edited")), (was, "edited"))

    def test_a_finished_stage_makes_again_what_is_gone(self):
        """A table that is gone or altered comes from the verdicts; a model that is gone or cut from its checkpoint."""
        recipe = self.write("recipe.yaml", RECIPE % ("tiny", "synth init sft") +
                            "bench-after: sft\nbench: {samples: 1, max-new: 8}\n")
        argv = ("run", recipe, "--out", "r")
        self.succeed(*argv)
        table, weights = self.path("r/bench/sft/bench.json"), self.path("r/sft/model/model.safetensors")
        was = self.read("r/bench/sft/bench.json"), crash.files(self.path("r/sft/model"))

        def alter():
            self.assertIn('"passed": 0', was[0])
            self.write("r/bench/sft/bench.json", was[0].replace('"passed": 0', '"passed": 1'))

        for stage, harm in (("bench_sft", lambda: os.remove(table)), ("bench_sft", alter),
                            ("sft", lambda: os.truncate(weights, 1000)),
                            ("sft", lambda: self.write("r/sft/model/config.json",
                                                       self.read("r/sft/model/config.json").replace("10000", "77777"))),
                            ("sft", lambda: shutil.rmtree(self.path("r/sft/model")))):
            harm()
            said = self.succeed(*argv)
            self.assertIn(stage + ": its result is gone or damaged", said)
            self.take_away("r/sft/model/model.safetensors.edited")
            self.take_away("r/sft/model/config.json.edited")
            self.assertEqual(crash.files(self.path("r/sft/model")), was[1])
            self.assertNotIn('"passed": 1', self.read("r/bench/sft/bench.json"))
        self.assertEqual(self.succeed(*argv).count("done before"), 4)

    def test_a_damaged_marker_is_no_missing_one(self):
        was = self.finish()
        self.write("r/stages/sft.json", "")
        p = self.call("run", "recipe.yaml", "--out", "r")
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertIn("r/stages/sft.json' is damaged", p.stderr)
        self.assertEqual(crash.files(self.path("r/sft/model")), was[1])

    def test_a_folder_half_emptied_is_not_finished(self):
        """Killed while it was emptied for other options, then given the former ones again."""
        was, out = self.finish(), self.path("r")
        p = self.call("run", "recipe.yaml", "--out", "r", "--set", "sft.steps=3", LD_PRELOAD=crash.library(self.dir),
                      CRASH_UNDER=out, CRASH_ONLY="/sft/model", CRASH_AT="2", OMP_WAIT_POLICY="passive")
        self.assertEqual(p.returncode, -9, p.stderr)
        self.succeed("run", "recipe.yaml", "--out", "r")
        self.assertEqual((self.read("r/recipe.yaml"), crash.files(self.path("r/sft/model"))), was)

    def test_a_base_model_counts_by_its_weights(self):
        for seed in "12":
            self.succeed("run", self.recipe("synth init"), "--out", "m" + seed, "--set", "init.seed=" + seed)
        shutil.copytree(self.path("m1/init"), self.path("base"))
        argv = ("run", self.recipe("synth sft"), "--out", "r", "--set", "model=base")
        self.succeed(*argv)
        shutil.copy(self.path("m2/init/model.safetensors"), self.path("base"))
        self.assertIn("sft: what it reads has changed", self.succeed(*argv))
        self.succeed("run", self.path("recipe.yaml"), "--out", "r2", "--set", "model=base")
        self.assertTrue(filecmp.cmp(self.path("r/sft/model/model.safetensors"),
                                    self.path("r2/sft/model/model.safetensors"), shallow=False))

    def test_harvest_after_a_torn_model(self):
        self.succeed("run", self.recipe("synth init"), "--out", "r")
        argv = ("sft", "--model", "r/init", "--data", "r/data/train.jsonl", "--out", "o", "--steps", "4",
                "--max-length", "1500", "--harvest", "r/data/prompts.jsonl", "--harvest-tasks", "1", "--max-new", "4")
        self.call(*argv)  # to the harvest, which wants other records: the first half is there
        self.assertTrue(os.path.exists(self.path("o/first/model/tokenizer.json")))
        for name in ("tokenizer.json", "model.safetensors"):
            os.remove(self.path("o/first/model", name))
        said = self.call(*argv).stderr
        self.assertNotIn("tokenizer.json", said)
        self.assertTrue(os.path.exists(self.path("o/first/model/model.safetensors")))


if __name__ == "__main__":
    unittest.main()
