"""test_sidecar.py - NAME.yaml beside a task: variants are run by strict, named in record and feedback, ignored by
kernelbench."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import judges

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))
sys.path.insert(0, os.path.join(ROOT, "runner"))
import reference  # noqa: E402
import sizes  # noqa: E402

FORK = "torch"
TASK = '''
import torch
import torch.nn as nn

batch_size = 6  # rows
n_in, n_out = 8, 8
shape = (batch_size, n_in)

class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.fc(x)

def get_inputs():
    return [torch.rand(batch_size, n_in)]

def get_init_inputs():
    return [n_in, n_out]
'''

# %(rows)s: how many rows it believes in; %(load)s: how it reads x; %(types)s: dtypes that it knows.
PROGRAM = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
template <typename T>
__global__ void fc(const T* x, const T* w, const T* b, T* y, int m, int k, int n, int s0, int s1) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n || i >= %(rows)s) return;
    double s = b[j];
    for (int q = 0; q < k; q++) s += (double)x[%(load)s] * w[j * k + q];
    y[i * n + j] = s;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto y = torch::empty({m, n}, x.options());
    dim3 grid((n + 31) / 32, m);
    if (x.scalar_type() == torch::kFloat32)
        fc<float><<<grid, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                m, k, n, x.stride(0), x.stride(1));
    else
        fc<double><<<grid, 32>>>(x.data_ptr<double>(), w.data_ptr<double>(), b.data_ptr<double>(), y.data_ptr<double>(),
                                 m, k, n, x.stride(0), x.stride(1));
    return y;
}
"""
ext = load_inline(name="fc", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=src, functions=["run"])

