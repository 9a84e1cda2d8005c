"""profile_records.py OUT [--tasks N] [--seconds S] [--jobs N] [--dry] - records of what ncu says of kernels.

Makes programs of 'musacoder synth', judges each on the card and keeps its capsule, replays the capsules under ncu, and
has 'musacoder synth profile' write the records. OUT/profiles has NAME.py (the program), NAME.task (the task) and
NAME.csv (the figures) of each, OUT/records the records, OUT/profile.json what was done and how long it took. A record
can be made again: 'eval --task NAME.task NAME.py --backend cuda --capsule C', then 'replay C --profile F'. Stops
beginning anything --seconds after the start (default 150), and says how far it came. Needs an NVIDIA GPU whose counters
may be read, and ncu on PATH or in /usr/local/cuda/bin. --dry does all but ncu, on sim.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("MUSACODER", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
FAMILIES = "activation,math,binary,reduction,softmax,norm,matmul,pooling,convolution,scan,loss"


def call(*args, seconds=120):
    """The exit code and the last line of what went wrong."""
    try:
        done = subprocess.run([BINARY, *args], capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 124, f"no end after {seconds} s"
    return done.returncode, (done.stderr.strip().split("\n") or [""])[-1]


def make_programs(out, o):
    """(name, task, program) of a corpus that nobody judged: the card does."""
    corpus = os.path.join(out, "corpus")
    code, why = call("synth", "--out", corpus, "--no-verify", "--tasks", str(o.tasks), "--per-task", "1", "--heldout",
                     "0", "--prompts", "0", "--knowledge", "0", "--max-ops", "2", "--max-elements", str(o.elements),
                     "--style", "full", "--no-known", "--ops", FAMILIES, "--seed", str(o.seed), seconds=300)
    if code:
        sys.exit(f"synth: {why}")
    rows = map(json.loads, open(os.path.join(corpus, "train.jsonl"), encoding="utf-8"))
    return [(r["task"]["name"], r["task"]["code"], r["kernel"]["code"]) for r in rows if r["kind"] == "generate"]


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Run:
    def __init__(self, out, o):
        self.o, self.folder, self.begin = o, os.path.join(out, "profiles"), time.time()
        self.capsules = tempfile.mkdtemp(prefix="capsules")
        self.outcomes, self.spent = collections.Counter(), collections.Counter()
        os.makedirs(self.folder, exist_ok=True)

    def late(self):
        return time.time() - self.begin > self.o.seconds

    def step(self, what, *args):
        begin = time.time()
        code, why = call(*args)
        self.spent[what] += time.time() - begin
        return code, why

    def one(self, row):
        """Judged, then replayed; what came of it."""
        name, task, program = row
        path = os.path.join(self.folder, name)
        capsule = os.path.join(self.capsules, name)
        if self.late():
            return "not begun"
        write(path + ".task", task), write(path + ".py", program)
        code, why = self.step("eval", "eval", "--task", path + ".task", path + ".py", "--backend",
                              "sim" if self.o.dry else "cuda", "--no-perf", "--trials", "1", "--capsule", capsule)
        if code == 0 and os.path.exists(capsule):
            code, why = self.step("replay", "replay", capsule, *(() if self.o.dry else ("--profile", path + ".csv")))
            os.remove(capsule)
        elif code == 0:
            code, why = 1, "no capsule"
        good = code == 0 and (self.o.dry or has_figures(path + ".csv"))
        if not good:
            for end in (".task", ".py", ".csv"):
                if os.path.exists(path + end):
                    os.rename(path + end, os.path.join(self.capsules, name + end))
        return "profiled" if good else f"failed: {why[:120]}"

    def all(self, rows):
        with concurrent.futures.ThreadPoolExecutor(self.o.jobs) as pool:
            for outcome in pool.map(self.one, rows):
                self.outcomes[outcome] += 1


def has_figures(path):
    """ncu writes a file without kernels where it may not read the counters."""
    return os.path.exists(path) and "Metric Name" in open(path, encoding="utf-8", errors="replace").read()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("out")
    p.add_argument("--tasks", type=int, default=400)
    p.add_argument("--seconds", type=float, default=150)
    p.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2) * 3 // 4))
    p.add_argument("--seed", type=int, default=77)
    p.add_argument("--elements", type=int, default=1 << 20)
    p.add_argument("--dry", action="store_true")
    o = p.parse_args()
    if not o.dry and not (shutil.which("ncu") or os.path.exists("/usr/local/cuda/bin/ncu")):
        sys.exit("ncu is not found; install the CUDA toolkit, or add its bin folder to PATH")
    os.makedirs(o.out, exist_ok=True)
    rows = make_programs(o.out, o)
    run = Run(o.out, o)
    run.all(rows)
    made = time.time() - run.begin
    code, why = (0, "") if o.dry else call("synth", "profile", run.folder, "--out", os.path.join(o.out, "records"))
    report = {"programs": len(rows), "outcomes": dict(run.outcomes.most_common()), "seconds": round(made, 1),
              "process_seconds": {k: round(v, 1) for k, v in run.spent.items()}, "jobs": o.jobs,
              "records": code == 0, "why": why}
    with open(os.path.join(o.out, "profile.json"), "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1)
    shutil.rmtree(run.capsules)
    print(json.dumps(report, indent=1))
    return code or not run.outcomes["profiled"]


if __name__ == "__main__":
    sys.exit(main())
