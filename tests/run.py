"""run.py - runs the test programs, one more at a time than there are cores, as a test waits for a third of its time:
one line each with its seconds and those of its CPU (children that it waited for are in them), the output of failures,
the twenty that took the most CPU, and 'N passed, M failed'. The CPU of the whole run counts every process of it: those
whose parent has ended become children of this one.

    run.py BUILD [--slow | --all [--fuzz FOLDER --seconds N] [--resume] | --gpu] [--jobs N] [--plan] [WORD...]

Only tests whose name contains one of the words. Tests are BUILD/tests/*/test_* (cmocka), BUILD/fuzz/* (corpus replay),
tests/*/test_*.py (unittest or plain scripts, under the Python that runner/ uses) and tests/*/test_*.sh; --slow adds
slow_*.py and slow_*.sh; --all adds long_* of each kind too and gives everything four times the time, because
sanitizers slow things down; --fuzz adds FOLDER/fuzz_*, each
fuzzed for N seconds from its corpus on; --gpu runs those of tests/gpu and no others. --plan only lists them.
--resume counts what passed since the last change of a source as passed. Standard library only.
"""

import argparse
import concurrent.futures
import contextlib
import ctypes
import fcntl
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import forks

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_S = 600  # of one test program
SLOWDOWN = 4     # --all: by what limits that are there against hanging are longer; tests read TEST_SLOWDOWN
SLOW_S = 900     # of a slow_* test
LONG_S = 3600    # of a long_* test
SLOWEST = 20     # are listed at the end
KEEP_S = 7 * 86400  # builds that no test has used for so long go
UNKNOWN_S, UNKNOWN_LONG_S = 20, 1200  # a test that has never run here, for the plan
SOURCES = ("Makefile", "src", "simt", "litetorch", "runner", "python", "tests", "setup", "recipes", "docs", "tasks")


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


def find(build, slow, everything):
    kinds = ["test"] + (["slow"] if slow or everything else []) + (["long"] if everything else [])
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


def libfuzzer(folder, seconds):
    """Each target for so many seconds, from its corpus and from what earlier runs found; findings lie beside FOLDER."""
    tests, home = [], os.path.dirname(os.path.abspath(folder))
    for path in sorted(glob.glob(f"{folder}/fuzz_*")):
        if not os.access(path, os.X_OK) or path.endswith((".d", ".o")):
            continue
        name = os.path.basename(path)[5:]
        found = os.path.join(home, "corpus", name)
        os.makedirs(found, exist_ok=True)
        tests.append((f"libfuzzer/fuzz_{name}",
                      [os.path.abspath(path), f"-max_total_time={seconds}", "-max_len=65536", "-timeout=60",
                       "-rss_limit_mb=2048",
                       "-verbosity=0", f"-artifact_prefix={home}/{name}-", found,
                       os.path.join(ROOT, "tests/fuzz/corpus", name)]))
    return tests


def fingerprint():
    """Changes with any file that a test could depend on."""
    h = hashlib.sha256()
    for top in SOURCES:
        for folder, dirs, files in os.walk(os.path.join(ROOT, top)):
            dirs[:] = sorted(d for d in dirs if d != "__pycache__")
            for name in sorted(files):
                st = os.stat(os.path.join(folder, name), follow_symlinks=False)
                h.update(f"{folder}/{name} {st.st_size} {st.st_mtime_ns}\n".encode())
    st = os.stat(os.path.join(ROOT, "Makefile"))
    h.update(f"{st.st_size} {st.st_mtime_ns}".encode())
    return h.hexdigest()


def load(path, default):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return default


def save(path, value):
    with open(path + ".new", "w") as f:
        json.dump(value, f, indent=1, sort_keys=True)
    os.replace(path + ".new", path)


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


RUNNING = set()
STARTING = threading.Lock()  # a test begins, or orphans are waited for


def children():
    """Pids of this process's, those that have ended and wait to be asked among them."""
    found = []
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError), open(path) as f:
            found += map(int, f.read().split())
    return found


def reap(until):
    """Waits for orphans, as init would, and for no test: run() does that itself."""
    last = False
    while not last:
        last = until.wait(0.05)
        with STARTING:
            for pid in set(children()) - {p.pid for p in RUNNING}:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


