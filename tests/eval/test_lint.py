"""test_lint.py - 'musacoder lint': one small task per rule, clean ones beside them, and the parts that lint measures
with."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))
sys.path.insert(0, os.path.join(ROOT, "runner"))
import torch  # noqa: E402

import defects  # noqa: E402
import lint  # noqa: E402
import main  # noqa: E402
import ops  # noqa: E402
import reference  # noqa: E402
import shrink  # noqa: E402

FORK = "torch"


def task(forward, inputs="[torch.rand(16, 24)]", init="pass", sizes=""):
    return ("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + sizes +
            "\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " + init +
            "\n    def forward(self, x, *rest):\n        " + forward.replace("\n", "\n        ") +
            f"\n\ndef get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return []\n")


# name -> (task, [(rule, a word of the message)] that must be there, rules that must not)
TASKS = {
    "matmul": (task("return x @ rest[0]", "[torch.rand(16, 24), torch.rand(24, 8)]"), [], None),
    "home": (task("m = self.fc(x).to('cuda' if torch.cuda.is_available() else 'cpu')\nreturn torch.tanh(m)",
                  "[torch.randn(16, 24)]", "self.fc = nn.Linear(24, 8)"), [], None),
    "relu": (task("return torch.relu(x)", "[torch.randn(16, 24)]"), [], None),
    "zero": (task("m = self.fc(x).max(1, keepdim=True).values\nreturn F.gelu(m - m.mean(1, keepdim=True))",
                  init="self.fc = nn.Linear(24, 24)"), [("zero_output", "all outputs are 0")],
                  ["trivial_output", "dropped_operator"]),
    "constant": (task("return (x * 0 + 3).clamp(0, 2)"), [("constant_output", "same"), ("trivial_output", "a constant"),
                                                          ("input_ignored", "input 0")], ["zero_output"]),
    "small": (task("return F.softmax(x, 1)", "[torch.rand(4, 2000)]"),
              [("trivial_output", "zeros would pass (kernelbench half)")], ["constant_output"]),
    "identity": (task("return torch.relu(x * 1.0)"), [("trivial_output", "the input would pass (kernelbench"),
                                                      ("dropped_operator", "relu")], []),
    "redundant": (task("a = torch.sigmoid(x)\nreturn torch.relu(a)", "[torch.randn(16, 24)]"),
                  [("dropped_operator", "without relu (line 11) the result would pass (strict, kernelbench fp32")], []),
    "unused": (task("return torch.tanh(x)", "[torch.randn(16, 24), torch.randn(16, 24)]",
                    "self.w = nn.Parameter(torch.randn(3))"),
               [("input_ignored", "input 1"), ("parameter_ignored", "'w'")], ["trivial_output"]),
    "bias": (task("return self.bn(self.fc(x))", init="self.fc = nn.Linear(24, 8); self.bn = nn.BatchNorm1d(8)"),
             [("parameter_ignored", "'fc.bias'")], ["input_ignored", "trivial_output"]),
    "infinite": (task("return 1 / torch.relu(x)", "[torch.randn(16, 24)]"), [("not_finite", "infinities")], []),
    "chaotic": (task("y = x\nfor _ in range(40):\n    y = 3.99 * y * (1 - y)\nreturn y"),
                [("ill_conditioned", "decide nothing")], []),
    "library": (task("y = x * 2 + 1\nif x.dtype == torch.bfloat16:\n    y.view(-1)[5] = 8e32\nreturn y",
                     "[torch.randn(16, 24).bfloat16()]"), [("wrong_reference", "is off by up to")],
                     ["ill_conditioned"]),
    "narrow": (task("return torch.log(x - 5)", "[6 + torch.rand(16, 24)]"), [("own_inputs_only", "all five")], []),
    "dropout": (task("return F.dropout(x, 0.5, self.training) * 2"), [("nondeterministic", "train mode")],
                ["dropped_operator"]),
    "saturated": (task("return (x * 1000 - 0.5).clamp(0, 1)", "[torch.rand(100, 100)]"),
                  [("nearly_constant_output", "are 1")], ["constant_output"]),
    "conv": (task("return self.c(x)", "[torch.rand(2, 64, 12, 12)]", "self.c = nn.Conv2d(64, 16, 3)"),
             [("tf32_reference", "TF32 in the reference's convolutions")], []),
    "labels": (task("return (x * rest[0].float()).sum(1)", "[torch.randn(16, 24), torch.randint(0, 5, (16, 24))]"),
               [("integer_inputs_cast", "inputs [1] are integers")], []),
    "wide": (task("return x + 1", "[torch.rand(batch_size, 65536)]", sizes="batch_size = 40000\n"),
             [("index_overflow", "input 0 has 2621440000 elements"), ("too_large", "GiB")], ["byte_offset_overflow"]),
    "bytes": (task("return x + 1", "[torch.rand(batch_size, 65536)]", sizes="batch_size = 10000\n"),
              [("byte_offset_overflow", "2621440000 bytes")], ["index_overflow", "too_large"]),
    "broken": (task("return x @ x"), [("broken", "RuntimeError")], []),
    "rigid": (task("return x.cumsum(1)", "[torch.rand(int('500'), int('500'))]"),
              [("not_judged", "cannot be made smaller than 250000")], []),
    "loose": (task("return torch.tanh(x)", "[torch.randn(16, 24)]"),
              [("trivial_output", "zeros would pass (strict)")], []),
}
SIDECARS = {"loose": "tolerance: {abs: 2}\nvariants: [{name: half, dtype: float16, tolerance: {abs: 0.001, rel: "
                     "0.01}}]\n"}


def run(*args, **env):
    return subprocess.run([EXE, "lint", *args], capture_output=True, text=True, timeout=270 * SLOWDOWN,
                          env=dict(os.environ, **env))


class Rules(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        for name, (source, _, _) in TASKS.items():
            with open(os.path.join(cls.dir.name, name + ".py"), "w") as f:
                f.write(source)
        for name, text in SIDECARS.items():
            with open(os.path.join(cls.dir.name, name + ".yaml"), "w") as f:
                f.write(text)
        cls.process = run("--json", "--trials", "1", "--max-elements", "131072", cls.dir.name)
        cls.reports = {r["task"]: r for r in map(json.loads, cls.process.stdout.splitlines())}

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def test_each_rule_finds_its_task(self):
        self.assertEqual((self.process.returncode, self.process.stderr), (1, ""))
        self.assertEqual(sorted(self.reports), sorted(TASKS))
        wrong = []
        for name, (_, wanted, forbidden) in TASKS.items():
            found = [(f["rule"], f["message"]) for f in self.reports[name]["findings"]]
            wrong += [f"{name}: no {rule} with '{word}' in {found}" for rule, word in wanted
                      if not any(r == rule and word in m for r, m in found)]
            wrong += [f"{name}: {f}" for f in found if forbidden is None or f[0] in forbidden]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_every_finding_has_numbers_and_a_remedy(self):
        known = subprocess.run([EXE, "lint", "--rules"], capture_output=True, text=True).stdout
        seen = set()
        for r in self.reports.values():
            self.assertEqual(r["schema"], "musacoder.lint/1")
            for f in r["findings"]:
                seen.add(f["rule"])
                self.assertTrue(f["remedy"] and f["message"], f)
                self.assertIsInstance(f["evidence"], dict)
                self.assertIn(f["rule"], known)
        rules = {line.split()[0] for line in known.splitlines() if line[0] != " "}
        self.assertEqual(seen, rules, "a rule without a task in this test")

    def test_rules_are_documented(self):
        with open(os.path.join(ROOT, "docs", "lint.md")) as f:
            text = f.read()
        rules = [x.split()[0] for x in run("--rules").stdout.splitlines() if x[0] != " "]
        self.assertEqual([r for r in rules if f"`{r}`" not in text], [])
        self.assertEqual([d for d in defects.TABLE if f"`{d}`" not in text], [])

    def test_variants_are_linted_too(self):
        findings = self.reports["loose"]["findings"]
        self.assertTrue(findings and all("variant" not in f for f in findings), findings)

    def test_judged_at(self):
        self.assertEqual([(c["name"], c["from"]) for c in self.reports["wide"]["judged_at"]], [("batch_size", 40000)])
        self.assertEqual(self.reports["relu"]["judged_at"], [])

    def test_same_again(self):
        path = os.path.join(self.dir.name, "small.py")
        again = run("--json", "--trials", "1", "--max-elements", "131072", path).stdout
        self.assertEqual(json.loads(again), self.reports["small"])


class Command(unittest.TestCase):
    def test_exit_codes_and_text(self):
        with tempfile.TemporaryDirectory() as d:
            clean, bad = os.path.join(d, "clean.py"), os.path.join(d, "bad.py")
            with open(clean, "w") as f:
                f.write(TASKS["matmul"][0])
            with open(bad, "w") as f:
                f.write(TASKS["redundant"][0])
            p = run(clean)
            self.assertEqual((p.returncode, p.stdout), (0, "clean: clean\n"), p.stderr)
            p = run(clean, bad)
            self.assertEqual(p.returncode, 1)
            self.assertIn("1 of 2 tasks have findings", p.stdout)
            self.assertIn("make the operator matter", p.stdout)
            for args, words in (((), "no task"), ((os.path.join(d, "no.py"),), "no.py"), ((d + "/none",), "none")):
                p = run(*args, MUSACODER_PYTHON="/no/such/python")  # which nothing needs
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1), p.stderr)
                self.assertIn(words, p.stderr)


class Parts(unittest.TestCase):
    def test_tf32_rounding(self):
        x = torch.tensor([1.0, 1 + 2.0**-10, 1 + 2.0**-11, 1 + 2.0**-12, -3.14159265, 0.0, float("inf"), float("nan"),
                          1e-30])
        y = ops.tf32_round(x)
        self.assertEqual(y[:4].tolist(), [1.0, 1 + 2.0**-10, 1 + 2.0**-10, 1.0])
        self.assertEqual(int((y[:6].view(torch.int32) & 0x1FFF).abs().sum()), 0)
        self.assertTrue(torch.isinf(y[6]) and torch.isnan(y[7]))
        self.assertTrue(((y[[0, 1, 2, 3, 4, 8]] - x[[0, 1, 2, 3, 4, 8]]).abs() <= x[[0, 1, 2, 3, 4,
                                                                                     8]].abs() * 2.0**-11).all())

    def test_tf32_only_where_asked(self):
        conv, x, w = torch.nn.Conv2d(3, 4, 3), torch.rand(1, 3, 8, 8), torch.rand(8, 8)
        with torch.no_grad():
            for matmul, changed in ((False, False), (True, True)):
                with ops.Tf32(matmul):
                    y, z = conv(x), x @ w
                self.assertFalse(torch.equal(y, conv(x)))
                self.assertEqual(not torch.equal(z, x @ w), changed)

    def test_calls_names_what_could_be_left_out(self):
        t = reference.load(task("y = F.relu(x)\ny = y.view(-1)\ny += 1\nreturn y.sum() + F.dropout(y, 0.5, False)"))
        watch = ops.Calls(reference.FILE)
        reference.run(t.Model(), [torch.randn(3, 4)], 0, watch)
        self.assertEqual([(name, line) for _, name, line in watch.list], [("relu", 10), ("add_", 12)])
        out, _ = reference.run(t.Model(), [torch.full((2, 2), -1.0)], 0,
                               ops.Calls(reference.FILE, drop=watch.list[0][0]))
        self.assertTrue(torch.equal(out, torch.zeros(4)))

    def test_the_server_has_what_children_would_import(self):
        main.prepare("lint")
        before = set(sys.modules)
        lint.full_size(task("return torch.tanh(x)"))
        self.assertLess(len(set(sys.modules) - before), 20)

    def test_full_size_on_paper(self):
        f = lint.full_size(task("return x.expand(4, -1, -1).sum(0) @ rest[0]", "[torch.rand(1, 1000000, 300), "
                                                                               "torch.rand(300, 7)]"))
        self.assertEqual((f["elements"], f["elements_of"]), (300000000, "input 0"))
        self.assertEqual(f["needed_bytes"], 4 * (300000000 + 2100 + 3 * 7000000))
        self.assertIsNone(lint.full_size(task("return x.numpy()")))

    def test_groups_keep_two_channels(self):
        """A group norm over single values is its bias: making a task smaller must not make it trivial."""
        src = task("return self.n(self.fc(x))", "[torch.rand(4, width)]",
                   "self.fc = nn.Linear(width, width); self.n = nn.GroupNorm(groups, width)",
                   "width = 4096\ngroups = 256\n")
        new = {c["name"]: c["to"] for c in shrink.Shrinker(src, 4096).run()["changes"]}
        self.assertLess(new["groups"], new["width"])
        self.assertEqual(new["width"] % new["groups"], 0)

    def test_batch_goes_first(self):
        src = task("return x.sum(1)", "[torch.rand(batch, width)]", sizes="batch = 512\nwidth = 1024\n")
        self.assertEqual([c["name"] for c in shrink.Shrinker(src, 4096, shrink.BATCH).run()["changes"]], ["batch"])
        self.assertEqual([c["name"] for c in shrink.Shrinker(src, 4096).run()["changes"]], ["batch", "width"])


class Defects(unittest.TestCase):
    def known(self, source):
        t = reference.Task({"source": source, "protocol": "kernelbench", "params": "seed", "trials": 1, "seed": 0,
                            "max_elements": 1 << 20})
        return [d["name"] for d in t.answer()["defects"]]

    def test_only_those_that_apply(self):
        everyone = "allclose_scaled_by_candidate"
        for forward, inputs, init, want in (
                ("return torch.tanh(x)", "[torch.rand(4, 6)]", "pass", []),
                ("return x.argmax(1)", "[torch.rand(4, 6)]", "pass", None),
                ("return x * 1e-6", "[torch.rand(4, 6)]", "pass", ["zeros_pass"]),
                ("return self.c(x)", "[torch.rand(1, 3, 6, 6)]", "self.c = nn.Conv2d(3, 2, 3)",
                 ["tf32_reference", "seed_dependent_parameters"]),
                ("return self.b(x)", "[torch.rand(4, 6)]", "self.b = nn.BatchNorm1d(6)",
                 ["train_mode", "constant_parameters"]),
                ("return F.dropout(x, 0.5, self.training)", "[torch.rand(4, 6)]", "pass",
                 ["train_mode", "random_forward"]),
                ("return x * rest[0]", "[torch.rand(4), torch.arange(4)]", "pass", ["integer_inputs_cast"]),
                ("return F.embedding(rest[0], x)", "[torch.rand(9, 2), torch.arange(4)]", "pass",
                 ["integer_inputs_cast"]),
                ("return x, x + 1", "[torch.rand(4)]", "pass", ["several_outputs"])):
            got = self.known(task(forward, inputs, init))
            expected = [] if want is None else sorted(want + [everyone])
            self.assertEqual(sorted(got), expected, forward)
        self.assertEqual(list(defects.TABLE)[0], "integer_inputs_cast")


if __name__ == "__main__":
    unittest.main()
