"""timing.py - the timed side of a performance measurement, the same for a candidate and for the baselines.

The judge asks for n calls, then steps through them by itself over the same socket, 24 bytes each way:

  here -> judge   "MCRD", u32 index, 0, 0                             nothing of the call before is left on the device
  judge -> here   "MCGO", u32 mode, u64 seed, u32 slot, u32 index     mode: COLD, WARM or NULL
  here -> judge   "MCTD", u32 index, u64 commitment, f64 event_ms     or "MCTE": the call raised, a frame says how

Nobody on this side knows a call's data before the judge's clock runs: the inputs are drawn from the seed, inside the
judge's span. The span ends when the judge holds the commitment, a checksum over every byte of the output: what is
computed after that comes too late. Later the judge asks for some of the outputs (reveal), chosen when all are
committed, and compares them, and their checksums, by itself. event_ms is this side's own claim: two device events
around forward. Forging it, or hiding work from it, makes it disagree with the span.

A block comes as {"op":"time","n","which","pad_us"} and ends with {"op":"timed",...,"host_us"}: how long this side's
host needed from a call's start until its second event was queued, the median of the block. A claim, too: it can only
make the judge ask for a longer pad_us, of both sides (src/eval/measure.h says how long).

Inputs of a call: every floating leaf that may change is base * s * u, s in [0.5, 1) per leaf and u in [0.5, 1) per
element, both from the seed: zeros, signs and ranges stay, and every element differs between calls. base is what the
judge put. Every call begins with a pad: the device is kept busy for pad_us, by a kernel that touches no memory. Then
COLD draws and overwrites the L2 cache; WARM draws, and so leaves the data in it; NULL is a COLD call with an empty
kernel in place of forward: what a call costs beside it, in this very process.

What is measured is the device's time. The pad gives the host time to queue all the rest of the call, forward's
launches and the second event too, before the device has reached the first event; with busy cores, a kernel of some
microseconds would else be timed as long as the host takes to launch it. So the host's part of forward is hidden up to
pad_us (a COLD call's flush hides about 70 us more); what goes beyond shows in the event time, as does every wait for
the device within forward.

The order, pad before draw before events, is also what keeps a call's data from being known early: work that does not
wait for the stream on which forward is called runs during the pad, before the data are there, and its answer is that
of the call before. Pad after drawing, and the pad would be time to compute in. A WARM call's commitment is queued on
that stream too, without waiting for others: who answers from another stream must have joined it. A COLD call waits
for the whole device before it commits: whatever forward left behind is in the span, and what is done after it takes
as long after every forward.

The pad is in every span, as a part of the constant that is measured on the reference's side. So it is timed by the
device's nanoseconds and not by its cycles, whose length changes with the clock, and both sides pad alike.

Inside the span torch's operators are not used, but the driver: an operator takes longer where somebody listens to
operators, as the judge does in a candidate's process.

Python's cyclic garbage is collected between calls, not in them.

What this loop uses of torch is bound when this module is imported, which is before foreign code runs.
"""
import contextlib
import ctypes
import gc
import math
import os
import select
import struct
import sys
import time

import torch

import frame
import values

GO, DONE = struct.Struct("<4sIQII"), struct.Struct("<4sIQd")
COLD, WARM, NULL = 0, 1, 2
FLUSH_BYTES = 256 << 20  # what triton.testing.do_bench and KernelBench write
SLEEP_CYCLES_US = 1900   # torch's sleep, where there is no kernel of ours: cycles of a microsecond, about
SPIN_S = 0.2             # the judge answers within microseconds; then it is worth not to sleep
MASK = (1 << 64) - 1
C1, C2, C3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

