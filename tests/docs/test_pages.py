"""test_pages.py - the documentation does what it says: every ```console block of the site's own pages is run, its
output compared ("..." stands for anything); the reward's table is judged again; links between pages lead somewhere."""

import doctest
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build/musacoder"))
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gallery  # noqa: E402
import judges  # noqa: E402

judges.share_owner()
PAGES = ["docs/site/" + n for n in sorted(os.listdir(os.path.join(ROOT, "docs/site")))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def steps(text):
    """[(file to write, text) or (command, its output)] of a page, in order."""
    for info, body in re.findall(r"^```(\S+(?: title=\"[^\"]+\")?)\n(.*?)^```$", text, re.M | re.S):
        if 'title="' in info:
            yield "file", info.split('"')[1], body
        elif info == "console":
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                yield "run", command, output


class Pages(unittest.TestCase):
    def run_page(self, page):
        check = doctest.OutputChecker()
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, PATH=os.path.dirname(EXE) + ":" + os.environ["PATH"])
            for kind, what, want in steps(read(page)):
                if kind == "file":
                    with open(os.path.join(folder, what), "w", encoding="utf-8") as f:
                        f.write(want)
                    continue
                p = subprocess.run(["bash", "-c", what], cwd=folder, env=env, capture_output=True, text=True,
                                   check=False)
                self.assertTrue(check.check_output(want, p.stdout, doctest.ELLIPSIS),
                                f"{page}: $ {what}\nsays:\n{p.stdout}{p.stderr}\ninstead of:\n{want}")

    def test_commands_of_the_pages(self):
        self.assertGreater(sum(1 for page in PAGES for s in steps(read(page)) if s[0] == "run"), 5)
        for page in PAGES:
            with self.subTest(page):
                self.run_page(page)

    def test_what_programs_earn(self):
        """Each row of docs/reward.md is judged again."""
        rows = re.findall(r"^\| (none|`.*?` → `.*?`) \| [^|]* \| (\w+) \| (MC\d+) \| ([-\d.]+) \|$",
                          read("docs/reward.md"), re.M)
        good = read("docs/example/kernel.py")
        self.assertGreater(len(rows), 8)
        with tempfile.TemporaryDirectory() as folder:
            for i, (change, *_) in enumerate(rows):
                old, new = re.match("`(.*)` → `(.*)`", change).groups() if change != "none" else ("", "")
                self.assertIn(old, good)
                with open(os.path.join(folder, f"{i}.py"), "w", encoding="utf-8") as f:
                    f.write(good.replace(old, new) if old else good)
            p = subprocess.run([EXE, "eval", "--task", os.path.join(ROOT, "docs/example/task.py"), "--timeout", "5",
                                "--json", *(os.path.join(folder, f"{i}.py") for i in range(len(rows)))],
                               capture_output=True, text=True, check=False)
            got = [json.loads(x) for x in p.stdout.splitlines()]
        self.assertEqual([(c, v["status"], v["code"]) for (c, *_), v in zip(rows, got)], [r[:3] for r in rows],
                         p.stderr)
        for (change, *_, reward), v in zip(rows, got):  # a share of trials depends on this machine's secret draws
            self.assertAlmostEqual(v["reward"], float(reward), delta=0.1 if "." in reward else 0, msg=change)

    def test_the_gallery_is_what_the_judge_says(self):
        """Each program's verdict: its code, and the first line as the page has it."""
        shown = re.findall(r"^## ([^\n]*)\n```diff\n.*?^```text\n([^\n]*)$", read("docs/gallery.md"), re.M | re.S)
        self.assertEqual([what for what, _ in shown], [c[0] for c in gallery.CASES], "make gallery")
        with tempfile.TemporaryDirectory() as folder:
            said = [words.split("\n")[0] for words in gallery.verdicts(EXE, folder)]
        self.assertEqual([re.search(r"\[(MC\d+)\]", x)[1] for x in said], [c[1] for c in gallery.CASES])
        plain = [re.sub(r"reward -0\.\d+", "reward", x) for x in said]
        self.assertEqual(plain, [re.sub(r"reward -0\.\d+", "reward", x) for _, x in shown])

    def test_links_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run([sys.executable, os.path.join(ROOT, "docs/site.py"), EXE, folder], capture_output=True,
                               text=True, check=False)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            pages = {os.path.relpath(os.path.join(d, f), os.path.join(folder, "src")) for d, _, fs in
                     os.walk(os.path.join(folder, "src")) for f in fs}
            self.assertLessEqual({"index.md", "api.md", "errors.md", "commands/eval.md", "schema/verdict.json",
                                  "internals/tolerance.md", "openapi.json"}, pages)


if __name__ == "__main__":
    unittest.main()
