#!/usr/bin/env python3
"""Right kernels through the emulator's checks: does it accuse any of them?

    lab/right_kernels.py RECORDS.jsonl... --work WORK [--take 300] [--seed 0] [--seconds 1200] [--workers 1]

RECORDS are 'musacoder synth' data (oracle.jsonl, train.jsonl): programs that are right by construction, in the
schedules that synth knows; a record of kind generate with its task and kernel is one program. Those of
tests/corpus/passed that apply to sim and tests/musa/passed come on top. Resumes; needs build/lab/judge_feed.
Prints how many pass, every other outcome by name, and how many have the note 'unwritten'.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "corpus"))
import run as corpus  # noqa: E402


def of_records(paths, take, seed):
    rows = {}
    for path in paths:
        for line in open(path, encoding="utf-8"):
            r = json.loads(line)
            if r.get("kind") == "generate":
                rows[r["id"], r["kernel"]["code"]] = (r["task"]["code"], r["kernel"]["code"])
    rows = sorted(rows.items())
    random.Random(seed).shuffle(rows)
    return [(f"synth/{key[0]}", *row) for key, row in rows[:take]]


def of_tests():
    tasks = ROOT / "tests" / "corpus" / "tasks"
    for folder in ("tests/corpus/passed", "tests/musa/passed"):
        for path in sorted((ROOT / folder).glob("*.py")):
            c = corpus.Candidate(str(path))
            task = tasks / (c.head["task"] + ".py")
            if not c.reason_to_skip("sim", str(tasks)) and not {"options", "sim"} & set(c.head) and \
                    not task.with_suffix(".yaml").exists():
                yield f"{folder}/{path.stem}", task.read_text(), path.read_text()


def table(results):
    kinds, notes = collections.Counter(), []
    for r in results:
        v, where = r["verdict"], r["id"].rsplit("/", 1)[0]
        kinds[where, v["category"] or "passed"] += 1
        if v.get("unwritten"):
            notes.append(f"{r['id']}: {v['unwritten']['message']}")
        if v["category"]:
            print(f"{r['id']}: {v['category']}: {v['feedback'][:300]}")
    for (where, kind), n in sorted(kinds.items()):
        print(f"{where:24} {kind:20} {n}")
    print(f"{len(results)} programs, {len(notes)} with the note 'unwritten'", *notes, sep="\n  ")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("records", nargs="+")
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--take", type=int, default=300)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--seconds", type=int, default=1200)
    p.add_argument("--workers", type=int, default=1)
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    requests, results = a.work / "requests.jsonl", a.work / "results.jsonl"
    options = {"backend": "sim", "perf": False, "timeout": 60.0, "build-timeout": 120.0, "trials": 1}
    with open(requests, "w", encoding="utf-8") as f:
        for name, task, candidate in [*of_records(a.records, a.take, a.seed), *of_tests()]:
            f.write(json.dumps({"id": name, "task_name": name.rsplit("/", 1)[1], "task_code": task,
                                "candidate": candidate, "options": options}) + "\n")
    musacoder = os.environ.get("MUSACODER_EXE", str(ROOT / "build/musacoder"))
    code = subprocess.run([os.environ.get("JUDGE_FEED", str(ROOT / "build/lab/judge_feed")), str(requests),
                           str(results), str(a.seconds), str(a.workers), musacoder, "--backend", "sim",
                           "--no-cache"], check=False).returncode
    table([json.loads(line) for line in open(results, encoding="utf-8")])
    sys.exit(code)


if __name__ == "__main__":
    main()
