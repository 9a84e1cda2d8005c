#!/usr/bin/env python3
"""cpu_by_process.py [--each S] COMMAND... - runs COMMAND, and says where the machine's CPU went meanwhile: seconds in
user and kernel mode by the names of processes, looked at every S (0.05) seconds; what a process used between the last
look and its end is lost. For machines without perf. Ends with COMMAND's exit code."""
import argparse
import collections
import os
import subprocess
import sys
import threading

TICK = os.sysconf("SC_CLK_TCK")


def look(seen):
    """{(pid, start): (name, user, kernel)} of all processes, into seen."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                head, rest = f.read().rsplit(")", 1)
        except OSError:
            continue
        word = rest.split()
        seen[pid, word[19]] = head.split("(", 1)[1], int(word[11]) / TICK, int(word[12]) / TICK


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    a.add_argument("--each", type=float, default=0.05)
    a.add_argument("command", nargs=argparse.REMAINDER)
    args = a.parse_args()
    first, seen, stop = {}, {}, threading.Event()
    look(first)

    def watch():
        while not stop.wait(args.each):
            look(seen)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = subprocess.call(args.command)
    look(seen)
    stop.set()
    watcher.join()
    total = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for key, (name, user, kernel) in seen.items():
        _, was_user, was_kernel = first.get(key, ("", 0.0, 0.0))
        row = total[name]
        row[0] += 1
        row[1] += user - was_user
        row[2] += kernel - was_kernel
    for name, (n, user, kernel) in sorted(total.items(), key=lambda r: -r[1][1] - r[1][2]):
        if user + kernel >= 0.1:
            print(f"{user:8.1f} s user {kernel:8.1f} s kernel  {n:5} x {name}", file=sys.stderr)
    sys.exit(code)


main()
