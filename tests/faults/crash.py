"""crash.py - a command is ended in its n-th call that changes a file (crash.c), and given again: it must end with the
files that it leaves when nobody disturbs it, lose no stage that was finished, and start no stage from nothing that had
a checkpoint. Standard library only."""

import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# The order of files is looked at, for which the plain build does: with sanitizers it would take ten times as long.
PLAIN = os.path.join(ROOT, "build", "musacoder")
EXE = os.path.abspath(PLAIN if os.access(PLAIN, os.X_OK) else os.environ.get("MUSACODER_EXE", PLAIN))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
JOBS = int(os.environ.get("CRASH_JOBS", 3 * len(os.sched_getaffinity(0))))  # at a time: they wait for most of it
# A folder that remembers which stops ended well, a file a command: an enumeration that was broken off goes on there.
# What a stop left that ended otherwise is kept beside as COMMAND.N.
DONE = os.environ.get("CRASH_DONE", "")
# One owner judges for all that a test starts.
SETTING = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MUSACODER_OWNER": "", "MUSACODER_OWNER_IDLE": "60",
           "MUSACODER_LIB_DIR": os.path.join(os.path.dirname(EXE), "lib")}
CLOCKS = ("lock", "run.log", "summary.json", "report.html", "README.md", "workers.log")  # they tell times
TIMES = re.compile(rb'"(time_s|seconds|tokens_per_s|verdicts_replayed|[a-z_]*_s|[a-z_]*_ms|ms)": ?[-0-9.e+]+|'
                   rb'"(seal|result)": ?"[0-9a-f]{32,64}"')  # hashes over texts with times in them


def library(folder, source="crash"):
    """The library that is preloaded, compiled into a folder."""
    path = os.path.join(folder, f"lib{source}.so")
    if not os.path.exists(path):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", path,
                        os.path.join(HERE, source + ".c")], check=True)
    return path


def files(folder):
    """{name: hash} of all files, but for those that tell times, and with the times in others taken out."""
    found, name_in_json = {}, json.dumps(folder, ensure_ascii=False)[1:-1]
    for path in glob.glob(os.path.join(folder, "**"), recursive=True, include_hidden=True):
        name = os.path.relpath(path, folder)
        if os.path.isfile(path) and os.path.basename(path) not in CLOCKS:
            with open(path, "rb") as f:
                data = f.read()
            if os.path.basename(path) == ".musacoder.sums":
                data = listed(path, data)
            elif name.endswith("verdicts.jsonl"):
                data = verdicts(data)
            elif name.endswith((".json", ".jsonl")):
                data = TIMES.sub(b"", data)
                for text in folder, name_in_json:
                    data = data.replace(text.encode(), b"OUT")
            found[name] = hashlib.sha256(data).hexdigest()
    return found


def listed(path, data):
    """Which files a listing names, and whether each is what it says: hashes are over texts with times in them."""
    rows = []
    for line in data.decode().splitlines():
        word, _, name = line.partition("  ")
        if line.startswith("# whole "):
            word = "ends" if hashlib.sha256(data[:data.rindex(b"# whole ")]).hexdigest() == line[8:] else "is cut"
        beside = os.path.join(os.path.dirname(path), name)
        if name and word != "#" and os.path.isfile(beside):
            with open(beside, "rb") as f:
                word = "fits" if hashlib.sha256(f.read()).hexdigest() == word else "does not fit"
        rows.append(f"{word} {name}")
    return "\n".join(sorted(rows)).encode()


def verdicts(data):
    """What was judged and how it ended: records hold times, and come in the order in which they were judged."""
    rows = set()
    for line in data.splitlines():
        v = json.loads(line)
        v = v.get("verdict", v)
        rows.add((v.get("task"), v.get("candidate_sha256"), v.get("status"), v.get("category"), v.get("reward")))
    return repr(sorted(rows, key=repr)).encode()


