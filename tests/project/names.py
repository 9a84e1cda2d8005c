"""names.py - the names of src/: no struct tag and no header's base name twice, static functions with their file's noun.

python3 tests/project/names.py   prints what breaks the rules, and the figures: mean length, short ones, shared ones."""

import collections
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHORT = 6
TAG = re.compile(r"^(?:template *<[^>]*> *|static |typedef |const )*(?:struct|union|enum) (?:alignas\(.*\) )?"
                 r"(\w+) *\{", re.M)
FUNCTION = re.compile(r"^(static [^=;{}()#]*?|[A-Za-z_][^=;{}()#]*?[ *])(\w+)\((?:[^;{}]|\{\})*\)\s*\{", re.M)
KERNEL = re.compile(r"^(?:KERNEL|extern \"?C?\"? *__global__ [^;{}]*?) *(\w+)\(", re.M)
NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__"}


def sources():
    """(path below src/, text without comments and strings) of each C file."""
    for path in sorted(glob.glob(os.path.join(ROOT, "src/**/*.*"), recursive=True)):
        if not path.endswith((".c", ".h", ".cu", ".cuh")):
            continue
        with open(path, encoding="utf-8") as f:
            text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', lambda m: "\n" * m.group(0).count("\n"), f.read(),
                          flags=re.S)
        yield os.path.relpath(path, os.path.join(ROOT, "src")), text


def tags_twice(files):
    at = collections.defaultdict(set)
    for path, text in files:
        for tag in TAG.findall(text):
            at[tag].add(path)
    return sorted(f"{tag}: {' '.join(sorted(p))}" for tag, p in at.items() if len(p) > 1)


def headers_twice(files):
    at = collections.defaultdict(list)
    for path, _ in files:
        if path.endswith(".h"):
            at[os.path.basename(path)].append(path)
    return sorted(" ".join(p) for p in at.values() if len(p) > 1)


def functions(files):
    """(path, name, is it static) of each function that is defined in C."""
    return [(path, name, head.startswith("static ")) for path, text in files if path.endswith((".c", ".h"))
            for head, name in FUNCTION.findall(text) if name not in NOT_NAMES]


def kernels_twice(files, rows):
    """A kernel of the device that has an extern function's name; loaders know it by that name."""
    externs = {name for _, name, static in rows if not static}
    return sorted(f"{path}: {name}" for path, text in files if path.endswith(".cu") for name in KERNEL.findall(text)
                  if name in externs)


def short_statics(rows):
    return sorted(f"{path}: {name}" for path, name, static in rows if static and len(name) <= SHORT
                  and "/ops/" not in path)


LENT = re.compile(r"json_(?:object|array)_get\(|->\w+$|\[\w+\]$|^&")
MINE = re.compile(r"xstrdup|json_incref|json_(?:deep_)?copy|json_pack")


def lent_results(files):
    """Functions that return a text or a JSON value which is another's, and do not say so by 'const'."""
    found = []
    for path, text in files:
        for m in re.finditer(r"^(?:static )?(?:json_t|char) \*(\w+)\([^)]*\)\n\{(.*?)\n\}", text, re.M | re.S):
            for value in re.findall(r"return ([^;]+);", m.group(2)):
                noun = m.group(1).split("_")[0] + "_"
                if LENT.search(value) and not MINE.search(value) and not value.startswith(noun):
                    found.append(f"{path}: {m.group(1)} returns what another owns: const, or a copy")
    return found


def main():
    files = list(sources())
    rows = functions(files)
    names = [name for _, name, _ in rows]
    shared = collections.Counter(names)
    wrong = tags_twice(files) + headers_twice(files) + short_statics(rows) + kernels_twice(files, rows)
    print("\n".join(wrong))
    print(f"{len(rows)} functions, mean length of a name {sum(map(len, names)) / len(rows):.1f}, "
          f"{sum(len(n) <= SHORT for n in names)} of {SHORT} letters or fewer, {sum(shared[n] > 1 for n in names)} "
          f"shared")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
