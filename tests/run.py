"""run.py - runs the test programs, two at a time: one line each, the output of failures, and 'N passed, M failed'.

    run.py BUILD [--all | --gpu] [--jobs N] [WORD...]     only tests whose name contains one of the words

Tests are BUILD/tests/*/test_* (cmocka), BUILD/fuzz/* (corpus replay), tests/*/test_*.py (unittest or plain scripts, under the
Python that runner/ uses) and tests/*/test_*.sh; --all adds long_* of each kind; --gpu runs those of tests/gpu and no others. Standard library only.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_S = 280  # of one test program; with --all, where sanitizers slow things down, three times that


def data_folder():
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.environ.get("MUSACODER_DATA_DIR") or os.path.join(base, "musacoder")


def torch_python():
    """The Python of runner/: as path_python() of src/base/file.c finds it; ours if there is none."""
    if os.environ.get("MUSACODER_PYTHON"):
        return os.environ["MUSACODER_PYTHON"]
    data = data_folder()
    try:
        with open(os.path.join(data, "python")) as f:
            path = f.readline().strip()
            if os.access(path, os.X_OK):
                return path
    except OSError:
        pass
    path = os.path.join(data, "venv/bin/python")
    return path if os.access(path, os.X_OK) else sys.executable


def python_argv(path):
    """unittest modules go through its discovery; a script of its own runs as it is and answers by its exit code."""
    with open(path) as f:
        if "unittest" not in f.read():
            return [path]
    folder, name = os.path.split(path)
    return ["-m", "unittest", "discover", "-s", folder, "-p", name]


def find(build, everything):
    kinds = ["test"] + (["long"] if everything else [])
    tests = []
    for kind in kinds:
        for path in sorted(glob.glob(f"{build}/tests/*/{kind}_*")):
            if os.access(path, os.X_OK) and not path.endswith((".d", ".o")):
                source = os.path.join(ROOT, "tests", os.path.relpath(path, f"{build}/tests") + ".c")
                if os.path.exists(source):
                    tests.append((os.path.relpath(path, f"{build}/tests"), [path]))
        for path in sorted(glob.glob(f"{ROOT}/tests/*/{kind}_*.py")):
            tests.append((os.path.relpath(path, f"{ROOT}/tests"), [torch_python(), "-B"] + python_argv(path)))
        for path in sorted(glob.glob(f"{ROOT}/tests/*/{kind}_*.sh")):
            tests.append((os.path.relpath(path, f"{ROOT}/tests"), ["sh", path]))
    for path in sorted(glob.glob(f"{build}/fuzz/fuzz_*")):
        if os.access(path, os.X_OK) and not path.endswith((".d", ".o")):
            corpus = os.path.join(ROOT, "tests/fuzz/corpus", os.path.basename(path)[5:])
            tests.append((f"fuzz/{os.path.basename(path)}", [path, corpus]))
    return tests


def run(name, argv, env, limit):
    start = time.monotonic()
    p = subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, start_new_session=True)
    try:
        out, _ = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, _ = p.communicate()
        out += f"\nstopped after {limit} s\n".encode()
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)  # what it left behind
        except ProcessLookupError:
            pass
    text = out.decode("utf-8", "replace")
    ok = p.returncode == 0 and "Ran 0 tests" not in text
    return name, ok, time.monotonic() - start, text


def note(text):
    skipped = text.count("[  SKIPPED ]") or sum(int(n) for n in re.findall(r"skipped=(\d+)", text))
    return f"  ({skipped} skipped)" if skipped else ""


def main():
    a = argparse.ArgumentParser()
    a.add_argument("build")
    a.add_argument("--all", action="store_true")
    a.add_argument("--gpu", action="store_true")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("words", nargs="*")
    a = a.parse_args()
    build = os.path.abspath(a.build)
    tests = [t for t in find(build, a.all) if t[0].startswith("gpu/") == a.gpu]
    tests = [t for t in tests if not a.words or any(w in t[0] for w in a.words)]
    times_path, cache = os.path.join(build, "test-times.json"), os.path.join(build, f"test-cache-{os.getpid()}")
    try:
        with open(times_path) as f:
            times = json.load(f)
    except (OSError, ValueError):
        times = {}
    shutil.rmtree(cache, ignore_errors=True)
    env = dict(os.environ, B=os.path.relpath(build, ROOT), MUSACODER_EXE=os.path.join(build, "musacoder"),
               MUSACODER_PYTHON=torch_python(), MUSACODER_CACHE_DIR=cache, OMP_WAIT_POLICY="passive",
               PYTHONDONTWRITEBYTECODE="1")
    env.setdefault("MUSACODER_SECRET", "tests")  # the same draws in every run
    env.setdefault("MUSACODER_LIB_DIR", os.path.join(build, "lib"))
    tests.sort(key=lambda t: -times.get(t[0], 60))  # the long ones first, so that the end is not one of them alone
    failed, start, limit = [], time.monotonic(), TIMEOUT_S * (3 if a.all else 1)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, n, v, env, limit) for n, v in tests]):
            name, ok, seconds, text = future.result()
            times[name] = round(seconds, 1)
            print(f"{'ok    ' if ok else 'FAILED'} {seconds:6.1f} s  {name}{note(text)}", flush=True)
            if not ok:
                failed.append(name)
                tail = text.strip().splitlines()[-60:]
                print("\n".join("    | " + line for line in tail), flush=True)
    with open(times_path, "w") as f:
        json.dump(times, f, indent=1, sort_keys=True)
    shutil.rmtree(cache, ignore_errors=True)
    for name in failed:
        print(f"failed: {name}")
    print(f"{time.monotonic() - start:.0f} s")
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