class Command:
    """argv: of musacoder, with OUT where the folder is named that it writes. env: variables, with OUT likewise."""

    def __init__(self, folder, argv, codes=(0,), env=None, seen=files):
        self.folder, self.argv, self.codes, self.library = folder, argv, codes, library(folder)
        self.env, self.seen = dict(SETTING, **(env or {})), seen
        self.straight = os.path.join(folder, "straight", "out")
        os.makedirs(os.path.dirname(self.straight))
        calls = os.path.join(folder, "calls")
        self.prepare(self.straight)
        self.call(self.straight, CRASH_LIST=calls)
        with open(calls) as f:
            self.calls = f.read().splitlines()
        self.want = self.seen(self.straight)
        self.stops = 0

    def prepare(self, out):
        """What is there before the command."""

    def call(self, out, **crash):
        """The code that it ended with, and what it said."""
        argv = [a.replace("OUT", out) for a in self.argv]
        env = dict(os.environ, **{k: v.replace("OUT", out) for k, v in self.env.items()})
        if crash:
            env.update(LD_PRELOAD=self.library, CRASH_UNDER=out, **crash)
        p = subprocess.run([EXE, *argv], capture_output=True, text=True, timeout=300 * SLOWDOWN, env=env,
                           cwd=self.folder)
        if p.returncode not in (*self.codes, -9):
            raise AssertionError(f"{argv} ends with {p.returncode}: {p.stdout}{p.stderr}")
        return p.returncode, p.stderr

    def wrong(self, n):
        """Did call n come, and what is wrong after a stop in it, as lines."""
        out = os.path.join(self.place(n), "out")
        os.makedirs(os.path.dirname(out))
        self.prepare(out)
        if self.call(out, CRASH_AT=str(n))[0] != -9:
            return False, []  # how often the time of a running stage is noted differs: the last calls may not come
        done, begun = finished(out), checkpoints(out)
        said = self.call(out)[1]
        lines = [f"stage '{s}' was finished and ran again" for s in done if f"{s}: done before" not in said]
        lines += [f"stage '{s}' had a checkpoint of step {k} and began at 0" for s, k in begun.items()
                  if s not in done and not re.search(rf"{s}: continuing at step {k} ", said)]
        got = self.seen(out)
        lines += [f"'{name}' {state(got.get(name), self.want.get(name))}" for name in sorted(set(got) | set(self.want))
                  if got.get(name) != self.want.get(name)]
        return True, [f"stopped in call {n} ({self.calls[n - 1].replace(self.straight, 'OUT')}): {x}" for x in lines]

    def wrong_of(self, points):
        """Of many stops, some at a time."""
        known = self.remembered()
        self.stops += sum(came for n, came in known.items() if n in points)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return [line for lines in pool.map(self.look_at, [n for n in points if n not in known]) for line in lines]

    def look_at(self, n):
        try:
            came, lines = self.wrong(n)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
            came, lines = True, [f"stopped in call {n}: {type(e).__name__}: {e}"]
        if DONE and lines:
            shutil.rmtree(f"{self.memory()}.{n}", ignore_errors=True)
            shutil.copytree(self.place(n), f"{self.memory()}.{n}", symlinks=True)
        shutil.rmtree(self.place(n), ignore_errors=True)
        self.stops += came
        if DONE:
            with open(self.memory(), "a") as f:
                f.write(f"{n} {'wrong' if lines else 'right' if came else 'never'} {json.dumps(lines)}\n")
        return lines

    def place(self, n):
        return os.path.join(self.folder, f"at{n}")

    def memory(self):
        os.makedirs(DONE, exist_ok=True)
        return os.path.join(DONE, os.path.basename(self.folder))

    def remembered(self):
        """{call: did it come} of the stops that earlier runs found right."""
        if not DONE or not os.path.exists(self.memory()):
            return {}
        with open(self.memory()) as f:
            rows = [line.split(" ", 2) for line in f]
        return {int(n): state == "right" for n, state, _ in rows if state != "wrong"}

    def points(self, most):
        """At most so many calls, spread evenly over all, with the last."""
        n = len(self.calls)
        return range(1, n + 1) if n <= most else sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})


def state(got, want):
    return "is left behind" if not want else "is missing" if not got else "is another"


def finished(out):
    stages = []
    for path in glob.glob(os.path.join(out, "stages", "*.json")):
        with open(path) as f:
            if json.load(f)["done"]:
                stages.append(os.path.basename(path)[:-5])
    return stages


def checkpoints(out):
    """{stage: step} of what a stage would continue from."""
    found = {}
    for path in glob.glob(os.path.join(out, "*", "checkpoint", "latest")):
        with open(path) as f:
            found[path.split(os.sep)[-3]] = int(f.read())
    return found
