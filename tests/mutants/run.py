"""run.py - proves that tests see what they claim to see: a row of table.py breaks one line, and a named test must fail.

    CC=.. CPPFLAGS=.. CFLAGS=.. LDLIBS=.. ARCHIVES=.. run.py BUILD [--jobs N] [--again] [--list] [WORD...]

'make test-mutants' calls it. A mutant is compiled alone, in a scratch copy under BUILD/mutants, and linked in front of
the archives, which stay as they are; so a row costs one object, one link and one short test. A test program is compiled
once and must pass without a mutant first. Killed: a named test fails, crashes or hangs. Survivors are listed, and the
exit code is 1. A row whose text is not in its file exactly once, or that does not compile, is an error: mend the row.

Rows that were killed stay killed until a file that they depend on changes (BUILD/mutants/killed.json): an interrupted
run continues, and a second one is quick. --again forgets that. WORD: only rows whose name, file or test has one.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from table import MUTANTS  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNKNOWN_S = 4     # a row that has never run here, for the estimate
HANG_FACTOR, HANG_S = 10, 20  # a test takes longer than this times its own time, and at least so long: it hangs
FAST = ["-O1", "-g0", "-w"]   # behind the build's flags: mutants are compiled often and run once


def flags(name):
    return shlex.split(os.environ.get(name, ""))


class Broken(Exception):
    """The row or the environment is wrong; says nothing about the tests."""


class Tools:
    def __init__(self, build):
        self.build, self.folder = build, os.path.join(build, "mutants")
        self.cc, self.compile = flags("CC") or ["cc"], flags("CPPFLAGS") + flags("CFLAGS") + FAST
        archives = [os.path.join(ROOT, a) for a in flags("ARCHIVES")]
        self.link = ["-Wl,--start-group"] + archives + ["-Wl,--end-group", "-lcmocka"] + flags("LDLIBS")
        self.env = dict(os.environ, OMP_WAIT_POLICY="passive", TEST_SLOW="1", B=os.path.relpath(build, ROOT),
                        MUSACODER_SECRET="tests",
                        MUSACODER_EXE=os.path.join(build, "musacoder"), MUSACODER_LIB_DIR=os.path.join(build, "lib"),
                        MUSACODER_CACHE_DIR=os.path.join(self.folder, "cache"))
        self.locks, self.guard, self.times = {}, threading.Lock(), {}

    def call(self, argv, what):
        p = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if p.returncode:
            raise Broken(f"{what}: {(p.stderr.strip().splitlines() or ['failed'])[0]}")

    def object(self, source, out, what, extra=()):
        os.makedirs(os.path.dirname(out), exist_ok=True)
        self.call(self.cc + self.compile + list(extra) + ["-c", source, "-o", out], what)

    def program(self, test, out, mutant=None):
        objects = [os.path.join(self.folder, "tests", test + ".o")] + ([mutant] if mutant else [])
        self.call(self.cc + flags("CFLAGS") + FAST + ["-o", out] + objects + self.link, f"linking {test}")

    def run(self, program, limit):
        """The test's exit code, or 'hangs'; and the seconds it took."""
        start = time.monotonic()
        p = subprocess.Popen([program], cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            code = p.wait(limit)
        except subprocess.TimeoutExpired:
            code = "hangs"
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        return code, time.monotonic() - start

    def ready(self, test):
        """Compiles a test once and sees it pass without a mutant; returns how long it took."""
        with self.guard:
            lock = self.locks.setdefault(test, threading.Lock())
        with lock:
            if test not in self.times:
                source, program = f"tests/{test}.c", os.path.join(self.folder, "tests", test)
                self.object(source, program + ".o", test, ["-Itests/" + os.path.dirname(test)])
                self.program(test, program)
                code, seconds = self.run(program, 280)
                os.remove(program)
                if code != 0:
                    raise Broken(f"{test} fails without a mutant; mend it first")
                self.times[test] = seconds
        return self.times[test]


def mutated(row):
    with open(os.path.join(ROOT, row.file), encoding="utf-8") as f:
        text = f.read()
    for old, new in row.edits:
        if text.count(old) != 1:
            raise Broken(f"'{old.strip()[:60]}' is {text.count(old)} times in {row.file}, not once")
        text = text.replace(old, new)
    return text


def play(tools, number, row):
    """The test that killed the mutant, or None; Broken when the row is."""
    stem = os.path.join(tools.folder, f"{number:03d}")
    source, obj, program = stem + "_" + os.path.basename(row.file), stem + ".o", stem
    limits = {t: max(HANG_S, HANG_FACTOR * tools.ready(t)) for t in row.tests}
    with open(source, "w", encoding="utf-8") as f:
        f.write(mutated(row))
    try:
        tools.object(source, obj, row.file, ["-iquote", os.path.dirname(row.file)])
        for test in row.tests:
            tools.program(test, program, obj)
            code, _ = tools.run(program, limits[test])
            if code != 0:
                return f"{test}" + (" hangs" if code == "hangs" else "")
    finally:
        for path in (source, obj, program):
            if os.path.exists(path):
                os.remove(path)
    return None


def depends(tools):
    """The content of each test; and of all that every mutant is linked with, and built by."""
    digest, tree = {}, hashlib.sha256(" ".join(tools.cc + tools.compile + tools.link).encode())
    for top in ("src", "tests"):
        for folder, dirs, files in os.walk(os.path.join(ROOT, top)):
            dirs.sort()
            for name in sorted(files):
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    digest[os.path.relpath(path, ROOT)] = hashlib.sha256(f.read()).hexdigest()
                if name.endswith(".h") or top == "src":
                    tree.update(digest[os.path.relpath(path, ROOT)].encode())
    return digest, tree.hexdigest()


def key_of(row, digest, tree):
    parts = [tree, row.file, repr(row.edits)] + [t + digest.get(f"tests/{t}.c", "") for t in row.tests]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def save(path, value):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, sort_keys=True)
    os.replace(path + ".new", path)


