"""test_page.py - the page of results in headless Chromium, once for all its kinds: what it draws, what it does not
claim, and that no text of the data becomes markup. SHOTS=FOLDER keeps pictures: light, dark, narrow, wide, printed."""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FOUL = "<img src=x onerror=\"document.title='owned'\">"


def bench(name, passed, n=4, tasks=12):
    return {"name": name, "tasks": tasks, "samples": n, "k": n, "turns": 1, "backend": "sim", "avg_at_8": passed / n,
            "pass_at_8": float(passed > 0), "cut_share": 0.25, "whole_pass_rate": 0.5, "infra": 0, "seconds": 61,
            "faster_eager": None, "categories": {"passed": passed * tasks, "cheating": 3},
            "per_task": [{"task": f"add_{i}", "family": "add", "n": n, "passed": passed} for i in range(tasks)]}


def stage(name, passed, ci, change):
    family = {"tasks": 12, "avg": passed / 4, "ci": ci, "change": change}
    return {"name": name, "bench": bench(name, passed), "avg_ci": ci, "pass_ci": ci, "change": change,
            "families": {FOUL: family, "add": dict(family, change=None)}}


def head(kind, **more):
    return dict({"schema": "musacoder.report/1", "kind": kind, "title": kind + FOUL, "about": "of " + FOUL,
                 "from": "nothing", "facts": [["machine", "2 CPUs"], ["seed", "1"]]}, **more)


def run_data():
    metrics = [{"stage": s, "step": i + 1, "reward": i / 30, "entropy": "nan" if i == 3 else 0.1, "masked_share": 0}
               for s in ("rl", "more") for i in range(30)]
    turns = [{"turn": 1, "status": "failed", "category": "timeout", "code": "# first" + FOUL, "feedback": FOUL,
              "compile_ms": 3.5, "trials": 2, "passed": 1, "reward": -1.0}, {"turn": 2, "status": "passed"}]
    return head("run", metrics=metrics, recipe=FOUL, notes=[FOUL], seconds=7300, examples={
        "stage": FOUL, "passed": [], "failed": [],
        "repaired": [{"task": FOUL, "sample": 0, "source": FOUL, "turns": turns}]},
        stages=[stage("sft", 0, [0.0, 0.2425], None),
                stage("same", 0, [0.0, 0.2425], {"difference": 0.0, "ci": [-0.24, 0.24]}),
                stage("rl", 2, [0.3, 0.7], {"difference": 0.5, "ci": [0.3, 0.7]})])


def level(name, k, tasks, avg, ci):
    speed = {"faster": 0.25, "fast_p": {p: 0.5 for p in ("0", "0.5", "0.8", "1", "1.5", "2")}, "timed": 8,
             "untrusted": 1, "geomean": 1.2, "median": 1.25}
    return {"name": name, "level": k, "tasks": tasks, "judged_tasks": tasks, "samples": 2 * tasks, "missing": 3,
            "skipped": 1, "infra": 0, "pass_at": {"1": avg, "2": avg}, "avg": avg, "avg_ci": ci, "pass_ci": ci,
            "speed": {"eager": speed, "compile": None}, "categories": {"passed": 9, "skipped": 1}}


def suite_data():
    levels = [level(name, k, 10, 1.0, [0.72, 1.0]) for name, k in (("level 1", 1), ("all", 0))]
    b = dict(bench("suite", 2), levels=levels, faster_than=1.1,
             missing={"policy": "skip", "samples": 3, "tasks": 1}, strays={"n": 1, "first": [FOUL]},
             skipped=[{"task": FOUL, "reason": FOUL, "samples": 2}], shrink_to=4096)
    b["per_task"] = [{"task": f"level1/{i}_Add", "family": "level 1", "n": 2, "passed": 2} for i in range(10)]
    programs = [{"task": f"level1/{i % 10}_Add", "eager": 0.5 * 1.2 ** i, "ms": {"load": 30 + i, "compile": 900 * i + 1,
                 "waiting": 5}} for i in range(10)]
    return head("suite", stages=[{"name": "suite", "bench": b}], programs=programs)


