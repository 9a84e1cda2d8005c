#!/usr/bin/env python3
"""'musacoder synth profile': ncu's CSV (a fixture made by hand, data/README.md) as records; no number is invented.

Ends with 'N passed, M failed'."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def profile(*args):
    return subprocess.run([BINARY, "synth", "profile", *args], capture_output=True, text=True, check=False)


def check_records(folder, out):
    done = profile(folder, "--out", out)
    check(done.returncode == 0 and "2 kernels of 1 files: 1 bound by memory, 0 by compute, 1 by waiting" in done.stdout,
          done.stdout + done.stderr)
    rows = [json.loads(line) for line in open(out + "/data/train-00000.jsonl", encoding="utf-8")]
    check([r["provenance"]["bound"] for r in rows] == ["latency", "memory"], rows)
    check(all(r["task"] is None for r in rows), "a task from nowhere")
    with open(folder + "/ncu_sum.task", "w", encoding="utf-8") as f:
        f.write("class Model: pass\n")
    profile(folder, "--out", out)
    again = [json.loads(line) for line in open(out + "/data/train-00000.jsonl", encoding="utf-8")]
    check([r["task"] for r in again] == 2 * [{"name": "ncu_sum", "code": "class Model: pass\n"}], again)
    small, scale = (r["messages"][1]["content"] for r in rows)
    check("0.01 waves" in small and "More blocks" in small and "1.93 %" in small, small)
    check("91.40 %" in scale and "33.52 %" in scale and "fewer bytes" in scale, scale)
    for r in rows:
        asked, said = (m["content"] for m in r["messages"])
        check("__global__" in asked and "| Memory Throughput |" in asked and "too small to fill" not in asked, asked)
        known = set(re.findall(r"\d+(?:\.\d+)?", asked))
        check(set(re.findall(r"(?<![A-Za-z])\d+(?:\.\d+)?", said)) <= known, f"numbers from nowhere: {said}")


def check_refusals(folder, out):
    text = open(folder + "/ncu_sum.csv", encoding="utf-8").read()
    bad = {"no metric": (text.replace('"Metric Name"', '"Name"'), "no column 'Metric Name'"),
           "cut": (text[:len(text) - 60], "was it cut?"), "nothing": ("hello\n", "has no kernel")}
    for name, (csv, word) in bad.items():
        with open(folder + "/ncu_sum.csv", "w", encoding="utf-8") as f:
            f.write(csv)
        done = profile(folder, "--out", out)
        one = len(done.stderr.splitlines()) == 1
        check(done.returncode == 2 and word in done.stderr and one, f"{name}: {done.stderr}")
    for args, word in (((), "say one folder"), ((out, "--out", out), "holds no NAME.csv")):
        done = profile(*args)
        check(done.returncode == 2 and word in done.stderr, f"{args}: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        for name in ("ncu_sum.csv", "ncu_sum.py"):
            shutil.copy(os.path.join(HERE, "data", name), folder)
        check_records(folder, out)
        check_refusals(folder, out)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
