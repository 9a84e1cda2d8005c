"""bench_busy.py - what a kernel's event time holds of the host, on a GPU whose machine is busy; about 15 seconds.

    python3 lab/bench_busy.py [--busy 32] [--calls 30] [--out FILE.json]

Runs runner/timing.py's calls in this process, without the judge: first on an idle machine, then beside --busy processes
that keep a core each. Per kernel, mode and pad: the median event time of five repeats, their spread (largest less
smallest, over smallest), the share of calls more than a quarter above the idle machine's with the longest pad, and the
host's time of a call. With a pad that is long enough, busy and idle agree."""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("MUSACODER_LIB_DIR", os.path.join(HERE, "..", "build", "lib"))
sys.path.insert(0, os.environ.get("RUNNER", os.path.join(HERE, "..", "runner")))

import torch  # noqa: E402

import timing  # noqa: E402
import values  # noqa: E402

REPEATS, PADS = 5, (0, 85, 300, 1000)
MODES = {"cold": timing.COLD, "warm": timing.WARM}


class Add(torch.nn.Module):
    def forward(self, x):
        return x + 1.0


class Chain(torch.nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = x * 1.01 + 0.1
        return x


ROWS = [("add 1M", Add(), 1 << 20, "cold"), ("add 1M", Add(), 1 << 20, "warm"),
        ("40 operators", Chain(), 1 << 16, "cold")]


def timer(n):
    t = timing.Timer("cuda:0", lambda x: x.cuda(), lambda x: x.cpu())
    p = values.Packer()
    t.put_inputs({"inputs": p.tree([torch.rand(n)]), "fresh": [0]}, b"".join(p.parts))
    t.arm(0, [])
    t.device.begin()
    return t


def block(t, model, mode, pad, calls):
    """Event times and host times, in us, as Timer.serve would have them."""
    events, hosts = [], []
    gc.disable()
    with torch.no_grad():
        for i in range(calls):
            t.settle()
            _, ms, host = t.call(model, MODES[mode], i, 1, pad)
            events.append(ms * 1e3)
            hosts.append(host)
        t.settle()
    gc.enable()
    return events, hosts


def measure(calls, load, timers, quiet):
    out = []
    for name, model, n, mode in ROWS:
        for pad in PADS:
            runs = [block(timers[n], model, mode, pad, calls) for _ in range(REPEATS)]
            medians = [statistics.median(e) for e, _ in runs]
            events, hosts = [x for e, _ in runs for x in e], [x for _, h in runs for x in h]
            if not load:
                quiet[name, mode] = statistics.median(medians)  # the longest pad's, at the end
            out.append({"kernel": name, "mode": mode, "pad_us": pad, "busy": load, "medians_us": medians,
                        "events_us": events, "host_us": statistics.median(hosts)})
    for r in out:
        want = quiet[r["kernel"], r["mode"]]
        m, e = r["medians_us"], r["events_us"]
        r["late"] = sum(x > 1.25 * want for x in e) / len(e)
        print(f"{r['kernel']:13} {r['mode']}  busy {load:3}  pad {r['pad_us']:4} us: "
              f"median {statistics.median(m):8.2f} us"
              f"  repeats {min(m):8.2f} .. {max(m):8.2f} (spread {100 * (max(m) / min(m) - 1):6.1f} %)"
              f"  late calls {100 * r['late']:5.1f} %  host {r['host_us']:6.0f} us", flush=True)
    return out


def spin_lengths(t):
    """What the pad's kernel lasts, by events: no less than it was asked for, and hardly more."""
    for us in (100, 300, 1000):
        got = []
        for _ in range(20):
            t.device.pad(200)  # so that both events are queued in time
            a = t.device.record(0)
            t.device.pad(us)
            b = t.device.record(1)
            t.device.sync()
            got.append(t.device.elapsed_ms(a, b) * 1e3)
        print(f"pad of {us} us lasts {min(got):.2f} .. {statistics.median(got):.2f} .. {max(got):.2f} us")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--busy", type=int, default=32)
    args.add_argument("--calls", type=int, default=30)
    args.add_argument("--out")
    args = args.parse_args()
    torch.set_num_threads(1)
    start, quiet, load = time.monotonic(), {}, []
    timers = {n: timer(n) for n in {n for _, _, n, _ in ROWS}}
    print(f"{torch.cuda.get_device_name(0)}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, "
          f"timing.fatbin: {all(t.device.kernels for t in timers.values())}")
    spin_lengths(next(iter(timers.values())))
    for _, model, n, mode in ROWS:
        block(timers[n], model, mode, 300, 5)
    rows = measure(args.calls, 0, timers, quiet)
    try:
        load = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(args.busy)]
        time.sleep(1)
        rows += measure(args.calls, args.busy, timers, quiet)
    finally:
        for p in load:
            p.kill()
            p.wait()
    print(f"{time.monotonic() - start:.0f} s")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(rows, f)


if __name__ == "__main__":
    main()
