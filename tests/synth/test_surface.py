#!/usr/bin/env python3
"""Tasks as people write them: each reference runs in PyTorch, each program keeps the constructor's and forward's very
arguments and reads its sizes when it runs, the same seed gives the same bytes, and a sample passes MooreEval.

usage: test_surface.py [VERIFIED]       slow_surface.py judges 120
Ends with 'N passed, M failed'."""
import ast
import collections
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
sys.path.insert(0, os.path.join(HERE, "..", "eval"))
import judges  # noqa: E402

FORK = "torch"

judges.share_owner()
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def make(out, records, *more):
    done = subprocess.run([BINARY, "synth", "--surface", "public", "--style", "full", "--out", out, "--records",
                           str(records), "--trials", "1", *more], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"synth ended with {done.returncode}: {done.stderr[-800:]}")


def records(out, split="*"):
    for path in sorted(glob.glob(os.path.join(out, "data", f"{split}-*.jsonl"))):
        for line in open(path):
            yield json.loads(line)


def digest(out):
    return [(r["id"], hashlib.sha256(json.dumps(r["messages"]).encode()).hexdigest()) for r in records(out)]


def method(tree, cls, name):
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls).body
    return next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def signature(f):
    return (ast.unparse(f.args), f.returns and ast.unparse(f.returns)) if f else None


def layers(f):
    """What __init__ does beside the call of super and its docstring."""
    lines = [ast.unparse(s) for s in f.body] if f else []
    return [s for s in lines if "super(" not in s and not s.startswith(("'", '"'))]


def check_record(r):
    task, program = ast.parse(r["task"]["code"]), ast.parse(r["kernel"]["code"])
    for name in ("__init__", "forward"):
        check(signature(method(task, "Model", name)) == signature(method(program, "ModelNew", name)),
              f"{r['id']}: arguments of {name} differ")
    check(layers(method(task, "Model", "__init__")) == layers(method(program, "ModelNew", "__init__")),
          f"{r['id']}: __init__ differs")
    check("$" not in r["task"]["code"] + r["kernel"]["code"], f"{r['id']}: a hole was not filled")


def check_runs(r):
    space = {"__name__": "task"}
    try:
        exec(compile(r["task"]["code"], r["id"], "exec"), space)
        out = space["Model"](*space["get_init_inputs"]())(*space["get_inputs"]())
        check(torch.is_tensor(out) and bool(torch.isfinite(out.double()).all()), f"{r['id']}: not finite")
    except Exception as e:
        check(False, f"{r['id']} raises {type(e).__name__}: {e}\n{r['task']['code']}")


def check_written(folder):
    one, two = os.path.join(folder, "one"), os.path.join(folder, "two")
    make(one, 900, "--verify-share", "0", "--shard-size", "450")
    make(two, 900, "--verify-share", "0", "--shard-size", "450", "--part", "1/2")
    make(two, 900, "--verify-share", "0", "--shard-size", "450", "--part", "0/2")
    check(digest(one) == digest(two), "two processes write other bytes than one")
    kinds = collections.Counter()
    torch.manual_seed(1)
    for r in records(one):
        check_record(r)
        check_runs(r)
        kinds.update(r["task"]["ops"])
    for form in ("map", "reduce", "row", "scan", "loss"):
        name = f"{form}_expression"
        check(kinds[name] > 3, f"{kinds[name]} layers {name} among 900 records")
    check(len(kinds) > 120, f"{len(kinds)} kinds of layers among 900 records")
    check_chains([r["task"]["code"] for r in records(one) if len(r["task"]["ops"]) > 1])
    texts = {r["task"]["code"] for r in records(one)}
    check(len(texts) > 890, f"{len(texts)} different tasks of 900")


# What chains have beside layers in a row, by the text of a task.
WAYS = {"a pooling over the columns of a table": r"\(x\.unsqueeze\(1\)\)\.squeeze\(1\)",
        "a module that is used again": r"self\.(\w+)\(x\)[^\0]*self\.\1\(x\)",
        "a second input that is added or multiplied": r"forward\(self, \w+[^,]*, (\w+)[^\0]* x = x [+*] \1\b",
        "values with names of their own": r" ([a-z]+)2 = .*\b(?=\1)[a-z]+1\b",
        "a parameter of one number": r"_shape = \(1,\)"}


