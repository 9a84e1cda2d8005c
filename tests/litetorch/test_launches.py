"""A cuda library says the same to the CUDA runtime whether nvcc compiled its source whole or g++ and nvcc one half each:
what it registers, and each launch with its grid, stream and arguments. A runtime of our own writes down what it is told, so
this needs nvcc and no GPU."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, os.environ.get("B", "build"), "tests", "litetorch", "test_build")

RUNTIME = r"""
#include <stdio.h>
#include <string.h>
typedef struct { unsigned x, y, z; } grid_of;
static grid_of grid, block;
static size_t shared;
static void *stream;
static const void *stubs[9];
static const char *names[9];
static int n;

void **__cudaRegisterFatBinary(const int *w)
{
    static void *handle;
    unsigned *data;
    memcpy(&data, w + 2, sizeof data);
    printf("code %x %d %x\n", w[0], w[1], *data);
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void **h) { printf("registered %d\n", h != 0); }
void __cudaUnregisterFatBinary(void **h) { printf("unregistered %d\n", h != 0); fflush(stdout); }
void __cudaRegisterFunction(void **h, const char *stub, char *f, const char *name, int limit, void *a, void *b, void *c,
                            void *d, int *e)
{
    stubs[n] = stub;
    names[n++] = name;
    printf("kernel %s %s %d %d\n", f, name, limit, a || b || c || d || e);
}
unsigned __cudaPushCallConfiguration(grid_of g, grid_of b, size_t s, void *t)
{
    grid = g, block = b, shared = s, stream = t;
    return 0;
}
int __cudaPopCallConfiguration(grid_of *g, grid_of *b, size_t *s, void **t)
{
    *g = grid, *b = block, *s = shared, *t = stream;
    return 0;
}
int __cudaGetKernel(void **k, const void *stub)
{
    for (int i = 0; i < n; i++)
        if (stubs[i] == stub)
            return *k = (void *)(long)(i + 1), 0;
    return printf("unknown kernel\n"), 1;
}
int __cudaLaunchKernel(void *k, grid_of g, grid_of b, void **a, size_t s, void *t)
{
    const char *name = names[(long)k - 1];
    printf("launch %s %u %u %u, %u %u %u, %zu, %p:", name, g.x, g.y, g.z, b.x, b.y, b.z, s, t);
    if (strstr(name, "plain"))
        printf(" %p %c\n", *(void **)a[0], *(char *)a[1]);
    else
        printf(" %p %p %d %d %g\n", *(void **)a[0], *(void **)a[1], *(int *)a[2], *(int *)a[3], ((double *)a[3])[1]);
    return 0;
}
int cudaGetLastError(void) { return 0; }
int cudaFuncGetName(const char **name, const void *f) { return *name = "?", 0; }
"""

SOURCE = r"""
#include <torch/extension.h>
struct P { int a; double b; };
template <typename T, int N>
static __global__ void __launch_bounds__(256) scaled(const T *x, T *y, int n, P p) { y[threadIdx.x] = x[n] * N + p.b; }
__global__ void plain(float *y, char c) { y[0] = c; }
__attribute__((destructor)) static void at_exit() // behind everything that registers
{
    float *x = (float *)0x1000, *y = (float *)0x2000;
    for (int i = 0; i < 2; i++) {
        scaled<float, 3><<<dim3(2, 3), 64, 16>>>(x, y, 5, P{7, 2.5});
        scaled<double, 2><<<1, 1>>>((double *)x, (double *)y, i, P{i, 0.5});
        plain<<<1, 2, 0, (cudaStream_t)0x33>>>(y, 'c');
    }
}
torch::Tensor f(torch::Tensor x) { return x; }
"""


class Launches(unittest.TestCase):
    def build(self, *options):
        request = {"kind": "load_inline", "name": "ext", "cpp_sources": ["torch::Tensor f(torch::Tensor x);"],
                   "cuda_sources": [SOURCE], "functions": ["f"]}
        p = subprocess.run([TOOL, "build", "--no-cache", "cuda", *options], input=json.dumps(request), text=True,
                           capture_output=True)
        if "no nvcc" in p.stderr:
            self.skipTest("no nvcc")
        reply = json.loads(p.stdout)
        self.assertTrue(reply["ok"], reply)
        return reply

    def told(self, folder, so):
        code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        p = subprocess.run([sys.executable, "-c", code, so], capture_output=True, text=True,
                           env=dict(os.environ, LD_LIBRARY_PATH=folder))
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = p.stdout.splitlines()
        return sorted(x for x in lines if x.startswith("kernel")), [x for x in lines if not x.startswith("kernel")]

    def test_same_words_to_the_runtime(self):
        if not os.path.exists(TOOL):
            self.skipTest("make test-programs builds test_build")
        halves, whole = self.build(), self.build("--whole")
        self.assertTrue(halves["split"])
        self.assertFalse(whole["split"])
        names = set()
        for so in (halves["so"], whole["so"]):
            listing = subprocess.run(["nm", "-D", "--undefined-only", so], capture_output=True, text=True).stdout
            names |= {x.split()[-1].split("@")[0] for x in listing.splitlines()}
        rest = "".join(f"int {n}(void) {{ return 0; }}\n" for n in sorted(names)
                       if re.match(r"(__)?cu[a-zA-Z]", n) and f" {n}(" not in RUNTIME and f"*{n}(" not in RUNTIME)
        needed = subprocess.run(["objdump", "-p", halves["so"]], capture_output=True, text=True).stdout
        name = next(x.split()[1] for x in needed.splitlines() if "NEEDED" in x and "libcudart" in x)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", f"{folder}/{name}"],
                           input=RUNTIME + rest, text=True, check=True)
            ours, nvccs = self.told(folder, halves["so"]), self.told(folder, whole["so"])
        self.assertEqual(ours, nvccs)
        self.assertEqual(sum("launch" in x for x in ours[1]), 6, ours)
        self.assertEqual(len(ours[0]), 3)


if __name__ == "__main__":
    unittest.main()
