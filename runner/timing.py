"""timing.py - the timed side of a performance measurement: the task's own model, eager, compiled or as a library's
call.

The judge asks for n calls, then steps through them by itself over the same socket, 24 bytes each way:

  here -> judge   "MCRD", u32 index, 0, 0                             nothing of the call before is left on the device
  judge -> here   "MCGO", u32 mode, u64 seed, u32 0, u32 index        mode: COLD or NULL
  here -> judge   "MCTD", u32 index, u64 0, f64 event_ms              or "MCTE": the call raised, a frame says how

A call's inputs are drawn from the seed, inside the judge's span; event_ms is the time between two device events around
forward. No code of a candidate runs here: a candidate's calls are replays (src/eval/stage/stage_perf.c).

A block comes as {"op":"time","n","which","pad_us"} and ends with {"op":"timed",...,"host_us"}: how long this side's
host needed from a call's start until its second event was queued, the median of the block. The judge chooses pad_us
by it (src/eval/perf/measure.h says how long).

Inputs of a call: every floating leaf that may change is base * s * u, s in [0.5, 1) per leaf and u in [0.5, 1) per
element, both from the seed: zeros, signs and ranges stay, and every element differs between calls. base is what the
judge put. Every call begins with a pad: the device is kept busy for pad_us, by a kernel that touches no memory. Then
COLD draws and overwrites the L2 cache; NULL is a COLD call with an empty kernel in place of forward: what a call costs
beside it, in this very process.

What is measured is the device's time. The pad gives the host time to queue all the rest of the call, forward's
launches and the second event too, before the device has reached the first event; with busy cores, a kernel of some
microseconds would else be timed as long as the host takes to launch it. So the host's part of forward is hidden up to
pad_us (the flush hides about 70 us more); what goes beyond shows in the event time, as does every wait for the device
within forward. The pad is timed by the device's nanoseconds and not by its cycles, whose length changes with the clock.

Inside the span torch's operators are used for forward alone: the driver is asked for the rest.

Python's cyclic garbage is collected between calls, not in them.
"""
import contextlib
import ctypes
import gc
import math
import os
import select
import struct
import time

import torch

import frame
import values

GO, DONE = struct.Struct("<4sIQII"), struct.Struct("<4sIQd")
COLD, NULL = 0, 1
FLUSH_BYTES = 256 << 20  # what triton.testing.do_bench and KernelBench write
SLEEP_CYCLES_US = 1900   # torch's sleep, where there is no kernel of ours: cycles of a microsecond, about
SPIN_S = 0.2             # the judge answers within microseconds; then it is worth not to sleep
MASK = (1 << 64) - 1
C1, C2, C3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

_clock, _select = time.perf_counter, select.select
_gc_on, _gc_off, _gc_is_on, _gc_collect = gc.enable, gc.disable, gc.isenabled, gc.collect
_T = torch.Tensor
_data_ptr = _T.data_ptr
_fill, _uniform, _mul, _as_strided = _T.fill_, _T.uniform_, _T.mul_, _T.as_strided
_is_inference, _inference_mode, _null = _T.is_inference, torch.inference_mode, contextlib.nullcontext()
_empty, _no_grad, _Generator = torch.empty, torch.no_grad, torch.Generator


def may_write(t):
    """A context in which t may be changed in place: what was made in inference mode, in inference mode only."""
    return _inference_mode() if _is_inference(t) else _null


def image():
    """src/eval/perf/timing.cu, built; None if there is none. Read at import: the jail need not show it."""
    folder = os.environ.get("MUSACODER_LIB_DIR") or os.environ.get("MUSACODER_LIB") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "build", "lib")
    try:
        with open(os.path.join(folder, "timing.fatbin"), "rb") as f:
            return f.read()
    except OSError:
        return None


class HostDevice:
    """No device: host memory and the host's clock. For tests, and to see the loop without a GPU."""

    name, kernels = "cpu", None

    def start(self):
        pass

    def pad(self, us):
        pass

    def wipe(self):
        pass

    def record(self, which):
        return _clock()

    def elapsed_ms(self, a, b):
        return (b - a) * 1e3

    def sync(self):
        pass

    def empty_kernel(self):
        pass


