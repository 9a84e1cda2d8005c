#!/usr/bin/env python3
"""Records of the row-based core: the same bytes from one process and from three, resumed shards, references of whole "
"graphs
that agree with PyTorch, answers and reasons that hold.

Ends with 'N passed, M failed'."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import torch

FORK = "torch"
HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def command(out, part, records, *more):
    return [BINARY, "synth", "--records", records, "--shard-size", "50", "--out", out, "--verify-share", "0",
            "--max-elements", "512", "--max-ops", "6", "--style", "full", "--part", part, *more]


def make(out, part="0/1", records="300", *more):
    done = subprocess.run(command(out, part, records, *more), capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr[-1000:])
    return done.stdout


def digest(out):
    data = os.path.join(out, "data")
    return {f: hashlib.sha256(open(os.path.join(data, f), "rb").read()).hexdigest() for f in sorted(os.listdir(data))}


def records(out):
    for name in sorted(os.listdir(out + "/data")):
        for line in open(os.path.join(out, "data", name)):
            yield json.loads(line)


def check_processes(one, three):
    make(one)
    for k in range(3):
        make(three, f"{k}/3")
    check(digest(one) == digest(three), "three processes give other bytes than one")
    check("6 were there" in make(one), "complete shards were made again")
    os.remove(one + "/stats/00002.json")
    make(one)
    check(digest(one) == digest(three), "a shard made again has other bytes")
    card = open(one + "/README.md").read()
    check(card == open(three + "/README.md").read(), "the last of three processes writes another card")
    total = sum(1 for _ in records(one))
    counted = sum(int(n) for n in re.findall(r"^\| (?:train|heldout) \w+ \| (\d+) \|$", card, re.M))
    check(counted == total, f"the card counts {counted} of {total} records")
    check(os.path.getsize(one + "/plots/schedules.svg") > 500, "no plot")
    for more, word in ((("--seed", "9"), "seed"), (("--max-ops", "2"), "max-ops")):
        done = subprocess.run(command(one, "0/1", "300", *more), capture_output=True, text=True, check=False)
        check(done.returncode == 2 and f"made with {word}" in done.stderr, f"other options are taken: {done.stderr}")
    done = subprocess.run(command(one, "0/1", "250"), capture_output=True, text=True, check=False)
    check(done.returncode == 2, "fewer records keep the old ones silently")
    keys = {tuple(sorted(r)) + tuple(sorted(r["provenance"])) for r in records(one)}
    check(len(keys) == 1, f"records have other columns: {keys}")


def shape_answer(record):
    space = {}
    exec(record["task"]["code"], space)
    with torch.no_grad():
        out = space["Model"](*space["get_init_inputs"]())(*space["get_inputs"]())
    return f"{tuple(out.shape)}, {out.dtype}"


def check_records(out):
    kinds = {}
    for r in records(out):
        kinds[r["kind"]] = kinds.get(r["kind"], 0) + 1
        held = int(r["task"]["graph_hash"], 16) % 8 == 0
        check((r["split"] == "heldout") == held, f"{r['id']} lies in split {r['split']}")
        answer = r["messages"][-1]["content"]
        if r["kind"] == "shape":
            check(answer == shape_answer(r), f"{answer} is not {shape_answer(r)}\n{r['task']['code']}")
        else:
            check("class ModelNew" in answer and "__global__" in answer, f"{r['id']} has no program")
        if r["kind"] == "reason":
            check(all(f"\n{n}. " in "\n" + answer for n in range(1, 7)), f"{r['id']} lacks a step")
        if r["kind"] == "rewrite":
            speed, asked = r["speed"], r["messages"][0]["content"]
            check(speed["source"] == "static" and speed["slow_us"] >= 1.5 * speed["fast_us"], f"{r['id']}: {speed}")
            check("a static estimate" in asked and asked.count("class ModelNew") == 1, f"{r['id']} has no slow program")
            check(r["kernel"]["code"] not in asked, f"{r['id']} asks for what it shows")
        check((r["kind"] == "rewrite") == (r["speed"] is not None), f"{r['id']} has the speed {r['speed']}")
        check(0 <= r["kill"]["killed"] <= r["kill"]["mutants"] <= 4, f"{r['id']}: {r['kill']}")
    check(set(kinds) == {"generate", "reason", "shape", "rewrite"}, f"kinds {kinds}")


def check_choices(out):
    """What occurs, in which language, how long: as asked for, or refused in one line."""
    make(out, "0/1", "60", "--ops", "sigmoid,tanh,mean", "--dialect", "musa", "--max-program", "2500")
    for r in records(out):
        check(set(r["task"]["ops"]) <= {"sigmoid", "tanh", "mean"}, f"{r['id']} has {r['task']['ops']}")
        if r["kernel"]:
            check(r["kernel"]["lang"] == "musa" and "cuda_runtime" not in r["kernel"]["code"], r["kernel"]["code"])
            check(len(r["kernel"]["code"].encode()) <= 2500, f"{r['id']} is too long")
    for more, word in ((("--max-program", "90"), "--max-program 90"), (("--ops", "permute"), "--ops")):
        done = subprocess.run(command(out + more[0], "0/1", "10", *more), capture_output=True, text=True, check=False)
        check(done.returncode == 2 and word in done.stderr, f"{more} is taken: {done.stderr}")


def check_graphs(folder):
    values = os.path.join(folder, "values.jsonl")
    subprocess.run([BINARY, "synth", "--probe", "graphs", "--values", values, "--tasks", "150", "--max-elements",
        "512"],
                   check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([sys.executable, os.path.join(HERE, "check_rows.py"), values], capture_output=True,
        text=True, check=False)
    check(done.returncode == 0, done.stdout[-3000:])


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as three:
        check_processes(one, three)
        check_records(one)
        check_graphs(three)
        check_choices(one + "/choices")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
