"""hostile.py - candidates that attack whoever runs them. Rows: name, the verdicts that are right for it (None:
passed: the attack failed and what it computes is right), source. All of them answer the ReLU task of tests/eval."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "eval"))
from candidates import GOOD, HEAD, KERNEL, MODEL, RELU_TASK, build, with_forward  # noqa: E402,F401

RUNTIME, TIMEOUT, CHEATING, COMPILE = "runtime_error", "timeout", "cheating", "compile_error"
ENDED = (RUNTIME, TIMEOUT, CHEATING)  # however it ended: not by passing


def forward(body):
    return with_forward(body + "\nreturn ext.relu(x)")


def init(body):
    return with_forward("return ext.relu(x)", init=body)


def at_import(body):
    return build(KERNEL) + body + "\n" + MODEL


def host(body, extra=""):
    """C++ code that runs on the host, in front of the launch."""
    return build(extra + KERNEL.replace("    int n = x.numel();", "    int n = x.numel();\n    " + body)) + MODEL


def kernel(body):
    """Code in the kernel, in front of the work; x, y, n and i are there."""
    return build("#include <cassert>\n" + KERNEL.replace("    if (i < n)", "    " + body + "\n    if (i < n)")) + MODEL


def source(text):
    """Text in front of the kernel: for the compiler."""
    return build(text + "\n" + KERNEL) + MODEL


CRASHES = [
    ("reads address 0", RUNTIME, forward("import ctypes\nctypes.string_at(0)")),
    ("aborts", RUNTIME, forward("import os\nos.abort()")),
    ("aborts at import", RUNTIME, at_import("import os\nos.abort()")),
    ("exits", RUNTIME, forward("import os\nos._exit(0)")),
    ("exits in __init__", RUNTIME, init("import os\nos._exit(7)")),
    ("kills itself", RUNTIME, forward("import os\nos.kill(os.getpid(), 9)")),
    ("crashes on the host", RUNTIME, host("*(volatile int *)8 = 1;")),
    ("jumps into nothing", RUNTIME, host("((void (*)())16)();")),
    ("divides by zero", RUNTIME, host("volatile int zero = 0; n = n / zero + n % zero;")),
    ("recursion in C++", RUNTIME, host(
        "volatile char c = 1; n += deep(&c) * 0;",
        "static int deep(volatile char *p) { volatile char big[65536]; big[0] = *p; return deep(big) + big[0]; }\n")),
    ("recursion in Python", (RUNTIME, TIMEOUT), forward("import sys\nsys.setrecursionlimit(1 << 30)\nf = lambda: f()\n"
                                                        "f()")),
    ("raises SystemExit", RUNTIME, forward("raise SystemExit(0)")),
    ("raises KeyboardInterrupt", RUNTIME, init("raise KeyboardInterrupt")),
    ("an exception of 100 MB", RUNTIME, forward("raise ValueError('x' * 100_000_000)")),
    ("throws nothing known", RUNTIME, host("throw 1;")),
    ("closes every descriptor", ENDED, forward("import os\nos.closerange(0, 1024)")),
]

HANGS = [
    ("loops in forward", TIMEOUT, forward("while True: pass")),
    ("sleeps in forward", TIMEOUT, forward("import time\ntime.sleep(1e6)")),
    ("loops at import", TIMEOUT, at_import("while True: pass")),
    ("sleeps in __init__", TIMEOUT, init("import time\ntime.sleep(1e6)")),
    ("loops in C++", TIMEOUT, host("for (volatile int k = 0;; k++) ;")),
    ("loops in a constructor of the library", (TIMEOUT, CHEATING), source(
        "__attribute__((constructor)) static void first() { for (volatile int k = 0;; k++) ; }")),
    ("loops in a destructor", TIMEOUT, forward("class D:\n    def __del__(self):\n        while True: pass\nd = D()\n"
                                               "del d")),
    ("hangs when the process exits", (None, TIMEOUT), at_import(
        "import atexit, time\natexit.register(time.sleep, 1e6)")),
    ("loops in a kernel", TIMEOUT, kernel("for (volatile int k = 1; k; k = 1) ;")),
    ("waits in a kernel for who never comes", TIMEOUT, kernel(
        "volatile const float *v = x; if (threadIdx.x == 0) while (v[0] == v[0] || n) ;")),
    ("blocks all signals and loops", TIMEOUT, forward(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass")),
    ("ignores SIGTERM and sleeps", TIMEOUT, forward(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1e6)")),
    ("stops itself", TIMEOUT, forward("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")),
    ("an exception that is never told", TIMEOUT, forward(
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E()")),
    ("holds the lock of all locks", TIMEOUT, forward("import ctypes\nctypes.PyDLL(None).sleep(1000000)")),
]

BOMBS = [
    ("memory, Python", ENDED, forward("a = []\nwhile True: a.append(bytearray(1 << 26))")),
    ("memory, C++", ENDED, host("for (;;) { char *p = (char *)malloc(1 << 26); if (p) memset(p, 1, 1 << 26); }")),
    ("memory, one piece", ENDED, forward("bytearray(1 << 42)")),
    ("memory, in a file without a name", ENDED, forward(
        "import os\nf = os.memfd_create('m')\nwhile True: os.write(f, b'x' * (1 << 24))")),
    ("processes", ENDED, forward("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")),
    ("threads", ENDED, forward(
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()")),
    ("descriptors", ENDED, forward("import os\nwhile True: os.dup(1)")),
    ("fills /tmp", ENDED, forward("f = open('/tmp/fill', 'wb', 0)\nwhile True: f.write(b'x' * (1 << 22))")),
    ("fills /tmp with names", ENDED, forward("import os\nfor i in range(10**9): os.mkdir(f'/tmp/{i}')")),
    ("1 GB of stderr", (None, TIMEOUT),
     forward("import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(2, b)")),
    ("endless output", TIMEOUT, forward("while True: print('all work and no play')")),
    ("output without end from C++", TIMEOUT, host('for (;;) printf("%0999d\\n", n);')),
    ("an endless result", ENDED + ("correctness_error",), with_forward("return ext.relu(x)[:1, :1].expand(1 << 20, 1 "
                                                                       "<< 20)")),
    ("a result that holds itself", RUNTIME, with_forward("r = [ext.relu(x)]\nr.append(r)\nreturn r")),
    ("device memory", (RUNTIME, TIMEOUT), host(
        'for (;;) { void *p; if (cudaMalloc(&p, (size_t)1 << 30) != cudaSuccess) '
        'throw std::runtime_error("no more"); }')),
    ("device memory, through torch", (RUNTIME, TIMEOUT), forward(
        "keep = []\nwhile True: keep.append(torch.empty(1 << 28, dtype=torch.uint8, device=x.device))")),
]

DEVICE = [
    ("writes far outside", RUNTIME, kernel("y[(size_t)i + (1ull << 41)] = 1.0f;")),
    ("writes to address 0", RUNTIME, kernel("*(volatile float *)nullptr = 1.0f;")),
    ("device assert", RUNTIME, kernel("assert(n < 0);")),
    ("too many threads", RUNTIME, build(KERNEL.replace("256>>>", "4096>>>")) + MODEL),
    ("too much shared memory", RUNTIME, build(KERNEL.replace("256>>>", "256, 1 << 30>>>")) + MODEL),
]

ESCAPES = [
    ("kills its parent", ENDED + (None,), forward("import os\ntry: os.kill(os.getppid(), 9)\nexcept OSError: pass")),
    ("kills process 1", ENDED + (None,), forward("import os\ntry: os.kill(1, 9)\nexcept OSError: pass")),
    ("kills its process group", ENDED, forward("import os\nos.killpg(0, 9)")),
    ("kills everybody", ENDED + (None,), forward("import os\ntry: os.kill(-1, 9)\nexcept OSError: pass")),
    ("garbage for the judge", CHEATING, forward("import os\nos.write(3, b'\\xff' * 4096)")),
    ("a frame without an end", (CHEATING, TIMEOUT), forward(
        "import os, struct, time\nos.write(3, b'MCF1' + struct.pack('<IQ', 1 << 20, 1 << 29) + b'{')\n"
        "time.sleep(1e6)")),
    ("a frame larger than all", CHEATING, forward("import os, struct\nos.write(3, b'MCF1' + struct.pack('<IQ', 1 << 31,"
                                                  " 1 << 62))")),
    ("hangs up and lives on", ENDED, forward("import os, time\nos.close(3)\ntime.sleep(1e6)")),
    ("builds without end", ENDED + (COMPILE,), forward(
        "for i in range(10**6): load_inline(name=f'e{i}', cpp_sources='int f();', "
        "cuda_sources='int f() { return 1; }', functions=['f'])")),
]

BUILDS = [
    ("template bomb", (COMPILE, TIMEOUT), source(
        "template <int N, int M> struct T { static const int v = T<N - 1, M * 2>::v + T<N - 1, M * 2 + 1>::v; };\n"
        "template <int M> struct T<0, M> { static const int v = M; };\nstatic const int bomb = T<26, 1>::v;")),
    ("constexpr without end", (COMPILE, TIMEOUT), source(
        "constexpr long spin(long k) { while (true) k = k * 3 + 1; return k; }\nstatic_assert(spin(1), \"\");")),
    ("macro bomb", (COMPILE, TIMEOUT), source(
        "#define A0 1,1,1,1,1,1,1,1,1,1\n" + "".join(f"#define A{k} " + ",".join([f"A{k - 1}"] * 10) + "\n"
                                                     for k in range(1, 9)) +
        "static const char bomb[] = {A8};")),
    ("includes itself", (COMPILE, TIMEOUT), source("#include __FILE__")),
    ("#include \"/dev/zero\"", (COMPILE, TIMEOUT), source('#include "/dev/zero"')),
    ("#include \"/dev/urandom\"", (COMPILE, TIMEOUT), source('#include "/dev/urandom"')),
    ("#include \"/dev/stdin\"", (COMPILE, TIMEOUT, None), source('#include "/dev/stdin"')),
    ("#include \"/etc/passwd\"", COMPILE, source('#include "/etc/passwd"')),
    ("#include \"/proc/self/environ\"", (COMPILE, None), source('#include "/proc/self/environ"')),
    (".incbin \"/etc/hosts\"", (COMPILE, CHEATING), source('asm(".incbin \\"/etc/hosts\\"");')),
    (".incbin \"/dev/zero\"", (COMPILE, CHEATING, TIMEOUT), source('asm(".incbin \\"/dev/zero\\"");')),
    ("an array of 8 GB", (COMPILE, TIMEOUT, RUNTIME), source("char big[(size_t)1 << 33] = {1}; ")),
    ("messages without end", (COMPILE, TIMEOUT), source("\n".join(f"#error number {k}" for k in range(20000)))),
    ("10 MB of source", COMPILE, source("/*" + "x" * 10_000_000 + "*/")),
]

GPU = [  # a real device only
    ("leaves a kernel running", TIMEOUT, build(KERNEL.replace("__global__", '''
__global__ void forever(float *y) { for (;;) { y[0] = y[0] + 1; __nanosleep(1000); } }
__global__''', 1).replace("    return y;", "    cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n"
                          "    auto z = torch::empty_like(x); forever<<<1, 1, 0, s>>>(z.data_ptr<float>());\n"
                          "    return y;")) + MODEL),
    ("misaligned", RUNTIME, kernel("*(float4 *)((char *)y + 4) = make_float4(1, 2, 3, 4);")),
    ("trap", RUNTIME, kernel("__trap();")),
    ("recursion in a kernel", RUNTIME, build(KERNEL.replace("__global__", '''
__device__ __noinline__ int deep(volatile int *p, int k) {
    volatile int a[64]; a[k & 63] = *p; return deep(a, k + 1) + a[3]; }
__global__''', 1).replace("if (i < n)", "volatile int s = 1; if (deep(&s, n) == 1) y[0] = 2; if (i < n)")) + MODEL),
    ("device memory, a heap for kernels", (RUNTIME, None), host("cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)"
                                                                "120 << 30);")),
    ("device memory, stacks", (RUNTIME, None), host("cudaDeviceSetLimit(cudaLimitStackSize, 500 << 10);")),
    ("device memory, in order of the stream", (RUNTIME, TIMEOUT), host(
        'for (;;) { void *p; if (cudaMallocAsync(&p, (size_t)1 << 30, 0) != cudaSuccess) throw std::runtime_error("no '
        'more"); }')),
    ("device memory, around the wrappers", ENDED, forward(
        "import ctypes, glob\nlib = ctypes.CDLL('libcuda.so.1')\np = ctypes.c_void_p()\n"
        "while lib.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 30)) == 0: pass\n"
        "import time\ntime.sleep(1)\nraise MemoryError('all taken')")),
    ("pinned memory", (RUNTIME, TIMEOUT), host(
        'for (;;) { void *p; if (cudaMallocHost(&p, (size_t)1 << 30) != cudaSuccess) throw std::runtime_error("no '
        'more"); }')),
    ("prints from every thread", (None, TIMEOUT), kernel('for (int k = 0; k < 1000; k++) printf("%d %d\\n", i, k);')),
    ("resets the device", (None, CHEATING, RUNTIME), host("cudaDeviceReset();")),  # its process has none to reset
]


def rows(backend):
    return CRASHES + HANGS + BOMBS + DEVICE + ESCAPES + BUILDS + (GPU if backend == "cuda" else [])


# Who ends because it has filled what it may have must get so far.
FILLS = ("memory, Python", "memory, C++", "memory, in a file without a name", "fills /tmp", "device memory",
         "device memory, through torch", "device memory, in order of the stream", "device memory, around the wrappers")
BUILDS_LONG = {r[0] for r in BUILDS if TIMEOUT in r[1]} | {"builds without end"}


def limits(name, want, backend):
    """Seconds that a row's candidate may run, and build: short where nothing but the limit ends it, because everybody
    waits for that; long where it ends by itself, so that a busy machine makes no timeout of it. (The honest have all
    the time of the world.)"""
    gpu = backend == "cuda"
    run = 10 if name in FILLS and gpu else 20 if TIMEOUT not in want else 3 if None in want or not gpu else 2
    return run, (8 if gpu else 20) if name in BUILDS_LONG else 60


def is_long(name, want):
    """May it last as long as its limits allow?"""
    return TIMEOUT in want or name in BUILDS_LONG


# One of each family for a run of seconds.
QUICK = ("crashes on the host", "sleeps in forward", "memory, Python", "device assert", "garbage for the judge",
         "template bomb", "kills everybody", "closes every descriptor", "fills /tmp", "device memory", "stops itself",
         "loops in a constructor of the library")


def make(i, backend, quick=False):
    """-> (name, tuple of right categories, source); the source is unique."""
    table = rows(backend)
    if quick:
        table = [r for r in table if r[0] in QUICK]
    name, want, text = table[i * 37 % len(table)]  # a few are a few of every family
    return name, want if isinstance(want, tuple) else (want,), text + f"\n# hostile {i}\n"