class CudaDevice:
    """cuda:0 through torch's C classes: static types, whose methods Python cannot replace."""

    name = "cuda:0"
    _Event, _Stream = getattr(torch._C, "_CudaEventBase", None), getattr(torch._C, "_CudaStreamBase", None)
    _record, _elapsed = getattr(_Event, "record", None), getattr(_Event, "elapsed_time", None)
    _sync, _sleep = getattr(torch._C, "_cuda_synchronize", None), getattr(torch._C, "_cuda_sleep", None)
    PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE

    def start(self):
        self.stream = self._Stream(stream_id=0, device_index=0, device_type=1)
        self.flush, self.events = None, ()
        driver = ctypes.CDLL("libcuda.so.1")
        self.reset_l2, self.limit = driver.cuCtxResetPersistingL2Cache, driver.cuCtxSetLimit
        self.limit.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.memset = driver.cuMemsetD32Async
        self.memset.argtypes = [ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p]
        self.kernels = Kernels(driver, _IMAGE, self.name) if _IMAGE else None

    def begin(self):
        if self.flush is None:
            self.flush = _empty(FLUSH_BYTES // 4, dtype=torch.int32, device=self.name)
            self.flush_at = _data_ptr(self.flush)
        self.limit(self.PERSISTING_L2, 0)
        self.reset_l2()
        if not self.events:
            new = CudaDevice._Event
            self.events = tuple(new(enable_timing=True, blocking=False, interprocess=False) for _ in range(2))
            for which in range(2):  # torch makes an event when it is recorded first: not in a call
                self.record(which)

    def pad(self, us):
        """Keeps the device busy for that long, without touching memory."""
        if self.kernels:
            self.kernels.spin(us)
        else:
            CudaDevice._sleep(us * SLEEP_CYCLES_US)

    def wipe(self):
        self.memset(self.flush_at, 0, FLUSH_BYTES // 4, None)

    def record(self, which):
        ev = self.events[which]
        CudaDevice._record(ev, self.stream)
        return ev

    def elapsed_ms(self, a, b):
        return CudaDevice._elapsed(a, b)

    def sync(self):
        CudaDevice._sync()

    def empty_kernel(self):
        CudaDevice._sleep(1)


HostDevice.begin = HostDevice.start
_IMAGE = image()


class Kernels:
    """The kernels of timing.cu, launched on the legacy default stream."""

    BLOCK, GRID = 256, 2048
    DRAW = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}

    def __init__(self, driver, text, device):
        module = ctypes.c_void_p()
        self.text, self.launch_kernel = text, driver.cuLaunchKernel
        self.launch_kernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
        self.ok(driver.cuModuleLoadData(ctypes.byref(module), text))
        self.draws, self.spins = {}, ctypes.c_void_p()
        for dtype, name in self.DRAW.items():
            self.draws[dtype] = ctypes.c_void_p()
            self.ok(driver.cuModuleGetFunction(ctypes.byref(self.draws[dtype]), module,
                                               b"timing_draw_" + name.encode()))
        self.ok(driver.cuModuleGetFunction(ctypes.byref(self.spins), module, b"timing_spin"))

    @staticmethod
    def ok(rc):
        if rc:
            raise RuntimeError(f"the driver refused the timing kernels (error {rc})")

    def launch(self, f, n, *values):
        grid = min((n + self.BLOCK - 1) // self.BLOCK, self.GRID)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        self.ok(self.launch_kernel(f, grid, 1, 1, self.BLOCK, 1, 1, 0, None, pointers, None))

    def spin(self, us):
        ns = ctypes.c_uint64(us * 1000)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
        self.ok(self.launch_kernel(self.spins, 1, 1, 1, 1, 1, 1, 0, None, pointers, None))

    def draw(self, flat, base, seed, s):
        n = flat.numel()
        self.launch(self.draws[flat.dtype], n, ctypes.c_uint64(_data_ptr(flat)), ctypes.c_uint64(_data_ptr(base)),
                    ctypes.c_uint64(n), ctypes.c_uint64(seed & MASK), ctypes.c_float(s))


def device_of(name):
    return CudaDevice() if name.startswith("cuda") else HostDevice()


def mix_int(x, k):
    h = (x ^ (k + 1) * C1) & MASK
    h = h * C2 & MASK
    h ^= h >> 32
    return h * C3 & MASK


# One side -------------------------------------------------------------------------------------------------------------


class Timer:
    """The calls of one model. device: "cuda:0" or "cpu"; put: host tensor -> tensor there (a copy)."""

    def __init__(self, device, put):
        self.device, self.put = device_of(device), put
        self.where, self.given, self.fresh, self.spent, self.protected = self.device.name, [], [], [], set()
        self.device.start()

    def put_inputs(self, req, blob):
        """{"inputs":tree,"fresh":[leaf index]}: the base of every call's data."""
        self.given = values.decode(req["inputs"], blob, self.put)
        leaves = values.leaves(self.given)
        self.fresh = []
        for k in req["fresh"]:
            flat = self.flat(leaves[k])
            self.fresh.append((k, flat, flat.clone()))

    @staticmethod
    def flat(t):
        """Everything that t's layout spans, as one row; real and imaginary parts apart."""
        extent = 1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride())) if t.numel() else 0
        row = _as_strided(t, (extent,), (1,))
        return torch.view_as_real(row).reshape(-1) if t.is_complex() else row

    def draw(self, seed):
        for k, flat, base in self.fresh:
            s = 0.5 + 0.5 * ((mix_int(seed, k) >> 40) / (1 << 24))
            if self.device.kernels:
                self.device.kernels.draw(flat, base, seed + k * C1, s)
            else:
                gen = _Generator(device=self.where).manual_seed((seed + k * C1) & (MASK >> 1))
                _mul(_uniform(flat, 0.5 * s, s, generator=gen), base)

    def arm(self, protected):
        """protected: memory that is never poisoned, as it stays; inputs are not either."""
        self.protected = {t.untyped_storage()._cdata for t in protected}
        self.protected |= {t.untyped_storage()._cdata for t in values.leaves(self.given)}

    def settle(self):
        """Outside of the span: nothing of the last call is left for the next one, neither its answer nor work."""
        spent, self.spent = self.spent, []
        while spent:
            self.poison(spent.pop())
        _gc_collect(1)  # what calls left since the last time; a whole collection would take longer than they do
        self.device.sync()

    def poison(self, t):
        """The next call's allocations must not find this call's answer."""
        if t.numel() and t.device.type != "cpu" and t.untyped_storage()._cdata not in self.protected:
            with may_write(t):
                _fill(t, float("nan") if t.is_floating_point() or t.is_complex() else t.dtype != torch.bool and 0x5A)

    def call(self, model, mode, seed, pad_us=0):
        """(event_ms, host_us)"""
        dev, start = self.device, _clock()
        if pad_us:
            dev.pad(pad_us)
        self.draw(seed)
        dev.wipe()
        a = dev.record(0)
        if mode == NULL:
            dev.empty_kernel()
        else:
            self.spent = values.leaves(model(*self.given))
        b = dev.record(1)
        host = (_clock() - start) * 1e6
        dev.sync()
        return dev.elapsed_ms(a, b), host

    def serve(self, sock, model, req):
        """The calls of one block, and its host_us. Raises what a call raised, after telling the judge that one did."""
        self.telling(sock, 0, self.device.begin)  # a device that is full is no message that the judge does not know
        collects = _gc_is_on()
        _gc_off()
        try:
            return self.calls(sock, model, req["n"], req["pad_us"])
        finally:
            if collects:
                _gc_on()

    def calls(self, sock, model, n, pad_us):
        hosts = []
        with _no_grad():
            for index in range(n):
                self.telling(sock, index, self.settle)
                sock.sendall(DONE.pack(b"MCRD", index, 0, 0.0))
                mode, seed, index = self.go(sock)
                ms, host = self.telling(sock, index, self.call, model, mode, seed, pad_us)
                sock.sendall(DONE.pack(b"MCTD", index, 0, ms if math.isfinite(ms) else 0.0))
                hosts.append(host)
            self.settle()
        return sorted(hosts)[len(hosts) // 2] if hosts else 0.0

    @staticmethod
    def telling(sock, index, f, *args):
        try:
            return f(*args)
        except BaseException:
            sock.sendall(DONE.pack(b"MCTE", index, 0, 0.0))
            raise

    def go(self, sock):
        """Waits for the judge without sleeping, for a while: a wake-up would be measured. Without a device it would be
        noise."""
        got, until, flags = b"", _clock() + (SPIN_S if self.where != "cpu" else 0), 0x40  # MSG_DONTWAIT
        while len(got) < GO.size:
            try:
                part = sock.recv(GO.size - len(got), flags)
                if not part:
                    raise frame.Closed("closed")
                got += part
            except BlockingIOError:
                if _clock() > until:
                    _select([sock], [], [])
        magic, mode, seed, _, index = GO.unpack(got)
        if magic != b"MCGO" or mode > NULL:
            raise frame.FrameError("the peer does not speak our protocol")
        return mode, seed, index
