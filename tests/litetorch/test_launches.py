"""A cuda library says the same to the CUDA runtime whether nvcc compiled its source whole or g++ and nvcc one half each:
what it registers, and each launch with its grid, stream and arguments. A runtime of our own writes down what it is told, so
this needs nvcc and no GPU. The same runtime shows what a library's graphs hold and count while launches are taken away."""
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


# What is launched while a stream records is "recorded". Nodes: 0 a kernel, 5 empty, as the runtime numbers them.
RECORDER = r"""
#include <stdio.h>
static int recording, node_type;
void **__cudaRegisterFatBinary(const void *w) { static void *handle; return &handle; }
int __cudaGetKernel(void **k, const void *stub) { return *k = (void *)stub, 0; }
unsigned __cudaPushCallConfiguration(void) { return 0; }
int __cudaPopCallConfiguration(void) { return 0; }
int cudaStreamIsCapturing(void *s, int *status) { return *status = recording, 0; }
int cudaStreamBeginCapture(void *s, int mode) { return recording = 1, 0; }
int cudaStreamEndCapture(void *s, void **g) { return recording = 0, 0; }
int __cudaLaunchKernel(void *k) { puts(recording ? "recorded" : "launched"); return 0; }
int cudaGraphLaunch(void *g, void *s) { puts("graph"); return 0; }
int cudaGraphAddKernelNode(void **n) { puts("kernel node"); return node_type = 0; }
int cudaGraphAddEmptyNode(void **n) { puts("empty node"); return node_type = 5, 0; }
int cudaGraphNodeGetType(void *n, int *type) { return *type = node_type, 0; }
int cudaGraphKernelNodeSetParams(void *n, const void *p) { puts("set"); return 0; }
int cudaGetLastError(void) { return 0; }
int cudaFuncGetName(const char **name, const void *f) { return *name = "?", 0; }
"""

# Does what the letters of $DO say, then says what was counted.
GRAPHS = r"""
#include <torch/extension.h>
#include <litetorch/abi.h>
#include <stdio.h>
#include <stdlib.h>
__global__ void relu(float *y) { y[0] = 0; }
static void launch() { relu<<<1, 1>>>(nullptr); }
static void record()
{
    cudaGraph_t g;
    cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal);
    launch();
    cudaStreamEndCapture(0, &g);
}
static void add_node()
{
    cudaGraphNode_t node;
    cudaKernelNodeParams p = {};
    p.func = (void *)relu;
    cudaGraphAddKernelNode(&node, 0, nullptr, 0, &p);
    cudaGraphKernelNodeSetParams(node, &p);
}
__attribute__((destructor)) static void at_exit()
{
    struct lt_device *d = lt_module_device();
    for (const char *c = getenv("DO"); *c; c++) {
        if (*c == 'l') launch();
        if (*c == 'r') record();
        if (*c == 'n') add_node();
        if (*c == 'g') cudaGraphLaunch(0, 0);
        if (*c >= '0' && *c <= '9') d->ablate = *c - '0';
    }
    printf("%d %d %d:", (int)d->launches, (int)d->graph_launches, (int)d->captured);
    for (int i = 0; i < d->n_kernels; i++)
        printf(" %.18s %d", d->kernels[i].name, (int)d->kernels[i].launches);
    printf("\n");
}
torch::Tensor f(torch::Tensor x) { return x; }
"""

# A device of 4 multiprocessors of 2048 threads.
LIMITED = r"""
#include <stdio.h>
void **__cudaRegisterFatBinary(const void *w) { static void *handle; return &handle; }
int cudaGetDevice(int *d) { return *d = 0, 0; }
int cudaDeviceGetAttribute(int *value, int what, int d) { return *value = what == 16 ? 4 : what == 39 ? 2048 : 0, 0; }
int cudaDeviceSetLimit(int what, size_t value) { return value == 77 ? puts("refused"), 1 : 0; }
"""

# Sets limits, as the numbers in $DO say: which one, and to how much. A process may have 1 GiB.
LIMITS = r"""
#include <torch/extension.h>
#include <litetorch/abi.h>
#include <stdio.h>
#include <stdlib.h>
namespace lt { extern const struct lt_api *api; }
static size_t held;
static int take(const void *p, size_t n, const char *call)
{
    if (call && held + n > (size_t)1 << 30)
        return -1;
    held += call ? n : 0;
    held -= !call && !p ? n : 0;
    return 0;
}
__attribute__((destructor)) static void at_exit()
{
    static struct lt_api api = {};
    const char *at = getenv("DO");
    size_t value;
    int what, used;

    api.take = take;
    lt::api = &api;
    for (; sscanf(at, "%d %zu%n", &what, &value, &used) == 2; at += used) {
        int err = cudaDeviceSetLimit((cudaLimit)what, value);
        printf("%d %zu\n", err, held >> 20);
    }
}
torch::Tensor f(torch::Tensor x) { return x; }
"""


