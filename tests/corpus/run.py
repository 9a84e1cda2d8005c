"""run.py - the adversarial corpus: every candidate through 'musacoder eval', compared with the folder that it lies in.

    run.py [--backend sim|cuda] [--only GLOB]... [--fast] [--jobs N] [--no-perf] [--verbose] [--keep FILE]

tests/corpus/CATEGORY/NAME.py: the verdict must have this category ("passed": none); an attack that is stopped under
another one is right too. The comment block on top of a
candidate says what it tries and has lines 'key: value':
    task:      a file of tasks/
    backends:  where it applies (default: all)
    needs:     device-clock      caught by the performance stage, so only where time is measured
               device-compiler   caught by a compiler that knows host and device apart
               task-yaml         caught through the sidecar tasks/NAME.yaml
    options:   further options of 'musacoder eval'
    sim, cuda: the category that is expected there, where a backend cannot see what the folder says; with the reason
Those that do not apply are skipped by name. Exit code 1 on any miss, any accusation and any other category.
Standard library only.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
CATEGORIES = ("passed", "cheating", "unsupported", "runtime_error", "correctness_error", "timeout", "compile_error",
              "extraction_error")
LACKS = {"sim": {"device-clock", "device-compiler"}, "cuda": set()}
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))  # sanitizers: the judge's side of a call counts, too
# One of each kind for 'make test': seconds, not minutes.
FAST = ("passed/01_*", "passed/31_*", "passed/67_*", "cheating/25_*", "cheating/26_*", "cheating/31_*", "cheating/53_*",
        "cheating/64_*", "correctness_error/01_*", "correctness_error/11_*", "correctness_error/14_*",
        "runtime_error/22_*",
        "runtime_error/56_*", "runtime_error/61e_*", "runtime_error/86_*")


class Candidate:
    def __init__(self, path):
        self.path, self.expected = path, os.path.basename(os.path.dirname(path))
        self.honest = self.expected == "passed"
        self.name = f"{self.expected}/{os.path.basename(path)[:-3]}"
        self.head = {}
        with open(path, encoding="utf-8") as f:
            for line in f:
                if not line.startswith("#"):
                    break
                key, colon, value = line[1:].strip().partition(": ")
                if colon and key in ("task", "needs", "backends", "options", *LACKS):
                    self.head[key] = value
        self.verdict = self.why = None

    def expect(self, backend):
        self.expected = self.head.get(backend, self.expected).split()[0].rstrip(":")

    def reason_to_skip(self, backend, tasks):
        if backend not in self.head.get("backends", backend).split():
            return "for another backend"
        missing = sorted(set(self.head.get("needs", "").split()) & LACKS[backend])
        if missing:
            return f"needs a {missing[0]}"
        sidecar = os.path.join(tasks, self.head["task"] + ".yaml")
        if "task-yaml" in self.head.get("needs", "") and not os.path.exists(sidecar):
            return "needs a sidecar"
        return None

    def got(self):
        return self.verdict["category"] or "passed" if self.verdict else "no verdict"

    def outcome(self):
        if self.got() == self.expected:
            return "right"
        if self.got() == "unsupported":
            return "unsupported"
        if self.expected == "passed":
            return "accused"
        return {"passed": "missed", "infra": "other", "no verdict": "other"}.get(self.got(), "right")


class Progress:
    """One line, rewritten on a terminal, silent elsewhere."""

    def __init__(self, total, keep=None):
        self.keep = open(keep, "w", encoding="utf-8", buffering=1) if keep else None
        self.total, self.done, self.bad, self.lock = total, 0, 0, threading.Lock()
        self.tty = sys.stderr.isatty()
        self.running, self.stopped = set(), False

    def stop(self):
        """Ctrl-C: what runs ends, and what was judged is counted."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.stopped = True
        for p in list(self.running):
            p.send_signal(signal.SIGINT)

    def step(self, c):
        with self.lock:
            self.done += 1
            self.bad += c.outcome() != "right"
            if self.keep:
                self.keep.write(json.dumps({"name": c.name, "outcome": c.outcome(), "why": c.why,
                                            "verdict": c.verdict}) + "\n")
            if self.tty:
                sys.stderr.write(f"\r{self.done}/{self.total}, {self.bad} wrong  {c.name[:70]:70}")
                sys.stderr.flush()
                if self.done == self.total:
                    sys.stderr.write("\n")


def find(only, fast):
    paths = [p for c in CATEGORIES for p in sorted(glob.glob(os.path.join(HERE, c, "*.py")))]
    patterns = list(only or []) + (list(FAST) if fast else [])
    names = {p: os.path.relpath(p, HERE)[:-3] for p in paths}
    keep = [p for p in paths if not patterns or
            any(fnmatch.fnmatch(names[p], g) or fnmatch.fnmatch(os.path.basename(p), g) for g in patterns)]
    return [Candidate(p) for p in keep]


