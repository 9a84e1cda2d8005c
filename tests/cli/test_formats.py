"""test_formats.py - 'eval' in text, JSON, GitHub annotations and SARIF: the user's own file and line, a code, no colour
but on a terminal; 'explain' and the page of codes."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build/musacoder"))
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
import judges  # noqa: E402

judges.share_owner()
TASK = os.path.join(ROOT, "docs/example/task.py")
BAD = "y[i] = tanhf(x[i] * 0.5f);"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(ROOT, "docs/example/kernel.py"), encoding="utf-8") as f:
            good = f.read()
        cls.bad, cls.good = os.path.join(cls.folder.name, "bad.py"), os.path.join(cls.folder.name, "good.py")
        text = good.replace("if (i < n)", 'if (i == 0) printf("first %d\\n", n);\n    if (i <= n)')
        cls.line = 1 + next(i for i, x in enumerate(text.split("\n")) if "tanhf(x[i]" in x)
        for path, words in ((cls.bad, text), (cls.good, good)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(words)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def eval(self, *words):
        return subprocess.run([EXE, "eval", "--task", TASK, *words], capture_output=True, text=True, check=False)

    def test_text(self):
        p = self.eval(self.good, self.bad)
        lines = p.stdout.splitlines()
        self.assertEqual(p.returncode, 1)
        self.assertRegex(lines[0], r"^PASS .*good\.py \d+ of \d+ trials match, reward 1$")
        self.assertTrue(lines[1].startswith(f"FAIL {self.bad}:{self.line} out-of-bounds access in kernel half_tanh"),
                        lines[1])
        self.assertTrue(lines[1].endswith("[MC301]"), lines[1])
        self.assertIn(f"At {self.bad}:{self.line}: {BAD}", p.stdout)
        self.assertIn("behind the end of 'x' (input 0, 37 x 61 float32): element 2257 of 2257", p.stdout)
        self.assertNotIn("cuda_source", p.stdout)
        self.assertIn("| first ", p.stdout)
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertNotIn("\033", p.stdout)

    def test_quiet_and_out(self):
        out = os.path.join(self.folder.name, "out.txt")
        p = self.eval("-q", "-o", out, self.good, self.bad)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        with open(out, encoding="utf-8") as f:
            self.assertRegex(f.read(), r"^FAIL [^\n]*\[MC301\]\n1 passed, 1 failed\n$")

    def test_explain_of_a_verdict(self):
        wrong = os.path.join(self.folder.name, "wrong.py")
        with open(wrong, "w", encoding="utf-8") as f:
            f.write(read(self.good).replace("* 0.5f", "* 0.25f"))
        p = self.eval("--explain", self.bad, wrong)
        self.assertIn("MC301: A thread read or wrote outside", p.stdout)
        self.assertRegex(p.stdout, r"(?s)MC4\d\d: .*not so\? 'eval --repro")

    def test_colour_on_a_terminal_alone(self):
        main, side = pty.openpty()
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        subprocess.run([EXE, "eval", "--task", TASK, self.good], stdout=side, check=True, env=env)
        os.close(side)
        self.assertTrue(os.read(main, 100).startswith(b"\033[32mPASS"))
        os.close(main)
        self.assertIn("\033[32mPASS", self.eval("--color", "always", self.good).stdout)

    def test_github(self):
        p = self.eval("--format", "github", self.good, self.bad)
        self.assertRegex(p.stdout.splitlines()[0], f"^::error file={re.escape(self.bad)},line={self.line},title=MC301 ")

    def test_sarif(self):
        p = self.eval("--format", "sarif", self.good, self.bad)
        run = json.loads(p.stdout)["runs"][0]
        self.assertEqual(len(run["results"]), 1)
        place = run["results"][0]["locations"][0]["physicalLocation"]
        self.assertEqual((run["results"][0]["ruleId"], run["results"][0]["level"]), ("MC301", "error"))
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), (self.bad, self.line))
        self.assertIn("MC301", [r["id"] for r in run["tool"]["driver"]["rules"]])

    def test_sources_and_folders(self):
        """A .cu, a folder and an archive: the file and line inside, where a user can open it."""
        text = re.search('r"""\n(.*?)"""', read(self.bad), re.S)[1]
        line = 1 + next(i for i, x in enumerate(text.split("\n")) if "tanhf(x[i]" in x)
        folder = os.path.join(self.folder.name, "many")
        os.makedirs(folder, exist_ok=True)
        alone, inside = os.path.join(self.folder.name, "one.cu"), os.path.join(folder, "half.cu")
        for path in (alone, inside):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        packed = shutil.make_archive(folder, "zip", folder)
        p = self.eval(alone, folder, packed)
        for lines in (f"{alone}:{line}", f"{inside}:{line}", f"{packed} (half.cu:{line})"):
            self.assertIn(f"FAIL {lines} out-of-bounds access in kernel half_tanh", p.stdout)
        self.assertIn(f"At {inside}:{line}: {BAD}", p.stdout)
        p = self.eval("--format", "github", alone, folder, packed)
        self.assertEqual([x.split("title")[0] for x in p.stdout.splitlines()[:3]],
                         [f"::error file={alone},line={line},", f"::error file={inside},line={line},",
                          f"::error file={packed},"])
        run = json.loads(self.eval("--format", "sarif", folder).stdout)["runs"][0]
        place = run["results"][0]["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), (inside, line))

    def test_a_source_brings_its_headers(self):
        text = re.search('r"""\n(.*?)"""', read(self.good), re.S)[1]
        path = os.path.join(self.folder.name, "with_header.cu")
        os.makedirs(os.path.join(self.folder.name, "part"), exist_ok=True)
        for name, words in (("with_header.cu", '#include "part/half.cuh"\n' + text.replace("0.5f", "HALF")),
                            ("part/half.cuh", '#include "value.h"\n#define HALF VALUE\n'),
                            ("value.h", "#define VALUE 0.5f\n")):
            with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as f:
                f.write(words)
        p = self.eval(path)
        self.assertIn("PASS", p.stdout)

    def test_mu_sources_are_musa(self):
        """A .mu alone is judged in the MUSA dialect: names of CUDA are errors there, and the record says so."""
        text = re.search('r"""\n(.*?)"""', read(self.good), re.S)[1]
        path, foreign = os.path.join(self.folder.name, "half.mu"), os.path.join(self.folder.name, "foreign.mu")
        for name, words in ((path, text), (foreign, text.replace("    return y;", "    cudaDeviceSynchronize();\n"
                                                                              "    return y;"))):
            with open(name, "w", encoding="utf-8") as f:
                f.write(words)
        good, bad = [json.loads(x) for x in self.eval("--json", "--dialect", "musa", path, foreign).stdout.splitlines()]
        self.assertEqual((good["status"], good["dialect"]), ("passed", "musa"), good["feedback"])
        self.assertEqual((bad["code"], bad["dialect"], bad["place"]["file"]), ("MC204", "musa", "foreign.mu"))
        self.assertIn("is a name of CUDA; MUSA's is", bad["feedback"])

    def test_sources_without_forward(self):
        """The words are of the user's file; no line of the program that loads it is named."""
        path = os.path.join(self.folder.name, "none.cu")
        with open(path, "w", encoding="utf-8") as f:
            f.write(re.search('r"""\n(.*?)"""', read(self.good), re.S)[1].replace(" forward(", " halved("))
        p = self.eval(path)
        self.assertIn("the sources export nothing: define a function 'forward'", p.stdout)
        self.assertNotIn("PyInit", p.stdout)
        self.assertNotIn("line", p.stdout)
        self.assertTrue(p.stdout.startswith(f"FAIL {path} error while it is constructed"), p.stdout)

    def test_json_has_code_and_place(self):
        for flag in (["--json"], ["--format", "json"]):
            v = json.loads(self.eval(*flag, self.bad).stdout)
            self.assertEqual((v["code"], v["place"]["line"], v["place"]["source"]), ("MC301", self.line, "cuda_source"))

    def test_what_is_no_model_new(self):
        for text, name, code, words in (("class FusedModel(nn.Module):\n    pass\n", "x.py", "MC108", "'FusedModel'"),
                                        ("```python\nimport torch\nclass A", "x.md", "MC102", "cut off")):
            path = os.path.join(self.folder.name, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            v = json.loads(self.eval("--json", path).stdout)
            self.assertEqual(v["code"], code, v)
            self.assertIn(words, v["feedback"])

    def test_repro(self):
        """What a candidate failed on, again by PyTorch alone; nothing of an earlier failure stays where it passes."""
        folder, wrong = os.path.join(self.folder.name, "repro"), os.path.join(self.folder.name, "wrong.py")
        with open(wrong, "w", encoding="utf-8") as f:
            f.write(read(self.good).replace("0.5f", "0.75f"))
        p = self.eval("--repro", folder, wrong)
        self.assertEqual(p.returncode, 1)
        said = re.search(r"^repro: (\S+) (\S+)$", p.stderr, re.M)
        self.assertEqual(said[2], os.path.join(folder, "repro.py"))
        p = subprocess.run([said[1], said[2]], capture_output=True, text=True, check=False)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stdout, r"reference: output 0: all 2257 elements match; the largest difference is 0\n")
        self.assertRegex(p.stdout, r"kernel, as judged: output 0: 22\d\d of 2257 elements are wrong; first at \[0, 0\]")
        ask = ("import repro, torch; x, t = torch.ones(2), {'abs': 0, 'rel': 0}; print(repro.compare('n', [x], [], t), "
               "repro.compare('d', x, x.double(), t), repro.moved({'a': [x, 3]}, 'meta')['a'][0].device)")
        p = subprocess.run([said[1], "-c", ask], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(p.stdout.split("\n")[-2], "False False meta", p.stdout + p.stderr)
        with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as f:
            f.write("mine")
        with open(os.path.join(folder, "candidate.py"), "a", encoding="utf-8") as f:
            f.write("# mine")
        p = self.eval("--repro", folder, self.good)
        self.assertIn("no trial failed", p.stderr)
        self.assertFalse(os.path.exists(os.path.join(folder, "draw.json")))
        self.assertEqual(read(os.path.join(folder, "notes.txt")), "mine")
        self.assertTrue(read(os.path.join(folder, "candidate.py")).endswith("# mine"))
        self.assertEqual(self.eval("--repro", folder, self.good, self.bad).returncode, 2)

    def test_the_first_run_is_announced(self):
        """Before anything is started: what follows may take a minute."""
        for cache, words in ((os.path.join(self.folder.name, "empty"), "up to a minute; 'musacoder warm'"),
                             (os.path.join(self.folder.name, "used"), None)):
            os.makedirs(os.path.join(cache, "build", *([] if words else ["x"])))
            p = subprocess.Popen([EXE, "eval", "--task", TASK, self.good], stderr=subprocess.PIPE, text=True,
                                 stdout=subprocess.DEVNULL,
                                 env=dict(os.environ, MUSACODER_CACHE_DIR=cache, MUSACODER_CXX="/bin/false",
                                          MUSACODER_OWNER="none"))
            line = p.stderr.readline()  # the second one fails, and says so there
            p.kill()
            p.communicate()
            (self.assertIn if words else self.assertNotIn)("first run: headers are precompiled", line)

    def test_explain(self):
        p = subprocess.run([EXE, "explain", "304", "mc901"], capture_output=True, text=True, check=True)
        self.assertIn("MC304: data race", p.stdout)
        p = subprocess.run([EXE, "explain", "MC999"], capture_output=True, text=True, check=False)
        self.assertEqual((p.returncode, p.stderr.count("\n")), (2, 1))
        page = subprocess.run([EXE, "explain", "--markdown"], capture_output=True, text=True, check=True).stdout
        with open(os.path.join(ROOT, "docs/errors.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), page, "make anew: build/musacoder explain --markdown >docs/errors.md")

    def test_words_of_errors_are_said_somewhere(self):
        """A code of an error is found by its message: those words must be in the sources."""
        rows = re.findall(r'"(MC9\d\d)", "error", "message", "([^"]+)"',
                          read(os.path.join(ROOT, "src/eval/verdict/codes_table.c")))
        said = "".join(re.sub(r'"\s*\n\s*"', "", read(os.path.join(d, f)))
                       for d, _, fs in os.walk(os.path.join(ROOT, "src")) for f in fs
                       if f.endswith(".c") and f != "codes_table.c")
        self.assertGreater(len(rows), 5)
        self.assertEqual([r for r in rows if r[1] not in said], [])


if __name__ == "__main__":
    unittest.main()
