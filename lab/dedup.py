"""dedup.py FILE.jsonl... [--near 0.9] [--drop OUT.jsonl] - what records repeat: the same dialogue, the same graph,
nearly the same program.

exact    the same dialogue
graphs   records that share their graph's Weisfeiler-Lehman hash (task.graph_hash: without names, sizes, constants)
near     programs whose sets of 5-token shingles have a Jaccard index of at least --near, found by MinHash (64
         permutations in 16 bands of 4) and then counted exactly
--drop writes the records that are neither exact nor near copies of an earlier one. Memory: 1 KB a record.
"""

import argparse
import collections
import hashlib
import json
import random
import re
import sys

TOKEN = re.compile(r"\w+|[^\s\w]")
PRIME, N, BAND = (1 << 61) - 1, 64, 4
RNG = random.Random(1)
PERMUTATIONS = [(RNG.randrange(1, PRIME), RNG.randrange(PRIME)) for _ in range(N)]


def shingles(text):
    tokens = TOKEN.findall(text)
    return {hash_of(" ".join(tokens[i:i + 5])) for i in range(max(1, len(tokens) - 4))}


def hash_of(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


def signature(items):
    return [min((a * x + b) % PRIME for x in items) for a, b in PERMUTATIONS]


def jaccard(a, b):
    return len(a & b) / len(a | b)


class Near:
    """Earlier programs by bands of their signatures."""

    def __init__(self, least):
        self.least, self.bands, self.sets = least, collections.defaultdict(list), []

    def like(self, text):
        items = shingles(text)
        s = signature(items)
        keys = [(i, *s[i:i + BAND]) for i in range(0, N, BAND)]
        seen = {j for k in keys for j in self.bands[k]}
        if any(jaccard(items, self.sets[j]) >= self.least for j in seen):
            return True
        for k in keys:
            self.bands[k].append(len(self.sets))
        self.sets.append(items)
        return False


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("files", nargs="+")
    p.add_argument("--near", type=float, default=0.9)
    p.add_argument("--drop")
    o = p.parse_args()
    n, exact, graphs, texts, near = collections.Counter(), set(), set(), set(), Near(o.near)
    out = open(o.drop, "w", encoding="utf-8") if o.drop else None
    for line in (line for f in o.files for line in open(f, encoding="utf-8")):
        r = json.loads(line)
        task, program = r["task"].get("code", ""), (r.get("kernel") or {}).get("code", "")
        key, n["records"] = hash_of(json.dumps(r["messages"])), n["records"] + 1
        graphs.add(r["task"]["graph_hash"])
        texts.add(hash_of(task))
        if key in exact:
            n["exact copies"] += 1
        elif program and r["kind"] == "generate" and near.like(program):
            n["near copies"] += 1
        elif out:
            out.write(line)
        exact.add(key)
    n["different graphs"], n["different tasks"] = len(graphs), len(texts)
    for k in ("records", "different graphs", "different tasks", "exact copies", "near copies"):
        print(f"{k}: {n[k]}")


if __name__ == "__main__":
    sys.exit(main())
