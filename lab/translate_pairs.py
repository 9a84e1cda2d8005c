#!/usr/bin/env python3
"""translate_pairs.py - the translator beside ports that people made, and on public programs.

    lab/translate_pairs.py pairs NAME=ORIGINAL:PORT...   folders of sources before and after a port to MUSA, same names
    lab/translate_pairs.py candidates FOLDER...          programs (.py, .cu): residue, refusals by rule, round trip

Each original of a pair is translated and compared with the port, token for token, comments and blanks aside:
  identical   the same tokens
  spelling    the same tokens once cuda and musa in the project's own names and file names are one word
  edited      the port also changed the program: the classes say how
What the translator refuses is compared too, as far as it goes (--partial), and counted beside that.
Nothing that is read here is kept; nothing is fetched. 'musacoder' is taken from $MUSACODER_EXE or build/.
"""
import ast
import collections
import concurrent.futures
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXE = os.environ.get("MUSACODER_EXE") or os.path.join(ROOT, "build", "musacoder")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\\\r?\n|R"(\w*)\(.*?\)\1"|'
                   r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\d[\w.]*|\S', re.S)
LEFT = r"cuda|CUDA|nv_|\b(?:cublas|CUBLAS|curand|cusparse|CUSPARSE|nccl|NCCL|__NV)"  # names that a port did not touch
OWN_MARKS = {"the port left a CUDA name", "a guard's number"}
SOURCES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".py")
# CUDA's names that must not be left in a translation: patterns written apart from the translator's tables.
RESIDUE = re.compile(r"\b(?:cuda[A-Z]\w*|make_cuda\w*|__CUDA\w*|__NVCC__|nv_(?:bfloat16|half)\w*|__nv_\w+|nvcuda|kCUDA|"
                     r"cublas[A-Z]\w*|CUBLAS_\w+|cudnn\w*|cufft[A-Z]\w*|curand\w*|"
                     r"cusparse[A-Z]\w*|nccl[A-Z]\w*|nvrtc\w*|"
                     r"C10_CUDA_\w+|AT_CUDA_\w+|getCurrentCUDA\w+|\w*CUDAGuard|CUDAStream|CUtensorMap\w*|CU[a-z]\w+|"
                     r"cu(?:Mem|Ctx|Module|Launch|Device|Init|Stream|Event|Func)[A-Z]?\w*)\b|"
                     r"(?:\.|->)is_cuda\b|\b(?:at|c10)::cuda\b|"
                     r"[<\"](?:ATen/cuda|c10/cuda|cuda_(?:runtime|fp|bf)|cuda\\.h)[^>\"]*[>\"]")
PY_RESIDUE = re.compile(r"\btorch\.cuda\b|\.cuda\(\)|"
                        r"[(,]\s*cuda_sources\s*=[^=]|[(,]\s*extra_cuda_cflags\s*=[^=]|"
                        r"[\"']cuda(?::\d+)?[\"']|"
                        r"torch\.utils\.cpp_extension|\bCUDAExtension\b|\.is_cuda\b|"
                        r"--use_fast_math|-gencode|[\"'=]sm_\d+|compute_\d+")


def tokens(text):
    return [m.group(0) for m in TOKEN.finditer(text)
            if not m.group(0).startswith(("//", "/*", "\\\n", "\\\r"))]


def header(t):
    """An include as one token, by the header's own name: ports put torch's headers into other folders."""
    return re.sub(r'#\s*include\s*[<"]((?:ATen|c10|torch|torch_\w+)/[^>"]*/)?([^>"]+)[>"]', r"#include <\2>", t)


def one_spelling(t):
    t = re.sub("musa", "cuda", re.sub("MUSA", "CUDA", re.sub("Musa", "Cuda", t)))
    return re.sub(r"\.muh\b", ".cuh", re.sub(r"\.mu\b", ".cu", t))


