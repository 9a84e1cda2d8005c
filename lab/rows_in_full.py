"""rows_in_full.py OUT [--jobs N] [--sets 200] [--uses 1] [--part values|programs|null|lint] [--ops NAME,..] - every
operator, in full.

values    for each operator and dtype, --sets drawn uses: reference, loop nest and PyTorch agree
programs  for each operator and dtype, --uses drawn tasks with a program for every schedule that fits, judged on 'sim'
null      for each operator (float32), one task: would zeros, a constant, an input or the result without one of its
          operators pass at protocol strict, is it broken? ('musacoder lint')
lint      of --corpora corpora with 60 tasks each: would an answer without work pass ('musacoder lint', protocol
          strict), is one broken?

Runs --jobs of them at once, goes on where it was stopped (OUT/*.json), and ends with a table. Needs PyTorch.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("MUSACODER", os.path.join(HERE, "build", "musacoder"))
DTYPES = ("float32", "float16", "bfloat16")


def operators():
    out = subprocess.run([BINARY, "synth", "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[1] for line in out.splitlines() if line.startswith("operator ")]


def probe(*args):
    return subprocess.run([BINARY, "synth", "--probe", *args], capture_output=True, text=True, check=False)


def values(op, dtype, o):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "values.jsonl")
        made = probe(op, "--values", path, "--tasks", str(o.sets), "--dtypes", dtype, "--max-elements", "1024")
        if made.returncode:
            return {"op": op, "dtype": dtype, "passed": 0, "failed": o.sets, "said": (made.stdout + made.stderr)[-600:]}
        kept = [line for line in open(path) if json.loads(line)["op"] == op]  # softmax, matmul, attention: families too
        with open(path, "w") as f:
            f.writelines(kept)
        lines = len(kept)
        done = subprocess.run([sys.executable, os.path.join(HERE, "tests/synth/check_rows.py"), path],
                              capture_output=True, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1].split()
    passed, failed = (int(last[0]), int(last[2])) if len(last) == 4 else (0, lines)
    said = (done.stdout or done.stderr)[-600:] if failed else ""
    return {"op": op, "dtype": dtype, "passed": passed, "failed": failed, "said": said}


def programs(op, dtype, o):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        made = probe(op, "--out", folder, "--tasks", str(o.uses), "--dtypes", dtype, "--max-elements", "512",
                     "--seed", "9")
        if made.returncode:
            rows.append({"status": "broken", "said": made.stderr[-600:]})
        for task in sorted(glob.glob(folder + "/*_????.py")):
            files = sorted(glob.glob(task[:-3] + ".*.py"))
            for trials in (["--trials", "1"], []):  # where no answer of one draw decides, all draws
                done = subprocess.run([BINARY, "eval", "--task", task, *trials, "--jobs", "1", "--json", *files],
                                      capture_output=True, text=True, check=False)
                if len(done.stdout.splitlines()) == len(files):
                    break
            for path, line in zip(files, done.stdout.splitlines()):
                v = json.loads(line)
                rows.append({"schedule": os.path.basename(path).split(".")[1], "status": v["status"],
                             "category": v["category"], "said": v["feedback"][:300] if v["status"] != "passed" else ""})
            if len(done.stdout.splitlines()) != len(files):
                rows.append({"status": "infra", "said": done.stderr[-600:]})
    return {"op": op, "dtype": dtype, "passed": sum(r["status"] == "passed" for r in rows),
            "failed": sum(r["status"] != "passed" for r in rows), "rows": [r for r in rows if r["status"] != "passed"],
            "schedules": sorted({r.get("schedule", "?") for r in rows})}


def is_bad(report):
    return any(f.get("rule") == "broken" or f.get("rule") in ("trivial_output", "dropped_operator") and
               "strict" in f["evidence"]["passes"] for f in report.get("findings", []))


def null(op, dtype, o):
    with tempfile.TemporaryDirectory() as folder:
        made = probe(op, "--out", folder, "--tasks", "1", "--dtypes", dtype, "--max-elements", "512", "--seed", "5")
        tasks = sorted(glob.glob(folder + "/*_????.py"))
        done = subprocess.run([BINARY, "lint", "--json", *tasks], capture_output=True, text=True, check=False)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    bad = [f for r in reports if is_bad(r) for f in r["findings"]]
    return {"op": op, "dtype": dtype, "passed": sum(not is_bad(r) for r in reports),
            "failed": sum(map(is_bad, reports)) + (not tasks or len(reports) != len(tasks) or made.returncode != 0),
            "said": "; ".join(f["message"] for f in bad) or (made.stderr + done.stderr)[-300:]}


def lint(op, dtype, o):
    """op is the number of a corpus here: its training and held-out tasks of up to three operators."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([BINARY, "synth", "--no-verify", "--out", folder, "--seed", str(op), "--tasks", "40",
                               "--per-task", "1", "--heldout", "5", "--prompts", "0", "--knowledge", "0", "--max-ops",
                               "3", "--max-elements", "512", "--dtypes", dtype],
                              capture_output=True, text=True, check=False)
        tasks = sorted(glob.glob(folder + "/tasks/*/*.py"))
        done = subprocess.run([BINARY, "lint", "--json", *tasks], capture_output=True, text=True, check=False)
    bad = [r for r in map(json.loads, done.stdout.splitlines())
           if any(f.get("rule") == "broken" or f.get("rule") == "trivial_output" and "strict" in f["evidence"]["passes"]
                  for f in r.get("findings", []))]
    return {"op": op, "dtype": dtype, "passed": len(done.stdout.splitlines()) - len(bad),
            "failed": len(bad) + len(tasks) - len(done.stdout.splitlines()) + (made.returncode != 0),
            "said": (json.dumps(bad[:2]) + made.stderr + done.stderr)[-900:] if bad or not tasks else ""}


