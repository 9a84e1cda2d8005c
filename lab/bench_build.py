#!/usr/bin/env python3
"""How long a candidate's build takes on sim and for a real GPU, side by side with PyTorch's own way.

    lab/bench_build.py [--build-dir build] [--real 3] [--rounds 1] [--load-inline 1]

Twenty typical candidates (written here) are built through the compile stage without its cache, on sim and, where nvcc
is, for cuda. The first --real of them also by g++ on the emulator's rewritten source with torch/extension.h of the
Python that runs this, both halves side by side as torch's own load_inline does; the first --load-inline of them by
load_inline itself (needs nvcc, no GPU). Prints milliseconds, medians and the two ratios.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

HEAD = "#include <torch/extension.h>\n#include <cuda_runtime.h>\n#include <cmath>\n"

MAP = HEAD + """
__global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = x[i]; y[i] = EXPR; }
}
torch::Tensor f(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be contiguous on cuda");
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ROW = HEAD + """
__global__ void k(const float* x, float* y, int cols) {
    __shared__ float s[256];
    const float* row = x + (long long)blockIdx.x * cols;
    float a = START;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) { float v = row[i]; a = JOIN; }
    s[threadIdx.x] = a;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) { float v = s[threadIdx.x + d]; a = s[threadIdx.x]; s[threadIdx.x] = MERGE; }
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
torch::Tensor f(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty({x.size(0)}, x.options());
    k<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

WARP = HEAD + """
__device__ __forceinline__ float warp_sum(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
    return __shfl_sync(0xffffffff, v, 0);
}
__global__ void k(const float* x, float* y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    float s = 0, q = 0;
    for (int i = lane; i < cols; i += 32) { float v = x[r * cols + i]; s += v; q += v * v; }
    s = warp_sum(s) / cols; q = warp_sum(q) / cols;
    for (int i = lane; i < cols; i += 32) { float v = x[r * cols + i]; y[r * cols + i] = EXPR; }
}
torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), cols = x.size(1);
    k<<<(rows * 32 + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);
    return y;
}
"""

TILE = HEAD + """
#define T TILE
__global__ void k(const float* a, const float* b, float* c, int n) {
    __shared__ float s[T][T + 1], t[T][T + 1];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float acc = 0;
    for (int p = 0; p < (n + T - 1) / T; p++) {
        int i = p * T + threadIdx.x, j = p * T + threadIdx.y;
        s[threadIdx.y][threadIdx.x] = row < n && i < n ? a[row * n + i] : 0;
        t[threadIdx.y][threadIdx.x] = col < n && j < n ? b[j * n + col] : 0;
        __syncthreads();
        for (int q = 0; q < T; q++) acc += s[threadIdx.y][q] * t[q][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = acc;
}
torch::Tensor f(torch::Tensor x) {
    int n = x.size(0);
    auto c = torch::zeros({n, n}, x.options());
    dim3 block(T, T), grid((n + T - 1) / T, (n + T - 1) / T);
    k<<<grid, block>>>(x.data_ptr<float>(), x.data_ptr<float>(), c.data_ptr<float>(), n);
    return c;
}
"""

GENERIC = HEAD + """
template <typename scalar_t>
__global__ void k(const scalar_t* x, scalar_t* y, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) { scalar_t v = x[i]; y[i] = EXPR; }
}
torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", ([&] {
        k<scalar_t><<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
    }));
    return y;
}
"""


def candidates():
    for e in ("v > 0 ? v : 0", "1.0f / (1.0f + expf(-v))", "tanhf(v)", "v / (1.0f + expf(-v))",
              "0.5f * v * (1.0f + erff(v * 0.70710678f))", "fminf(fmaxf(v, -1.0f), 1.0f)", "v > 0 ? v : expm1f(v)"):
        yield MAP.replace("EXPR", e)
    for start, join, merge in (("0", "a + v", "a + v"), ("-INFINITY", "fmaxf(a, v)", "fmaxf(a, v)"),
                               ("INFINITY", "fminf(a, v)", "fminf(a, v)"), ("1", "a * v", "a * v"),
                               ("0", "a + v * v", "a + v")):
        yield ROW.replace("START", start).replace("JOIN", join).replace("MERGE", merge)
    for e in ("(v - s) * rsqrtf(q - s * s + 1e-5f)", "v * rsqrtf(q + 1e-6f)", "v / fmaxf(sqrtf(q * cols), 1e-12f)"):
        yield WARP.replace("EXPR", e)
    for t in ("8", "16", "32"):
        yield TILE.replace("TILE", t)
    for e in ("v * v", "v > scalar_t(0) ? v : v * scalar_t(0.01)"):
        yield GENERIC.replace("EXPR", e)


def request(source):
    return {"kind": "load_inline", "name": "bench", "cpp_sources": ["torch::Tensor f(torch::Tensor x);"],
            "cuda_sources": [source], "functions": ["f"]}


def build_here(tool, source, target):
    """The compile stage's reply; None if the target has no compiler here."""
    p = subprocess.run([tool, "build", "--no-cache", target], input=json.dumps(request(source)).encode(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode != 0 and b"no nvcc" in p.stderr:
        return None
    if p.returncode != 0:
        sys.exit("bench_build: " + p.stderr.decode().strip())
    reply = json.loads(p.stdout)
    if not reply["ok"]:
        sys.exit("bench_build: a candidate does not build: " + reply["error"])
    return reply


LOAD_INLINE = """
import json, os, sys, time
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
from torch.utils.cpp_extension import load_inline
request = json.load(sys.stdin)
request.pop("kind")
start = time.perf_counter()
load_inline(build_directory=sys.argv[1], with_cuda=True, **request)
print((time.perf_counter() - start) * 1e3)
"""


def build_with_load_inline(source):
    """Milliseconds of torch's own load_inline, without the start of Python."""
    with tempfile.TemporaryDirectory() as out:
        p = subprocess.run([sys.executable, "-c", LOAD_INLINE, out], input=json.dumps(request(source)), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode != 0:
        sys.exit("bench_build: load_inline failed: " + p.stderr.strip()[-400:])
    return float(p.stdout.strip().splitlines()[-1])


def build_with_torch(share, folder, out):
    """Milliseconds of g++ with the real headers, both halves at once and the link."""
    import importlib.util
    torch = importlib.util.find_spec("torch").submodule_search_locations[0]
    flags = ["-std=gnu++17", "-O2", "-fPIC", "-w", "-I" + torch + "/include",
             "-I" + torch + "/include/torch/csrc/api/include", "-I" + sysconfig.get_paths()["include"]]
    subprocess.run(["sh", share + "/litetorch/include/litetorch/forward.sh", out], check=True)
    start = time.perf_counter()
    ps = []
    for name, extra in (("main.cpp", ["-include", "torch/extension.h"]),
                        ("cuda.cu", ["-include", "torch/types.h", "-I" + share + "/simt/include",
                                     "-I" + out + "/sim"])):
        ps.append(subprocess.Popen(["g++", "-x", "c++", *flags, *extra, "-c", os.path.join(folder, name), "-o",
                                    os.path.join(out, name + ".o")]))
    if any([p.wait() for p in ps]):
        sys.exit("bench_build: g++ with PyTorch's headers failed (are Python's headers installed?)")
    subprocess.run(["g++", "-shared", "-o", out + "/x.so", out + "/main.cpp.o", out + "/cuda.cu.o"], check=True)
    return (time.perf_counter() - start) * 1e3


def measure(tool, sources, target, rounds):
    """Medians in ms, and the folder of each build; None without a compiler. The first build makes what is made once."""
    if build_here(tool, sources[0], target) is None:
        return None
    rows = []
    for source in sources:
        replies = [build_here(tool, source, target) for _ in range(rounds)]
        rows.append((statistics.median(r["ms"] for r in replies), os.path.dirname(replies[0]["so"])))
    return rows


def tell(what, ms, other, baseline):
    line = f"{what:14} median of {len(ms):2} builds {statistics.median(ms):8.0f} ms, slowest {max(ms):8.0f} ms"
    if baseline:
        line += f"; {other}: median of {len(baseline)} {statistics.median(baseline):8.0f} ms; " \
                f"ratio {statistics.median(baseline) / statistics.median(ms):.0f}"
    print(line, flush=True)


def main():
    share = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
    a = argparse.ArgumentParser()
    a.add_argument("--build-dir", default=os.path.join(share, "build"))
    a.add_argument("--real", type=int, default=3)
    a.add_argument("--rounds", type=int, default=1)
    a.add_argument("--load-inline", type=int, default=1)
    a = a.parse_args()
    tool, sources = os.path.join(a.build_dir, "tests", "litetorch", "test_build"), list(candidates())
    sim, real = measure(tool, sources, "sim", a.rounds), []
    for ms, folder in sim[:a.real]:
        with tempfile.TemporaryDirectory() as out:
            real.append(build_with_torch(share, folder, out))
    tell("sim", [ms for ms, _ in sim], "g++ with PyTorch's headers", real)
    cuda = measure(tool, sources, "cuda", a.rounds)
    if cuda:
        tell("cuda", [ms for ms, _ in cuda], "load_inline",
             [build_with_load_inline(s) for s in sources[:a.load_inline]])
    else:
        print("cuda           no nvcc here")


if __name__ == "__main__":
    main()
