"""The device's library, the context of a child, and the counters of a candidate's libraries.

libcudatorch.so (litetorch/runtime) holds the allocator and the table for candidates' libraries. It is loaded in the fork
server's parent; the driver is first called in the child, after the jail is closed, so every thread of CUDA is jailed too.
"""
import ctypes
import json
import os
import threading

import native

from .graphs import Graphs

_lib = None
_before_use = ctypes.CFUNCTYPE(None)
_libraries = []  # lt_device of every library of the candidate
_ablate = 0      # LT_ABLATE_... of litetorch/abi.h
_check = False
_lock = threading.Lock()


class Kernel(ctypes.Structure):
    _fields_ = [("symbol", ctypes.c_char_p), ("name", ctypes.c_char_p), ("launches", ctypes.c_uint64)]


class Device(ctypes.Structure):  # struct lt_device of litetorch/include/litetorch/abi.h
    _fields_ = [("version", ctypes.c_int32), ("ablate", ctypes.c_int32), ("launches", ctypes.c_uint64),
                ("graph_launches", ctypes.c_uint64), ("side_launches", ctypes.c_uint64), ("captured", ctypes.c_uint64),
                ("n_kernels", ctypes.c_int32), ("spare", ctypes.c_int32), ("kernels", ctypes.POINTER(Kernel)),
                ("to_host", ctypes.c_uint64), ("to_device", ctypes.c_uint64)]


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in ("in_use", "peak", "held", "limit")] + \
               [(n, ctypes.c_int64) for n in ("blocks", "allocations", "short")]


DEVICE_ABI = 2
RECORDED = 2  # LT_ABLATE_RECORDED


def lib_path():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.environ.get("MUSACODER_LIB_DIR") or os.path.join(here, "..", "..", "build", "lib")
    return os.path.abspath(os.path.join(folder, "libcudatorch.so"))


def preload():
    """Parent of the fork server. The driver is not called: CUDA does not survive a fork."""
    global _lib
    from native import extension
    if _lib is not None:
        return
    if not os.path.exists(lib_path()):
        raise native.DeviceError(f"'{lib_path()}' is missing; run 'make setup', then 'make'")
    import torch
    if torch.version.cuda is None:
        raise native.DeviceError(f"PyTorch {torch.__version__} has no CUDA; install a build with CUDA, or set MUSACODER_PYTHON")
    _lib = ctypes.CDLL(lib_path())
    native.attach(_lib, _loaded)
    native.check_version("libcudatorch.so")
    c, p, i, z = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    for name, result, *args in (("lt_cuda_limit", None, z), ("lt_cuda_give_back", None, p),
                                ("lt_cuda_poison", None, i, i), ("lt_cuda_check", i),
                                ("lt_cuda_memory", None, p), ("lt_cuda_reset_peak", None),
                                ("lt_cuda_last_error", i, ctypes.POINTER(c))):
        f = getattr(_lib, name)
        f.restype, f.argtypes = result, args
    extension.put_in_place()


def begin(args=None):
    """args: {"memory": bytes of device memory this process may hold, 0 = no limit; "poison": use our allocator;
    "tf32": bool or None = torch's defaults; "queues": of the device, 0 = as many as the driver makes}."""
    import torch

    from . import area, errors, numbers
    args = args or {}
    if args.get("queues"):
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(int(args["queues"]))  # read when the context is made
    if args.get("poison", True):
        _lib.lt_cuda_limit(int(args.get("memory") or 0))
        own = torch.cuda.memory.CUDAPluggableAllocator(lib_path(), "lt_cuda_malloc", "lt_cuda_free")
        own.allocator().set_record_stream_fn(ctypes.cast(_lib.lt_cuda_record_stream, ctypes.c_void_p).value)
        torch.cuda.memory.change_current_allocator(own)
        numbers.put_on()
    try:
        torch.cuda.init()
        torch.zeros(64, device="cuda").add_(1).sum().item()
    except Exception as e:
        raise native.DeviceError(f"the GPU does not answer: {errors.first_line(e)}") from e
    area.bind()
    set_tf32(args.get("tf32"))
    if not args.get("poison", True) and args.get("memory"):
        torch.cuda.set_per_process_memory_fraction(min(1.0, args["memory"] / torch.cuda.get_device_properties(0).total_memory))


def set_tf32(on):
    """The judge's policy for both sides; None leaves torch's defaults (convolutions may use TF32, products may not)."""
    import torch

    if on is not None:
        torch.backends.cuda.matmul.allow_tf32 = bool(on)
        torch.backends.cudnn.allow_tf32 = bool(on)