class Launches(unittest.TestCase):
    def build(self, *options, source=SOURCE):
        request = {"kind": "load_inline", "name": "ext", "cpp_sources": ["torch::Tensor f(torch::Tensor x);"],
                   "cuda_sources": [source], "functions": ["f"]}
        p = subprocess.run([TOOL, "build", "--no-cache", "cuda", *options], input=json.dumps(request), text=True,
                           capture_output=True)
        if "no nvcc" in p.stderr:
            self.skipTest("no nvcc")
        reply = json.loads(p.stdout)
        self.assertTrue(reply["ok"], reply)
        return reply

    def run_with(self, folder, so, do=""):
        code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        p = subprocess.run([sys.executable, "-c", code, so], capture_output=True, text=True,
                           env=dict(os.environ, LD_LIBRARY_PATH=folder, DO=do))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.splitlines()

    def told(self, folder, so):
        lines = self.run_with(folder, so)
        return sorted(x for x in lines if x.startswith("kernel")), [x for x in lines if not x.startswith("kernel")]

    def runtime(self, folder, text, *libraries):
        """Compiles our runtime, with empty functions for what else the libraries ask for, under the name they ask for."""
        names = set()
        for so in libraries:
            listing = subprocess.run(["nm", "-D", "--undefined-only", so], capture_output=True, text=True).stdout
            names |= {x.split()[-1].split("@")[0] for x in listing.splitlines()}
        rest = "".join(f"int {n}(void) {{ return 0; }}\n" for n in sorted(names)
                       if re.match(r"(__)?cu[a-zA-Z]", n) and f" {n}(" not in text and f"*{n}(" not in text)
        needed = subprocess.run(["objdump", "-p", libraries[0]], capture_output=True, text=True).stdout
        name = next(x.split()[1] for x in needed.splitlines() if "NEEDED" in x and "libcudart" in x)
        subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", f"{folder}/{name}"],
                       input=text + rest, text=True, check=True)

    def setUp(self):
        if not os.path.exists(TOOL):
            self.skipTest("make test-programs builds test_build")

    def test_same_words_to_the_runtime(self):
        halves, whole = self.build(), self.build("--whole")
        self.assertTrue(halves["split"])
        self.assertFalse(whole["split"])
        with tempfile.TemporaryDirectory() as folder:
            self.runtime(folder, RUNTIME, halves["so"], whole["so"])
            ours, nvccs = self.told(folder, halves["so"]), self.told(folder, whole["so"])
        self.assertEqual(ours, nvccs)
        self.assertEqual(sum("launch" in x for x in ours[1]), 6, ours)
        self.assertEqual(len(ours[0]), 3)

    def test_graphs(self):
        so = self.build(source=GRAPHS)["so"]
        with tempfile.TemporaryDirectory() as folder:
            self.runtime(folder, RECORDER, so)

            def told(do):
                *did, counts = self.run_with(folder, so, do)
                return did, counts

            # forward launches a graph that was recorded before it, or made node by node
            self.assertEqual(told("rg"), (["recorded", "graph"], "1 1 1: relu(float*) 1 kernels of a graph 1"))
            self.assertEqual(told("ngg"), (["kernel node", "set", "graph", "graph"],
                                           "0 2 1: relu(float*) 0 kernels of a graph 2"))
            # a graph of nobody's kernels is no launch, and what it would compute is left out
            self.assertEqual(told("g"), (["graph"], "0 1 0: relu(float*) 0 kernels of a graph 0"))
            self.assertEqual(told("1g")[0], [])
            # what was recorded before runs whatever the switch says; what is recorded now holds nothing
            self.assertEqual(told("r1g")[0], ["recorded", "graph"])
            self.assertEqual(told("1rlg"), (["graph"], "2 1 1: relu(float*) 2 kernels of a graph 1"))
            self.assertEqual(told("1ng")[0], ["empty node", "graph"])
            # taken away is only what is recorded
            self.assertEqual(told("2lrlng")[0], ["launched", "launched", "empty node", "graph"])
            self.assertEqual(told("2r1lg0l")[0], ["graph", "launched"])

    def test_limits_count(self):
        """A stack for each thread, a heap: both are memory of the device, and a candidate may have so much of it."""
        so = self.build(source=LIMITS)["so"]
        stack, fifo, heap, mib = 0, 1, 2, 1 << 20
        with tempfile.TemporaryDirectory() as folder:
            self.runtime(folder, LIMITED, so)

            def told(*limits):
                return self.run_with(folder, so, " ".join(f"{what} {value}" for what, value in limits))

            self.assertEqual(told((stack, 1024), (stack, 65536), (stack, 65536), (stack, 1024)),
                             ["0 8", "0 512", "0 512", "0 512"])
            self.assertEqual(told((stack, 1 << 17), (heap, mib), (stack, 1 << 17)), ["0 1024", "2 1024", "0 1024"])
            self.assertEqual(told((stack, (1 << 17) + 1), (stack, 1 << 60)), ["2 0", "2 0"])
            self.assertEqual(told((heap, 600 * mib), (stack, 65536), (heap, 1 << 40)), ["0 600", "2 600", "2 600"])
            self.assertEqual(told((heap, 77), (fifo, 1 << 40)), ["refused", "1 0", "0 0"])  # what the runtime refuses does not count


if __name__ == "__main__":
    unittest.main()