_clock, _select = time.perf_counter, select.select
_gc_on, _gc_off, _gc_is_on, _gc_collect = gc.enable, gc.disable, gc.isenabled, gc.collect
_T = torch.Tensor
_data_ptr, _is_contiguous = _T.data_ptr, _T.is_contiguous
_copy, _fill, _uniform, _mul, _item, _view, _as_strided, _reshape = (
    _T.copy_, _T.fill_, _T.uniform_, _T.mul_, _T.item, _T.view, _T.as_strided, _T.reshape)
_xor, _and, _shift, _sum = _T.bitwise_xor_, _T.bitwise_and_, _T.bitwise_right_shift, _T.sum
_is_inference, _inference_mode, _null = _T.is_inference, torch.inference_mode, contextlib.nullcontext()
_empty, _zeros, _arange, _no_grad, _Generator = torch.empty, torch.zeros, torch.arange, torch.no_grad, torch.Generator


def may_write(t):
    """A context in which t may be changed in place: what was made in inference mode, in inference mode only."""
    return _inference_mode() if _is_inference(t) else _null


def signed(x):
    return x - (1 << 64) if x >> 63 else x


def image():
    """src/eval/timing.cu, built; None if there is none. Read at import: the jail need not show it."""
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
        self.sum, self.answer = _zeros(1, dtype=torch.int64, device=device), ctypes.c_uint64()
        self.sum_at, self.memset, self.read = _data_ptr(self.sum), driver.cuMemsetD32Async, driver.cuMemcpyDtoH_v2
        self.memset.argtypes = [ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p]
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
        self.ok(driver.cuModuleLoadData(ctypes.byref(module), text))
        self.draws, self.commits, self.spins = {}, ctypes.c_void_p(), ctypes.c_void_p()
        for dtype, name in self.DRAW.items():
            self.draws[dtype] = ctypes.c_void_p()
            self.ok(driver.cuModuleGetFunction(ctypes.byref(self.draws[dtype]), module, b"timing_draw_" + name.encode()))
        self.ok(driver.cuModuleGetFunction(ctypes.byref(self.commits), module, b"timing_commit"))
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

    def commit(self, to, leaves, slot):
        """Copies the leaves to their places at address to (slot() as a tensor); queues the sum of mix over them. A leaf
        without a tensor is in its place already."""
        total = ctypes.c_uint64(self.sum_at)
        self.ok(self.memset(self.sum_at, 0, 2, None))
        for leaf, t in leaves:
            place = source = to + leaf.at * 8
            if t is not None and leaf.nbytes:
                source = _data_ptr(t) if leaf.kind == "cuda" and _is_contiguous(t) else 1
                if source % 8 or leaf.nbytes % 8 or t.is_conj() or t.is_neg():
                    _copy(leaf.within(slot()), t)
                    source = place
            if leaf.words:
                self.launch(self.commits, leaf.words, ctypes.c_uint64(place), ctypes.c_uint64(source),
                            ctypes.c_uint64(leaf.words), ctypes.c_uint64(leaf.at + 1), total)

    def total(self):
        """Waits for what was queued on the legacy stream. A fault of the device is said by who waits for all of it."""
        if self.read(ctypes.addressof(self.answer), self.sum_at, 8):
            CudaDevice._sync()
            raise RuntimeError("the device does not answer")
        return self.answer.value


def device_of(name):
    return CudaDevice() if name.startswith("cuda") else HostDevice()


# Commitments ----------------------------------------------------------------------------------------------------------


def mix(words, index):
    """Sum over i of mix(words[i] ^ (i + 1) * C1) modulo 2**64, mix as in src/eval/timing.c. Both are 1-D int64."""
    h = _copy(_empty(index.shape, dtype=torch.int64, device=index.device), index)
    h = _mul(_xor(_mul(h, signed(C1)), words), signed(C2))
    return _sum(_mul(_xor(h, _and(_shift(h, 32), 0xFFFFFFFF)), signed(C3)))


def mix_int(x, k):
    h = (x ^ (k + 1) * C1) & MASK
    h = h * C2 & MASK
    h ^= h >> 32
    return h * C3 & MASK