def install(build):
    """Candidate's child, before its code runs. build(request) -> reply blocks until the compile stage answers."""
    global _check
    import torch
    from native import extension
    extension.set_builder(build)
    if not _check:
        _lib.lt_trace_open()
        note_jiterator()
        _graphs.watch(torch._C._CUDAGraph)
        bind()
    _check = True


def _loaded(so):
    """A library of the candidate: its counters, and the switch that takes its launches away."""
    try:
        f = so.lt_module_device
    except AttributeError:
        return
    f.restype = ctypes.POINTER(Device)
    device = f()
    if not device or device.contents.version != DEVICE_ABI:
        raise native.DeviceError("the extension was built for another version of litetorch")
    device.contents.ablate = _ablate
    with _lock:
        if not any(ctypes.addressof(d.contents) == ctypes.addressof(device.contents) for d in _libraries):
            _libraries.append(device)  # loaded twice, counted once


def note_jiterator():
    """torch.cuda.jiterator: torch makes a kernel around an expression and launches it, past wrappers and dispatcher."""
    import torch

    name = "_cuda_jiterator_compile_and_launch_kernel"
    launch, note = getattr(torch._C, name, None), _lib.lt_add_finding
    note.restype, note.argtypes = None, [ctypes.c_char_p] * 3

    def noted(*args, **kwargs):
        note(b"library_call", b"torch.cuda.jiterator", b"torch.cuda.jiterator was called")
        return launch(*args, **kwargs)

    if launch:
        setattr(torch._C, name, noted)


# Bound by install, before foreign code runs: what it replaces in torch afterwards is not what the judge calls.
_torch = {}


def bind():
    import torch

    _torch.update(sync=torch._C._cuda_synchronize, to=torch.Tensor.to, detach=torch.Tensor.detach)


def to_device(t):
    with native.trace.pause():
        return t.detach().to("cuda", copy=True)


def from_device(t):
    with native.trace.pause():
        detach, to = _torch.get("detach", type(t).detach), _torch.get("to", type(t).to)
        return to(detach(t), "cpu", copy=True)


def finish():
    """Waits. Raises the device's fault, or what a launch said that nobody asked."""
    import torch

    _torch.get("sync", torch._C._cuda_synchronize)()
    text = ctypes.c_char_p()
    code = _lib.lt_cuda_last_error(ctypes.byref(text))
    if code > 0:
        raise RuntimeError("CUDA error: " + text.value.decode("utf-8", "replace"))
    if _check:
        _lib.lt_cuda_check()


def set_ablation(on):
    global _ablate
    _ablate = RECORDED if on == "recorded" else int(bool(on))
    with _lock:
        for d in _libraries:
            d.contents.ablate = _ablate


def set_check(on):
    global _check
    _check = bool(on)
    _lib.lt_cuda_poison(1, int(_check))


def set_poison(on):
    """Off: the pool gives memory as it is, and writes no red zones."""
    _lib.lt_cuda_poison(int(bool(on)), int(bool(on)))


_told = None  # what ctypes calls must stay alive


def before_use(f):
    """f is called once, by whoever next asks for memory of the device, before there is any; None: nobody is told."""
    global _told
    told = _before_use(f) if f else _before_use()
    _lib.lt_cuda_before_use(told)
    _told = told


def give_back(at):
    """Memory at this address that no tensor has any more: other processes may have it."""
    _lib.lt_cuda_give_back(at)


def memory():
    m = Memory()
    _lib.lt_cuda_memory(ctypes.byref(m))
    return {name: getattr(m, name) for name, _ in Memory._fields_}


def take_findings():
    return json.loads(native.take_string(_lib.lt_findings()))


def launched():
    """{kernel: launches} that passed through the candidate's libraries, recorded ones included."""
    out = {}
    with _lock:
        for d in _libraries:
            for i in range(d.contents.n_kernels):
                k = d.contents.kernels[i]
                name = (k.name or k.symbol or b"?").decode("utf-8", "replace")
                out[name] = out.get(name, 0) + k.launches
    return out


def total(*names):
    with _lock:
        return {name: sum(getattr(d.contents, name) for d in _libraries) for name in names}


_graphs = Graphs(lambda: total("captured")["captured"], launched)


def kernels():
    """{kernel: launches}, replays of graphs included."""
    out = launched()
    for name, n in _graphs.replayed().items():
        out[name] = out.get(name, 0) + n
    return out


def stats():
    """Counts since install. Host memory only: they can be asked after a fault too."""
    out = total("launches", "graph_launches", "side_launches", "captured", "to_host", "to_device")
    out["kernels"] = {name: {"launches": n} for name, n in kernels().items()}
    out["device_short"] = memory()["short"] > 0
    out["library_calls"] = json.loads(native.take_string(_lib.lt_library_calls()))
    return out
