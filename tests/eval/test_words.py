"""test_words.py - what records say of programs that cannot be what was meant."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402
import test_verdicts as base  # noqa: E402


class Words(unittest.TestCase):
    """What the record says of programs that cannot be what was meant."""

    def judge(self, text, *options, name="c.py", task=corpus.RELU_TASK):
        with tempfile.TemporaryDirectory() as d:
            for n, t in (("t.py", task.encode()), (name, text)):
                with open(os.path.join(d, n), "wb") as f:
                    f.write(t)
            task, candidate = os.path.join(d, "t.py"), os.path.join(d, name)
            p = base.musacoder("eval", "--task", task, "--json", "--no-cache", *options, candidate)
            return json.loads(p.stdout)

    def test_a_file_needs_no_fence(self):
        v = self.judge(b"x = 1\n")
        self.assertEqual(v["category"], "extraction_error")
        self.assertIn("class ModelNew", v["feedback"])
        self.assertNotIn("fence", v["feedback"])
        self.assertIn("fence", self.judge(b"no code", name="c.txt")["feedback"])

    def test_bytes_that_are_no_text(self):
        v = self.judge(corpus.GOOD.encode() + b"# caf\xe9\n")
        self.assertEqual(v["category"], "extraction_error")
        self.assertIn(f"not UTF-8 text: see line {corpus.GOOD.count(chr(10)) + 1}", v["feedback"])

    def test_another_tasks_program(self):
        for old, new in (("def forward(self, x)", "def forward(self, x, weight)"),
                         ("def __init__(self)", "def __init__(self, dim)")):
            v = self.judge(corpus.GOOD.replace(old, new).encode())
            self.assertEqual(v["category"], "runtime_error")
            self.assertIn("is the program for another task?", v["feedback"])
        inner = corpus.GOOD.replace("return ext", "return (lambda a, b: a)(ext").rstrip() + ")\n"
        self.assertNotIn("another task", self.judge(inner.encode())["feedback"])

    def test_averages_in_train_mode(self):
        """A program that is right in eval mode only, and a wrong one that has none."""
        init = "super().__init__()\n        self.bn = nn.BatchNorm1d(37)"
        task = corpus.RELU_TASK.replace("super().__init__()", init).replace("torch.relu(x)", "self.bn(x)")
        kernel = corpus.KERNEL.replace("const float* x, float* y", "const float* x, const float* m, float* y").replace(
            "x[i] > 0.0f ? x[i] : 0.0f", "x[i] - m[i % 37]").replace(
            "relu(torch::Tensor x)", "relu(torch::Tensor x, torch::Tensor m)").replace(
            "x.data_ptr<float>(), ", "x.data_ptr<float>(), m.data_ptr<float>(), ")
        built = corpus.build(kernel, decl="torch::Tensor relu(torch::Tensor x, torch::Tensor m);")
        model = corpus.MODEL.replace("super().__init__()", init)
        text = built + model.replace("ext.relu(x)", "ext.relu(x, self.bn.running_mean)")
        v = self.judge(text.encode(), task=task)
        self.assertEqual(v["category"], "correctness_error", v["feedback"])
        self.assertIn("is in train mode", v["feedback"])
        v = self.judge(text.replace("running_mean", "weight").encode(), task=task)
        self.assertEqual(v["category"], "correctness_error", v["feedback"])
        self.assertNotIn("is in train mode", v["feedback"])

    def test_memory_that_was_freed(self):
        """It lies near another array, which has nothing to do with it."""
        early = corpus.KERNEL.replace("    int n = x.numel();", "    float *gone = torch::zeros({3000}, x.options())"
                                      ".data_ptr<float>();\n    int n = x.numel();").replace(
            "y.data_ptr<float>(), n", "gone, n")
        self.assertNotEqual(early, corpus.KERNEL)
        v = self.judge((corpus.build(early) + corpus.MODEL).encode())
        self.assertIn("there lay memory of 12000 bytes that has been freed", v["feedback"])
        behind = corpus.KERNEL.replace("if (i < n) ", "").replace("y[i]", "y[i + 100000]")
        self.assertNotIn("freed", self.judge((corpus.build(behind) + corpus.MODEL).encode())["feedback"])

    def test_all_operators_are_named_at_once(self):
        """Also those behind the first one, each with the line that ran it."""
        call = "        return ext.relu(x)\n"
        self.assertTrue(corpus.GOOD.endswith(call))
        text = corpus.GOOD.replace(call, "        y = torch.abs(x)\n        y = y * 2.0\n"
                                         "        return torch.sigmoid(y)\n")
        at = text[:text.index("        y = torch.abs")].count("\n") + 1
        v = self.judge(text.encode())
        self.assertEqual([(x["op"], x["line"]) for x in v["legality"]["violations"]],
                         [("aten::abs", at), ("aten::mul", at + 1), ("aten::sigmoid", at + 2)])
        self.assertEqual((v["category"], v["reward"], v["place"]["line"]), ("cheating", -1, at))
        self.assertIn(f"forward runs aten::sigmoid through PyTorch (", v["feedback"])

    def test_a_fallback_is_blamed_where_it_stands(self):
        """The line in the except branch, and what the program's own call raised."""
        call = "        return ext.relu(x)\n"
        text = corpus.GOOD.replace(call, "        try:\n            return ext.relu(x, 1)\n        except TypeError:\n"
                                         "            return torch.relu(x)\n")
        at = text[:text.index("return ext.relu(x, 1)")].count("\n") + 1
        v = self.judge(text.encode())
        self.assertEqual((v["category"], v["legality"]["violations"][0]["line"]), ("cheating", at + 2))
        self.assertIn(f"TypeError of line {at}: relu(): incompatible function arguments",
                      v["legality"]["violations"][0]["handling"])
        self.assertIn("an exception that your program caught", v["feedback"])

    def test_shared_arrays_are_named(self):
        """The array and the byte in it, though another kernel's array lies before it in the same library."""
        head = "__global__ void relu"
        self.assertIn(head, corpus.GOOD)
        other = ("__global__ void other(float *y)\n"
                 "{ __shared__ float before[96]; before[threadIdx.x] = 1; *y = before[0]; }\n")
        body = re.search(r"__global__ void relu\w*\([^)]*\)\s*{\n", corpus.GOOD)[0]
        text = corpus.GOOD.replace(body, other + body + "    __shared__ float tile[32];\n"
                                   "    tile[(threadIdx.x + 1) % 32] = n; tile[threadIdx.x % 32] += 1;\n")
        v = self.judge(text.encode())
        self.assertEqual(v["code"], "MC304", v["feedback"])
        self.assertRegex(v["feedback"], r"at byte \d\d?\d? of shared 'tile' \(128 bytes\) conflicts")
        v = self.judge(text.replace("(threadIdx.x + 1) % 32", "32 + threadIdx.x").encode())
        self.assertRegex(v["feedback"], r"outside of static shared memory: at byte \d+ of 'tile' \(128 bytes\)")

    def test_a_timeout_names_its_option(self):
        head = "    def forward(self, x):\n"
        text = corpus.GOOD.replace(head, head + "        while True: pass\n")
        self.assertIn("--timeout", self.judge(text.encode(), "--timeout", "1")["feedback"])

    def example(self, old, new, **env):
        """The example's kernel, changed: its verdict, and what reached the user's own stream."""
        folder = os.path.join(base.ROOT, "docs", "example")
        with open(os.path.join(folder, "kernel.py"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as c:
            c.write(text.replace(old, new))
            c.flush()
            p = base.musacoder("eval", "--task", os.path.join(folder, "task.py"), "--json", "--no-cache", c.name, **env)
        return json.loads(p.stdout), p.stderr

    def test_a_launch_that_cannot_be(self):
        for config, reason in (("4096", r"block \(4096,1,1\) has 4096 threads; at most 1024"),
                               ("256, 1 << 20", r"1048576 bytes of dynamic shared memory; at most 49152"),
                               ("0", r"grid \(\d+,1,1\) of blocks \(0,1,1\) is empty")):
            v, _ = self.example(", 256>>>", f", {config}>>>")
            self.assertEqual((v["category"], v["stage"]), ("runtime_error", "correctness"), v["feedback"])
            self.assertRegex(v["feedback"], "launch of 'half_tanh' refused: " + reason)
            self.assertRegex(v["feedback"], r"At cuda_source:\d+: half_tanh<<<")

    def test_one_launch_of_two_is_refused(self):
        launch = "    half_tanh<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);\n"
        impossible = launch.replace(", 256>>>", ", 4096>>>")
        v, _ = self.example(launch, launch.replace("float>(), n)", "float>(), n / 2)") + impossible)
        self.assertEqual(v["category"], "runtime_error", v["feedback"])
        self.assertIn("refused: block (4096,1,1)", v["feedback"])
        v, _ = self.example(launch, impossible + "    cudaGetLastError();\n" + launch)
        self.assertEqual(v["status"], "passed", v["feedback"])  # it tries, and then does it otherwise

    def test_no_launch_at_all_is_still_cheating(self):
        launch = "    half_tanh<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);\n"
        v, _ = self.example(launch, "")
        self.assertEqual(v["category"], "cheating", v["feedback"])

    def test_an_assert_keeps_its_words(self):
        v, stderr = self.example("    if (i < n)", "    assert(n % 64 == 0); if (i < n)", MUSACODER_OWNER="none")
        self.assertEqual(v["category"], "runtime_error", v["feedback"])
        self.assertRegex(v["feedback"], r"the kernel aborts: cuda_source:\d+: .*Assertion `n % 64 == 0' failed\.")
        self.assertNotIn("Assertion", stderr)


if __name__ == "__main__":
    unittest.main()
