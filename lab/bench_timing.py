"""bench_timing.py - checks the timing loop on a real GPU, without the rest of the judge.

    make build/lab/bench_perf && python3 lab/bench_timing.py [--out FILE.json]

Each side is a forked child that runs runner/baseline.py on cuda:0; the judge's half is C (lab/bench_perf.c). Reported:
  - each kernel against itself in another process: the interval of the quotient should contain 1
  - the cold median against triton.testing.do_bench in a third process
  - torch.compile beside eager
  - candidates that cheat the clock: none may be trusted
"""
import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.environ.get("RUNNER", os.path.join(HERE, "..", "runner"))
JUDGE = os.environ.get("BENCH_PERF", os.path.join(HERE, "..", "build", "lab", "bench_perf"))
sys.path.insert(0, RUNNER)

import numpy  # noqa: E402
import torch  # noqa: E402

import baseline  # noqa: E402
import frame  # noqa: E402
import values  # noqa: E402

H200 = {"bandwidth": 4.8e12, "peak": 66.9e12, "peak_any": 494e12, "l2": 60e6}
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def task(forward, init="pass", before=""):
    return (HEAD + before + "\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " + init +
            "\n    def forward(self, *x):\n        " + forward +
            "\n\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n")


KERNELS = {
    "relu 64M": ("return torch.relu(x[0])", "pass", [(16384, 4096)]),
    "softmax 4096x8192": ("return torch.softmax(x[0], -1)", "pass", [(4096, 8192)]),
    "layernorm 8192x4096": ("return self.n(x[0])", "self.n = nn.LayerNorm(4096)", [(8192, 4096)]),
    "matmul 4096": ("return x[0] @ x[1]", "pass", [(4096, 4096), (4096, 4096)]),
    "add 1M": ("return x[0] + x[1]", "pass", [(1024, 1024), (1024, 1024)]),
    "gelu(linear) 512": ("return F.gelu(self.l(x[0]))", "self.l = nn.Linear(512, 512)", [(128, 512)]),
    "20 small ops": ("y = x[0]\n        for i in range(20):\n            y = y * 1.01 + 0.1\n        return y", "pass", [(256, 256)]),
}

CHEATS = {  # on softmax: name -> (forward, init, code at import)
    "side stream": ("S or S.append(torch.cuda.Stream())\n        S[0].wait_stream(torch.cuda.current_stream())\n"
                    "        with torch.cuda.stream(S[0]):\n            return torch.softmax(x[0], -1)", "pass", "S = []"),
    "forged events": ("return torch.softmax(x[0], -1)", "pass",
                      "import timing\ntiming.CudaDevice.elapsed_ms = lambda self, a, b: 0.045\n"),
    "cached by shape": ("self.y = torch.softmax(x[0], -1) if self.y is None else self.y\n        return self.y.clone()",
                        "self.y = None", ""),
    "computed while drawing": ("return MEMO.pop() if MEMO else torch.softmax(x[0], -1)", "pass",
                               "import timing\nMEMO = []\nold = timing.Timer.draw\ndef draw(self, seed):\n    old(self, seed)\n"
                               "    MEMO[:] = [torch.softmax(self.given[0], -1)]\ntiming.Timer.draw = draw\n"),
    "computed when revealed": ("return torch.empty_like(x[0])", "pass",
                               "import timing\nseeds = {}\nold = timing.Timer.call\n"
                               "def call(self, model, mode, seed, slot, *rest):\n    seeds[slot] = seed\n    return old(self, model, mode, seed, slot, *rest)\n"
                               "timing.Timer.call = call\nshow = timing.Timer.reveal\ndef reveal(self, slot):\n    self.draw(seeds[slot])\n"
                               "    self.kept[slot].tree.within(self.area[slot]).copy_(torch.softmax(self.given[0], -1))\n"
                               "    return show(self, slot)\ntiming.Timer.reveal = reveal\n"),
    "half the rows": ("y = torch.empty_like(x[0])\n        y[:2048] = torch.softmax(x[0][:2048], -1)\n        return y", "pass", ""),
    "honest": ("return torch.softmax(x[0], -1)", "pass", ""),
}


class Side:
    """A child that serves runner/baseline.py."""

    open = []

    def __init__(self, source, inputs):
        self.sock, other = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            for s in Side.open + [self.sock]:  # or the others would never see their judge go
                s.close()
            code = 1
            try:
                baseline.serve(other, None)
                code = 0
            finally:
                os._exit(code)
        other.close()
        Side.open.append(self.sock)
        packer = values.Packer()
        self.ask({"op": "load", "source": source, "init": packer.tree([]), "seed": 0, "mode": "train", "device": "cuda:0",
                  "tf32": False})
        packer = values.Packer()
        self.facts = self.ask({"op": "put", "inputs": packer.tree(inputs)}, packer.parts)[0]["facts"]

    def ask(self, req, parts=()):
        frame.send(self.sock, req, parts)
        head, blob = frame.recv(self.sock, timeout=180)
        if head["op"] == "error":
            raise RuntimeError(f"{head['type']}: {head['message']}")
        return head, blob

    def close(self):
        Side.open.remove(self.sock)
        self.sock.close()
        os.waitpid(self.pid, 0)