def translate(path, to="musa", profile="any", out=None, partial=False):
    args = [EXE, "translate", "--to", to, "--profile", profile, "--report", "json"] + (["--out", out] if out else [])
    args += (["--partial"] if partial else []) + [path]
    p = subprocess.run(args, capture_output=True, text=True, errors="replace", check=False)
    if p.returncode not in (0, 1):
        raise SystemExit(f"{path}: {p.stderr.strip()}")
    return json.loads(p.stdout)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def port_name(name):
    return re.sub(r"\.cu$", ".mu", re.sub(r"\.cuh$", ".muh", name))


def find_pairs(original, port):
    there = {}
    for folder, _, files in os.walk(port):
        for f in files:
            rel = os.path.relpath(os.path.join(folder, f), port)
            there[one_spelling(rel)] = rel
    for folder, _, files in sorted(os.walk(original)):
        for f in sorted(files):
            rel = os.path.relpath(os.path.join(folder, f), original)
            if f.endswith(SOURCES) and one_spelling(rel) in there:
                yield rel, there[one_spelling(rel)]


def is_ported(a, b):
    """Pairs that differ in more than comments: a file without CUDA in it shows nothing."""
    return tokens(a) != tokens(b) or re.search(r"cuda|CUDA|\bcu[A-Z]", a)


def classes_of(ours, theirs):
    """How two token lists differ, a word for each place."""
    found = collections.Counter()
    for op, a0, a1, b0, b1 in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        a, b = " ".join(ours[a0:a1]), " ".join(theirs[b0:b1])
        if op == "equal":
            continue
        if op == "insert":
            found["the port adds code"] += 1
        elif op == "delete":
            found["the port leaves code out"] += 1
        elif re.fullmatch(r"\d+", a) and re.fullmatch(r"\d+", b):
            found["a guard's number" if a in ("210", "220", "310") else "another number"] += 1
        elif re.search(LEFT, b) and not re.search(LEFT, a) or "CUDA_VERSION" in b:
            found["the port left a CUDA name"] += 1
        elif a0 + 1 == a1 and b0 + 1 == b1:
            found["another name"] += 1
        else:
            found["the port rewrites code"] += 1
    return found


def one_pair(original, port):
    with tempfile.TemporaryDirectory() as out:
        r = translate(original, out=out, partial=True)
        made = read(os.path.join(out, os.listdir(out)[0]))
    refused = collections.Counter("refused for " + n["rule"] for n in r["notes"] if n["kind"] == "refused")
    theirs, ours = tokens(read(port)), tokens(made)
    kind = "identical"
    if ours != theirs:
        ours, theirs = (tokens(header(one_spelling(s))) for s in (made, read(port)))
        kind = "spelling" if ours == theirs else "edited"
    classes = classes_of(ours, theirs) if kind == "edited" else collections.Counter()
    diff = list(difflib.unified_diff(ours, theirs, lineterm="", n=0))[2:]
    return kind, classes + refused, diff


def pairs(specs, verbose):
    total, why = collections.Counter(), collections.Counter()
    for spec in specs:
        name, folders = spec.split("=", 1)
        original, port = folders.split(":")
        count = collections.Counter()
        for a, b in find_pairs(original, port):
            a, b = os.path.join(original, a), os.path.join(port, b)
            if not is_ported(read(a), read(b)):
                continue
            kind, classes, diff = one_pair(a, b)
            count[kind] += 1
            why.update({f"{kind}: {c}": 1 for c in classes})
            count["left"] += kind == "edited" and {c for c in classes if not c.startswith("refused")} <= OWN_MARKS
            count["refused"] += any(c.startswith("refused") for c in classes)
            if verbose and kind == "edited":
                print(f"  {kind} {a}: {dict(classes)} {' '.join(d for d in diff if not d.startswith('@'))[:300]}")
        n = count["identical"] + count["spelling"] + count["edited"]
        same = n - count["edited"]
        print(f"{name}: {n} pairs, {same} the same ({100 * same / max(1, n):.1f} %): " +
              ", ".join(f"{k} {v}" for k, v in count.most_common()))
        total.update(count)
    n = total["identical"] + total["spelling"] + total["edited"]
    same, left = n - total["edited"], total["left"]
    print(f"all: {n} pairs, {same} the same ({100 * same / max(1, n):.1f} %); {left} more "
          f"differ only where the port left CUDA's names or guard numbers ({100 * (same + left) / max(1, n):.1f} %)")
    for k, v in why.most_common():
        print(f"  {v:4} files  {k}")


