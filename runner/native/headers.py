"""headers.py - headers that a program has written, put in the place of their #include: one text is what is compiled.

A header is looked for where a compiler would: beside the source, then in extra_include_paths. What is not there
stays as it is; the compiler knows it, or says that it is missing. Lines keep their numbers by #line.
"""
import os
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([\w.][\w./+-]*)[>"].*$', re.M)
MOST_BYTES, MOST_DEPTH = 1 << 20, 16


def put_in(sources, folders, name):
    """The sources with the headers of these folders in them; name: what diagnostics call one alone."""
    folders = [os.fspath(f) for f in folders]
    if not folders:
        return list(sources)
    names = [name] if len(sources) == 1 else [f"{name}s[{i}]" for i in range(len(sources))]
    return [_put(text, folders, label, set(), 0) for text, label in zip(sources, names)]


def _find(name, folders):
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(path) and os.path.getsize(path) <= MOST_BYTES:
            return path
    return None


def _put(text, folders, label, once, depth):
    def replace(m):
        path = _find(m.group(1), folders)
        if path is None or depth == MOST_DEPTH:
            return m.group(0)
        if path in once:
            return ""
        with open(path, encoding="utf-8", errors="replace") as f:
            inner = f.read()
        if re.search(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", inner, re.M):
            once.add(path)
        line = text.count("\n", 0, m.end()) + 2
        base = os.path.basename(path)
        inner = _put(inner, [os.path.dirname(path), *folders], base, once, depth + 1)
        return f'#line 1 "{base}"\n{inner}\n#line {line} "{label}"'

    return INCLUDE.sub(replace, text)
