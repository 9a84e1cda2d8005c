#!/usr/bin/env python3
"""Counts how people write PyTorch modules: constructors, annotations, docstrings, sizes, inputs.

usage: surface_counts.py FOLDER...    a line of shares for each folder of Python files or of a corpus' data/*.jsonl

A module is a class whose base's name ends in Module. Features of files are of those that define get_inputs().
docs/internals/synth.md has the table; src/synth/surface draws by such shares."""
import ast
import collections
import glob
import json
import os
import re
import sys

MODULE = ["__init__ with arguments", "arguments with a default", "annotated arguments", "docstring of the class",
          "docstring of forward", "super().__init__()", "submodules", "nn.Parameter", "several statements in forward"]
FILE = ["constants of the file", "get_init_inputs not empty", "torch.rand", "torch.randn", "torch.randint", "comments",
        "F imported"]


def texts(folder):
    for path in glob.glob(os.path.join(folder, "**", "*.py"), recursive=True):
        yield open(path, encoding="utf-8", errors="replace").read()
    for path in glob.glob(os.path.join(folder, "data", "*.jsonl")):
        for line in open(path, encoding="utf-8"):
            yield json.loads(line)["task"]["code"]


def method(cls, name):
    return next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def of_module(cls, count):
    init, forward = method(cls, "__init__"), method(cls, "forward")
    args = init.args.args[1:] + init.args.kwonlyargs if init else []
    defaults = len(init.args.defaults) + sum(d is not None for d in init.args.kw_defaults) if init else 0
    text = ast.unparse(init) if init else ""
    count["__init__ with arguments"] += bool(args)
    count["arguments"] += len(args)
    count["arguments with a default"] += defaults
    count["annotated arguments"] += sum(a.annotation is not None for a in args)
    count["docstring of the class"] += ast.get_docstring(cls) is not None
    count["docstring of forward"] += bool(forward and ast.get_docstring(forward))
    count["super().__init__()"] += "super().__init__" in text
    count["has super"] += "super(" in text
    count["submodules"] += "nn." in re.sub(r"nn\.(Parameter|functional)", "", text)
    count["nn.Parameter"] += "nn.Parameter" in text
    body = [s for s in forward.body if not isinstance(s, ast.Expr)] if forward else []
    count["several statements in forward"] += len(body) > 1


def of_file(text, tree, count):
    named = [n for n in tree.body if isinstance(n, ast.Assign)]
    init = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_init_inputs"), None)
    count["constants of the file"] += bool(named)
    count["get_init_inputs not empty"] += bool(init and "return []" not in ast.unparse(init))
    for name in ("torch.rand", "torch.randn", "torch.randint"):
        count[name] += name + "(" in text
    count["comments"] += "#" in text
    count["F imported"] += "functional as F" in text


def count_folder(folder):
    count = collections.Counter()
    for text in texts(folder):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for cls in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
            if any(ast.unparse(b).endswith("Module") for b in cls.bases):
                count["modules"] += 1
                of_module(cls, count)
        if "def get_inputs" in text:
            count["files"] += 1
            of_file(text, tree, count)
    return count


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for folder in sys.argv[1:]:
        c = count_folder(folder)
        if not c["modules"]:
            sys.exit(f"no modules under '{folder}'; give a folder of Python files, or of a corpus")
        print(f"{folder}: {c['modules']} modules, {c['arguments'] / c['modules']:.1f} arguments each, "
              f"{c['files']} tasks")
        for name in MODULE:
            total = c["arguments"] if "arguments" in name[:9] or name == "annotated arguments" else \
                c["has super"] if name.startswith("super") else c["modules"]
            print(f"  {100 * c[name] / max(total, 1):5.1f} %  {name}")
        for name in FILE:
            if c["files"]:
                print(f"  {100 * c[name] / c['files']:5.1f} %  {name}")


if __name__ == "__main__":
    main()
