#!/usr/bin/env python3
"""judge_devices.py - how many programs an hour does the service judge with one worker a device?

    lab/judge_devices.py --records data/train.jsonl --devices N --backend cuda --seconds 60 --work WORK [--cache CACHE]

Starts 'musacoder serve' without workers and one 'musacoder worker' a device on its queue. Each worker has its own
--cores of the host, by default as many as there are for each GPU. The first --tasks tasks of the records are asked once
each: their references are then made, as in training, where a task is asked many times. With --cache the next count has
them, too. Then come new programs of the same tasks, which differ in a line of their source, so that each is built and
run; --at-once of them are in the hands of each device. Verdicts count that come within the window, which opens after
the first --skip ones a device. What torch.compile takes is not measured. Prints one line, with the standard deviation
of a count of that size: a ratio of two windows of 100 verdicts is good to 14 %. Exit code 1 where no verdict came.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXE = os.environ.get("MUSACODER") or str(ROOT / "build/musacoder")


INCLUDE = "#include <torch/extension.h>"
OPTIONS = {"compile-baseline": False}


def tasks_of(path, most):
    """[(task, program)] of the first tasks that have a program."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r.get("kind") == "generate" and "task" in r and INCLUDE in r.get("kernel", {}).get("code", ""):
                found.setdefault(r["task"]["code"], ({"name": r["id"], "code": r["task"]["code"]}, r["kernel"]["code"]))
            if len(found) == most:
                break
    return list(found.values())


def request(task, program, mark):
    """The program with a line more, which makes it a new one."""
    code = program.replace(INCLUDE, f"{INCLUDE}\n// {mark}", 1)
    return {"task": task, "options": OPTIONS, "candidates": [{"code": code}]}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(url, process, log):
    for _ in range(600):
        if process.poll() is not None:
            with open(log) as f:
                sys.exit("judge_devices: the service ended: " + f.read().strip()[-300:])
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.1)
    sys.exit("judge_devices: the service does not answer")


def give_up(*_):
    sys.exit("judge_devices: ended before its time")  # through 'finally', which ends the service


class Count:
    """When verdicts came, and what they were."""

    def __init__(self):
        self.lock, self.came = threading.Lock(), []

    def add(self, status):
        with self.lock:
            self.came.append((time.monotonic(), status))

    def opens(self, skip):
        """When the window opens; None: not yet."""
        return self.came[skip - 1][0] if len(self.came) >= skip else None

    def within(self, begin, end):
        """{status: verdicts} of the window."""
        inside = [s for t, s in self.came if begin < t <= end]
        return {s: inside.count(s) for s in sorted(set(inside))}


def judged(url, body, stop):
    """The verdict's status; None where none came. A call that finds no worker yet ends early and is made again."""
    while not stop.is_set():
        asked = urllib.request.Request(url + "/v1/eval?wait=600", json.dumps(body).encode(),
                                       {"Content-Type": "application/json"})
        try:
            job = json.load(urllib.request.urlopen(asked, timeout=600))["jobs"][0]
        except (OSError, ValueError):
            return None
        if job.get("state") not in ("waiting", "running"):
            return job.get("verdict", {}).get("status")
    return None


def warm(pool, url, tasks, mark, stop):
    """The tasks that can be judged, once each of them has been."""
    said = pool.map(lambda t: judged(url, request(*t, f"{mark} first"), stop), tasks)
    return [t for t, s in zip(tasks, said) if s in ("passed", "failed")]


def feed(url, bodies, lock, count, stop):
    """Asks for one program after the other until it is told to stop."""
    while not stop.is_set():
        with lock:
            body = next(bodies)
        status = judged(url, body, stop)
        if status and not stop.is_set():
            count.add(status)
        elif not status:
            stop.wait(0.5)


def count_verdicts(args, url, running):
    """(tasks, seconds of the first pass, {status: verdicts in the window}, processors busy); {}: it never opened."""
    mark, lock, count, stop = f"{os.getpid()} {time.time():.0f}", threading.Lock(), Count(), threading.Event()
    worked = 0
    hands, skip, began = args.at_once * args.devices, args.skip * args.devices, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(hands) as pool:
        tasks = warm(pool, url, tasks_of(args.records, args.tasks), mark, stop)
        first = time.monotonic() - began
        bodies = (request(*t, f"{mark} {n}") for n in itertools.count() for t in tasks)
        if tasks:
            for _ in range(hands):
                pool.submit(feed, url, bodies, lock, count, stop)
            until, worked = time.monotonic() + args.patience, busy()
            while (count.opens(skip) or until) + args.seconds > time.monotonic():
                worked = worked if count.opens(skip) else busy()
                time.sleep(0.1)
            worked = (busy() - worked) / args.seconds
        stop.set()
        for p in running:
            os.killpg(p.pid, signal.SIGTERM)
    opens = count.opens(skip)
    return len(tasks), first, count.within(opens, opens + args.seconds) if opens else {}, worked


