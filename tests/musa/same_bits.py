"""same_bits.py - original and translation give the same bits on the emulator.

    same_bits.py [--limit N] [FILE|FOLDER]...     CUDA programs (default: tests/corpus/passed); TASK from their head, or
                                                  FILE.task beside them

Each program is judged twice by 'musacoder eval', as it is and translated to MUSA, on the same secret inputs; the
records' 'outputs_sha256', a hash of all bytes that the replays left, must be equal. The emulator divides exactly, as
no MUSA card below mp_31 does, so nothing but the translation can make a difference. Exit code 1 on any difference.
"""
import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
TASKS = os.path.join(ROOT, "tests", "corpus", "tasks")
SECRET = "5a" * 32


def head_task(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# task: "):
                return os.path.join(TASKS, line[8:].strip() + ".py")
            if not line.startswith("#"):
                break
    return path[:-3] + ".task" if os.path.exists(path[:-3] + ".task") else None


def translated(path, folder):
    """The program in MUSA, or why there is none."""
    p = subprocess.run([EXE, "translate", "--profile", "any", "--out", folder, path], capture_output=True, check=False)
    made = os.path.join(folder, os.path.basename(path))
    if p.returncode:
        return None, "refused"
    with open(made, encoding="utf-8") as f:
        return (made, "") if "torch_musa" in f.read() else (None, "builds nothing")


def judge(task, paths, jobs=2):
    """Verdicts of programs on the same inputs."""
    p = subprocess.run([EXE, "eval", "--json", "--no-cache", "--trials", "1", "--seed", "7", "--secret", SECRET,
                        "--jobs", str(jobs), "--task", task, *paths], capture_output=True, text=True, check=False)
    verdicts = [json.loads(line) for line in p.stdout.splitlines()]
    return verdicts if len(verdicts) == len(paths) else [{"category": "no verdict"}] * len(paths)


def bits(verdict):
    return (verdict.get("replay") or {}).get("outputs_sha256")


def compare(task, paths):
    """(path, outcome) of each program of the task."""
    with tempfile.TemporaryDirectory() as folder:
        made = [translated(p, folder) for p in paths]
        pairs = [(p, m) for p, (m, _) in zip(paths, made) if m]
        verdicts = judge(task, [x for pair in pairs for x in pair]) if pairs else []
    outcome = {p: why for p, (_, why) in zip(paths, made)}
    for i, (path, _) in enumerate(pairs):
        cuda, musa = verdicts[2 * i:2 * i + 2]
        if not bits(cuda):
            outcome[path] = f"the original does not run: {cuda['category']}"
        elif not bits(musa):
            outcome[path] = f"the translation does not run: {musa['category']}: {musa.get('feedback', '')[:200]}"
        else:
            outcome[path] = "same" if bits(cuda) == bits(musa) else "different"
    return outcome.items()


def main():
    a = argparse.ArgumentParser(description="Original and translation, byte by byte, on the emulator.")
    a.add_argument("paths", nargs="*", default=[os.path.join(ROOT, "tests", "corpus", "passed")])
    a.add_argument("--limit", type=int, default=0)
    a = a.parse_args()
    files = []
    for p in a.paths:
        files += sorted(glob.glob(os.path.join(p, "*.py"))) if os.path.isdir(p) else [p]
    of_task = collections.defaultdict(list)
    for f in files[:a.limit or None]:
        if head_task(f):
            of_task[head_task(f)].append(f)
    counts, done = collections.Counter(), 0
    for task, paths in of_task.items():
        for path, said in compare(task, paths):
            done += 1
            print(f"{done} {os.path.basename(path)}: {said}", file=sys.stderr, flush=True)
            counts[said.split(":")[0]] += 1
            if said not in ("same", "refused"):
                print(f"  {os.path.basename(path)}: {said}", flush=True)
    print(", ".join(f"{k} {v}" for k, v in counts.most_common()))
    return 1 if counts["different"] or counts["the translation does not run"] else 0


if __name__ == "__main__":
    sys.exit(main())