def without_docs(text):
    """A Python program without comments and statements that are strings only."""
    lines = text.splitlines(True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for i in range(node.lineno - 1, node.end_lineno):
                lines[i] = "\n"
    return re.sub(r"(?m)#[ #][^\n]*$", "", "".join(lines))


def is_python(path):
    try:
        ast.parse(read(path))
    except (SyntaxError, ValueError):
        return False
    return True


def left_over(text, python):
    text = without_docs(text) if python else text
    body = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    body = re.sub(r'"[A-Za-z][^"\n{}<>;]* [^"\n{}<>;]*"', '""', body)  # messages
    declared = set(re.findall(r"#\s*define\s+(\w+)", body))
    found = [m.group(0) for m in RESIDUE.finditer(body)]
    if python:
        found += [m.group(0) for m in PY_RESIDUE.finditer(body)]
    return [f for f in found if f not in declared]


def one_candidate(path, profile):
    with tempfile.TemporaryDirectory() as out:
        r = translate(path, profile=profile, out=out)
        if r["refused"]:
            return path, "refused", collections.Counter({n["rule"] for n in r["notes"] if n["kind"] == "refused"}), []
        made = os.path.join(out, os.listdir(out)[0])
        left = left_over(read(made), path.endswith(".py"))
        back = os.path.join(out, "back")
        translate(made, to="cuda", profile="any", out=back)
        with open(path, "rb") as f, open(os.path.join(back, os.listdir(back)[0]), "rb") as g:
            same = f.read() == g.read()
    kind = "translated" if same else "lossy" if r["lossy"] else "another text comes back"
    return path, kind, collections.Counter({n["rule"] for n in r["notes"] if n["kind"] == "lossy"}), left


def candidates(folders, verbose, profile):
    files = []
    for folder in folders:
        if os.path.isfile(folder):
            files.append(folder)
        for at, _, names in sorted(os.walk(folder)):
            files += [os.path.join(at, n) for n in sorted(names) if n.endswith((".py", ".cu"))]
    files = [f for f in files if "__global__" in read(f)]
    broken = [f for f in files if f.endswith(".py") and not is_python(f)]
    files = [f for f in files if f not in broken]
    if broken:
        print(f"{len(broken)} files are not Python and are left out")
    kinds, rules, residue = collections.Counter(), collections.Counter(), collections.Counter()
    with_residue = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, kind, why, left in pool.map(lambda f: one_candidate(f, profile), files):
            kinds[kind] += 1
            rules.update({f"{kind}: {w}": 1 for w in why})
            with_residue += bool(left)
            residue.update(set(left))
            if verbose and (left or kind.startswith("another")):
                print(f"  {kind} {path}: {sorted(set(left))[:8]}")
    n = max(1, len(files))
    print(f"{len(files)} programs for {profile}: " +
          ", ".join(f"{k} {v} ({100 * v / n:.1f} %)" for k, v in kinds.most_common()))
    print(f"names of CUDA left in {with_residue} of them: {residue.most_common(20)}")
    for k, v in rules.most_common():
        print(f"  {v:4} files  {k}")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    verbose = "-v" in sys.argv
    profile = next((a.split("=", 1)[1] for a in sys.argv if a.startswith("--profile=")), "s5000")
    if len(args) < 2 or args[0] not in ("pairs", "candidates"):
        raise SystemExit(__doc__)
    if args[0] == "pairs":
        pairs(args[1:], verbose)
    else:
        candidates(args[1:], verbose, profile)


if __name__ == "__main__":
    main()
