#!/usr/bin/env python3
"""house.py - what the judge's house weighs at a commit: lines, numeric constants, rings of files, arrows that look
back.

python3 lab/house.py REV...   one column a commit (default: HEAD), as a table. Minutes: objects are compiled for the
rings.

Lines are of all text files. The judge is src/eval, src/lint, src/daemon and src/exec; its tests are
tests/{eval,exec,owner}, tests/runner and tests/litetorch. Numeric constants are '#define NAME number' and 'NAME =
number' in Python. Rings and arrows are as tests/project/rings.py and layers.py have them; arrows by the order of
today's src/LAYERS, where src/eval is one folder if a commit has no rooms yet."""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "project"))
import layers  # noqa: E402
import rings  # noqa: E402

PARTS = [
    ("lines of src/eval, src/lint, src/daemon", ["src/eval", "src/lint", "src/daemon"]),
    ("lines of src/exec", ["src/exec"]),
    ("lines of runner/", ["runner"]),
    ("lines of litetorch/", ["litetorch"]),
    ("lines of their tests", ["tests/eval", "tests/exec", "tests/daemon", "tests/runner", "tests/litetorch"]),
]
DEFINE = re.compile(r"^\s*#\s*define\s+\w+\s+\(?\(?(?:\w+\))?[-+]?[0-9.]", re.M)
ASSIGN = re.compile(r"^[A-Z][A-Z0-9_]+ = [-+]?[0-9.(]", re.M)


def checkout(rev, where):
    tar = subprocess.Popen(["git", "-C", ROOT, "archive", rev], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", where], stdin=tar.stdout, check=True)
    return where


def texts(tree, folders):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(tree, folder)):
            for name in names:
                with open(os.path.join(path, name), "rb") as f:
                    data = f.read()
                if b"\0" not in data[:8192]:
                    yield name, data.decode("utf-8", "replace")


def lines(tree, folders):
    return sum(text.count("\n") for _, text in texts(tree, folders))


def constants(tree):
    return sum(len((ASSIGN if name.endswith(".py") else DEFINE).findall(text))
               for name, text in texts(tree, ["src/eval", "src/lint", "src/daemon", "runner"]))


def compile_objects(tree):
    """Every .c of src/ and of simt/runtime, as objects in tree/build/obj."""
    names = os.path.join(tree, "build", "gen")
    os.makedirs(names, exist_ok=True)
    ops = os.path.join(tree, "src", "synth", "ops")
    with open(os.path.join(names, "ops_list.h"), "w", encoding="utf-8") as f:
        f.writelines(f"OPS_FILE({n[:-2]})\n" for n in sorted(os.listdir(ops) if os.path.isdir(ops) else [])
                     if n.endswith(".c"))
    flags = subprocess.run(["pkg-config", "--cflags", "jansson", "yaml-0.1", "sqlite3", "libpq", "libmicrohttpd",
                            "libcurl"], capture_output=True, text=True, check=False).stdout.split()
    jobs = []
    for folder, out, extra in (("src", "", ["-Isrc", "-Ibuild/gen", "-fopenmp"]),
                               ("simt/runtime", "simt", ["-Isimt/include", "-DSIMT_WARP_SIZE=32"])):
        for path, _, files in os.walk(os.path.join(tree, folder)):
            for name in files:
                source = os.path.relpath(os.path.join(path, name), tree)
                if name.endswith(".c") and name not in ("mcjail.c", "mcexec.c"):
                    target = os.path.join("build/obj", out, os.path.relpath(source, folder))[:-2] + ".o"
                    os.makedirs(os.path.dirname(os.path.join(tree, target)), exist_ok=True)
                    jobs.append(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", *extra, *flags, "-c", source, "-o",
                                 target])
    failed = [job[-3] for job in jobs if subprocess.run(job, cwd=tree, check=False, capture_output=True).returncode]
    if failed:
        print(f"house: not compiled, so left out of the rings: {' '.join(failed)}", file=sys.stderr)


def weigh(rev):
    with tempfile.TemporaryDirectory() as folder:
        tree = checkout(rev, folder)
        row = [lines(tree, folders) for _, folders in PARTS] + [constants(tree)]
        compile_objects(tree)
        layers.ROOT = rings.ROOT = tree
        order = list(layers.declared())
        if not os.path.exists(os.path.join(tree, "src", "LAYERS")):
            layers.folder = lambda path: path.split("/")[0]
            order = [name for name in order if "/" not in name]
        found = rings.rings(rings.edges(os.path.join(tree, "build")))
        return row + [len(found), sum(map(len, found)), len(layers.back(order, layers.found(order)))]


def main():
    revs = sys.argv[1:] or ["HEAD"]
    heads = [title for title, _ in PARTS] + ["numeric constants of the judge and runner/", "rings of files",
                                             "files in them", "arrows that look back"]
    columns = [weigh(rev) for rev in revs]
    print("| | " + " | ".join(revs) + " |\n|---" * 1 + "|---:" * len(revs) + "|")
    for i, title in enumerate(heads):
        print(f"| {title} | " + " | ".join(f"{c[i]:,}" for c in columns) + " |")


if __name__ == "__main__":
    main()
