"""rings.py - rings of files: object files that use each other's functions in a circle.

python3 tests/project/rings.py [BUILD]   prints each ring with the symbols that close it; exit code 1 if there is one.

A file of a ring cannot be read, tested or replaced without the others of it: what they share belongs into a file of
its own, or a function into the file that it works for. Looked at are the objects of src/ and of simt/runtime, as nm
has them."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def objects(build):
    """The objects of a build whose source is still there: {object: source}."""
    ret = {}
    for folder, _, names in os.walk(os.path.join(build, "obj")):
        for name in names:
            path = os.path.join(folder, name)
            part = os.path.relpath(path, os.path.join(build, "obj"))[:-2]
            source = "simt/runtime/" + part[5:] if part.startswith("simt/") else "src/" + part
            if name.endswith(".o") and os.path.exists(os.path.join(ROOT, source + ".c")):
                ret[path] = source + ".c"
    return ret


def edges(build):
    """{source: {source that it uses: {symbols}}}."""
    sources = objects(build)
    out = subprocess.run(["nm", "-A", "-g", *sources], capture_output=True, text=True, check=True).stdout
    home, used = {}, []
    for line in out.split("\n"):
        m = re.match(r"(.*\.o): *[0-9a-f]* ([A-Za-z]) (\w+)$", line)
        if not m:
            continue
        path, kind, symbol = m.groups()
        group = sources[path].split("/")[0]  # simt and src are linked apart
        if kind == "U":
            used.append((sources[path], group, symbol))
        else:
            home[group, symbol] = sources[path]
    ret = {source: {} for source in sources.values()}
    for source, group, symbol in used:
        there = home.get((group, symbol))
        if there and there != source:
            ret[source].setdefault(there, set()).add(symbol)
    return ret


def rings(graph):
    """The strongly connected parts of more than one file (Tarjan), sorted."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = stack[stack.index(v):]
            del stack[-len(part):]
            on.difference_update(part)
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for v in sorted(graph):
        if v not in index:
            visit(v)
    return sorted(found)


def words(graph, ring):
    return "\n".join(f"  {a} -> {b}: {' '.join(sorted(graph[a][b]))}" for a in ring for b in ring if b in graph[a])


def main():
    graph = edges(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
    found = rings(graph)
    for i, ring in enumerate(found, 1):
        print(f"ring {i}: {' '.join(ring)}\n{words(graph, ring)}")
    print(f"{len(graph)} files, {len(found)} rings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
