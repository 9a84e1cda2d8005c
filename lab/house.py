#!/usr/bin/env python3
"""house.py - what the house weighs at a commit: lines, comments, functions, names, tags and arrows.

python3 lab/house.py REV...   one column a commit (default: HEAD), as a table; seconds.

Lines are of all text files. A comment line holds a comment alone. Names, tags and functions are counted as
tests/project/names.py does; arrows that look back by the order of that commit's src/LAYERS, of today's where it has
none."""

import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "project"))
import layers  # noqa: E402
import names  # noqa: E402

ORDER = list(layers.declared())


def texts(folder):
    for path, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(path, name), "rb") as f:
                data = f.read()
            if b"\0" not in data[:8192]:
                yield name, data.decode("utf-8", "replace")


def lines(folder):
    return sum(text.count("\n") for _, text in texts(folder))


def comment_lines(folder):
    found = 0
    for name, text in texts(folder):
        if name.endswith((".c", ".h", ".cu", ".cuh")):
            for m in re.finditer(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$|^[ \t]*//[^\n]*$", text, re.M | re.S):
                found += m.group(0).strip("\n").count("\n") + 1
    return found


def weigh(rev, tree):
    tar = subprocess.Popen(["git", "-C", ROOT, "archive", rev], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", tree], stdin=tar.stdout, check=True)
    layers.ROOT = names.ROOT = tree
    files = list(names.sources())
    rows = names.functions(files)
    known = [name for _, name, _ in rows]
    shared = collections.Counter(known)
    row = {f"lines of {part}": lines(os.path.join(tree, part)) for part in ("src", "lab", "tests", "runner", "docs")}
    row["comment lines of src"] = comment_lines(os.path.join(tree, "src"))
    row["functions"] = len(rows)
    row["mean length of a name"] = round(sum(map(len, known)) / len(known), 1)
    row[f"names of {names.SHORT} letters or fewer"] = sum(len(n) <= names.SHORT for n in known)
    row["names that several have"] = sum(shared[n] > 1 for n in known)
    row["tags in several files"] = len(names.tags_twice(files))
    row["header names in several folders"] = len(names.headers_twice(files))
    row["arrows that look back"] = len(layers.back(ORDER, layers.found(ORDER)))
    return row


def main():
    revs = sys.argv[1:] or ["HEAD"]
    columns = []
    for rev in revs:
        with tempfile.TemporaryDirectory() as tree:
            columns.append(weigh(rev, tree))
    print("| | " + " | ".join(revs) + " |\n|---|" + "---:|" * len(revs))
    for title in columns[0]:
        print(f"| {title} | " + " | ".join(f"{c[title]:,}" for c in columns) + " |")


if __name__ == "__main__":
    main()
