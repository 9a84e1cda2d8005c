"""test_schemas.py - docs/schema describes what the program really reads and writes: records of every kind of verdict,
a small data set, a benchmark, a sidecar, lint and doctor, each against its schema; and no key of a record is left
undescribed. Needs the Debian package python3-jsonschema (setup/setup.sh --tests)."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    if os.environ.get("SCHEMAS_AGAIN") or subprocess.run(["/usr/bin/python3", "-c", "import jsonschema"],
                                                         capture_output=True, check=False).returncode:
        print("skipped: python3-jsonschema is not installed")
        sys.exit(0)
    os.execve("/usr/bin/python3", ["/usr/bin/python3", os.path.abspath(__file__)], dict(os.environ, SCHEMAS_AGAIN="1"))

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build/musacoder"))
TASK = os.path.join(ROOT, "docs/example/task.py")
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
import judges  # noqa: E402

judges.share_owner()


def run(*words, **more):
    return subprocess.run([EXE, *words], capture_output=True, text=True, check=False, **more)


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(x) for x in f]


def undescribed(v, schema, whole, at=""):
    """Keys of a value that the schema says nothing of."""
    if "$ref" in schema:
        return undescribed(v, whole["$defs"][schema["$ref"].rsplit("/", 1)[1]], whole, at)
    if "anyOf" in schema:
        return min((undescribed(v, s, whole, at) for s in schema["anyOf"]), key=len)
    if isinstance(v, list):
        return [w for x in v for w in undescribed(x, schema.get("items", {}), whole, at + "[]")]
    if not isinstance(v, dict) or "properties" not in schema:
        return [] if not isinstance(v, dict) or "type" in schema else [at]
    return [w for k, x in v.items() for w in (undescribed(x, schema["properties"][k], whole, f"{at}.{k}")
                                              if k in schema["properties"] else [f"{at}.{k}"])]


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.schemas = {}
        for path in glob.glob(os.path.join(ROOT, "docs/schema/*.json")):
            name = os.path.basename(path)[:-5]
            cls.schemas[name] = json.loads(run("schema", name).stdout)
        with open(os.path.join(ROOT, "docs/example/kernel.py"), encoding="utf-8") as f:
            cls.good = f.read()

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    def fits(self, name, v):
        kind = getattr(jsonschema, "Draft202012Validator", None) or jsonschema.Draft7Validator
        wrong = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in
                 kind(self.schemas[name]).iter_errors(v)]
        self.assertEqual(wrong, [], f"{name}: {json.dumps(v)[:1500]}")

    def test_schemas_are_schemas(self):
        self.assertGreater(len(self.schemas), 8)
        for name, schema in self.schemas.items():
            jsonschema.Draft7Validator.check_schema({k: v for k, v in schema.items() if k != "$schema"})
            self.assertIn(name, run("schema").stdout)
        for broken in ({}, {"schema": "musacoder.verdict/2", "status": "right"}):
            with self.assertRaises(AssertionError):
                self.fits("verdict", broken)

    def verdicts(self):
        g = self.good
        programs = {
            "good.py": g, "oob.py": g.replace("i < n", "i <= n"), "wrong.py": g.replace("0.5f", "0.51f"),
            "compile.py": g.replace("tanhf(", "tanhh("), "syntax.py": g.replace("def forward(self, x):", "def f(:"),
            "torch.py": g.replace("return module.forward(x)", "return (x * 0.5).tanh()"), "none.py": "x = 1\n",
            "raises.py": g.replace("return module.forward(x)", "raise ValueError(x.shape)"),
            "shape.py": g.replace("return y;", "return y.t();"), "prose.md": "no program at all",
            "prints.py": g.replace("    if (i < n)", '    if (i == 0) printf("x");\n    if (i < n)'),
            "triton.py": "import torch.nn as nn\nimport triton\n\n\n@triton.jit\ndef k(x):\n    pass\n\n\n"
                         "class ModelNew(nn.Module):\n    def forward(self, x):\n        k[(1,)](x)\n"
                         "        return x\n",
            "empty.py": g.replace("i < n", "i < n - 1"),
        }
        for name, text in programs.items():
            with open(os.path.join(self.tmp.name, name), "w", encoding="utf-8") as f:
                f.write(text)
        p = run("eval", "--task", TASK, "--json", *programs, cwd=self.tmp.name)
        return [json.loads(x) for x in p.stdout.splitlines()]

    def test_verdicts(self):
        records = self.verdicts()
        self.assertGreaterEqual({r["category"] for r in records},
                                {None, "runtime_error", "correctness_error", "compile_error", "cheating",
                                 "extraction_error", "unsupported"})
        for r in records:
            self.fits("verdict", r)
            self.assertEqual(undescribed(r, self.schemas["verdict"], self.schemas["verdict"]), [])

    def test_data_set_and_benchmark(self):
        data, out = os.path.join(self.tmp.name, "data"), os.path.join(self.tmp.name, "bench")
        p = run("synth", "--out", data, "--tasks", "3", "--heldout", "1", "--prompts", "2", "--knowledge", "3",
                "--repairs", "0", "--no-verify", "--harvest", "1")
        self.assertEqual(p.returncode, 0, p.stderr)
        for name, kind in (("train", "record"), ("prompts", "prompt"), ("heldout", "record"), ("harvest", "record")):
            rows = lines(os.path.join(data, name + ".jsonl"))
            self.assertTrue(rows, name)
            for row in rows:
                self.fits(kind, row)
        samples = os.path.join(self.tmp.name, "samples")
        os.makedirs(samples)
        os.makedirs(os.path.join(self.tmp.name, "tasks"))
        for name, text in (("samples/task_0.py", self.good), ("samples/task_1.py", "x = 1\n")):
            with open(os.path.join(self.tmp.name, name), "w", encoding="utf-8") as f:
                f.write(text)
        with open(TASK, encoding="utf-8") as f, open(os.path.join(self.tmp.name, "tasks/task.py"), "w",
                                                     encoding="utf-8") as to:
            to.write(f.read())
        p = run("bench", "--tasks", os.path.join(self.tmp.name, "tasks"), "--samples", samples, "--out", out)
        self.assertEqual(p.returncode, 0, p.stderr)
        for row in lines(os.path.join(out, "samples.jsonl")):
            self.fits("sample", row)
        for row in lines(os.path.join(out, "verdicts.jsonl")):
            self.fits("verdict", row["verdict"])
        with open(os.path.join(out, "bench.json"), encoding="utf-8") as f:
            self.fits("bench", json.load(f))

    def test_lint_and_doctor(self):
        self.fits("lint", json.loads(run("lint", "--json", TASK).stdout))
        self.fits("doctor", json.loads(run("doctor", "--json").stdout))

    def test_sidecar_of_the_page(self):
        """The schema and the reader of sidecars refuse the same; the page's example is right for both."""
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml")
        with open(os.path.join(ROOT, "docs/sidecar.md"), encoding="utf-8") as f:
            text = f.read().split("```yaml\n")[1].split("```")[0]
        self.fits("sidecar", yaml.safe_load(text))
        for wrong in ({"variants": [{}]}, {"tolerance": {"abs": -1}}, {"regimes": ["odd"]}):
            with self.assertRaises(AssertionError):
                self.fits("sidecar", wrong)


if __name__ == "__main__":
    unittest.main()
