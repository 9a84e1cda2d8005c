"""test_words.py - what records say of programs that cannot be what was meant."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402
import test_verdicts as base  # noqa: E402


class Words(unittest.TestCase):
    """What the record says of programs that cannot be what was meant."""

    def judge(self, text, *options, name="c.py"):
        with tempfile.TemporaryDirectory() as d:
            for n, t in (("t.py", corpus.RELU_TASK.encode()), (name, text)):
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

    def test_a_timeout_names_its_option(self):
        head = "    def forward(self, x):\n"
        text = corpus.GOOD.replace(head, head + "        while True: pass\n")
        self.assertIn("--timeout", self.judge(text.encode(), "--timeout", "1")["feedback"])


if __name__ == "__main__":
    unittest.main()
