"""torch.cuda as a candidate asks for it, of a device that is elsewhere: what the driver would answer the executor does.

Tensors need no disguise: they are of device cuda:0 (litetorch/front/device.cc). Streams and events are the executor's
numbers; torch's current stream is the library's own notion of it, so that C++ and operators see the same one.
"""
import contextlib
import ctypes
import sys
import types

import torch

from . import core, kernel


def _check(code):
    if code:
        raise RuntimeError(f"CUDA error: {core.lib().front_error_text(code).decode()}")


def attribute(number):
    value = ctypes.c_int()
    core.lib().front_attribute(number, ctypes.byref(value))
    return value.value


GRAPHS, IMAGES = 4, 9  # FRONT_LACK_GRAPHS and _IMAGES of litetorch/front/front.h
COMPILERS = {"nvcc", "mcc", "ninja", "ptxas", "cuobjdump"}


class Properties(types.SimpleNamespace):
    """What get_device_properties returns."""


NUMBERS = {"major": 75, "minor": 76, "multi_processor_count": 16, "warp_size": 10,
           "max_threads_per_multi_processor": 39,
           "max_threads_per_block": 1, "regs_per_multiprocessor": 82, "shared_memory_per_block": 8,
           "shared_memory_per_block_optin": 97, "shared_memory_per_multiprocessor": 81, "L2_cache_size": 38,
           "clock_rate": 13, "memory_clock_rate": 36, "memory_bus_width": 37}


def properties():
    return Properties(name=name(), total_memory=core.lib().front_device_memory(), is_integrated=0, is_multi_gpu_board=0,
                      gcnArchName="", uuid="00000000-0000-0000-0000-000000000000",
                      **{k: attribute(v) for k, v in NUMBERS.items()})


def name():
    return core.lib().front_device_name().decode()


class Stream:
    def __init__(self, device=None, priority=0, stream_ptr=None, **kwargs):
        check_device(device)
        self.device, self.device_index, self.priority = cuda0(), 0, priority
        handle = ctypes.c_void_p(stream_ptr)
        if stream_ptr is None:
            _check(core.lib().front_stream_create(1, priority, ctypes.byref(handle)))
        self.cuda_stream = self.stream_id = handle.value or 0

    def synchronize(self):
        _check(core.lib().front_stream_sync(self.cuda_stream))

    def query(self):
        return core.lib().front_stream_query(self.cuda_stream) == 0

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def wait_event(self, event):
        event.wait(self)

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self.before = core.lib().front_stream()
        core.lib().front_set_stream(self.cuda_stream)
        return self

    def __exit__(self, *exc):
        core.lib().front_set_stream(self.before)
        return False

    def __eq__(self, other):
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self):
        return self.cuda_stream


def current_stream(device=None):
    check_device(device)
    return Stream(stream_ptr=core.lib().front_stream() or 0)


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.enable_timing, self.recorded = enable_timing, False
        self.cuda_event = ctypes.c_void_p()
        _check(core.lib().front_event_create(0 if enable_timing else 2, ctypes.byref(self.cuda_event)))

    def record(self, stream=None):
        at = stream.cuda_stream if stream is not None else core.lib().front_stream()
        _check(core.lib().front_event_record(self.cuda_event, at))
        self.recorded = True

    def wait(self, stream=None):
        at = stream.cuda_stream if stream is not None else core.lib().front_stream()
        if self.recorded:
            _check(core.lib().front_stream_wait(at, self.cuda_event))

    def synchronize(self):
        if self.recorded:
            _check(core.lib().front_event_sync(self.cuda_event))

    def query(self):
        return not self.recorded or core.lib().front_event_query(self.cuda_event) == 0

    def elapsed_time(self, end):
        if not self.recorded or not end.recorded:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        ms = ctypes.c_float()
        _check(core.lib().front_event_elapsed(self.cuda_event, end.cuda_event, ctypes.byref(ms)))
        return ms.value


class StreamContext:
    """torch.cuda.stream(s); None changes nothing."""

    def __init__(self, stream=None):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.before = core.lib().front_stream()
            core.lib().front_set_stream(self.stream.cuda_stream)

    def __exit__(self, *exc):
        if self.stream is not None:
            core.lib().front_set_stream(self.before)
        return False


class DeviceContext:
    """torch.cuda.device(d), torch.cuda.device_of(t): nothing to switch."""

    def __init__(self, what=None):
        self.idx = 0
        if isinstance(what, (int, str, torch.device)):
            check_device(what)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


class CUDAGraph:
    """What a stream is asked for while it captures, kept and asked for again (litetorch/front/graph.h)."""

    def __init__(self, keep_graph=False):
        self.made = None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        _check(core.lib().front_capture_begin(core.lib().front_stream()))

    def capture_end(self):
        self.reset()
        made = ctypes.c_void_p()
        _check(core.lib().front_capture_end(ctypes.byref(made)))
        self.made = made

    def instantiate(self):
        pass

    def replay(self):
        if self.made is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        _check(core.lib().front_graph_launch(self.made, core.lib().front_stream()))

    def reset(self):
        core.lib().front_graph_free(self.made)
        self.made = None

    def pool(self):
        return (0, 1)

    def __del__(self):
        if self.made is not None:
            self.reset()


