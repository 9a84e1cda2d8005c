#!/usr/bin/env python3
"""End to end: programs of every family pass MooreEval, bugs are convicted by real verdicts, and a second run gives the
same bytes from its journal.

usage: test_verified.py [TASKS]       slow_verified.py makes 24
Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
sys.path.insert(0, os.path.join(HERE, "..", "eval"))
import judges  # noqa: E402

judges.share_owner()
FILES = ["train.jsonl", "heldout.jsonl", "prompts.jsonl", "oracle.jsonl", "rejected.jsonl", "stats.json"]
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def make(out, tasks, style):
    command = [BINARY, "synth", "--out", out, "--tasks", str(tasks), "--heldout", "2", "--prompts", "4", "--per-task",
               "1", "--repairs", "1", "--knowledge", "5", "--trials", "1", "--style", style, "--max-ops", "3",
               "--max-elements", "512", "--verify-share", "1", "--seed", "11"]
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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
    repairs = 0
    for line in open(out + "/train.jsonl"):
        row = json.loads(line)
        repairs += row["kind"] == "repair"
        if row["kind"] == "repair":
            check(len(row["messages"][2]["content"]) > 20, "a repair without feedback")
            check("aulty line" in row["messages"][3]["content"] or "missing" in row["messages"][3]["content"],
                  f"no line is named: {row['messages'][3]['content'][:80]}")
        if row["kind"] != "knowledge":
            check(row["verdict"]["status"] == "passed", "an answer that did not pass")
    check(repairs > 0, "no bug was convicted")
    check(len(stats["families"]) >= 6, f"families {stats['families']}")
    check(stats["mutations"]["kill_score"] >= 0.6, f"mutation kill score {stats['mutations']['kill_score']}")
    print("mutation kill score", round(stats["mutations"]["kill_score"], 3), "of", stats["mutations"]["mutants"])


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as out:
        first = make(out, tasks, "plain")
        check_corpus(out)
        before = read(out)
        again = make(out, tasks, "plain")
        check(read(out) == before, "a second run gives other bytes")
        print(f"first run {first:.1f} s, again from the journal {again:.1f} s")
        check(again < first / 2, "the journal was not used")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
