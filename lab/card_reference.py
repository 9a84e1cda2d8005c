#!/usr/bin/env python3
"""card_reference.py TASK... - what a reference costs on a GPU in a new process, step by step, in wall time and CPU:
importing PyTorch, the context, the first task's draws, and the same again in the same process, where kernels are
loaded; and what it costs to look for traces of the tasks (runner/clean.py). The TASKs are files.
Needs PyTorch with CUDA; 'cpu' in place of 'cuda' by --place for the host's figures."""
import argparse
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "runner"))


class Step:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.wall, self.cpu = time.monotonic(), os.times()

    def __exit__(self, *_):
        now = os.times()
        print(f"{time.monotonic() - self.wall:8.3f} s  {now.user - self.cpu.user:7.2f} user "
              f"{now.system - self.cpu.system:7.2f} kernel  {self.name}", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    a.add_argument("--place", default="cuda")
    a.add_argument("tasks", nargs="+")
    args = a.parse_args()
    with Step("import"):
        import torch
        import clean
        import reference
    torch.set_num_threads(1)
    if args.place == "cuda":
        with Step("context and a first launch"):
            torch.zeros(64, device="cuda").add_(1).sum().item()
    reference.PLACE = torch.device(args.place)
    with Step("what there is before tasks"):
        traces = clean.Traces()
    for turn in ("first", "again"):
        for path in args.tasks:
            with open(path, encoding="utf-8") as f:
                request = {"op": "task", "source": f.read(), "name": "task", "protocol": "strict", "params": "random",
                           "trials": 1, "seed": 7, "max_elements": 1 << 24}
            with Step(f"{turn}: {os.path.basename(path)}"):
                reference.Task(request).answer()
    with Step("clean") as _:
        left = traces.found()
    print(f"left by the tasks: {left or 'nothing'}")


main()
