"""test_results.py - where results go: each option of a command that names a folder or a file to write. What somebody
else's folder holds stays as it is, and no file that is read is written over. The options come from 'COMMAND -h'; one
that this table does not know fails."""

import fcntl
import filecmp
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_folders  # noqa: E402

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(8, 16)]
def get_init_inputs():
    return []
"""
CONFIG = """{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 64, "hidden_size": 32,
"intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32,
"rms_norm_eps": 1e-6, "rope_theta": 1e4, "max_position_embeddings": 64, "tie_word_embeddings": true,
"hidden_act": "silu", "eos_token_id": 1}
"""
TRAIN = ("--model", "r/init", "--data", "r/data/train.jsonl", "--prompts", "r/data/prompts.jsonl")
# (command, option): its words with OUT, and what a refusal says.
NOT_OF, READ = "holds files that are not of", "would be written over"
FOLDERS = {
    ("run", "out"): (("run", "r.yaml", "--out", "OUT"), NOT_OF),
    ("synth", "out"): (("synth", *test_folders.SYNTH, "--out", "OUT"), NOT_OF),
    ("synth mine", "out"): (("synth", "mine", "tree", "--out", "OUT"), NOT_OF),
    ("synth teach", "out"): (("synth", "teach", "--tasks", "tree", "--out", "OUT"), NOT_OF),
    ("synth diagnose", "out"): (("synth", "diagnose", "--tasks", "tree", "--out", "OUT"), NOT_OF),
    ("synth profile", "out"): (("synth", "profile", "tree", "--out", "OUT"), NOT_OF),
    ("sft", "out"): (("sft", *TRAIN[:4], "--out", "OUT"), NOT_OF),
    ("rft", "out"): (("rft", *TRAIN[:2], *TRAIN[4:], "--out", "OUT"), NOT_OF),
    ("rl", "out"): (("rl", *TRAIN[:2], *TRAIN[4:], "--steps", "1", "--out", "OUT"), NOT_OF),
    ("sft", "metrics"): None,  # test_folders.py: curves; a training is needed to come that far
    ("rft", "metrics"): None,
    ("rl", "metrics"): None,
    ("bench", "out"): (("bench", "--model", "m", "--tasks", "tree", "--out", "OUT"), NOT_OF),
    ("tasks", "out"): (("tasks", "tree", "--out", "OUT"), NOT_OF),
    ("init", "out"): (("init", "--config", "c.json", "--out", "OUT"), NOT_OF),
    ("export", "out"): (("export", "--model", "m", "--out", "OUT"), NOT_OF),
    ("import", "out"): (("import", "m/config.json", "--out", "OUT"), "is there already"),
    ("translate", "out"): (("translate", "k.py", "--out", "OUT"), "is there already"),
    ("eval", "repro"): (("eval", "--task", "t.py", "k.py", "--repro", "OUT"), NOT_OF),
}
FILES = {
    ("eval", "out"): ("eval", "--task", "t.py", "OUT", "--out", "OUT"),
    ("eval", "capsule"): ("eval", "--task", "OUT", "k.py", "--capsule", "OUT"),
    ("agent", "out"): ("agent", "--task", "OUT", "--model", "m", "--out", "OUT"),
    ("agent", "log"): ("agent", "--task", "OUT", "--model", "m", "--log", "OUT"),
    ("shrink", "out"): ("shrink", "OUT", "--out", "OUT"),
    ("logits", "out"): ("logits", "--model", "m", "--tokens", "OUT", "--out", "OUT"),
    ("replay", "profile"): ("replay", "OUT", "--profile", "OUT"),
    ("bench", "html"): ("bench", "compare", "OUT", "m", "--html", "OUT"),
    ("card", "out"): ("card", "OUT", "--out", "OUT"),
    ("watch", "html"): ("watch", "OUT", "--html", "OUT"),
    ("synth", "values"): ("synth", "--probe", "relu", "--family-weights", "OUT", "--values", "OUT"),
}


class Results(test_folders.Folders):
    def setUp(self):
        super().setUp()
        self.write("t.py", TASK)
        self.write("tree/t.py", TASK)
        self.write("tree/t.csv", '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit",'
                                 '"Metric Value"\n"0","k","(1, 1, 1)","(1, 1, 1)","Duration","us","1"\n')
        self.write("k.py", "x = 1\n")
        self.write("c.json", CONFIG)
        self.write("r.yaml", test_folders.RECIPE % ("tiny", "synth"))
        self.succeed("init", "--config", "c.json", "--out", "m")

    def options(self, meta):
        """{(command, option)} whose values are such, of all commands."""
        found = set()
        for command in re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", self.call("help").stdout, re.M):
            help_text = self.call(*command.split(), "-h").stdout
            found |= {(command, x) for x in re.findall(rf"^  (?:-., )?--([a-z-]+) {meta}\b", help_text, re.M)}
        return found

    def holdings(self, folder):
        found = {}
        for d, _, names in os.walk(folder):
            for path in (os.path.join(d, f) for f in names):
                with open(path, "rb") as f:
                    found[path] = f.read()
        return found

    def test_a_foreign_folder_stays_as_it_is(self):
        self.assertEqual(self.options("FOLDER"), set(FOLDERS))
        self.finish()
        shutil.copytree(self.path("m"), self.path("o"))
        os.remove(self.path("o/.musacoder"))
        for name in ("k.py", "task.py", "candidate.py", "metrics.jsonl", "options.json", "notes.tmp.1",
                     "model-00001-of-00002.safetensors", "model.safetensors.index.json", "tasks/train/task_0001.py"):
            self.write("o/" + name, "mine\n")
        was = self.holdings(self.path("o"))
        for row in filter(None, FOLDERS.values()):
            self.refuse(row[1], *[w.replace("OUT", "o") for w in row[0]])
            self.assertEqual(self.holdings(self.path("o")), was, row)

    def refuse(self, words, *argv):
        p = self.call(*argv)
        self.assertIn(p.returncode, (2, 3), p.stdout + p.stderr)
        self.assertIn(words, p.stderr, argv)

    def test_no_file_that_is_read_is_written_over(self):
        self.assertEqual(self.options("FILE"), set(FILES))
        for (_, option), argv in FILES.items():
            self.write("f", "mine\n")
            os.symlink("f", self.path("link"))
            for at in ("f", "link"):
                words = [w.replace("OUT", "f") for w in argv]
                self.refuse(READ, *words[:-1], at)
                self.refuse(f"'tree' is a folder; --{option} wants the name of a file", *words[:-1], "tree")
            os.remove(self.path("link"))
            self.assertEqual(self.read("f"), "mine\n")

    def test_no_result_goes_into_a_folders_own_data(self):
        was = self.read("m/config.json")
        self.refuse("'m/config.json' is part of a folder that musacoder made", "watch", "r", "--html", "m/config.json")
        self.assertEqual(self.read("m/config.json"), was)
        shutil.copytree(self.path("m"), self.path("ours/sft/model"))
        os.rename(self.path("ours/sft/model/.musacoder"), self.path("ours/.musacoder"))
        self.refuse("is part of a folder that musacoder made", "watch", "r", "--html", "ours/sft/model/config.json")
        self.assertEqual(self.read("ours/sft/model/config.json"), was)

    def test_what_lies_in_a_folder_that_is_read_stays(self):
        self.write("answer/kernel.py", "mine\n")
        self.write("t.yaml", "tolerance: {}\n")
        self.refuse(READ, "eval", "--task", "t.py", "answer", "--out", "answer/kernel.py")
        self.refuse("would be written over", "eval", "--task", "t.py", "k.py", "--out", "t.yaml")
        self.assertEqual((self.read("answer/kernel.py"), self.read("t.yaml")), ("mine\n", "tolerance: {}\n"))
        self.write("cu/kernel.cu", '#include "h.cuh"\nint f() { return 1; }\n')
        self.write("cu/h.cuh", '#include "deep.cuh"\n')
        self.write("cu/deep.cuh", "// mine\n")
        for header in ("cu/h.cuh", "cu/deep.cuh"):
            self.refuse(READ, "eval", "--task", "t.py", "cu/kernel.cu", "--out", header)
        for row in (("shrink", "t.py"), ("agent", "--task", "t.py", "--model", "m")):
            self.refuse(READ, *row, "--out", "t.yaml")
        self.assertEqual(self.read("cu/deep.cuh"), "// mine\n")

    def test_no_result_takes_the_place_of_a_listed_one(self):
        self.succeed("synth", *test_folders.SYNTH, "--out", "corpus")
        task = "corpus/tasks/heldout/" + os.listdir(self.path("corpus/tasks/heldout"))[0]
        was = self.read(task)
        for name in (task, "corpus/.musacoder", "corpus/.musacoder.sums"):
            self.refuse(f"'{name}' is part of a folder that musacoder made", "shrink", "t.py", "--out", name)
        self.assertEqual(self.read(task), was)

    def test_no_result_goes_over_the_caches_files(self):
        self.write("cache/judge-secret", "secret\n")
        p = self.call("shrink", "t.py", "--out", "cache/judge-secret", MUSACODER_CACHE_DIR=self.path("cache"))
        self.assertIn("is part of a folder that musacoder made", p.stderr)
        self.assertEqual(self.read("cache/judge-secret"), "secret\n")

    def test_no_trace_is_written_into_somebodys_file(self):
        self.write("k2.py", "x = 1\n")
        p = self.call("eval", "--task", "t.py", "k2.py", MUSACODER_TRACE=self.path("k2.py"))
        self.assertEqual(p.returncode, 2)
        self.assertIn("which is no trace; name another file", p.stderr)
        self.assertEqual(self.read("k2.py"), "x = 1\n")

    def test_no_results_below_a_folder_that_is_read(self):
        for row in (("translate", "tree"), ("tasks", "tree"), ("synth", "mine", "tree")):
            for out in ("tree", "tree/new", "tree/new/deeper"):
                self.refuse(f"'{out}' lies in 'tree', whose files are read", *row, "--out", out)
        self.assertFalse(os.path.exists(self.path("tree/new")))

    def test_a_link_to_nothing_is_no_missing_file(self):
        os.symlink("nowhere", self.path("t.yaml"))
        self.refuse("cannot open 't.yaml'", "eval", "--task", "t.py", "k.py")

    def test_two_results_are_two_files(self):
        self.refuse("are the same file", "eval", "--task", "t.py", "k.py", "--out", "new", "--capsule", "./new")
        self.refuse("are the same file 'f'", "eval", "--task", "t.py", "k.py", "--out", "f", "--capsule", "f")

    def test_what_a_model_command_wrote_it_writes_again(self):
        self.succeed("init", "--config", "c.json", "--out", "m")
        self.succeed("export", "--model", "m", "--out", "x")
        self.succeed("export", "--model", "m", "--out", "x", "--dtype", "fp32")

    def test_what_a_user_does_with_a_model_stays(self):
        """In a folder of 'init' or 'export' that the command fills again: edits, files beside it, weights."""
        self.write("m/generation_config.json", "{}")
        self.write("m/tokenizer.json", "my tokenizer")
        self.write("m/model-00001-of-00002.safetensors", "my shard")
        shutil.copy(self.path("m/model.safetensors"), self.path("first"))
        self.write("m/model.safetensors", "my weights")
        self.succeed("init", "--config", "c.json", "--out", "m")
        self.assertEqual([self.read("m/" + x) for x in (
            "generation_config.json.edited", "tokenizer.json", "model-00001-of-00002.safetensors.edited",
            "model.safetensors.edited")], ["{}", "my tokenizer", "my shard", "my weights"])
        self.assertTrue(filecmp.cmp(self.path("first"), self.path("m/model.safetensors"), shallow=False))
        self.assertFalse(os.path.exists(self.path("m/model-00001-of-00002.safetensors")))

    def test_one_command_at_a_time_fills_a_folder(self):
        with open(self.path("m/.musacoder")) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            p = subprocess.Popen([test_folders.EXE, "init", "--config", "c.json", "--seed", "2", "--out", "m"],
                                 cwd=self.dir, stderr=subprocess.PIPE, text=True)
            said = p.stderr.readline()
            was = self.holdings(self.path("m"))
        p.stderr.read()
        self.assertIn("another command writes into 'm'; waiting for it", said)
        self.assertEqual(p.wait(), 0)
        self.assertNotEqual(self.holdings(self.path("m")), was)
        p.stderr.close()

    def test_no_result_below_a_stages_folder(self):
        self.succeed("run", "r.yaml", "--out", "r")
        for argv in (("shrink", "t.py", "--out"), ("card", "m", "--out"),
                     ("eval", "--task", "t.py", "k.py", "--capsule")):
            self.refuse("lies in the folder of a recipe's stage", *argv, "r/data/tasks/x.md")
        self.refuse("lies in the folder of a recipe's stage", "serve", "--queue", "r/data/q.db", "--port", "0")
        os.makedirs(self.path("r/data/x/y/z"))
        self.refuse("lies in the folder of a recipe's stage", "init", "--config", "c.json", "--out", "r/data/x/y/z/m")

    def test_no_result_goes_through_a_link_of_ours(self):
        self.succeed("run", "r.yaml", "--out", "r")
        self.write("mine.md", "mine\n")
        os.symlink("../mine.md", self.path("r/page.md"))
        os.symlink("..", self.path("r/up"))
        for name in ("r/page.md", "r/up/mine.md"):
            self.refuse("is a link, and what it names may be somebody's", "card", "m", "--out", name)
        os.remove(self.path("r/recipe.yaml"))
        os.symlink("../mine.md", self.path("r/recipe.yaml"))
        self.refuse("'r/recipe.yaml' is a link", "run", "r.yaml", "--out", "r")
        self.assertEqual(self.read("mine.md"), "mine\n")
        os.symlink("m/config.json", self.path("mine.link"))
        self.refuse("is part of a folder that musacoder made", "shrink", "t.py", "--out", "mine.link")

    def test_a_model_half_written_is_no_model(self):
        lines = self.read("m/.musacoder.sums").splitlines()  # as a stop leaves it (base/test_listing.c)
        self.write("m/.musacoder.sums", "\n".join([lines[0], "# unfinished", *lines[1:-1], ""]))
        self.refuse("'m' is unfinished", "export", "--model", "m", "--out", "x")
        self.succeed("init", "--config", "c.json", "--out", "m")
        self.succeed("export", "--model", "m", "--out", "x")

    def test_output_that_cannot_be_written_is_no_success(self):
        self.finish()
        words = ("schema",), ("help",), ("version",), ("man", "eval"), ("card", "r"), ("profile",), ("-h",)
        for argv in words:
            with open("/dev/full", "w") as full:
                p = subprocess.run([test_folders.EXE, *argv], cwd=self.dir, stdout=full, stderr=subprocess.PIPE,
                                   text=True)
            self.assertEqual((p.returncode, p.stderr.count("standard output")), (3, 1), (argv, p.stderr))

    def test_a_limit_of_file_sizes_is_told(self):
        """As 'ulimit -f' and the quotas of batch systems set it: no signal ends the command without a word."""
        for argv in (("init", "--config", "c.json", "--out", "limited"), ("export", "--model", "m", "--out", "limited"),
                     ("run", "r.yaml", "--out", "limited_run")):
            p = subprocess.run([test_folders.EXE, *argv], cwd=self.dir, capture_output=True, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)))
            self.assertEqual(p.returncode, 3, (argv, p.stderr))
            self.assertRegex(p.stderr, "'.*limited.*': File too large")

    def test_a_refused_source_leaves_no_former_translation(self):
        self.write("z.cu", "int ok(){}\n")
        self.succeed("translate", "--out", "musa", "z.cu")
        self.write("z.cu", '__global__ void f(float *x) { asm volatile("wgmma.fence.sync.aligned;"); }\n')
        self.assertEqual(self.call("translate", "--out", "musa", "z.cu").returncode, 1)
        self.assertFalse(os.path.exists(self.path("musa/z.mu")))
        os.remove(self.path("z.cu"))
        self.write("y.cu", "int ok(){}\n")
        self.succeed("translate", "--out", "musa", "y.cu")
        self.write("x.cu", "int ok(){}\n")
        self.assertIn("holds 1 file of other sources", self.succeed("translate", "--out", "musa", "x.cu"))
        self.write("y.cu", '__global__ void f(float *x) { asm volatile("wgmma.fence.sync.aligned;"); }\n')
        self.write("musa/y.mu", "edited\n")
        self.assertEqual(self.call("translate", "--out", "musa", "y.cu").returncode, 1)
        self.assertEqual(self.read("musa/y.mu"), "edited\n")
        self.succeed("translate", "--out", "tree", "k.py")  # a folder of the user's, to which a file is added
        self.refuse("'tree/k.py' is there already", "translate", "--out", "tree", "k.py")


for name in [n for n in dir(test_folders.Folders) if n.startswith("test_")]:
    setattr(Results, name, None)

if __name__ == "__main__":
    unittest.main()
