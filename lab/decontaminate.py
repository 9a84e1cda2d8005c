#!/usr/bin/env python3
"""Compares a synthesised corpus with a KernelBench checkout in five layers, and says which records to leave out.

usage: decontaminate.py CORPUS_FOLDER KERNELBENCH_FOLDER [--out REPORT.json] [--drop IDS.txt]

CORPUS_FOLDER holds data/*.jsonl (musacoder synth --records). Layers, each per task text:
  L0  equal source, white space and comments aside
  L1  a run of 13 tokens in common,
      once the scaffold that every task has is taken out (tokens that are numbers are kept)
  L2  Jaccard of 5-token shingles at least 0.6, names of variables aside
  L3  the same operators with the same attributes and shapes: constants of the class and of get_inputs in order
  L4  the same operators in order, whatever the attributes ("in-registry": allowed, counted; one-operator tasks apart)
Records found by L0, L2 or L3 are to be dropped (--drop); L1 and L4 are reported. Exit code 1 if anything is to be dropped."""
import argparse
import ast
import glob
import hashlib
import io
import json
import os
import re
import sys
import tokenize

SCAFFOLD = {"import", "torch", "nn", "class", "Model", "Module", "def", "forward", "self", "return", "get_inputs",
            "get_init_inputs", "super", "__init__", "F", "functional", "as", "Tensor", ":", "(", ")", "[", "]", ",",
                ".", "="}


def tokens(code):
    out = []
    try:
        for t in tokenize.generate_tokens(io.StringIO(code).readline):
            if t.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
                out.append(t.string)
    except (tokenize.TokenError, IndentationError):
        pass
    return out


def without_docstrings(code):
    return re.sub(r'("""|\'\'\')(?:.|\n)*?\1', "", code)


def renamed(words):
    """Variables by order of first use: names that are not followed as attributes or calls stay as they are."""
    names, out = {}, []
    for i, w in enumerate(words):
        plain = re.fullmatch(r"[A-Za-z_]\w*", w) and not (i and words[i - 1] == ".") and not (i +
            1 < len(words) and words[i + 1] in "(.")
        out.append(names.setdefault(w, f"v{len(names)}") if plain and w not in SCAFFOLD else w)
    return out


def shingles(words, n):
    return {tuple(words[i:i + n]) for i in range(len(words) - n + 1)}


def operators(tree):
    """Names of calls and arithmetic of the class Model, in order of the text."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for x in ast.walk(node):
            if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr not in ("__init__",):
                found.append((x.lineno, x.col_offset, x.func.attr))
            elif isinstance(x, ast.BinOp):
                found.append((x.lineno, x.col_offset, type(x.op).__name__))
    return tuple(name for _, _, name in sorted(found))


def constants(code):
    """Numbers of the text in order, with names of the file's own constants put in."""
    tree = ast.parse(code)
    known = {t.id: n.value.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
             for t in n.targets if isinstance(t, ast.Name)}
    found = []
    for f in [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]:
        for x in ast.walk(f):
            if isinstance(x, ast.Constant) and isinstance(x.value, (int, float)):
                found.append((x.lineno, x.col_offset, float(x.value)))
            elif isinstance(x, ast.Name) and x.id in known and isinstance(known[x.id], (int, float)):
                found.append((x.lineno, x.col_offset, float(known[x.id])))
    return tuple(v for _, _, v in sorted(found))


class Text:
    def __init__(self, name, code):
        self.name = name
        code = without_docstrings(code)
        words = tokens(code)
        self.sha = hashlib.sha256(" ".join(words).encode()).hexdigest()
        self.grams = shingles([w for w in words if w not in SCAFFOLD], 13)
        self.shingles = shingles(renamed(words), 5)
        tree = ast.parse(code)
        self.ops = operators(tree)
        self.graph = (self.ops, constants(code))


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
    for f in files:
        for line in open(f, encoding="utf-8"):
            yield json.loads(line)


class Index:
    """The benchmark by layer, so that each record is looked up, not compared with all."""

    def __init__(self, tasks):
        self.sha = {t.sha: t.name for t in tasks}
        self.grams = {g: t.name for t in tasks for g in t.grams}
        self.graph = {t.graph: t.name for t in tasks}
        self.ops = {t.ops: t.name for t in tasks}
        self.by_shingle = {}
        self.sizes = [len(t.shingles) for t in tasks]
        self.names = [t.name for t in tasks]
        for i, t in enumerate(tasks):
            for s in t.shingles:
                self.by_shingle.setdefault(s, []).append(i)

    def nearest(self, x):
        common = {}
        for s in x.shingles:
            for i in self.by_shingle.get(s, ()):
                common[i] = common.get(i, 0) + 1
        best = max(((n / (len(x.shingles) + self.sizes[i] - n), i) for i, n in common.items()), default=(0, 0))
        return best[0], self.names[best[1]]

    def layers(self, x):
        near, name = self.nearest(x)
        found = {"L0": self.sha.get(x.sha), "L1": next((self.grams[g] for g in x.grams if g in self.grams), None),
                 "L2": name if near >= 0.6 else None, "L3": self.graph.get(x.graph), "L4": self.ops.get(x.ops)}
        return {k: v for k, v in found.items() if v}, near


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("corpus")
    p.add_argument("kernelbench")
    p.add_argument("--out", help="write the report as JSON")
    p.add_argument("--drop", help="write the ids of records to leave out, one a line")
    a = p.parse_args()
    index = Index(benchmark(a.kernelbench))
    n, counts, single, drop, examples, highest = 0, {f"L{i}": 0 for i in range(5)}, 0, [], {}, 0.0
    for record in corpus(a.corpus):
        found, near = index.layers(Text(record["id"], record["task"]["code"]))
        n, highest = n + 1, max(highest, near)
        for k, v in found.items():
            counts[k] += 1
            examples.setdefault(k, [record["id"], v])
        single += "L4" in found and len(record["task"]["ops"]) == 1
        if found.keys() & {"L0", "L2", "L3"}:
            drop.append(record["id"])
    report = {"records": n, "benchmark_tasks": len(index.names), "found": counts, "one_operator_in_registry": single,
              "to_drop": len(drop), "highest_jaccard": round(highest, 3), "examples": examples}
    print(json.dumps(report, indent=1))
    for path, text in ((a.out, json.dumps(report)), (a.drop, "".join(i + "\n" for i in drop))):
        if path:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    return 1 if drop else 0


if __name__ == "__main__":
    sys.exit(main())
