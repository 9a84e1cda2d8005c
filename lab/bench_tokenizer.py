#!/usr/bin/env python3
"""Speed of 'musacoder tokenize' beside Hugging Face's tokenizers, one thread each, on this repository's own sources.

Prints MB/s and the ratio; ids must agree. Needs the Python package 'tokenizers'. Usage: bench_tokenizer.py
[TOKENIZER.json]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["RAYON_NUM_THREADS"] = "1"


def seconds(f, repeat=3):
    best = None
    for _ in range(repeat):
        t = time.perf_counter()
        f()
        t = time.perf_counter() - t
        best = t if best is None else min(best, t)
    return best


def main():
    from tokenizers import Tokenizer
    model = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/nn/data/tok_qwen3.json")
    binary = os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
    files = sorted(glob.glob(os.path.join(ROOT, "src/*/*.[ch]")) + glob.glob(os.path.join(ROOT, "*/*.md")))
    text = "".join(open(f, encoding="utf-8").read() for f in files)
    text = text * max(1, 8_000_000 // len(text))
    size = len(text.encode()) / 1e6
    tok = Tokenizer.from_file(model)
    with tempfile.TemporaryDirectory() as d:
        paths = {}
        for name, data in (("empty", ""), ("text", text)):
            paths[name] = os.path.join(d, name)
            with open(paths[name], "w", encoding="utf-8", newline="") as f:
                f.write(data)
        out = {}
        def run(name):
            with open(os.path.join(d, "out"), "w") as f:
                subprocess.run([binary, "tokenize", "--model", model, paths[name]], check=True, stdout=f)
            out[name] = os.path.join(d, "out")
        start = seconds(lambda: run("empty"))
        ours = seconds(lambda: run("text")) - start
        ids = json.load(open(out["text"]))
    theirs = seconds(lambda: tok.encode(text, add_special_tokens=False), 1)
    if ids != tok.encode(text, add_special_tokens=False).ids:
        sys.exit("ids differ")
    print(f"{size:.1f} MB, {len(ids)} ids, equal")
    print(f"musacoder   {size / ours:8.1f} MB/s (printing the ids included)")
    print(f"tokenizers  {size / theirs:8.1f} MB/s")
    print(f"ratio       {theirs / ours:8.1f} x")


if __name__ == "__main__":
    main()