def check_chains(chains):
    """Words do not tell parameters from numbers, and chains have what public ones have."""
    heads = [t.split("def __init__")[0] for t in chains if "nn.Parameter" in t]
    heads = [t for t in heads if '"""' in t]
    told = sum("parameter" in t or "learned" in t for t in heads) / len(heads)
    check(len(heads) > 50 and told < 0.6, f"the words of {told:.2f} of {len(heads)} tasks tell of a parameter")
    for what, pattern in WAYS.items():
        found = sum(bool(re.search(pattern, t)) for t in chains)
        check(found > 1, f"{found} of {len(chains)} chains have {what}")


def check_verified(folder, n):
    out = os.path.join(folder, "verified")
    make(out, n, "--verify-share", "1", "--mutant-share", "0", "--max-program", "4200", "--seed", "7")
    stats = json.load(open(os.path.join(out, "stats", "00000.json")))
    check(stats["verified"] == n, f"{stats['verified']} of {n} programs were judged")
    refused = [r for r in records(out, "failed") if r["verdict"]["status"] == "infra"]  # a constant output, say
    check(stats["failed"] == len(refused), f"{stats['failed'] - len(refused)} of {n} programs failed: see {out}")
    check(50 * len(refused) <= n, f"{len(refused)} of {n} tasks cannot be judged: see {out}")
    for r in records(out, "failed"):
        print(r["verdict"], r["task"]["code"])


# What a formula may not be: softsign, hardswish, l1_normalize and mean_abs_normalize as their kinds spell them.
UNSEEN = re.compile(r"/ \(1(\.0)? \+ (torch\.abs\(|\w+\.abs)|clamp\(\w+ \+ 3, 0, 6\)|"
                    r"torch\.(sum|mean)\(torch\.abs\((\w+)\), dim=\S+, keepdim=True\)")


def check_splits(folder):
    """Half of the tasks are chains; no held-out graph twice; a formula is no unseen operator's."""
    out = os.path.join(folder, "splits")
    done = subprocess.run([BINARY, "synth", "--surface", "public", "--style", "full", "--out", out, "--tasks", "300",
                           "--per-task", "1", "--heldout", "12", "--prompts", "40", "--knowledge", "0", "--no-verify"],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"synth ended with {done.returncode}: {done.stderr[-800:]}")
    train = [json.loads(line)["task"] for line in open(os.path.join(out, "train.jsonl"))]
    held = [json.loads(line)["task"] for line in open(os.path.join(out, "heldout.jsonl"))]
    chains = sum(len(t["ops"]) > 1 for t in train) / len(train)
    check(0.4 < chains < 0.6, f"{chains:.2f} of the tasks are chains")
    same = [tuple(t["ops"]) for t in held if t["name"].startswith("same")]
    check(len(same) == len(set(same)) == 12, f"graphs of split 'same': {same}")
    check(not set(same) & {tuple(t["ops"]) for t in train}, "a held-out graph is in training")
    for t in held:
        known = {"softplus", "clamp_min", "log_softmax", "conv_transpose2d", "softshrink"} & set(t["ops"])
        check(not (known and t["name"].startswith("unseen")), f"{t['name']} has known operators: {known}")
    for t in train:
        words = re.search("hard ?swish|softsign|arc tangent|cumulative minimum", t["code"], re.IGNORECASE)
        check(not words, f"training says '{words and words[0]}' in {t['name']}")
        if len(t["ops"]) == 1 and t["ops"][0].endswith("_expression"):
            check(not UNSEEN.search(t["code"]), f"an unseen operator's formula in {t['name']}: {t['code']}")


def check_harvest(folder):
    """A harvest's task has a name and its answer, as 'sft --harvest' reads them."""
    out = os.path.join(folder, "harvest")
    done = subprocess.run([BINARY, "synth", "--surface", "public", "--style", "full", "--out", out, "--tasks", "4",
                           "--per-task", "1", "--heldout", "0", "--harvest", "3", "--verify-share", "0"],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"synth ended with {done.returncode}: {done.stderr[-800:]}")
    lines = [json.loads(line) for line in open(os.path.join(out, "harvest.jsonl"))]
    check(len({r["task"]["name"] for r in lines}) == 3 and all(r["kernel"]["code"] for r in lines),
          "three named tasks of the harvest, each answered")


def main():
    torch.set_num_threads(1)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    with tempfile.TemporaryDirectory() as folder:
        check_written(folder)
        check_verified(folder, n)
        check_splits(folder)
        check_harvest(folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
