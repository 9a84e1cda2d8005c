"""The pool of a real device's process (litetorch/runtime/cuda.cc), over a driver that has the host's memory: which blocks
go back to the driver, where other processes may have them, and which are kept."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.join(os.environ.get("MUSACODER_LIB_DIR") or os.path.join(ROOT, "build", "lib"), "libcudatorch.so")
MIB = 1 << 20

DRIVER = r"""
#include <stdlib.h>
#include <string.h>
static long live;
long blocks(void) { return live; }
int cuMemAlloc_v2(unsigned long long *p, size_t n) { live++; *p = (unsigned long long)aligned_alloc(512, n); return 0; }
int cuMemFree_v2(unsigned long long p) { live--; free((void *)p); return 0; }
int cuMemsetD8Async(unsigned long long p, unsigned char c, size_t n, void *s) { memset((void *)p, c, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long p, size_t n, void *s) { memcpy(to, (void *)p, n); return 0; }
int cuMemAllocHost_v2(void **p, size_t n) { *p = malloc(n); return 0; }
int cuStreamIsCapturing(void *s, int *status) { *status = 0; return 0; }
int cuCtxGetCurrent(void **c) { *c = &live; return 0; }
#define FAKE(name) int name(void) { return 0; }
FAKE(cuCtxSynchronize) FAKE(cuThreadExchangeStreamCaptureMode) FAKE(cuDevicePrimaryCtxRetain) FAKE(cuCtxSetCurrent)
FAKE(cuPointerGetAttribute) FAKE(cuLaunchHostFunc) FAKE(cuEventCreate) FAKE(cuEventRecord) FAKE(cuEventSynchronize)
FAKE(cuEventQuery) FAKE(cuFuncGetParamInfo)
"""


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in ("in_use", "peak", "held", "limit", "blocks", "allocations", "short")]


def held(lib):
    m = Memory()
    lib.lt_cuda_memory(ctypes.byref(m))
    return m.held


def told():
    """In a process of its own: who is told before the driver is asked, and how often."""
    import torch  # noqa: F401

    driver, lib = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(LIB)
    at, kind = [], ctypes.CFUNCTYPE(None)
    f = kind(lambda: at.append(driver.blocks()))
    for before in (f, None, kind()):
        lib.lt_cuda_before_use(before)
        lib.lt_cuda_malloc(ctypes.c_size_t(0), 0, None)
        assert not at or before is not f, "nothing was asked for"
        lib.lt_cuda_malloc(ctypes.c_size_t(8 * MIB), 0, None)
        lib.lt_cuda_malloc(ctypes.c_size_t(8 * MIB), 0, None)
        assert at == [0], at


def story():
    """In a process of its own: what the driver has lent after each step, as the test wants it."""
    import torch  # noqa: F401  the library stands on its libraries

    driver, lib = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(LIB)
    lib.lt_cuda_malloc.restype = ctypes.c_void_p
    lib.lt_cuda_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    lib.lt_cuda_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    lib.lt_cuda_give_back.argtypes = [ctypes.c_void_p]
    new, free = lambda n: lib.lt_cuda_malloc(n, 0, None), lambda p: lib.lt_cuda_free(p, 0, 0, None)
    back = lib.lt_cuda_give_back
    a, b, c, small = new(8 * MIB), new(8 * MIB), new(5 * MIB), new(1000)
    full = held(lib)
    assert driver.blocks() == 4, driver.blocks()
    back(b)
    assert (driver.blocks(), held(lib)) == (4, full), "somebody uses it"
    for p in (a, c, small):
        free(p)
    assert (driver.blocks(), held(lib)) == (4, full), "the pool keeps what is freed"
    back(small)
    back(None)
    assert (driver.blocks(), held(lib)) == (4, full), "a piece of a larger block, and nothing at all"
    back(a)
    assert driver.blocks() == 3 and full - 11 * MIB < held(lib) <= full - 8 * MIB, (driver.blocks(), full - held(lib))
    assert new(5 * MIB) == c and new(1000) == small, "the others are where they were"
    free(b)
    assert new(8 * MIB) == b
    new(8 * MIB)
    assert (driver.blocks(), held(lib)) == (4, full)


class Pool(unittest.TestCase):
    def test_one_block_goes_back(self):
        self.in_a_process("story")

    def test_somebody_is_told_before_the_first_use(self):
        self.in_a_process("told")

    @unittest.skipUnless(os.path.exists(LIB) and shutil.which("cc"), "no library, or no compiler for its driver")
    def in_a_process(self, what):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "driver.c"), "w") as f:
            f.write(DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", os.path.join(folder, "libcuda.so.1"), f.name], check=True)
        env = dict(os.environ, LD_LIBRARY_PATH=folder, CUDA_VISIBLE_DEVICES="")
        p = subprocess.run([sys.executable, __file__, what], env=env, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr[-2000:])


if __name__ == "__main__":
    {("story",): story, ("told",): told}.get(tuple(sys.argv[1:]), unittest.main)()
