#!/usr/bin/env python3
"""Every operator's reference agrees with PyTorch and with its loop nest on drawn attributes; an operator of each class
(map, row statistic, contraction, window) passes MooreEval with every schedule that fits. slow_rows.py judges more.

usage: test_rows.py [SETS [DTYPES [JUDGED]]]   sets of attributes for each operator; comma-separated dtypes, operators
Ends with 'N passed, M failed'."""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
sys.path.insert(0, os.path.join(HERE, "..", "eval"))
import judges  # noqa: E402

judges.share_owner()
JUDGED = "add,log_softmax,mv,max_pool2d"
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def probe(*args):
    return subprocess.run([BINARY, "synth", "--probe", *args], capture_output=True, text=True, check=False)


def check_values(sets, dtype, folder):
    values = os.path.join(folder, "values.jsonl")
    done = probe("all", "--values", values, "--tasks", str(sets), "--dtypes", dtype, "--max-elements", "1024")
    check(done.returncode == 0, f"probe: {done.stdout}{done.stderr[-2000:]}")
    done = subprocess.run([sys.executable, os.path.join(HERE, "check_rows.py"), values], capture_output=True,
        text=True, check=False)
    check(done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:])
    print(dtype, done.stdout.strip().split("\n")[-1])


def check_programs(judged, folder):
    done = probe(judged, "--out", folder, "--tasks", "1", "--max-elements", "512", "--seed", "5")
    check(done.returncode == 0, done.stderr[-2000:])
    for task in sorted(glob.glob(folder + "/*_0000.py")):
        programs = sorted(glob.glob(task[:-3] + ".*.py"))
        check(programs, f"{task} has no program")
        done = subprocess.run([BINARY, "eval", "--task", task, "--trials", "1", "--json", *programs],
            capture_output=True, text=True,
                              check=False)
        for path, line in zip(programs, done.stdout.splitlines()):
            verdict = json.loads(line)
            check(verdict["status"] == "passed", f"{os.path.basename(path)}: {verdict['feedback']}")
        check(len(done.stdout.splitlines()) == len(programs), f"{task}: {done.stderr[-500:]}")


def main():
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    dtypes = sys.argv[2].split(",") if len(sys.argv) > 2 else ["float32"]
    with tempfile.TemporaryDirectory() as folder:
        for dtype in dtypes:
            check_values(sets, dtype, folder)
        check_programs(sys.argv[3] if len(sys.argv) > 3 else JUDGED, os.path.join(folder, "programs"))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
