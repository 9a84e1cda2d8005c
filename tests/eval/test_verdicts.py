"""test_verdicts.py - end to end: real candidates through 'musacoder eval', every category, in one process per task."""
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402
import judges  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
PATIENCE_S = f"{30 * SLOWDOWN:g}"  # of candidates that end; the judge's side of a call counts, too


# Builds may be shared by test runs, verdicts may not: judge() passes --no-cache.
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))


def musacoder(*args, stdin=None, **env):
    return subprocess.run([EXE, *args], input=stdin, capture_output=True, text=True, timeout=280 * SLOWDOWN,
                          env=dict(os.environ, **env))


class Judge(unittest.TestCase):
    """What tests of verdicts share; test_precisions.py uses it too."""
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.dir.cleanup()

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def judge(self, task, rows, *options, cache="--no-cache"):
        task = self.write("task.py", task)
        paths = []
        for i, (name, _, _, source) in enumerate(rows):
            response = "```" in source or not any(w in source for w in ("class", "import", "="))
            paths.append(self.write(f"{i}{'.txt' if response else '.py'}", source))
        p = musacoder("eval", "--task", task, "--json", cache, *options, *paths)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        verdicts = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual(len(verdicts), len(rows), p.stderr)
        return verdicts, p.returncode

    def expect(self, rows, verdicts):
        wrong = []
        for (name, category, words, _), v in zip(rows, verdicts):
            want = category if isinstance(category, tuple) else (category,)
            if v["category"] not in want:
                wrong.append(f"{name}: {v['category']} instead of {category}: {v['feedback']}")
            wrong += [f"{name}: no '{w}' in: {v['feedback']}" for w in words if w not in v["feedback"]]
            if len(v["feedback"]) > 1500:
                wrong.append(f"{name}: feedback of {len(v['feedback'])} characters")
            reward = 1 if v["category"] is None else None
            if reward is not None and v["reward"] != reward or v["category"] and not -1 <= v["reward"] < 0:
                wrong.append(f"{name}: reward {v['reward']}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


class Verdicts(Judge):
    def test_relu(self):
        slow = [r for r in corpus.RELU if r[1] and "timeout" in r[1]]
        rows = [r for r in corpus.RELU if r not in slow]
        verdicts, code = self.judge(corpus.RELU_TASK, rows, "--trials", "1", "--timeout", PATIENCE_S)
        self.expect(rows, verdicts)
        self.assertEqual(code, 1)
        verdicts, _ = self.judge(corpus.RELU_TASK, slow, "--trials", "1", "--timeout", "3")
        self.expect(slow, verdicts)

    def test_parameters(self):
        verdicts, _ = self.judge(corpus.LINEAR_TASK, corpus.LINEAR, "--trials", "1", "--timeout", PATIENCE_S)
        self.expect(corpus.LINEAR, verdicts)
        self.assertEqual([v["correctness"]["params"] for v in verdicts[:3]], ["name", "order", "seed"])

    def test_several_outputs(self):
        verdicts, _ = self.judge(corpus.SEVERAL_TASK, corpus.SEVERAL, "--trials", "2", "--timeout", PATIENCE_S)
        self.expect(corpus.SEVERAL, verdicts)

    def test_numbers(self):
        for task, rows in corpus.NUMERIC:
            verdicts, _ = self.judge(task, rows, "--trials", "2", "--timeout", PATIENCE_S)
            self.expect(rows, verdicts)

    def test_record_and_cache(self):
        fresh = corpus.GOOD.replace("int n = x.numel();", f"int n = x.numel(); // {os.urandom(8).hex()}")
        rows = [("fresh", None, [], fresh)] * 3  # the same three times: one is judged
        started = time.monotonic()
        first, code = self.judge(corpus.RELU_TASK, rows, "--trials", "1", cache="--cache")
        took = time.monotonic() - started
        self.assertEqual(code, 0)
        self.assertEqual(sorted(v.pop("cached", False) for v in first), [False, True, True])
        self.assertEqual(first[1], dict(first[0], candidate=first[1]["candidate"]))
        started = time.monotonic()
        again, _ = self.judge(corpus.RELU_TASK, rows, "--trials", "1", cache="--cache")
        self.assertLess(time.monotonic() - started, took / 3)  # torch is not even imported
        self.assertTrue(again[0].pop("cached"))
        free, _ = self.judge(corpus.RELU_TASK, rows[:1], "--trials", "1", "--jail", "none", cache="--cache")
        self.assertNotIn("cached", free[0])  # what ran without a jail is no answer for who asks for one
        self.assertEqual(first[0], again[0])
        for key in ("schema", "task", "task_sha256", "candidate_sha256", "backend", "protocol", "status", "category",
                    "stage",
                    "extraction", "compile", "correctness", "legality", "performance", "reward", "feedback", "stage_ms",
                    "environment"):
            self.assertIn(key, first[0])
        self.assertEqual(first[0]["schema"], "musacoder.verdict/2")
        self.assertEqual(first[0]["compile"]["cache"], "miss")
        self.assertIsNone(first[0]["performance"])

    def test_kernelbench_protocol(self):
        rows = [r for r in corpus.RELU if r[0] in ("honest", "wrong index", "torch in forward")]
        verdicts, _ = self.judge(corpus.RELU_TASK, rows, "--protocol", "kernelbench")
        last = [r[0] for r in rows].index("torch in forward")
        published = verdicts.pop(last)
        self.expect([r for i, r in enumerate(rows) if i != last], verdicts)
        self.assertEqual(verdicts[0]["correctness"]["trials"], 5)
        # the published code lets torch's operators stand: its verdict, and what is not the program's own beside it
        self.assertEqual((published["category"], published["legality"]["ok"]), (None, False))
        for words in "aten::relu", "torch.relu(x)", "under the published rules":
            self.assertIn(words, published["feedback"])
        self.assertNotIn("your own kernels.", published["feedback"])

    def test_standard_input(self):
        task = self.write("task.py", corpus.RELU_TASK)
        p = musacoder("eval", "--task", task, "--trials", "1", "-", stdin="```python\n" + corpus.GOOD + "```")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("PASS (standard input)", p.stdout)


class BadInput(unittest.TestCase):
    def expect_line(self, p, code, *words):
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        lines = [x for x in p.stderr.splitlines() if x.strip()]
        self.assertEqual(len(lines), 1, p.stderr)
        for w in words:
            self.assertIn(w, lines[0])

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = lambda n: os.path.join(self.dir.name, n)

    def tearDown(self):
        self.dir.cleanup()

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def test_files(self):
        ok = self.write("ok.py", corpus.GOOD)
        task = self.write("t.py", corpus.RELU_TASK)
        self.expect_line(musacoder("eval", "--task", self.path("none.py"), ok), 2, "none.py")
        self.expect_line(musacoder("eval", "--task", task, self.path("none.py")), 2, "none.py")
        self.expect_line(musacoder("eval", "--task", task), 2, "candidate")
        self.expect_line(musacoder("eval", ok), 2, "--task")
        self.expect_line(musacoder("eval", "--task", ok, ok), 2, "ok", "Model")
        self.expect_line(musacoder("eval", "--task", task, "--protocol", "none", ok), 2, "none")
        self.expect_line(musacoder("eval", "--task", task, "--trials", "0", ok), 2, "trials")
        self.expect_line(musacoder("eval", "--worker"), 2, "--queue")

    def test_a_task_with_one_answer_accuses_nobody(self):
        ok = self.write("ok.py", corpus.GOOD)
        task = self.write("t.py", corpus.RELU_TASK.replace("torch.relu(x)", "(x == x).float()"))
        p = musacoder("eval", "--task", task, "--no-cache", "--trials", "1", ok)
        self.expect_line(p, 2, "the same for all inputs")

    def test_constant_inputs_vary(self):
        """Inputs of ones have one answer; a judge that kept them so could tell nothing apart."""
        ok = self.write("ok.py", corpus.GOOD)
        task = self.write("t.py", corpus.RELU_TASK.replace("torch.randn(rows, cols)", "torch.ones(rows, cols)"))
        p = musacoder("eval", "--task", task, "--no-cache", "--trials", "1", ok)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_one_answer_within_the_tolerance_is_one(self):
        """The mean of a softmax is 1/n: rounding alone tells its draws apart. Numbers that differ are answers that
        do."""
        ok = self.write("ok.py", corpus.GOOD)
        for op, words in (("torch.softmax(x, 1).mean(1)", "same for all inputs"), ("float(x.sum())", "")):
            task = self.write("t.py", corpus.RELU_TASK.replace("torch.relu(x)", op))
            p = musacoder("eval", "--task", task, "--no-cache", "--trials", "1", ok)
            self.assertEqual((p.returncode, "same for all inputs" in p.stderr), (2, True) if words else (1, False),
                             p.stderr)

    def test_broken_tasks(self):
        ok = self.write("ok.py", corpus.GOOD)
        unclosed = self.write("u.py", corpus.RELU_TASK.replace("torch.relu(x)", "torch.relu(x"))
        p = musacoder("eval", "--task", unclosed, ok)
        self.expect_line(p, 2, "SyntaxError", "never closed", ": return torch.relu(x)")
        with open(self.path("b.py"), "wb") as f:
            f.write(corpus.RELU_TASK.encode() + b"# \xff\n")
        self.expect_line(musacoder("eval", "--task", self.path("b.py"), ok), 2, "UTF-8")
        raising = self.write("r.py", corpus.RELU_TASK.replace("torch.relu(x)", "undefined_name(x)"))
        self.expect_line(musacoder("eval", "--task", raising, ok), 2, "undefined_name")
        large = self.write("l.py", corpus.RELU_TASK.replace("16, 37", "1000, 1000"))
        self.expect_line(musacoder("eval", "--task", large, "--max-elements", "1000", ok), 2, "shrink")


class Shrink(unittest.TestCase):
    TASK = corpus.LINEAR_TASK.replace("import torch.nn as nn\n", "import torch.nn as nn\n\nbatch, n_in, n_out = 1 << "
                                                                 "14, 4096, "
                                     "8192\n").replace("5, 19", "batch, n_in").replace("[19, 11]", "[n_in, n_out]")

    def test_shrink(self):
        with tempfile.TemporaryDirectory() as d:
            path, out = os.path.join(d, "t.py"), os.path.join(d, "small.py")
            with open(path, "w") as f:
                f.write(self.TASK)
            p = musacoder("shrink", path, "--max-elements", "4096", "--out", out)
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(out) as f:
                text = f.read()
            line = [x for x in text.splitlines() if x.startswith("batch")][0]
            b, i, o = (int(x) for x in line.split("=")[1].split(","))
            self.assertLessEqual(max(b * i, b * o, i * o), 4096)
            self.assertGreater(min(b, i, o), 1)
            self.assertEqual(text.replace(line, ""), self.TASK.replace("batch, n_in, n_out = 1 << 14, 4096, 8192", ""))
            with open(path, "w") as f:
                f.write(corpus.RELU_TASK.replace("torch.randn(rows, cols)", "torch.randn(int('512'), 512)"))
            p = musacoder("shrink", path, "--max-elements", "100")
            self.assertEqual(p.returncode, 2)
            self.assertIn("module-level", p.stderr)

    def test_remembered(self):
        """By the task's text and the limit: what the cache folder holds is what comes, and no Python starts."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "t.py")
            env = {"MUSACODER_CACHE_DIR": os.path.join(d, "cache")}
            with open(path, "w") as f:
                f.write(self.TASK)

            def ask(limit):
                p = musacoder("shrink", path, "--max-elements", str(limit), **env)
                self.assertEqual(p.returncode, 0, p.stderr)
                return p.stdout
            first = ask(4096)
            kept = glob.glob(os.path.join(d, "cache", "shrunk", "*", "*.json"))
            self.assertEqual(len(kept), 1)
            with open(kept[0]) as f:
                known = json.loads(f.read()[80:])  # behind its seal
            self.assertEqual(known["reply"]["source"], first)
            known["reply"]["source"] = "remembered"
            text = json.dumps(known)
            name = "/".join(kept[0].split("/")[-2:])  # of the entry: its seal holds it (store/seal.h)
            words = [len(w).to_bytes(8, "little") + w for w in (b"musacoder seal", name.encode())]
            seal = hashlib.sha256(b"".join(words) + text.encode()).hexdigest()
            with open(kept[0]) as f:
                magic = f.read(80).split(" ")[0] + " "
            with open(kept[0], "w") as f:
                f.write(f"{magic + seal:<79}\n{text}")
            self.assertEqual(ask(4096), "remembered")
            self.assertNotEqual(ask(8192), "remembered")


if __name__ == "__main__":
    unittest.main()