class graph:  # noqa: N801
    """torch.cuda.graph(g): captures what the block asks for."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        self.graph = cuda_graph
        self.stream = StreamContext(stream or Stream())

    def __enter__(self):
        synchronize()
        self.stream.__enter__()
        self.graph.capture_begin()

    def __exit__(self, *exc):
        self.graph.capture_end()
        self.stream.__exit__(*exc)


def make_graphed_callables(*args, **kwargs):
    core.lib().front_lack(GRAPHS)
    raise RuntimeError("torch.cuda.make_graphed_callables is not supported on this device; use torch.cuda.graph")


def cuda0():
    return torch.device("cuda", 0)


def check_device(device=None):
    if isinstance(device, str):
        device = torch.device(device)
    index = device.index if isinstance(device, torch.device) else device
    if index not in (None, -1, 0):
        raise RuntimeError("CUDA error: invalid device ordinal")
    return 0


def _generator():
    real = torch._C.Generator

    class Generator(real):
        """A generator "on cuda" is torch's CPU generator: the values on the device are the executor's."""

        def __new__(cls, device="cpu"):
            return real.__new__(cls, "cpu")

    return Generator


def mem_get_info(device=None):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _check(core.lib().front_mem_info(ctypes.byref(free), ctypes.byref(total)))
    return free.value, total.value


def synchronize(device=None):
    check_device(device)
    _check(core.lib().front_sync())


def _table():
    nothing = lambda *a, **k: None  # noqa: E731
    zero = lambda *a, **k: 0  # noqa: E731
    return {
        "is_available": lambda: True, "is_initialized": lambda: True, "init": nothing, "_lazy_init": nothing,
        "device_count": lambda: 1, "_device_count_nvml": lambda: 1, "current_device": lambda: 0,
        "set_device": lambda d: check_device(d) and None, "_exchange_device": zero, "_maybe_exchange_device": zero,
        "get_device_name": lambda d=None: name(),
        "get_device_capability": lambda d=None: (attribute(75), attribute(76)),
        "get_device_properties": lambda d=None: check_device(d) or properties(),
        "get_arch_list": lambda: ["sm_90"], "can_device_access_peer": lambda a, b: False,
        "synchronize": synchronize, "current_stream": current_stream,
        "default_stream": lambda d=None: Stream(stream_ptr=0),
        "set_stream": lambda s: s is not None and core.lib().front_set_stream(s.cuda_stream) and None,
        "Stream": Stream, "Event": Event, "ExternalStream": lambda ptr, device=None: Stream(stream_ptr=ptr),
        "stream": StreamContext, "StreamContext": StreamContext, "device": DeviceContext, "device_of": DeviceContext,
        "CUDAGraph": CUDAGraph, "graph": graph, "make_graphed_callables": make_graphed_callables,
        "graph_pool_handle": lambda: (0, 1), "_compile_kernel": kernel.compile_kernel,
        "empty_cache": nothing, "ipc_collect": nothing, "memory_allocated": zero, "max_memory_allocated": zero,
        "memory_reserved": zero, "max_memory_reserved": zero, "memory_summary": lambda *a, **k: "",
        "memory_stats": lambda *a, **k: {}, "mem_get_info": mem_get_info,
        "reset_peak_memory_stats": nothing, "reset_max_memory_allocated": nothing,
        "set_per_process_memory_fraction": nothing, "manual_seed": nothing, "manual_seed_all": nothing,
        "seed": nothing, "seed_all": nothing, "initial_seed": zero,
        "get_rng_state": lambda *a, **k: torch.get_rng_state(), "set_rng_state": nothing,
        "get_rng_state_all": lambda: [torch.get_rng_state()], "is_bf16_supported": lambda *a, **k: True,
        "is_current_stream_capturing": lambda: bool(core.lib().front_captures(core.lib().front_stream())),
         "utilization": zero, "cudart": lambda: types.SimpleNamespace(),
        "_sleep": nothing, "current_blas_handle": zero,
    }


def _own(f):
    """A function of its own for each name: torch._dynamo, which some libraries import, keeps its rules by object."""
    if not isinstance(f, types.FunctionType):
        return f
    return types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def note_compiler(event, args):
    """No process starts here; one that would have compiled is what no executor has: code made at run time."""
    if event != "subprocess.Popen":
        return
    words = [str(w).rsplit("/", 1)[-1]
             for w in [args[0], *(args[1] if isinstance(args[1], (list, tuple)) else [args[1]])]]
    if COMPILERS & {w for word in words for w in word.split()}:
        core.lib().front_lack(IMAGES)


def put_on():
    """Answers for torch.cuda; call once, in the candidate's process."""
    sys.addaudithook(note_compiler)
    for key, value in _table().items():
        setattr(torch.cuda, key, _own(value))
    for key in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, key, lambda *a, **k: None)
    torch.cuda.nvtx.range = lambda *a, **k: contextlib.nullcontext()
    torch.cuda.default_generators = (torch.default_generator,)
    torch.cuda._initialized = True
    if torch.version.cuda is None:
        torch.version.cuda = "13.0"
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.is_built = lambda: True
    torch.Generator = _generator()
    torch.Tensor.pin_memory = lambda self, device=None: self.clone()
    torch.Tensor.is_pinned = lambda self, device=None: False
    torch.Tensor.record_stream = lambda self, stream: None
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = lambda: True
        torch.accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
        torch.accelerator.device_count = lambda: 1
        torch.accelerator.synchronize = lambda *a, **k: synchronize()
