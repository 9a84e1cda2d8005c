"""bundle.py - an answer of several files: the program's text, and the files that follow it in comment lines, laid in a
folder of the candidate's process. The form is src/task/bundle.h's."""
import os
import re
import sys
import tempfile

HEAD = re.compile(r"^#@file: (\S+)$", re.M)
PART = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*$")
MOST_FILES, MOST_DEPTH = 64, 8


def split(source):
    """The main file's text (all of it, the comments do no harm) and {name: text} of the others."""
    heads = list(HEAD.finditer(source))
    files = {}
    for head, following in zip(heads, [*heads[1:], None]):
        body = source[head.end() + 1:following.start() if following else len(source)]
        rows = [line_of(row) for row in body.split("\n") if row.startswith(("#|", "#%"))]
        files[head.group(1)] = "".join(row + "\n" for row in rows)
    return files


def line_of(row):
    return row[2:] if row[1] == "|" else row[2:].replace("%0D", "\r").replace("%25", "%")


def check(name):
    parts = name.split("/")
    if len(parts) > MOST_DEPTH or not all(PART.match(p) for p in parts):
        raise ValueError(f"'{name}' is no path for a file of an answer")


def lay(source):
    """Lays the files in a new folder, from which modules of theirs can be imported; None: there are none."""
    files = split(source)
    if not files:
        return None
    if len(files) > MOST_FILES:
        raise ValueError(f"the answer has {len(files)} files, at most {MOST_FILES} are allowed")
    folder = tempfile.mkdtemp(prefix="answer-")
    for name, text in files.items():
        check(name)
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        sys.modules.pop(name.split("/")[0].removesuffix(".py"), None)  # of an earlier construction
    sys.path.insert(0, folder)
    return folder