PARTS = {"values": values, "programs": programs, "null": null, "lint": lint}


def one(job):
    part, op, dtype, o = job
    path = os.path.join(o.out, f"{part}-{op}-{dtype}.json")
    if not os.path.exists(path):
        result = PARTS[part](op, dtype, o)
        if any(r["status"] == "infra" for r in result.get("rows", [])):
            return part, result  # says nothing of the operator: not kept, so that the next run asks again
        with open(path + ".part", "w", encoding="utf-8") as f:
            json.dump(result, f)
        os.rename(path + ".part", path)
    return part, json.load(open(path, encoding="utf-8"))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("out")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--sets", type=int, default=200)
    p.add_argument("--uses", type=int, default=1)
    p.add_argument("--corpora", type=int, default=8)
    p.add_argument("--part", choices=PARTS, action="append")
    p.add_argument("--ops", help="these operators alone, separated by commas")
    o = p.parse_args()
    os.makedirs(o.out, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = o.ops.split(",") if o.ops else operators()
    jobs = [(part, op, d, o) for part in o.part or PARTS for d in (DTYPES[:1] if part == "null" else DTYPES)
            for op in (range(o.corpora) if part == "lint" else rows)]
    totals, begin = collections.Counter(), time.time()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for n, (part, r) in enumerate(pool.map(one, jobs), 1):
            totals[part, "passed"] += r["passed"]
            totals[part, "failed"] += r["failed"]
            totals[part, "rows"] += 1
            totals[part, "whole"] += r["failed"] == 0
            if r["failed"]:
                said = r.get("said") or r.get("rows")
                print(f"{part} {r['op']} {r['dtype']}: {r['failed']} failed: {said}", flush=True)
            if n % 100 == 0:
                print(f"{n} of {len(jobs)} in {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    print("| part | operators x dtypes | without a failure | passed | failed |\n|---|---|---|---|---|")
    for part in o.part or PARTS:
        cells = [part] + [str(totals[part, k]) for k in ("rows", "whole", "passed", "failed")]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