def compare_data():
    def group(name, d, ci):
        return {"name": name, "tasks": 9, "avg": {"a": 0.5, "b": 0.5 + d, "difference": d, "ci": ci, "better": 5,
                "worse": 0, "p": 0.03}, "first": {"only_a": 0, "only_b": 4, "p": 0.00001},
                "speed": {"eager": {"tasks": 4, "ratio": 1.3, "ci": [1.1, 1.6], "faster": 4, "slower": 0, "p": 0.1},
                          "compile": None}}
    side = {"name": FOUL, "dir": "/d", "backend": "sim", "samples": 4, "made_by": "musacoder 1 (commit abc)",
            "machine": "2 CPUs", "seed": 1}
    one = {"passed": 1, "n": 4, "first": "passed", "eager": 1.5}
    return head("compare", compare={"a": side, "b": side, "notes": [FOUL], "only_a": 1, "only_b": 0, "faster_than": 1.1,
                "groups": [group("unsure", 0.1, [-0.1, 0.3]), group("all", 0.25, [0.05, 0.4])],
                "tasks": [{"task": FOUL, "family": "unsure", "kind": "gained", "a": one, "b": one, "ratio": 1.3}]})


def watch_data():
    return head("watch", metrics=run_data()["metrics"], reload=3600,
                tiles=[{"label": "pass rate", "last": 0.5, "mean": 0.25, "n": 10, "percent": True}])


KINDS = {"run": run_data, "suite": suite_data, "compare": compare_data, "watch": watch_data,
         "bench": lambda: dict(run_data(), kind="bench", stages=run_data()["stages"][:1])}
FRAMES = """<!doctype html><body><script>
const pages = %s, all = Object.entries(pages).map(([kind, text]) => {
  const f = document.createElement("iframe");
  f.style.cssText = "width:900px;height:600px"; f.name = kind; f.srcdoc = text;
  f.onload = () => { const pre = document.createElement("pre");
    pre.id = kind; pre.textContent = f.contentDocument.documentElement.outerHTML; document.body.append(pre); };
  document.body.append(f); return f; });
</script>"""


def page_of(data):
    with open(os.path.join(ROOT, "src/report/page.html")) as f:
        page = f.read()
    watch = "<head><script>onerror = m => { document.documentElement.dataset.error = m; };</script>"
    return page.replace("<head>", watch, 1).replace("@DATA@", json.dumps(data).replace("<", "\\u003c"), 1)


def browse(folder, path, *more):
    argv = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            f"--user-data-dir={folder}/home", *more, "file://" + path]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME=folder)).stdout


