#!/usr/bin/env python3
"""cases.py - a folder of small programs, each with a word on how it must be judged; prints a line for each.

    cases.py FOLDER [--backend sim|cuda] [--jobs N] [--only WORD]

FOLDER/README.md and FOLDER/lazy/README.md hold tables. A row of the first is '| NAME | MUST | WHY |' of a folder NAME
with task.py and candidate.py, a row of the second '| PROGRAM | TASK | MUST | WHY |' of two files. MUST names outcomes:
pass, fail or not pass, unsupported, refused (the task), a message or finding (any verdict whose words say why). Exit
code 1 where a program is judged otherwise. An answer of several files is given as its folder.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXE = os.environ.get("MUSACODER_EXE") or os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")


def rows(path):
    lines = path.read_text().splitlines() if path.exists() else []
    cells = [[c.strip() for c in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return [c for c in cells if c[0] not in ("case", "program") and not set(c[0]) <= set("- ")]


def find(folder):
    """(name, task, answer, must) of each case."""
    for name, must, *_ in rows(folder / "README.md"):
        here = folder / name
        sources = [p for p in here.iterdir() if p.suffix in (".cu", ".cuh", ".h")]
        yield name, here / "task.py", here if sources else here / "candidate.py", must
    for name, task, must, *_ in rows(folder / "lazy" / "README.md"):
        yield name, folder / "lazy" / task, folder / "lazy" / name, must


def allowed(must):
    """Statuses that a case may have."""
    words = must.split(":")[0].lower()
    found = {"failed"} if re.match(r"not pass|fail", words) else set()
    found |= {"passed"} if re.match(r"pass", words) else set()
    found |= {"unsupported"} if "unsupported" in words else set()
    found |= {"refused"} if "refus" in words else set()
    return found | ({"failed", "refused", "unsupported"} if re.search(r"message|finding|remedy", words) else set())


def judge(case, backend):
    name, task, answer, must = case
    options = ["--backend", backend, "--json", "--no-perf", "--no-compile-baseline", "--timeout", "60"]
    p = subprocess.run([EXE, "eval", *options, "--task", str(task), str(answer)], capture_output=True, text=True)
    try:
        v = json.loads(p.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        v = {"status": "refused" if p.returncode == 2 else "none", "feedback": p.stderr.strip()[-300:]}
    if v.get("at_fault") == "request":  # a record is written of what could not be judged, too
        v["status"] = "refused"
    right = v["status"] in allowed(must)
    words = (v.get("feedback") or "").replace("\n", " ")[:160]
    got = f"{v['status']} {v.get('category') or ''}".strip()
    print(f"{'right' if right else 'WRONG'} | {name} | must: {must} | {got} | {words}", flush=True)
    return right


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--backend", default="sim")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--only", default="")
    args = a.parse_args()
    cases = [c for c in find(args.folder) if args.only in c[0]]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        right = list(pool.map(lambda c: judge(c, args.backend), cases))
    print(f"{args.backend}: {sum(right)} of {len(cases)} cases as they must be", flush=True)
    return 0 if cases and all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