def number_bits(x):
    return struct.unpack("<Q", struct.pack("<d", float(x)))[0]


class Leaf:
    """Where an output tensor lies in its slot."""

    def __init__(self, t, at):
        self.dtype, self.shape, self.at = t.dtype, list(t.shape), at
        self.nbytes = t.numel() * t.element_size()
        self.words, self.kind = (self.nbytes + 7) // 8, t.device.type

    def within(self, words):
        """This leaf's part of a slot, as a contiguous tensor."""
        raw = _view(words, torch.uint8)[self.at * 8:self.at * 8 + self.nbytes]
        return _reshape(_view(raw, self.dtype), self.shape)


class Skeleton:
    """An output's structure: tensors become Leaf, everything else stays."""

    def __init__(self, out):
        self.leaves, self.numbers, self.words = [], [], 0
        self.tree = self.walk(out)

    def walk(self, v):
        if isinstance(v, _T):
            leaf = Leaf(v, self.words)
            self.words += leaf.words
            self.leaves.append((leaf, v))
            return leaf
        if isinstance(v, (list, tuple)):
            return tuple(self.walk(x) for x in v) if isinstance(v, tuple) else [self.walk(x) for x in v]
        if isinstance(v, dict):
            return {k: self.walk(x) for k, x in v.items()}
        if isinstance(v, (int, float)):
            self.numbers.append(v)
        return v

    def drop(self):
        """Lets go of the tensors, keeps the places."""
        tensors = [t for _, t in self.leaves]
        self.leaves = [leaf for leaf, _ in self.leaves]
        return tensors

    def filled(self, words, v=None):
        v = self.tree if v is None else v
        if isinstance(v, Leaf):
            return v.within(words)
        if isinstance(v, (list, tuple)):
            return type(v)(self.filled(words, x) if x is not None else None for x in v)
        if isinstance(v, dict):
            return {k: self.filled(words, x) if x is not None else None for k, x in v.items()}
        return v


# One side -------------------------------------------------------------------------------------------------------------