def left(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--again", action="store_true")
    a.add_argument("--list", action="store_true")
    a.add_argument("words", nargs="*")
    return a.parse_intermixed_args()


def chosen(words):
    rows = list(enumerate(MUTANTS, 1))
    return [(n, r) for n, r in rows if not words or any(w in " ".join((r.name, r.file) + r.tests) for w in words)]


def main():
    a = arguments()
    tools, rows = Tools(os.path.abspath(a.build)), chosen(a.words)
    if a.list:
        for n, r in rows:
            print(f"{n:3d}  {r.file}: {r.name}  [{', '.join(r.tests)}]")
        return 0
    os.makedirs(tools.folder, exist_ok=True)
    path = os.path.join(tools.folder, "killed.json")
    known = load(path)
    digest, tree = depends(tools)
    todo = [(n, r) for n, r in rows if a.again or key_of(r, digest, tree) not in known]
    guess = {r.name: load(path + ".times").get(r.name, UNKNOWN_S) for _, r in rows}
    survivors, broken, done, start = [], [], 0, time.monotonic()
    print(f"{len(rows)} mutants, {len(rows) - len(todo)} killed before; about "
          f"{left(sum(guess[r.name] for _, r in todo) / a.jobs)} on {a.jobs} cores", flush=True)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        began = {}

        def timed(n, row):
            began[n] = time.monotonic()
            return play(tools, n, row)

        runs = {pool.submit(timed, n, r): (n, r) for n, r in todo}
        try:
            for future in concurrent.futures.as_completed(runs):
                n, row = runs[future]
                done += 1
                guess[row.name] = round(time.monotonic() - began[n], 1)
                try:
                    killer = future.result()
                except Broken as e:
                    broken.append((row, str(e)))
                    killer = f"ROW IS BROKEN: {e}"
                else:
                    if killer:
                        known[key_of(row, digest, tree)] = killer
                    else:
                        survivors.append(row)
                rest = (time.monotonic() - start) / done * (len(todo) - done)
                fate = "killed  " if killer else "SURVIVED"
                print(f"[{done}/{len(todo)}] {fate} {guess[row.name]:5.1f} s  {row.file}: {row.name}  "
                      f"({killer or ', '.join(row.tests)})  {left(rest)} left", flush=True)
                save(path, known)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("stopped; the same command continues", flush=True)
            return 130
    save(path + ".times", guess)
    for row in survivors:
        print(f"survivor: {row.file}: {row.name}: {', '.join(row.tests)} should have failed")
    for row, why in broken:
        print(f"broken row: {row.file}: {row.name}: {why}")
    killed = len(rows) - len(survivors) - len(broken)
    print(f"{killed} killed, {len(survivors)} survived, {len(broken)} broken; {time.monotonic() - start:.0f} s")
    return 1 if survivors or broken or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
