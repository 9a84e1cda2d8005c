#!/usr/bin/env python3
"""judge_devices.py - how many programs an hour does the service judge with one worker a device?

    lab/judge_devices.py --records data/train.jsonl --devices N --backend cuda --seconds 60 --work WORK

Starts 'musacoder serve' without workers and one 'musacoder worker' a device on its queue, with empty caches; sends
programs of the records, --at-once of them to each device, and counts verdicts from the first --skip ones a device on
until the time is over. The same records give the same programs in the same order. Prints one line; exit code 1 where
no verdict came.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXE = os.environ.get("MUSACODER") or str(ROOT / "build/musacoder")


def programs(path):
    out = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r.get("kind") == "generate" and "task" in r and "kernel" in r:
                task = {"name": r["id"], "code": r["task"]["code"]}
                out.append({"task": task, "candidates": [{"code": r["kernel"]["code"]}]})
    return out


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
    """Verdicts by when they came, and what they were."""

    def __init__(self):
        self.lock, self.times, self.status = threading.Lock(), [], {}

    def add(self, status):
        with self.lock:
            self.times.append(time.monotonic())
            self.status[status] = self.status.get(status, 0) + 1


def ask(url, body, count, stop):
    if stop.is_set():
        return
    request = urllib.request.Request(url + "/v1/eval?wait=600", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        answer = json.load(urllib.request.urlopen(request, timeout=600))
    except (OSError, ValueError):
        return
    for job in answer["jobs"]:
        if "verdict" in job and not stop.is_set():
            count.add(job["verdict"]["status"])


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--records", required=True)
    a.add_argument("--devices", type=int, default=1)
    a.add_argument("--backend", default="cuda")
    a.add_argument("--seconds", type=float, default=60)
    a.add_argument("--at-once", type=int, default=24, help="candidates that each worker has in hand")
    a.add_argument("--skip", type=int, default=8, help="first verdicts of each device that do not count")
    a.add_argument("--work", required=True)
    args = a.parse_args()
    signal.signal(signal.SIGTERM, give_up)
    skip = args.skip * args.devices
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    port, queue = free_port(), os.path.join(args.work, "queue.db")
    env = {**os.environ, "MUSACODER_CACHE_DIR": os.path.join(args.work, "cache")}

    def start(name, *argv):
        log = open(os.path.join(args.work, name + ".log"), "w")
        return subprocess.Popen([EXE, *argv], stdout=log, stderr=log, env=env, start_new_session=True)

    url, count, stop = f"http://127.0.0.1:{port}", Count(), threading.Event()
    running = [start("serve", "serve", "--queue", queue, "--workers", "0", "--port", str(port), "--backend",
                     args.backend, "--threads", str((args.at_once + 8) * args.devices))]
    try:
        wait_for(url + "/healthz", running[0], os.path.join(args.work, "serve.log"))
        for i in range(args.devices):
            which = [] if args.backend == "sim" else ["--device", str(i)]
            running.append(start(f"worker{i}", "worker", "--queue", queue, "--backend", args.backend, "--jobs",
                                 str(args.at_once), *which))
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.at_once * args.devices) as pool:
            work = [pool.submit(ask, url, p, count, stop) for p in programs(args.records)]
            while time.monotonic() < (count.times[skip] if len(count.times) > skip else began + 90) + args.seconds:
                if all(w.done() for w in work):
                    break
                time.sleep(0.1)
            stop.set()
            for w in work:
                w.cancel()
            for p in running:
                os.killpg(p.pid, signal.SIGTERM)
    finally:
        for p in running:
            if p.poll() is None:
                try:
                    p.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(p.pid, signal.SIGKILL)
    if len(count.times) < skip + 2:
        sys.exit(f"judge_devices: {len(count.times)} verdicts came; logs are in WORK")
    took = count.times[-1] - count.times[skip]
    rate = 3600 * (len(count.times) - 1 - skip) / took
    print(f"{rate:,.0f} candidates an hour ({len(count.times) - 1 - skip} in {took:.0f} s, the first after "
          f"{count.times[0] - began:.0f} s; all: {count.status})")


main()
