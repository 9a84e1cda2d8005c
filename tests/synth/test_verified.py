#!/usr/bin/env python3
"""End to end: every family with every strategy passes MooreEval, bugs are convicted by real verdicts, and a second run
gives the same bytes from its journal.

usage: test_verified.py [TASKS]
Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
FILES = ["train.jsonl", "heldout.jsonl", "prompts.jsonl", "rejected.jsonl", "stats.json"]
STRATEGIES = {
    "unary": {"thread", "stride", "vec4", "grid2d", "row"}, "binary": {"thread", "stride", "vec4", "grid2d", "row"},
    "broadcast": {"thread", "stride", "grid2d", "row"}, "chain": {"thread", "stride", "grid2d", "row"},
    "rowreduce": {"thread", "warp", "block", "warps"}, "colreduce": {"thread", "warp", "tile"},
    "fullreduce": {"block", "warps", "twopass"}, "softmax": {"thread", "online", "warp", "block"},
    "norm": {"thread", "warp", "block"}, "matmul": {"naive", "tile", "register", "warp"},
    "linear": {"naive", "tile", "register", "warp"}, "transpose": {"flat", "grid2d", "row"},
    "scan": {"thread", "warp", "hillis"}}
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def make(out, tasks, style):
    command = [BINARY, "synth", "--out", out, "--tasks", str(tasks), "--heldout", "0", "--prompts", "0", "--per-task",
        "8",
               "--repairs", "1", "--knowledge", "5", "--trials", "1", "--style", style, "--ops", "all", "--seed", "11",
               "--families", ",".join(STRATEGIES)]
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f"synth ended with {done.returncode}: {done.stderr[-500:]}")
    return time.time() - begin


def read(out):
    return {name: open(os.path.join(out, name), "rb").read() for name in FILES}


def check_corpus(out):
    stats = json.load(open(out + "/stats.json"))
    for line in open(out + "/rejected.jsonl"):
        row = json.loads(line)
        check(row["what"] != "program",
            f"{row.get('task')} {row.get('strategy')}: {row['reason']}: {row.get('feedback')}")
    for family, strategies in STRATEGIES.items():
        got = {k.split("/")[1] for k in stats["strategies"] if k.split("/")[0] == family}
        check(strategies <= got, f"{family}: no verified program for {strategies - got}")
    for line in open(out + "/train.jsonl"):
        row = json.loads(line)
        if row["kind"] == "repair":
            feedback = row["broken_verdict"]["feedback"]
            check(row["messages"][2]["content"].startswith(feedback[:40]), "the feedback is not the verdict's")
            check(row["broken_verdict"]["status"] == "failed", "a repair of a program that passed")
        if row["kind"] != "knowledge":
            check(row["verdict"]["status"] == "passed", "an answer that did not pass")
    check(stats["mutations"]["kill_score"] >= 0.6, f"mutation kill score {stats['mutations']['kill_score']}")
    print("mutation kill score", round(stats["mutations"]["kill_score"], 3), "of", stats["mutations"]["mutants"])


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 13
    with tempfile.TemporaryDirectory() as out:
        first = make(out, tasks, "plain")
        check_corpus(out)
        before = read(out)
        again = make(out, tasks, "plain")
        check(read(out) == before, "a second run gives other bytes")
        print(f"first run {first:.1f} s, again from the journal {again:.1f} s")
        check(again < 10, "the journal was not used")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
