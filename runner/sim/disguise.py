"""torch.cuda as a candidate asks for it: one idle device that is there, initialised and never busy.

Tensors need no disguise: they are of device cuda:0 (litetorch/runtime/device.cc). Only the Python layer that would ask
the driver is answered here.
"""
import contextlib
import os
import time
import types

import torch

NAME = "MusaCoder Simulated GPU"
MEMORY = 16 << 30


class Properties(types.SimpleNamespace):
    """What get_device_properties returns."""


def _profile():
    """$SIMT_PROFILE, as the emulator reads it: {"card", "warp_host", ...}; empty without one."""
    text = os.environ.get("SIMT_PROFILE", "")
    return dict(part.split("=", 1) for part in text.split(";") if "=" in part)


def _figure(name, fallback):
    return int(_profile().get(name, fallback))


def capability():
    arch = _figure("arch_number", 900)
    return arch // 100, arch // 10 % 10


def properties():
    major, minor = capability()
    if _profile():
        return Properties(name=_profile()["card"], major=major, minor=minor, total_memory=MEMORY,
                          multi_processor_count=_figure("multiprocessors", 16), warp_size=_figure("warp_host", 32),
                          max_threads_per_multi_processor=_figure("threads_multiprocessor", 2048),
                          max_threads_per_block=1024,
                          regs_per_multiprocessor=_figure("registers_multiprocessor", 65536),
                          shared_memory_per_block=_figure("shared_static_bytes", 49152),
                          shared_memory_per_block_optin=_figure("shared_block_bytes", 232448),
                          shared_memory_per_multiprocessor=_figure("shared_block_bytes", 233472),
                          L2_cache_size=_figure("l2_bytes", 50 << 20), is_integrated=0, is_multi_gpu_board=0,
                          gcnArchName="", uuid="00000000-0000-0000-0000-000000000000")
    return Properties(name=NAME, major=9, minor=0, total_memory=MEMORY, multi_processor_count=16, warp_size=32,
                      max_threads_per_multi_processor=2048, max_threads_per_block=1024, regs_per_multiprocessor=65536,
                      shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
                      shared_memory_per_multiprocessor=233472, L2_cache_size=50 << 20, is_integrated=0,
                      is_multi_gpu_board=0, gcnArchName="", uuid="00000000-0000-0000-0000-000000000000")


class Stream:
    def __init__(self, device=None, priority=0, **kwargs):
        self.device, self.priority, self.cuda_stream, self.stream_id, self.device_index = cuda0(), priority, 0, 0, 0

    def synchronize(self):
        pass

    def query(self):
        return True

    def wait_stream(self, stream):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __eq__(self, other):
        return isinstance(other, Stream)

    def __hash__(self):
        return 0


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.enable_timing, self.at = enable_timing, None

    def record(self, stream=None):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def elapsed_time(self, end):
        if self.at is None or end.at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end.at - self.at) * 1e3


class DeviceContext:
    """torch.cuda.device(d), torch.cuda.device_of(t), torch.cuda.stream(s): nothing to switch."""

    def __init__(self, what=None):
        self.idx = 0
        if isinstance(what, (int, str, torch.device)):
            check_device(what)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


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
        """A generator "on cuda" draws from torch's CPU generator."""

        def __new__(cls, device="cpu"):
            return real.__new__(cls, "cpu")

    return Generator


def _table():
    nothing = lambda *a, **k: None  # noqa: E731
    zero = lambda *a, **k: 0  # noqa: E731
    return {
        "is_available": lambda: True, "is_initialized": lambda: True, "init": nothing, "_lazy_init": nothing,
        "device_count": lambda: 1, "_device_count_nvml": lambda: 1, "current_device": lambda: 0,
        "set_device": lambda d: check_device(d) and None, "_exchange_device": zero, "_maybe_exchange_device": zero,
        "get_device_name": lambda d=None: _profile().get("card", NAME),
        "get_device_capability": lambda d=None: capability(),
        "get_device_properties": lambda d=None: check_device(d) or properties(),
        "get_arch_list": lambda: ["sm_90"], "can_device_access_peer": lambda a, b: False,
        "synchronize": nothing, "current_stream": lambda d=None: Stream(), "default_stream": lambda d=None: Stream(),
        "set_stream": nothing, "Stream": Stream, "Event": Event, "ExternalStream": Stream,
        "stream": DeviceContext, "StreamContext": DeviceContext, "device": DeviceContext, "device_of": DeviceContext,
        "empty_cache": nothing, "ipc_collect": nothing, "memory_allocated": zero, "max_memory_allocated": zero,
        "memory_reserved": zero, "max_memory_reserved": zero, "memory_summary": lambda *a, **k: "",
        "memory_stats": lambda *a, **k: {}, "mem_get_info": lambda d=None: (MEMORY, MEMORY),
        "reset_peak_memory_stats": nothing, "reset_max_memory_allocated": nothing,
        "set_per_process_memory_fraction": nothing, "manual_seed": nothing, "manual_seed_all": nothing,
        "seed": nothing, "seed_all": nothing, "initial_seed": zero,
        "get_rng_state": lambda *a, **k: torch.get_rng_state(), "set_rng_state": nothing,
        "get_rng_state_all": lambda: [torch.get_rng_state()], "is_bf16_supported": lambda *a, **k: True,
        "is_current_stream_capturing": lambda: False, "utilization": zero, "cudart": lambda: types.SimpleNamespace(),
        "_sleep": nothing, "current_blas_handle": zero,
    }


def _own(f):
    """A function of its own for each name: torch._dynamo, which some libraries import, keeps its rules by object."""
    if not isinstance(f, types.FunctionType):
        return f
    return types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def put_on():
    """Answers for torch.cuda; call once, in the candidate's process."""
    for name, value in _table().items():
        setattr(torch.cuda, name, _own(value))
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *a, **k: None)
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
        torch.accelerator.synchronize = lambda *a, **k: None
        torch.accelerator.current_device_index = lambda: 0
