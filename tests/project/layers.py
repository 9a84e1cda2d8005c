"""layers.py - who includes whom: the edges between the folders of src/, beside what src/LAYERS says.

python3 tests/project/layers.py [--write]   compares; --write puts the tree's edges into src/LAYERS. An arrow that
looks back,
from a folder to one that stands below it there, is an error that --write does not mend."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYERS = os.path.join(ROOT, "src", "LAYERS")
HEAD = """\
# Who sees whom: a folder's files include headers of their own folder and of those in its line, which stand above it.
# The includes equal these lines: tests/project/layers.py compares and, with --write, writes them. ARCHITECTURE.md says
# what each folder is for. A new folder gets a line below those that it sees.
"""


def folder(path):
    """The folder of src/ that a file belongs to; the rooms of src/eval count as folders."""
    parts = path.split("/")[:-1]
    return "/".join(parts[:2]) if parts[0] == "eval" else parts[0]


def declared():
    """{folder: [folders that it sees]}, in the file's order."""
    with open(LAYERS, encoding="utf-8") as f:
        rows = [line.split(":") for line in f if line.strip() and not line.startswith("#")]
    return {name.strip(): seen.split() for name, seen in rows}


def found(order):
    """The same, as the includes have it."""
    src = os.path.join(ROOT, "src")
    edges = {name: set() for name in order}
    for path in glob.glob(src + "/**/*", recursive=True):
        if not re.search(r"\.(c|h|cu|cuh)$", path):
            continue
        here = folder(os.path.relpath(path, src))
        with open(path, encoding="utf-8") as f:
            included = re.findall(r'^\s*#\s*include\s+"([^"]+/[^"]+)"', f.read(), re.M)
        seen = {folder(name) for name in included if os.path.exists(os.path.join(src, name))}
        edges.setdefault(here, set()).update(seen - {here})
    return edges


def back(order, edges):
    """Arrows that look back, and folders that have no line."""
    rank = {name: i for i, name in enumerate(order)}
    last = len(rank)
    return sorted(f"{a} -> {b}" for a in edges for b in edges[a] if rank.get(b, last) >= rank.get(a, last)) + \
        sorted(f"{a}: no line in src/LAYERS" for a in edges if a not in rank)


def text(order, edges):
    width = max(map(len, order)) + 2
    return HEAD + "".join(f"{(a + ':').ljust(width)}{' '.join(b for b in order if b in edges[a])}".rstrip() + "\n"
                          for a in order)


def main():
    order = list(declared())
    edges = found(order)
    wrong = back(order, edges)
    if "--write" in sys.argv[1:] and not wrong:
        with open(LAYERS, "w", encoding="utf-8") as f:
            f.write(text(order, edges))
    wrong += [f"{a}: src/LAYERS says {' '.join(seen) or 'nothing'}; the includes say "
              f"{' '.join(b for b in order if b in edges[a])}"
              for a, seen in declared().items() if set(seen) != edges.get(a, set())]
    print("\n".join(wrong) or "src/LAYERS and the includes are equal; no arrow looks back")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