class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return ext.run(x, self.fc.weight, self.fc.bias)
'''
GOOD = PROGRAM % {"rows": "m", "load": "i * s0 + q * s1"}
ROWS = PROGRAM % {"rows": "6", "load": "i * s0 + q * s1"}
DENSE = PROGRAM % {"rows": "m", "load": "i * k + q"}

ODD = "variants:\n  - name: odd\n    sizes: {batch_size: 13, n_out: 5}\n"
TURNED = "variants:\n  - {name: turned, layout: transposed}\n"
DOUBLE = "variants:\n  - {name: wide, dtype: float64, regimes: [uniform, task]}\n"


class Sidecar(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.write("t.py", TASK)

    def tearDown(self):
        self.dir.cleanup()

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def eval(self, program, yaml, *options):
        self.write("t.yaml", yaml)
        return subprocess.run([EXE, "eval", "--task", os.path.join(self.dir.name, "t.py"), "--json", "--trials", "1",
                               *options,
                               self.write("c.py", program)], capture_output=True, text=True, timeout=280 * SLOWDOWN)

    def verdict(self, program, yaml, *options):
        p = self.eval(program, yaml, "--no-cache", *options)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        return json.loads(p.stdout)

    def test_right_in_every_variant(self):
        v = self.verdict(GOOD, ODD + TURNED[len("variants:\n"):] + DOUBLE[len("variants:\n"):])
        self.assertEqual((v["status"], v["reward"]), ("passed", 1), v["feedback"])
        c = v["correctness"]
        self.assertEqual(c["sidecar"], {"applied": True, "variants": ["odd", "turned", "wide"], "why": None,
                                        "format": None, "tolerance": None})
        self.assertEqual([k for k in c["regimes"] if k.startswith("wide/")], ["wide/uniform", "wide/task"])
        self.assertEqual(c["regimes"]["odd/normal"], {"trials": 1, "passed": 1})
        # five distributions, edges, influence and the task's own; of wide those that it asks for
        for variant, n in (("odd/", 8), ("turned/", 8), ("wide/", 2)):
            self.assertEqual(len([k for k in c["regimes"] if k.startswith(variant)]), n, variant)
        self.assertEqual(c["params"], "name")

    def test_hard_coded_rows(self):
        v = self.verdict(ROWS, ODD)
        c = v["correctness"]
        self.assertEqual(v["category"], "correctness_error")
        for key, r in c["regimes"].items():
            self.assertEqual(r["passed"], 0 if key.startswith("odd/") else r["trials"], key)
        w = v["correctness"]["worst"]
        self.assertEqual((w["variant"], w["variant_is"]), ("odd", "batch_size = 13, n_out = 5"))
        self.assertIn("variant 'odd' of the task (batch_size = 13, n_out = 5)", v["feedback"])
        self.assertEqual(v["legality"]["violations"], [])

    def test_ignores_strides(self):
        v = self.verdict(DENSE, TURNED)
        self.assertEqual((v["category"], v["correctness"]["worst"]["variant"]), ("correctness_error", "turned"))
        self.assertIn("inputs transposed", v["feedback"])

    def test_kernelbench_ignores_it_and_says_so(self):
        v = self.verdict(ROWS, ODD, "--protocol", "kernelbench")
        self.assertEqual(v["status"], "passed", v["feedback"])
        self.assertFalse(v["correctness"]["sidecar"]["applied"])
        self.assertIn("published", v["correctness"]["sidecar"]["why"])
        self.assertEqual([d["name"] for d in v["correctness"]["known_defects"]],
                         ["allclose_scaled_by_candidate", "seed_dependent_parameters"])

    def test_tolerance(self):
        wrong = GOOD.replace("y[i * n + j] = s;", "y[i * n + j] = s + 0.01f;")
        regimes = "regimes: [normal]\n"
        self.assertEqual(self.verdict(wrong, regimes)["category"], "correctness_error")
        self.assertIsNone(self.verdict(wrong, regimes + "tolerance: {abs: 0.02}\n")["category"])
        v = self.verdict(wrong, regimes + "tolerance: {abs: 0.02}\nvariants: [{name: tight, sizes: {batch_size: 2}, "
                                          "tolerance: {abs: 0.001}}]\n")
        self.assertEqual((v["category"], v["correctness"]["worst"]["variant"]), ("correctness_error", "tight"))
        self.assertEqual(v["correctness"]["worst"]["tolerance"], {"abs": 0.001, "rel": 0})

    def test_a_share_of_the_elements(self):
        """One of 48 elements is off by 0.01."""
        wrong = GOOD.replace("y[i * n + j] = s;", "y[i * n + j] = s + (i * n + j == m * n - 1 ? 0.01f : 0.f);")
        say = "regimes: [normal]\ntolerance: {abs: 0.001, matched: %s}\n"
        passed = self.verdict(wrong, say % "0.95")
        self.assertIsNone(passed["category"], passed["feedback"])
        self.assertEqual(passed["correctness"]["sidecar"]["tolerance"], {"abs": 0.001, "rel": 0, "matched": 0.95})
        v = self.verdict(wrong, say % "0.99")
        self.assertEqual(v["correctness"]["worst"]["tolerance"], {"abs": 0.001, "rel": 0, "matched": 0.99})
        self.assertIn("wants 99 % of the elements right", v["feedback"])
        self.assertEqual(self.verdict(wrong, say % "0.95, most: 0.005")["category"], "correctness_error")
        self.assertIsNone(self.verdict(wrong, say % "0.95, most: 0.1")["category"])
        never = wrong.replace("0.01f : 0.f", "nanf(\"\") : 0.f")
        self.assertEqual(self.verdict(never, say % "0.95")["category"], "correctness_error")

    def test_part_of_the_cache_key(self):
        first = json.loads(self.eval(ROWS, ODD).stdout)
        again = json.loads(self.eval(ROWS, ODD).stdout)
        other = json.loads(self.eval(ROWS, "regimes: [normal]\n").stdout)
        self.assertTrue(again.get("cached"))
        self.assertEqual(again["task_sha256"], first["task_sha256"])
        self.assertNotEqual(other["task_sha256"], first["task_sha256"])
        self.assertEqual((first["status"], other["status"]), ("failed", "passed"))

    def test_what_the_task_cannot_do(self):
        for yaml, words in ((ODD.replace("batch_size", "batchsize"), "variant 'odd': no module-level size 'batchsize'; "
                                                                     "did you mean 'batch_size'?"),
                            ("variants: [{name: a, layout: channels_last}]", "no input can have the layout "
                                                                             "'channels_last'"),
                            ("variants: [{name: a, layout: {3: strided}}]", "get_inputs returns 1 values"),
                            ("variants: [{name: a, sizes: {batch_size: 9999999}}]", "the limit is"),
                            ("variants: [{name: a, dtypes: float16}]", "did you mean 'dtype'?")):
            p = self.eval(GOOD, yaml)
            record = json.loads(p.stdout)
            self.assertEqual((p.returncode, record["status"], record["at_fault"]), (2, "infra", "request"), yaml)
            self.assertIn(words, p.stderr)
            self.assertIn(words, record["feedback"])
            self.assertEqual(p.stderr.count("\n"), 1, p.stderr)


class Sizes(unittest.TestCase):
    def test_names_and_text(self):
        out = sizes.with_sizes(TASK, {"batch_size": 3, "n_out": 11})
        self.assertIn("batch_size = 3  # rows\nn_in, n_out = 8, 11\nshape = (batch_size, n_in)", out)
        out = sizes.with_sizes("shape = (4, 1 << 3)\neps = -1\n", {"shape[1]": 5, "eps": 0})
        self.assertEqual(out, "shape = (4, 5)\neps = 0\n")


class Layouts(unittest.TestCase):
    def form(self, **spec):
        import torch
        return reference.Variant(spec).form([torch.arange(24.0).reshape(2, 3, 2, 2), torch.arange(3)])

    def test_strides_and_values(self):
        import torch
        want = torch.arange(24.0).reshape(2, 3, 2, 2)
        for layout, strides in (("contiguous", (12, 4, 2, 1)), ("transposed", (12, 4, 1, 2)),
                                ("strided", (24, 8, 4, 2)),
                                ("channels_last", (12, 1, 6, 3))):
            x = self.form(layout=[layout])[0]
            self.assertEqual(x.stride(), strides, layout)
            self.assertTrue(torch.equal(x, want))

    def test_dtype_leaves_integers(self):
        import torch
        x, labels = self.form(dtype="bfloat16")
        self.assertEqual((x.dtype, labels.dtype), (torch.bfloat16, torch.int64))


if __name__ == "__main__":
    unittest.main()
