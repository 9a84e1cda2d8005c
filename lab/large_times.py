"""large_times.py - are the times of streamed tasks true? Ten kernels of large_kernels.py on tasks of 6 GiB in and 6
GiB out are timed by the judge and by a plain CUDA program of their own (the same kernel and grid, cold L2,
a pad, events), which must agree within 2 %. Needs a GPU with 24 GB or more, and nvcc.

    large_times.py [--rows 4096] [--seconds N] [--out FILE]     a line a kernel; exit code 1 if one is wrong

What FILE holds already is left out: the same command goes on where --seconds cut it short (exit code 3).
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import large_kernels

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build", "musacoder"))
WIDTH = 393216
FORWARD = {19: "torch.relu(x)", 20: "F.leaky_relu(x, 0.01)", 21: "torch.sigmoid(x)", 22: "torch.tanh(x)",
           25: "x * torch.sigmoid(x)", 26: "F.gelu(x)", 27: "torch.selu(x)", 28: "F.hardsigmoid(x)",
           30: "F.softsign(x)",
           32: "F.hardtanh(x)"}
TASK = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return %s


def get_inputs():
    return [torch.rand(%d, %d)]


def get_init_inputs():
    return []
"""
PLAIN = r"""#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#define THREADS 256
typedef long long i64;
static unsigned blocks_for(i64 n) { i64 b = (n + THREADS - 1) / THREADS; return (unsigned)(b < 65536 ? b : 65536); }
#define EACH(i, n) for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
%s
__global__ void uniform(float *x, i64 n)
{
    EACH(i, n) {
        unsigned h = (unsigned)i * 2654435761u;
        h = (h ^ h >> 15) * 2246822519u;
        x[i] = (float)((h ^ h >> 13) >> 8) / 16777216.0f;
    }
}
__global__ void spin(long long ns)
{
    long long start, now;
    asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}
int main()
{
    const i64 n = %dLL * %dLL;
    const size_t flush_bytes = (size_t)116 << 20;
    float *x, *y, ms[30];
    void *flush;
    cudaEvent_t a, b;
    cudaMalloc(&x, n * 4), cudaMalloc(&y, n * 4), cudaMalloc(&flush, flush_bytes);
    cudaEventCreate(&a), cudaEventCreate(&b);
    for (int i = 0; i < 30; i++) {
        uniform<<<65536, THREADS>>>(x, n);
        cudaMemset(y, 0xff, n * 4);
        cudaMemset(flush, 0, flush_bytes);
        cudaDeviceSynchronize();
        spin<<<1, 1>>>(50000);
        cudaEventRecord(a);
        k<<<blocks_for(n), THREADS>>>(x, y, n);
        cudaEventRecord(b);
        cudaDeviceSynchronize();
        cudaEventElapsedTime(&ms[i], a, b);
    }
    std::sort(ms, ms + 30);
    printf("%%.5f %%d\n", ms[15], (int)cudaGetLastError());
    return 0;
}
"""


def kernel_of(sample):
    return re.search(r"__global__ void k\(.*?\n}\n", sample, re.S).group(0)


def build_plain(folder, number, rows):
    source, exe = (os.path.join(folder, f"{number}{end}") for end in (".cu", ""))
    with open(source, "w", encoding="utf-8") as f:
        f.write(PLAIN % (kernel_of(large_kernels.samples[number]), rows, WIDTH))
    subprocess.run(["nvcc", "-O3", "-arch=native", "-o", exe, source], check=True)
    return exe


def plain_ms(exe, number):
    ms, code = subprocess.run([exe], check=True, capture_output=True, text=True).stdout.split()
    if int(code):
        raise SystemExit(f"the plain program of {number} fails with error {code}")
    return float(ms)


def judged(folder, number, rows):
    task, mine = (os.path.join(folder, f"{name}_{number}.py") for name in ("task", "kernel"))
    for path, text in ((task, TASK % (FORWARD[number], rows, WIDTH)), (mine, large_kernels.samples[number])):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    p = subprocess.run([EXE, "eval", "--task", task, "--backend", "cuda", "--no-cache", "--no-compile-baseline",
                        "--json",
                        mine], capture_output=True, text=True, check=False)
    if not p.stdout:
        raise SystemExit(f"eval says: {p.stderr[-1000:]}")
    return json.loads(p.stdout)


def judge(folder, exe, number, rows):
    v = judged(folder, number, rows)
    p = v["performance"] or {}
    plain, mine = plain_ms(exe, number), p.get("candidate_ms")
    ok = v["status"] == "passed" and bool(p.get("trusted")) and mine and abs(mine / plain - 1) <= 0.02
    return {"task": number, "ok": bool(ok), "status": v["status"], "category": v["category"], "plain_ms": plain,
            "candidate_ms": mine, "off": mine and round(mine / plain - 1, 4), "eager_ms": p.get("eager_ms"),
            "reasons": p.get("reasons"), "error": p.get("error"), "calls": p.get("calls"), "clocks": p.get("clocks"),
            "took_ms": p.get("took_ms"), "stage_ms": v["stage_ms"], "feedback": None if ok else v["feedback"][-600:]}


def known_rows(path):
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no other kernel after so long")
    parser.add_argument("--out")
    args = parser.parse_args()
    start, rows = time.monotonic(), known_rows(args.out)
    left = [n for n in FORWARD if n not in {r["task"] for r in rows}]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        programs = {n: pool.submit(build_plain, folder, n, args.rows) for n in left}
        concurrent.futures.wait(programs.values())
        for number, exe in programs.items():
            if time.monotonic() - start > args.seconds:
                break
            rows.append(judge(folder, exe.result(), number, args.rows))
            print(json.dumps(rows[-1]), flush=True)
            if args.out:
                with open(args.out, "a", encoding="utf-8") as f:
                    f.write(json.dumps(rows[-1]) + "\n")
    print(f"{sum(r['ok'] for r in rows)} of {len(FORWARD)} right, {len(FORWARD) - len(rows)} left", file=sys.stderr)
    return 3 if len(rows) < len(FORWARD) else 0 if all(r["ok"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
