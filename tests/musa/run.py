"""run.py - MUSA programs through 'musacoder eval' on the emulator, under the profiles of two cards.

    run.py [--all] [--profiles s4000,s5000] [--backend sim|cuda] [--only GLOB] [--jobs 2]

passed/    written by hand in the MUSA dialect; they must pass; --all adds programs of
           tests/corpus/passed, translated here
refused/   what MUSA's compiler or the rules do not take: 'expect' is the category, 'says' a word of the reason;
           'profile' names the only card that it holds for
Every verdict must say what was emulated. Exit code 1 on any other outcome. Standard library only.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
CORPUS = os.path.join(ROOT, "tests", "corpus")
CARDS = {"s4000": "MTT S4000", "s5000": "MTT S5000"}
# Programs of the corpus that say something about CUDA's own device or host, and nothing about a dialect.
NOT_MUSA = ("19*", "36_*", "64_*", "68*", "69*", "7[0-9]*", "8[0-9]*", "9[0-9]*", "1[01][0-9]_*")


def head_of(path):
    head = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if not line.startswith("#"):
                break
            key, colon, value = line[1:].strip().partition(": ")
            if colon:
                head[key] = value
    return head


def translated(folder, profile):
    """tests/corpus/passed in the MUSA dialect; those that the translator refuses are left out."""
    out = []
    for path in sorted(glob.glob(os.path.join(CORPUS, "passed", "*.py"))):
        head, name = head_of(path), os.path.basename(path)
        if any(fnmatch.fnmatch(name, g) for g in NOT_MUSA) or head.get("needs"):
            continue
        if "sim" not in head.get("backends", "sim"):
            continue
        if "musa" in open(path, encoding="utf-8").read() or "sim" in head or head.get("options"):
            continue
        p = subprocess.run([EXE, "translate", "--profile", profile, "--out", folder, path], capture_output=True,
                           text=True, check=False)
        made = os.path.join(folder, name)
        if p.returncode == 0 and "musa_sources" in open(made, encoding="utf-8").read():
            out.append((made, head))
    return out


def judge_task(task, paths, profile, backend):
    """Verdicts by path, of one 'musacoder eval'."""
    argv = [EXE, "eval", "--task", os.path.join(CORPUS, "tasks", task + ".py"), "--json", "--no-cache",
            "--trials", "2", "--timeout", f"{20 * SLOWDOWN:g}", "--jobs", "2", "--backend", backend, "--no-perf"]
    argv += ["--profile", profile] if backend == "sim" else []
    p = subprocess.run(argv + paths, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in p.stdout.splitlines()]
    if len(lines) < len(paths):
        print(p.stderr[-500:])
    return dict(zip(paths, lines))


def judge(programs, profile, backend, jobs):
    """Verdicts by path; one 'musacoder eval' of two jobs for each task."""
    by_task, verdicts = collections.OrderedDict(), {}
    for path, head in programs:
        by_task.setdefault(head["task"], []).append(path)
    with concurrent.futures.ThreadPoolExecutor(max(1, jobs // 2)) as pool:
        for found in pool.map(lambda item: judge_task(*item, profile, backend), by_task.items()):
            verdicts.update(found)
    return verdicts


def check(path, head, v, profile, backend):
    """None, or what is wrong with the verdict."""
    if v is None:
        return "no verdict"
    want, got = head.get("expect", "passed"), v.get("category") or "passed"
    if backend == "sim" and v.get("environment", {}).get("emulated") != CARDS[profile]:
        return "the verdict does not say what was emulated"
    if v.get("dialect") != "musa":
        return "the verdict does not say that the program is MUSA's"
    if got != want:
        return f"{got} instead of {want}: {v.get('feedback', '')[:400]}"
    if head.get("says", "") not in json.dumps(v):
        return f"nothing says '{head['says']}': {v.get('feedback', '')[:300]}"
    return None


def collect(everything, profile, backend, folder, only):
    paths = sorted(glob.glob(os.path.join(HERE, "passed", "*.py")) + glob.glob(os.path.join(HERE, "refused", "*.py")))
    programs = [(p, head_of(p)) for p in paths]
    programs = [(p, h) for p, h in programs
                if h.get("profile", profile) == profile and (backend == "sim" or "/passed/" in p)]
    if everything:
        programs += translated(folder, profile)
    return [(p, h) for p, h in programs if fnmatch.fnmatch(os.path.basename(p), only)]


def main():
    a = argparse.ArgumentParser(description="MUSA programs on the emulator, under the profiles of two cards.")
    a.add_argument("--all", action="store_true", help="add translated programs of the corpus")
    a.add_argument("--profiles", default="s4000,s5000")
    a.add_argument("--backend", default="sim", choices=("sim", "cuda"))
    a.add_argument("--only", default="*", metavar="GLOB")
    a.add_argument("--jobs", type=int, default=2, help="candidates at once")
    a = a.parse_args()
    start, wrong = time.monotonic(), 0
    for profile in a.profiles.split(",") if a.backend == "sim" else ["s5000"]:
        with tempfile.TemporaryDirectory() as folder:
            programs = collect(a.all, profile, a.backend, folder, a.only)
            verdicts = judge(programs, profile, a.backend, a.jobs)
            bad = {p: why for p, h in programs if (why := check(p, h, verdicts.get(p), profile, a.backend))}
        for p, why in bad.items():
            print(f"  {os.path.basename(p)}: {why}")
        n = sum("expect" not in h for _, h in programs)
        print(f"{profile if a.backend == 'sim' else a.backend}: {n} programs must pass, {len(programs) - n} must not; "
              f"{len(bad)} wrong")
        wrong += len(bad)
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