def measure(a, b, which=("eager", "eager"), calls=0):
    """The record's section of b against a."""
    facts = dict(a.facts, device=H200)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(facts, f)
        f.flush()
        p = subprocess.run([JUDGE, str(a.sock.fileno()), which[0], str(b.sock.fileno()), which[1], str(facts["output_bytes"]),
                            f.name, str(calls)], pass_fds={a.sock.fileno(), b.sock.fileno()}, stdout=subprocess.PIPE)
    if p.returncode:
        raise RuntimeError("bench_perf failed")
    return json.loads(p.stdout)


def checksum(tree, blob):
    """The commitment to an output that is one tensor, as src/eval/timing.h defines it."""
    raw = bytes(blob[:tree["nbytes"]])
    words = numpy.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        h = (words ^ numpy.arange(1, len(words) + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15))
        h = h * numpy.uint64(0xBF58476D1CE4E5B9)
        return int((h ^ h >> numpy.uint64(32)).sum() * numpy.uint64(0x94D049BB133111EB))


def check(a, b, calls, n=3):
    """Reveals n outputs of b: are they what was committed, and right?"""
    bad = []
    for slot, seed, h in random.sample(calls, n):
        head, blob = b.ask({"op": "reveal", "slot": slot})
        if checksum(head["output"], blob) != int(h):
            bad.append("not what was committed")
            continue
        want, raw = a.ask({"op": "expect", "seed": seed, "oracle": True})
        s = want["draw"]["oracle"]
        w = values.leaves(values.decode(s["tree"], raw[s["at"]:s["at"] + s["nbytes"]]))
        g = values.leaves(values.decode(head["output"], blob))
        if not all(bool(((x - y).abs().max() <= 1e-4 * x.abs().max())) for x, y in zip(w, g)):
            bad.append("wrong")
    return bad


def do_bench(source, inputs):
    """triton.testing.do_bench's median of the same forward, in a process of its own."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        import triton.testing
        space = {}
        exec(compile(source, "task", "exec"), space)
        torch.backends.cuda.matmul.allow_tf32 = False
        x = [t.cuda() for t in inputs]
        m = space["Model"]().cuda()
        with torch.no_grad():
            ms = [triton.testing.do_bench(lambda: m(*x), warmup=50, rep=200, return_mode="median") for _ in range(2)]
        os.write(w, json.dumps(ms).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out")
    args = args.parse_args()
    torch.set_num_threads(1)  # a parent that ran a parallel operation cannot fork children that will
    record, start = {"torch": torch.__version__, "kernels": {}, "cheats": {}}, time.time()
    print("kernel                    cold ms   do_bench    ratio of itself (95 %)   warm ms  gap us/margin  overhead/noise us  trust")
    for name, (forward, init, shapes) in KERNELS.items():
        gen = torch.Generator().manual_seed(1)
        inputs = [torch.randn(s, generator=gen) for s in shapes]
        src = task(forward, init)
        ref = do_bench(src, inputs)
        a, b = Side(src, inputs), Side(src, inputs)
        runs = [measure(a, b) for _ in range(4)]
        p = runs[0]["performance"]
        bad = check(a, b, runs[-1]["calls"])
        row = {"runs": [r["performance"] for r in runs], "do_bench": ref, "bad": bad, "facts": a.facts}
        try:
            t = time.time()
            a.ask({"op": "compile", "mode": "default"})
            row["compile_s"] = time.time() - t
            row["compile"] = measure(a, a, ("eager", "compile"))["performance"]
        except RuntimeError as e:
            row["compile"] = str(e)
        record["kernels"][name] = row
        for k, r in enumerate(runs):
            p = r["performance"]
            ci, c = p["speedup_eager_ci"], p["clocks"]
            print(f"{name if k == 0 else '':22}{p['candidate_ms']:11.5f}{ref[k % 2]:11.5f}   {p['speedup_eager']:8.4f} "
                  f"[{ci[0]:.4f}, {ci[1]:.4f}]{'' if ci[0] <= 1 <= ci[1] else ' !'} {p['candidate_warm_ms'] or float('nan'):9.5f} {c['gap_ms'] * 1e3:7.1f}/{c['margin_ms'] * 1e3:5.1f} "
                  f"{c['overhead_ms'] * 1e3:9.1f}/{c['noise_ms'] * 1e3:5.1f}   {p['calls']['cold']:4d} {p['trusted']} {p['reasons']} {bad}", flush=True)
        q = row["compile"]
        print(f"  eager {p['eager_ms']:.5f} compile " + (q if isinstance(q, str) else f"{q['candidate_ms']:.5f} trusted {q['trusted']} {q['reasons']} "
              f"(compiling {row['compile_s']:.1f} s)") + f" roofline {p['roofline_share']} {p['bound']} one call {a.facts['one_library_call']} {a.facts['ops']}", flush=True)
        a.close(), b.close()
    gen = torch.Generator().manual_seed(1)
    inputs = [torch.randn(4096, 8192, generator=gen)]
    a = Side(task(*CHEATS["honest"]), inputs)
    for name, parts in CHEATS.items():
        b = Side(task(*parts), inputs)
        got = measure(a, b)
        p, bad = got["performance"], check(a, b, got["calls"], 4)
        record["cheats"][name] = {"performance": p, "bad": bad}
        print(f"{name:24} {p['candidate_ms']:.5f} ms, {p['speedup_eager']:.3f}x, gap {p['clocks']['gap_ms'] * 1e3:.1f} us, "
              f"{'trusted' if p['trusted'] and not bad else 'not trusted'} {p['reasons']} {sorted(set(bad))}", flush=True)
        b.close()
    a.close()
    print(f"{time.time() - start:.0f} s")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(record, f, indent=1)


if __name__ == "__main__":
    main()