def judge(group, backend, progress, extra=()):
    """One 'musacoder eval' for candidates that share task and options; verdicts come in order, one a line."""
    task, options = group[0].head["task"], group[0].head.get("options", "").split()
    argv = [EXE, "eval", "--task", os.path.join(HERE, "tasks", task + ".py"), "--backend", backend, "--json",
            "--no-cache", "--no-compile-baseline", "--trials", "2", "--timeout", f"{20 * SLOWDOWN:g}", "--jobs", "2",
            *options, *extra, *[c.path for c in group]]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    progress.running.add(p)
    errors = []
    reader = threading.Thread(target=lambda: errors.append(p.stderr.read()), daemon=True)
    reader.start()
    for c, line in zip(group, p.stdout):
        c.verdict = json.loads(line)
        progress.step(c)
    p.wait()
    reader.join()
    progress.running.discard(p)
    for c in group:
        if c.verdict is None and not progress.stopped:
            c.why = (errors or [""])[0].strip()[-300:]
            progress.step(c)


def groups_of(candidates, size):
    by = collections.OrderedDict()
    for c in candidates:
        by.setdefault((c.head.get("task"), c.head.get("options", "")), []).append(c)
    return [g[i:i + size] for g in by.values() for i in range(0, len(g), size)]


def explain(c):
    text = c.why or (c.verdict or {}).get("feedback", "")
    print(f"  {c.outcome():8} {c.name}: {c.got()} instead of {c.expected}")
    for line in text.strip().splitlines()[:6]:
        print(f"           | {line[:150]}")


def table(candidates, skipped):
    rows = []
    for category in CATEGORIES:
        mine = [c for c in candidates if c.expected == category]
        n = collections.Counter(c.outcome() for c in mine)
        off = sum(c.expected == category for c, _ in skipped)
        if mine or off:
            rows.append((category, len(mine), n["right"], n["missed"], n["other"], n["accused"], off))
    print(f"\n{'folder':18}{'judged':>8}{'right':>8}{'missed':>8}{'other':>8}{'accused':>9}{'skipped':>9}")
    for r in rows + [("all",) + tuple(sum(r[i] for r in rows) for i in range(1, 7))]:
        print(f"{r[0]:18}{r[1]:8}{r[2]:8}{r[3]:8}{r[4]:8}{r[5]:9}{r[6]:9}")


def main():
    a = argparse.ArgumentParser(description="Judges the adversarial corpus and compares with the folders' names.")
    a.add_argument("--backend", default="sim", choices=sorted(LACKS))
    a.add_argument("--only", action="append", metavar="GLOB")
    a.add_argument("--fast", action="store_true", help="the subset of 'make test'")
    a.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 4),
                   help="evaluations side by side, two candidates each [one for each four cores]")
    a.add_argument("--verbose", action="store_true", help="a line for every candidate")
    a.add_argument("--no-perf", action="store_true", help="no times where the backend has a clock")
    a.add_argument("--keep", metavar="FILE", help="verdicts as they come, a line of JSON each")
    a = a.parse_args()
    start, found = time.monotonic(), find(a.only, a.fast)
    tasks = os.path.join(HERE, "tasks")
    skipped = [(c, why) for c in found if (why := c.reason_to_skip(a.backend, tasks))]
    candidates = [c for c in found if not any(c is s for s, _ in skipped)]
    if not candidates:
        print("no candidate fits", file=sys.stderr)
        return 2
    for c in candidates:
        c.expect(a.backend)
    extra = ["--no-perf"] if a.no_perf else []
    progress = Progress(len(candidates), a.keep)
    size = max(4, min(40, len(candidates) // max(a.jobs, 1) // 2))  # small enough that all of --jobs end together
    with concurrent.futures.ThreadPoolExecutor(max(a.jobs, 1)) as pool:
        try:
            list(pool.map(lambda g: judge(g, a.backend, progress, extra), groups_of(candidates, size)))
        except KeyboardInterrupt:
            progress.stop()  # the pool ends with what runs
    left = [c for c in candidates if not c.verdict and not c.why]
    candidates = [c for c in candidates if c not in left]
    for c, why in skipped:
        print(f"  skipped  {c.name}: {why}")
    for c in candidates:
        if c.outcome() != "right":
            explain(c)
        elif a.verbose:
            print(f"  right    {c.name}")
    table(candidates, skipped)
    cheats = [c for c in candidates if not c.honest]
    n = collections.Counter(c.outcome() for c in candidates)
    caught = sum(c.got() not in ("passed", "no verdict", "infra") for c in cheats)
    print(f"\n{a.backend}: {caught} of {len(cheats)} caught, {n['missed']} missed, {n['other']} under another "
          f"category, {n['unsupported']} unsupported, {n['accused']} of {len(candidates) - len(cheats)} wrongly "
          f"accused, {len(skipped)} skipped ({time.monotonic() - start:.0f} s)" +
          (f"; stopped: {len(left)} not judged" if left else ""))
    return 0 if n["right"] == len(candidates) and not left else 1


if __name__ == "__main__":
    sys.exit(main())
