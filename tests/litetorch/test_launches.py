"""A cuda library says the same to what stands for the CUDA runtime whether nvcc compiled its source whole or g++ and
nvcc one half each: the kernels that it registers, and each launch with its grid, stream and arguments. A libfront.so
of our own writes down what it is told, so this needs nvcc and no GPU."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, os.environ.get("B", "build"), "tests", "litetorch", "test_build")

FRONT = r"""
#include <stdio.h>
#include <string.h>
struct front_launch {
    const char *shown, *file;
    int line;
    const void *fn, *thunk;
    unsigned grid[3], block[3];
    size_t shared;
    void *stream;
    const void *args;
    size_t n_args;
    void *const *params;
};
static const void *stubs[9];
static const char *names[9];
static int n;

int front_register(const void *address, size_t bytes, const char *name)
{
    stubs[n] = address;
    names[n++] = name;
    return printf("kernel %s %zu\n", name, bytes), 0;
}
int front_launch(const struct front_launch *l)
{
    const char *name = "?";
    void *const *a = l->params;

    for (int i = 0; i < n; i++)
        if (stubs[i] == l->fn)
            name = names[i];
    printf("launch %s %u %u %u, %u %u %u, %zu, %p:", name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
           l->block[2], l->shared, l->stream);
    if (strstr(name, "plain"))
        printf(" %p %c\n", *(void **)a[0], *(char *)a[1]);
    else
        printf(" %p %p %d %d %g\n", *(void **)a[0], *(void **)a[1], *(int *)a[2], *(int *)a[3], ((double *)a[3])[1]);
    return fflush(stdout), 0;
}
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
    def build(self, *options, source=SOURCE):
        request = {"kind": "load_inline", "name": "ext", "cpp_sources": ["torch::Tensor f(torch::Tensor x);"],
                   "cuda_sources": [source], "functions": ["f"]}
        p = subprocess.run([TOOL, "build", "--cache", "cuda", *options], input=json.dumps(request), text=True,
                           capture_output=True)
        if "no nvcc" in p.stderr:
            self.skipTest("no nvcc")
        reply = json.loads(p.stdout)
        self.assertTrue(reply["ok"], reply)
        return reply

    def told(self, folder, so):
        code = "import ctypes, sys; ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL); ctypes.CDLL(sys.argv[1])"
        p = subprocess.run([sys.executable, "-c", code, so, f"{folder}/libfront.so"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = p.stdout.splitlines()
        return sorted(x for x in lines if x.startswith("kernel")), [x for x in lines if not x.startswith("kernel")]

    def front(self, folder, *libraries):
        """Compiles our libfront.so, with empty functions for what else the libraries ask of it."""
        names = set()
        for so in libraries:
            listing = subprocess.run(["nm", "-D", "--undefined-only", so], capture_output=True, text=True).stdout
            names |= {x.split()[-1].split("@")[0] for x in listing.splitlines()}
        rest = "".join(f"int {n}(void) {{ return 0; }}\n" for n in sorted(names)
                       if n.startswith("front_") and f" {n}(" not in FRONT)
        subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o",
                        f"{folder}/libfront.so"], input=FRONT + rest, text=True, check=True)

    def setUp(self):
        if not os.path.exists(TOOL):
            self.skipTest("make test-programs builds test_build")

    def test_same_words_to_the_runtime(self):
        halves, whole = self.build(), self.build("--whole")
        self.assertTrue(halves["split"])
        self.assertFalse(whole["split"])
        with tempfile.TemporaryDirectory() as folder:
            self.front(folder, halves["so"], whole["so"])
            ours, nvccs = self.told(folder, halves["so"]), self.told(folder, whole["so"])
        self.assertEqual(ours, nvccs)
        self.assertEqual(sum("launch" in x for x in ours[1]), 6, ours)
        self.assertEqual(len(ours[0]), 3)


if __name__ == "__main__":
    unittest.main()