@unittest.skipUnless(CHROMIUM, "no chromium")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        pages = {kind: page_of(make()) for kind, make in KINDS.items()}
        frames = os.path.join(cls.folder.name, "frames.html")
        with open(frames, "w") as f:
            f.write(FRAMES % json.dumps(pages).replace("<", "\\u003c"))
        dom = browse(cls.folder.name, frames, "--virtual-time-budget=20000", "--dump-dom")
        got = dict(re.findall(r'<pre id="(\w+)">(.*?)</pre>', dom, re.S))
        # What is drawn: the data and the script are text of the page as well, and are no picture.
        cls.drawn = {k: re.sub(r"<script.*?</script>|<style.*?</style>", "", html.unescape(v), flags=re.S)
                     for k, v in got.items()}
        if os.environ.get("SHOTS"):
            cls.keep_pictures(pages, os.environ["SHOTS"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def keep_pictures(cls, pages, shots):
        os.makedirs(shots, exist_ok=True)
        dark = "--blink-settings=preferredColorScheme=0"
        for kind, text in pages.items():
            path = os.path.join(os.path.abspath(shots), kind + ".html")
            with open(path, "w") as f:
                f.write(text)
            for name, *flags in (("narrow", "--window-size=500,4000"), ("light", "--window-size=900,3000"),
                                 ("wide", "--window-size=1600,2500"), ("dark", "--window-size=900,3000", dark)):
                browse(cls.folder.name, path, *flags, f"--screenshot={path[:-5]}-{name}.png")
            browse(cls.folder.name, path, "--no-pdf-header-footer", f"--print-to-pdf={path[:-5]}.pdf")

    def test_all_kinds_are_drawn_without_an_error(self):
        self.assertEqual(sorted(self.drawn), sorted(KINDS))
        for kind, dom in self.drawn.items():
            self.assertEqual(re.findall(r'data-error="[^"]*"', dom), [], kind)
            self.assertIn("<footer>", dom, kind)
            self.assertRegex(dom, r"<svg [^>]*role=\"img\"|class=\"tile\"", kind)
            self.assertNotRegex(dom, r"NaN|undefined|\[object", kind)

    def test_an_axis_reaches_its_last_value(self):
        """Five marks for six decades: the last, which is not shown, is on the axis."""
        path = os.path.join(self.folder.name, "ticks.html")
        ask = "<script>document.title = (t => [t.length <= 5, t.lo, t.hi].join())(logTicks(.1, 3400, 5));</script>"
        with open(path, "w") as f:
            f.write(page_of(run_data()) + ask)
        self.assertIn("<title>true,0.1,10000</title>", browse(self.folder.name, path, "--dump-dom"))

    def test_text_is_text(self):
        for kind, dom in self.drawn.items():
            self.assertNotIn("<img", dom, kind)
            self.assertIn("&lt;img src=x", dom, kind)

    def test_nothing_is_loaded(self):
        page = page_of(run_data())
        loads = r"\s(?:src|href)\s*=\s*[\"']|@import|url\(|innerHTML|document\.write|eval\("
        self.assertEqual(re.findall(loads, page), [])
        self.assertEqual([u for u in re.findall(r"https?://[^\"'\s]+", page) if "w3.org/2000/svg" not in u], [])

    def test_an_interval_of_none_has_a_width(self):
        x = [float(v) for v in re.findall(r'class="bar" x1="([\d.]+)"', self.drawn["bench"])]
        self.assertIn("0.0\u202f%  (0.0 to 24.3)", self.drawn["bench"])
        self.assertGreater(max(x) - min(x), 50)

    def test_colours_are_for_differences(self):
        rows = dict(re.findall(r'<tr><th scope="row">(add|&lt;img[^<]*)</th>(.*?)</tr>', self.drawn["run"]))
        self.assertNotIn("up", rows["add"])
        foul = next(v for k, v in rows.items() if k != "add")
        self.assertEqual(re.findall(r'<td class="(up|down)">', foul), ["up"])  # rl; not 'same'
        self.assertEqual(re.findall(r'<g class="c0 (\w*)">', self.drawn["compare"]), ["", "up"])

    def test_axes_say_what_they_show(self):
        for kind, words in (("run", ("tasks solved, per cent", "step of each stage", "programs, per cent")),
                            ("suite", ("speedup, logarithmic", "speedup p", "time, logarithmic")),
                            ("compare", ("percentage points;", "B / A, logarithmic")),
                            ("watch", ("step of each stage",))):
            for w in words:
                self.assertRegex(self.drawn[kind], r'<text class="axis"[^>]*>' + re.escape(w), kind)

    def test_each_share_stands_once(self):
        dom = self.drawn["bench"]
        for number in ("0.0 to 24.3", "25.0\u202f%", "50.0\u202f%"):
            self.assertEqual(dom.count(number), 2 if number == "0.0 to 24.3" else 1, number)  # Avg@k and Pass@k

    def test_parts_of_pages(self):
        for kind, words in {"run": ("Programs", "repaired in turn 2", "compiled in 3.5\u202fms", "2.0\u202fh"),
                            "suite": ("Tasks skipped: 1", "Missing samples: 3", "Stray files: 1", "made small first"),
                            "compare": ("Changed tasks: 1", "&lt;\u202f0.0001", "commit abc", "1.1\u00d7 to 1.6\u00d7"),
                            "watch": ("50.0\u202f%", "mean of the last 10: 25.0\u202f%")}.items():
            for w in words:
                self.assertIn(w, self.drawn[kind], kind)


if __name__ == "__main__":
    unittest.main()