@contextlib.contextmanager
def orphans_counted():
    """Processes whose parent ends become this one's children, so that their CPU is counted, where a system has that."""
    pr_set_child_subreaper, ended = 36, threading.Event()
    try:
        adopted = ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        adopted = False
    reaper = threading.Thread(target=reap, args=(ended,))
    if adopted:
        reaper.start()
    try:
        yield
    finally:
        ended.set()
        if adopted:
            reaper.join()


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kill(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Process(subprocess.Popen):
    """A test in a process of its own; wait() gives its exit status and its CPU seconds."""

    def wait(self, timeout=None):
        _, status, used = os.wait4(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode, used.ru_utime + used.ru_stime


def begin(argv, env, out, fork):
    """Starts a test, which writes to 'out'; fork: as Forks.fork of forks.py, or None for a process of its own."""
    p = fork(argv[2:], ROOT, env, out) if fork else None  # behind the Python and its -B
    if p:
        return p
    with STARTING:
        p = Process(argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        RUNNING.add(p)
    return p


def run(name, argv, env, limit, fork):
    start = time.monotonic()
    reader, out = os.pipe()
    try:
        p = begin(argv, env, out, fork)
    finally:
        os.close(out)
    RUNNING.add(p)
    late = threading.Timer(limit, kill, (p,))
    late.start()
    with open(reader, "rb") as f:
        written = f.read()  # until it and all that it left behind with this output have ended
    code, cpu = p.wait()
    stopped = late.finished.is_set()
    late.cancel()
    RUNNING.discard(p)
    kill(p)  # what it left behind
    text = written.decode("utf-8", "replace") + (f"\nstopped after {limit} s\n" if stopped else "")
    ok = code == 0 and "Ran 0 tests" not in text
    return name, ok, time.monotonic() - start, cpu, text


def note(text):
    skipped = text.count("[  SKIPPED ]") or sum(int(n) for n in re.findall(r"skipped=(\d+)", text))
    return f"  ({skipped} skipped)" if skipped else ""


def slowest(used, others):
    """What took the most CPU: {name: seconds}, and of the processes that no test waited for."""
    rows = sorted([*used.items(), ("owners, which judge for many tests, and other processes that no test waits for",
                                   others)], key=lambda r: -r[1])[:SLOWEST]
    return "\n".join(f"{seconds:6.1f} CPU  {name}" for name, seconds in rows if seconds >= 1)


def is_long(name):
    return os.path.basename(name).startswith("long_")


def limit_of(name, slowdown):
    return LONG_S if is_long(name) else slowdown * (SLOW_S if os.path.basename(name).startswith("slow_") else TIMEOUT_S)


class Plan:
    """How long it will take: by the times of the last run here."""

    def __init__(self, tests, times, jobs):
        self.left, self.times, self.jobs = {name for name, _ in tests}, times, jobs

    def guess(self, name):
        return self.times.get(name, UNKNOWN_LONG_S if is_long(name) else UNKNOWN_S)

    def seconds(self):
        each = [self.guess(name) for name in self.left]
        return max(sum(each) / self.jobs, max(each, default=0))

    def done(self, name):
        self.left.discard(name)

    def show(self, tests, say_all):
        new = sum(name not in self.times for name, _ in tests)
        guess = f" ({new} never ran here: assumed {UNKNOWN_S} s, long ones {UNKNOWN_LONG_S} s)" if new else ""
        print(f"{len(tests)} tests, {self.jobs} at a time: about {minutes(self.seconds())}{guess}", flush=True)
        for name, _ in tests if say_all else []:
            print(f"{self.guess(name):8.1f} s  {name}")


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class Shared:
    """What the tests of a run share: builds and precompiled headers, named by their content and kept for the next run;
    a cache of verdicts and owners (src/daemon), which end with the run."""

    def __init__(self, build):
        self.exe, self.headers = os.path.join(build, "musacoder"), os.path.join(build, "test-headers")
        self.cache, self.run_dir = os.path.join(build, "test-cache"), tempfile.mkdtemp(prefix="mc-tests-")
        self.lock = open(self.cache + ".lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another run has it
            self.cache += f"-{os.getpid()}"
        for folder in self.cache, self.headers:
            os.makedirs(folder, exist_ok=True)
        self.clean()

    def clean(self):
        """All but builds that were used lately."""
        builds = os.path.join(self.cache, "build")
        for name in os.listdir(self.cache):
            if name != "build":
                remove(os.path.join(self.cache, name))
        for name in os.listdir(builds) if os.path.isdir(builds) else []:
            path = os.path.join(builds, name)
            if time.time() - os.stat(path).st_mtime > KEEP_S:
                remove(path)

    def owners(self, *option):
        p = subprocess.run([self.exe, "owner", "--json", *option], env=dict(os.environ, MUSACODER_RUN_DIR=self.run_dir),
                           stdout=subprocess.PIPE, check=False)
        return p.stdout

    def stop_owners(self):
        first = {o["pid"] for o in json.loads(self.owners() or "[]")}
        self.owners("--stop")
        until = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{pid}") for pid in first) and time.monotonic() < until:
            time.sleep(0.05)

    def close(self):
        if glob.glob(self.run_dir + "/*.sock"):
            self.stop_owners()
        shutil.rmtree(self.run_dir, ignore_errors=True)
        if self.cache.endswith(f"-{os.getpid()}"):
            shutil.rmtree(self.cache, ignore_errors=True)
        else:
            self.clean()
        self.lock.close()


def environment(build, shared, slowdown, slow):
    env = dict(os.environ, B=os.path.relpath(build, ROOT), MUSACODER_EXE=os.path.join(build, "musacoder"),
               MUSACODER_PYTHON=torch_python(), MUSACODER_CACHE_DIR=shared.cache, MUSACODER_PREFIX_DIR=shared.headers,
               MUSACODER_RUN_DIR=shared.run_dir, MUSACODER_OWNER_IDLE="1200", OMP_WAIT_POLICY="passive",
               PYTHONDONTWRITEBYTECODE="1",
               TEST_SLOWDOWN=str(slowdown), TEST_SLOW="1" if slow else "",
               TEST_OWNER="1" if slowdown == 1 and "--gpu" not in sys.argv else "")
    env.setdefault("MUSACODER_SECRET", "tests")  # the same draws in every run
    if "--gpu" not in sys.argv:
        env.setdefault("MUSACODER_OWNER", "none")  # but for tests that ask for the run's owner: tests/eval/judges.py
    env.setdefault("MUSACODER_LIB_DIR", os.path.join(build, "lib"))
    return env


def arguments():
    a = argparse.ArgumentParser()
    a.add_argument("build")
    a.add_argument("--slow", action="store_true")
    a.add_argument("--all", action="store_true")
    a.add_argument("--fuzz", metavar="FOLDER")
    a.add_argument("--seconds", type=int, default=10)
    a.add_argument("--resume", action="store_true")
    a.add_argument("--plan", action="store_true")
    a.add_argument("--gpu", action="store_true")
    a.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    a.add_argument("words", nargs="*")
    return a.parse_intermixed_args()


def run_all(a, tests, times, passed, save_state):
    """Runs them, a.jobs at a time: their CPU seconds and the names of those that failed. SystemExit: interrupted."""
    slowdown = SLOWDOWN if a.all else 1
    build = os.path.abspath(a.build)
    shared, plan = Shared(build), Plan(tests, times, a.jobs)
    env = environment(build, shared, slowdown, a.slow or a.all)
    failed, used = [], {}
    forked = forks.Forks(torch_python(), shared.run_dir, env, RUNNING)
    asks = {name for name, _ in tests if forks.asks(os.path.join(ROOT, "tests", name))}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        runs = [pool.submit(run, name, argv, env, limit_of(name, slowdown), forked.fork if name in asks else None)
                for name, argv in tests]
        try:
            for future in concurrent.futures.as_completed(runs):
                name, ok, seconds, cpu, text = future.result()
                times[name], used[name] = round(seconds, 1), cpu
                plan.done(name)
                left = f"  [{len(used)}/{len(tests)}, about {minutes(plan.seconds())} left]" if a.all else ""
                word = "ok    " if ok else "FAILED"
                print(f"{word} {seconds:6.1f} s {cpu:6.1f} CPU  {name}{note(text)}{left}", flush=True)
                if ok:
                    passed.add(name)
                else:
                    failed.append(name)
                    tail = text.strip().splitlines()[-60:]
                    print("\n".join("    | " + line for line in tail), flush=True)
                save_state()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for p in list(RUNNING):
                kill(p)
            print(f"stopped after {len(used)} of {len(tests)} tests; --resume goes on", flush=True)
            raise SystemExit(130) from None
        finally:
            forked.close()
            shared.close()
    return used, failed


def main():
    a = arguments()
    build = os.path.abspath(a.build)
    tests = [t for t in find(build, a.slow, a.all) if t[0].startswith("gpu/") == a.gpu]
    tests += libfuzzer(a.fuzz, a.seconds) if a.fuzz else []
    tests = [t for t in tests if not a.words or any(w in t[0] for w in a.words)]
    times_path, passed_path = os.path.join(build, "test-times.json"), os.path.join(build, "test-passed.json")
    times, state, passed = load(times_path, {}), fingerprint(), load(passed_path, {})
    passed = set(passed["tests"]) if a.resume and passed.get("state") == state else set()
    earlier = [name for name, _ in tests if name in passed]
    tests = [t for t in tests if t[0] not in passed]
    plan = Plan(tests, times, a.jobs)
    tests.sort(key=lambda t: -plan.guess(t[0]))  # the long ones first, so that the end is not one of them alone
    plan.show(tests, a.plan)
    if a.plan:
        return 0
    for name in earlier:
        print(f"ok    earlier  {name}")

    def save_state():
        save(times_path, times)
        save(passed_path, {"state": state, "tests": sorted(passed)})

    start = time.monotonic()
    with orphans_counted():
        used, failed = run_all(a, tests, times, passed, save_state)
    total = max(cpu_of_children(), sum(used.values()))
    if len(used) > SLOWEST:
        print(f"the most CPU:\n{slowest(used, total - sum(used.values()))}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{time.monotonic() - start:.0f} s, {total:.0f} s of CPU")
    print(f"{len(earlier) + len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not earlier + tests else 0


if __name__ == "__main__":
    sys.exit(main())