def options():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--records", required=True)
    a.add_argument("--devices", type=int, default=1)
    a.add_argument("--cores", type=int, default=0, help="cores of each worker; 0: the host's for each of its GPUs")
    a.add_argument("--backend", default="cuda")
    a.add_argument("--seconds", type=float, default=60, help="of the window")
    a.add_argument("--patience", type=float, default=60, help="seconds that the first --skip verdicts may take")
    a.add_argument("--tasks", type=int, default=16)
    a.add_argument("--at-once", type=int, default=24, help="candidates that each worker has in hand")
    a.add_argument("--skip", type=int, default=16, help="first verdicts of each device that do not count")
    a.add_argument("--work", required=True)
    a.add_argument("--cache", help="where references stay for the next count")
    return a.parse_args()


def core_of(processor):
    """Where the processor lies: those of one core stand together, so that no two workers share a core."""
    folder = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology")
    try:
        return [int((folder / name).read_text()) for name in ("physical_package_id", "core_id")] + [processor]
    except (OSError, ValueError):
        return [0, 0, processor]


def busy():
    """Seconds that processors have worked, all together."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, soft = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def cores_of(args, i):
    """The command's first words that bind worker i to its cores."""
    all_of, each = sorted(os.sched_getaffinity(0), key=core_of), args.cores
    if not each and args.backend != "sim":
        cards = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.count("GPU ")
        each = len(all_of) // max(1, cards)
    mine = all_of[i * each:(i + 1) * each] if each else all_of
    return ["taskset", "-c", ",".join(map(str, mine or all_of))]


def environment(args):
    """Caches, secret and daemons are this count's; with --cache, caches are shared."""
    cache = args.cache or os.path.join(args.work, "cache")
    return {**os.environ, "MUSACODER_CACHE_DIR": os.path.realpath(cache), "MUSACODER_SECRET": "judge-devices",
            "MUSACODER_RUN_DIR": tempfile.mkdtemp(prefix="judge-devices-")}


def end(running, env):
    for p in running:
        if p.poll() is None:
            try:
                p.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
    subprocess.run([EXE, "owner", "--stop"], env=env, capture_output=True, check=False)
    shutil.rmtree(env["MUSACODER_RUN_DIR"], ignore_errors=True)


def main():
    args = options()
    signal.signal(signal.SIGTERM, give_up)
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    port, queue, env, running = free_port(), os.path.join(args.work, "queue.db"), environment(args), []

    def start(name, *argv):
        with open(os.path.join(args.work, name + ".log"), "w") as log:
            running.append(subprocess.Popen(argv, stdout=log, stderr=log, env=env, start_new_session=True))

    url = f"http://127.0.0.1:{port}"
    try:
        start("serve", EXE, "serve", "--queue", queue, "--workers", "0", "--port", str(port), "--backend", args.backend,
              "--threads", str((args.at_once + 8) * args.devices))
        wait_for(url + "/healthz", running[0], os.path.join(args.work, "serve.log"))
        for i in range(args.devices):
            which = [] if args.backend == "sim" else ["--device", str(i)]
            start(f"worker{i}", *cores_of(args, i), EXE, "worker", "--queue", queue, "--backend", args.backend,
                  "--jobs", str(args.at_once), *which)
        tasks, first, came, worked = count_verdicts(args, url, running)
    finally:
        for p in running:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGTERM)
        end(running, env)
    n = came.get("passed", 0) + came.get("failed", 0)
    if not n:
        sys.exit(f"judge_devices: no verdict came in the window ({tasks} tasks can be judged); logs are in WORK")
    print(f"{3600 * n / args.seconds:,.0f} candidates an hour, to {100 * n ** -0.5:.0f} % ({n} in "
          f"{args.seconds:.0f} s; {tasks} known tasks, first asked in {first:.0f} s; {worked:.0f} processors busy; "
          f"{came})")


main()
