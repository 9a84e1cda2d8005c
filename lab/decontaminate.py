#!/usr/bin/env python3
"""Compares a synthesised corpus with a KernelBench checkout in five layers, and says which records to leave out.

usage: decontaminate.py CORPUS_FOLDER KERNELBENCH_FOLDER [--out REPORT.json] [--drop IDS.txt] [--apply] [--jobs N]

CORPUS_FOLDER holds data/*.jsonl (musacoder synth --records). Layers, each per task text:
  L0  equal source, white space and comments aside
  L1  a run of 13 tokens in common,
      once the scaffold that every task has is taken out (tokens that are numbers are kept)
  L2  Jaccard of 5-token shingles at least 0.6, names of variables aside
  L3  the same operators with the same attributes and shapes: constants of the class and of get_inputs in order
  L4  the same operators in order, whatever the attributes ("in-registry": allowed, counted; one-operator tasks apart)
Records found by L0, L2 or L3 are to be dropped (--drop names them, --apply takes them out of the files); L1 and L4 are
reported. Exit code 1 if anything is to be dropped and was not."""
import argparse
import glob
import hashlib
import json
import multiprocessing
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runner"))
from likeness import Index, Text  # noqa: E402


def benchmark(folder):
    base = os.path.join(folder, "KernelBench") if os.path.isdir(os.path.join(folder, "KernelBench",
        "level1")) else folder
    files = sorted(glob.glob(os.path.join(base, "level*", "*.py")))
    if not files:
        sys.exit(f"no level*/*.py under '{folder}'; give a checkout of KernelBench")
    return [Text(os.path.relpath(f, base), open(f, encoding="utf-8").read()) for f in files]


def corpus(folder):
    files = sorted(glob.glob(os.path.join(folder, "data", "*.jsonl")))
    if not files:
        sys.exit(f"no data/*.jsonl in '{folder}'; make some with 'musacoder synth --records'")
    return files


INDEX = None    # of the benchmark; each process has its own


def start(folder):
    global INDEX
    INDEX = Index(benchmark(folder))


def compare(path):
    """(id, layers found, Jaccard, one operator?) of each record of a file."""
    out = []
    for line in open(path, encoding="utf-8"):
        record = json.loads(line)
        found, near = INDEX.layers(Text(record["id"], record["task"]["code"]))
        out.append((record["id"], found, near, len(record["task"]["ops"]) == 1))
    return path, out


def replace(path, data):
    """The file with these bytes; replaced at once, or not at all."""
    with open(path + ".new", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".new", path)


def renote(path, old, new):
    """The file with another SHA-256 of a shard; without it, the shard would be made again. A listing (base/listing.h)
    ends in a hash of its own."""
    if os.path.exists(path):
        with open(path, "rb") as f:
            data, end, _ = f.read().replace(old.encode(), new.encode()).partition(b"# whole ")
        replace(path, data + (end + hashlib.sha256(data).hexdigest().encode() + b"\n" if end else b""))


def without(folder, path, drop):
    """The file without the records of these ids, and its new SHA-256 where the corpus names it."""
    with open(path, "rb") as f:
        data = f.read()
    kept = b"".join(line for line in data.splitlines(True) if json.loads(line)["id"] not in drop)
    old, new = (hashlib.sha256(x).hexdigest() for x in (data, kept))
    replace(path, kept)
    shard = path.rsplit("-", 1)[-1].removesuffix(".jsonl")
    renote(os.path.join(folder, "stats", shard + ".json"), old, new)
    renote(os.path.join(folder, ".musacoder.sums"), old, new)


def summary(compared):
    n, counts, single, drop, examples, highest = 0, {f"L{i}": 0 for i in range(5)}, 0, [], {}, 0.0
    for name, found, near, alone in (x for _, records in compared for x in records):
        n, highest = n + 1, max(highest, near)
        for k, v in found.items():
            counts[k] += 1
            examples.setdefault(k, [name, v])
        single += "L4" in found and alone
        if found.keys() & {"L0", "L2", "L3"}:
            drop.append(name)
    return {"records": n, "benchmark_tasks": len(INDEX.names), "found": counts, "one_operator_in_registry": single,
            "to_drop": len(drop), "highest_jaccard": round(highest, 3), "examples": examples}, drop


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("corpus")
    p.add_argument("kernelbench")
    p.add_argument("--out", help="write the report as JSON")
    p.add_argument("--drop", help="write the ids of records to leave out, one a line")
    p.add_argument("--apply", action="store_true", help="take those records out of the corpus")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    a = p.parse_args()
    start(a.kernelbench)
    with multiprocessing.Pool(max(1, a.jobs), start, [a.kernelbench]) as pool:
        compared = pool.map(compare, corpus(a.corpus), 1)
    report, drop = summary(compared)
    report["dropped"] = len(drop) if a.apply else 0
    print(json.dumps(report, indent=1))
    for path, text in ((a.out, json.dumps(report)), (a.drop, "".join(i + "\n" for i in drop))):
        if path:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    for path, records in compared if a.apply else []:
        if {r[0] for r in records} & set(drop):
            without(a.corpus, path, set(drop))
    return 1 if drop and not a.apply else 0


if __name__ == "__main__":
    sys.exit(main())