class Timer:
    """The calls of one model. device: "cuda:0" or "cpu"; put: host tensor -> tensor there (a copy), fetch: back; check
    raises on outputs that are none."""

    def __init__(self, device, put, fetch, check=None):
        self.device, self.put, self.fetch, self.check = device_of(device), put, fetch, check
        self.where, self.given, self.fresh, self.kept = self.device.name, [], [], {}
        self.area, self.index, self.scratch, self.spent, self.last = None, None, None, [], None
        pool = sys.modules.get(os.environ.get("MUSACODER_DEVICE") or "")
        self.set_poison = getattr(pool, "set_poison", lambda on: None)
        self.give_back = getattr(pool, "give_back", lambda at: None)
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

    def arm(self, slots, protected):
        """Room for that many outputs: made now if it is known how large they are, else at the next call, in its span.
        What there was goes back to the device. protected: memory that is never poisoned, as it stays."""
        words = self.scratch.numel() if self.scratch is not None and slots else 0
        at = self.area_at if self.area is not None else 0
        self.slots, self.area, self.scratch, self.kept, self.last = slots, None, None, {}, None
        if at:
            self.give_back(at)
        self.protected = {t.untyped_storage()._cdata for t in protected}
        self.protected |= {t.untyped_storage()._cdata for t in values.leaves(self.given)}
        if words:
            self.room(words)

    def room(self, words):
        """The area of all slots, and one beside it, for outputs of that many words."""
        if self.scratch is None or self.scratch.numel() != words:
            self.scratch = _zeros(words, dtype=torch.int64, device=self.where)
            self.area = _zeros((self.slots, words), dtype=torch.int64, device=self.where) if self.slots else None
            if not self.device.kernels:
                self.index = _arange(1, words + 1, dtype=torch.int64, device=self.where)
            self.scratch_at = _data_ptr(self.scratch)
            self.area_at = _data_ptr(self.area) if self.slots else 0

    def slot(self, slot):
        return self.area[slot] if slot < self.slots else self.scratch

    def sum_up(self, leaves, words, slot):
        """Copies the tensors to their places and returns the sum of mix over all words. Waits for that, and no more."""
        if self.device.kernels:
            to = self.area_at + slot * words * 8 if slot < self.slots else self.scratch_at
            self.device.kernels.commit(to, leaves, lambda: self.slot(slot))
            return self.device.kernels.total()
        for leaf, t in leaves:
            if leaf.nbytes and t is not None:
                _copy(leaf.within(self.slot(slot)), t)
        return int(_item(mix(self.slot(slot), self.index)))

    def commit(self, out, slot):
        """Copies the output aside and returns its commitment."""
        sk = Skeleton(out)
        self.room(sk.words)
        h = self.sum_up(sk.leaves, sk.words, slot)
        for k, x in enumerate(sk.numbers):
            h += mix_int(number_bits(x), k)
        self.spent = sk.drop()
        self.last = sk
        if slot < self.slots:
            self.kept[slot] = sk
        return h & MASK

    def commit_to_nothing(self):
        """The same work on what lies in the place that is not kept."""
        if self.last:
            self.sum_up([(leaf, None) for leaf in self.last.leaves], self.last.words, self.slots)

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

    def call(self, model, mode, seed, slot, pad_us=0):
        """(commitment, event_ms, host_us)"""
        dev, h, start = self.device, 0, _clock()
        if pad_us:
            dev.pad(pad_us)
        self.draw(seed)
        if mode != WARM:
            dev.wipe()
        a = dev.record(0)
        if mode == NULL:
            dev.empty_kernel()
        else:
            out = model(*self.given)
        b = dev.record(1)
        host = (_clock() - start) * 1e6
        if mode != WARM:
            dev.sync()
        if mode == NULL:
            self.commit_to_nothing()
        else:
            if self.check:
                self.check(out)
            h = self.commit(out, slot)
        if not dev.kernels:
            dev.sync()
        return h, dev.elapsed_ms(a, b), host

    def serve(self, sock, model, req):
        """The calls of one block, and its host_us. Raises what a call raised, after telling the judge that one did."""
        self.telling(sock, 0, self.device.begin)  # a device that is full is no message that the judge does not know
        self.set_poison(False)  # the pool would fill what forward allocates inside its events; commit fills outputs
        collects = _gc_is_on()
        _gc_off()
        try:
            return self.calls(sock, model, req["n"], req["pad_us"])
        finally:
            if collects:
                _gc_on()
            self.set_poison(True)

    def calls(self, sock, model, n, pad_us):
        hosts = []
        with _no_grad():
            for index in range(n):
                self.telling(sock, index, self.settle)
                sock.sendall(DONE.pack(b"MCRD", index, 0, 0.0))
                mode, seed, slot, index = self.go(sock)
                h, ms, host = self.telling(sock, index, self.call, model, mode, seed, slot, pad_us)
                sock.sendall(DONE.pack(b"MCTD", index, h, ms if math.isfinite(ms) else 0.0))
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
        magic, mode, seed, slot, index = GO.unpack(got)
        if magic != b"MCGO" or mode > NULL:
            raise frame.FrameError("the peer does not speak our protocol")
        return mode, seed, slot, index

    def reveal(self, slot, place=None):
        """(head, parts) of one kept output, for frame.send. place: shared memory that the values go to (area.py)."""
        sk, packer = self.kept[slot], values.Collector(self.fetch) if place else values.Packer(self.fetch)
        tree = packer.tree(sk.filled(self.area[slot]) if sk.words else sk.tree)
        if place:
            packer.write(place)
            place.settle()
        astray = [i for i, f in enumerate(sk.leaves) if f.kind != self.where.split(":")[0]]
        return {"op": "result", "output": tree, "on_host": astray}, packer.parts
