"""clean.py - may a process that has served one task serve another one? It may if the first left nothing that a second
could meet: torch's settings, the functions and classes of all modules, hooks, threads, the environment and the device's
memory are as they were. Whoever asks drops its task first. What is loaded later (a module that torch imports when it is
first needed) is nobody's trace.

A task that hides what it leaves (through ctypes, in the heap) is not found: docs/threat-model.md says what that gains.
"""
import gc
import os
import random
import sys
import threading
import types

import torch

TASKS = 32  # of one process; what leaks a little in each does not add up to much
MEMORY = 64 << 20  # bytes of the device that libraries may keep beside what they had at first (workspaces)


def settings():
    """All that torch, numpy and Python decide by what somebody has set."""
    cudnn, cuda = torch.backends.cudnn, torch.backends.cuda
    numpy = sys.modules.get("numpy")
    return {
        "dtype": torch.get_default_dtype(), "device": str(torch.get_default_device()),
        "grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(),
        "anomaly": torch.is_anomaly_enabled(), "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(), "threads": torch.get_num_threads(),
        "modes": (torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "cudnn": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        "matmul": (cuda.matmul.allow_tf32, cuda.matmul.allow_fp16_reduced_precision_reduction,
                   cuda.matmul.allow_bf16_reduced_precision_reduction),
        "attention": (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled(),
                      cuda.cudnn_sdp_enabled()),
        "mkldnn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
        "numpy": str(numpy.geterr()) if numpy else None, "environment": dict(os.environ), "folder": os.getcwd(),
        "path": list(sys.path), "recursion": sys.getrecursionlimit(), "traced": (sys.gettrace(), sys.getprofile()),
        "python threads": threading.active_count(), "switches": sys.getswitchinterval(), "collects": gc.isenabled(),
        "hooks": [len(v) for k, v in sorted(vars(torch.nn.modules.module).items())
                  if k.startswith("_global_") and isinstance(v, dict)],
        "operators": len(getattr(torch.library, "_impls", ())) + len(getattr(torch.library, "_defs", ())),
        "stream": str(torch.cuda.current_stream()) if torch.cuda.is_initialized() else None,
        "card": torch.cuda.current_device() if torch.cuda.is_initialized() else None,
    }


def body_of(f):
    """What a function does, where it is written in Python."""
    return (f.__code__, f.__defaults__) if type(f) is types.FunctionType else None


def is_code(kind):
    """Of values of that type: is each a function, a class, or something that a class calls when it is asked for it?"""
    return issubclass(kind, (type, types.FunctionType, types.BuiltinFunctionType)) or hasattr(kind, "__get__")


def code_in(names):
    """[(name, value, body)] of a module's or class's code. Types are looked at, for values may answer for others."""
    return [(k, v, body_of(v)) for k, v in names.items() if is_code(type(v))]


def may_change(c):
    """Is c a class whose methods can be replaced? Those of Python itself cannot be."""
    return issubclass(type(c), type) and bool(c.__flags__ & (1 << 9))  # Py_TPFLAGS_HEAPTYPE


def same_body(a, b):
    return a is b if a is None or b is None else a[0] is b[0] and a[1] is b[1]


class Traces:
    """Made before the first task."""

    def __init__(self):
        self.tasks, self.settings = 0, settings()
        self.code, classes = [], {}
        for module in [m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)]:
            found = code_in(vars(module))
            self.code.append((vars(module), found))
            classes.update((id(v), v) for _, v, _ in found if may_change(v))
        self.classes = [(vars(c), code_in(vars(c))) for c in classes.values()]
        self.code += self.classes
        self.memory = self.held()

    @staticmethod
    def held():
        if not torch.cuda.is_initialized():
            return 0
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()

    def found(self):
        """What a task has left; None: nothing, or nothing that is looked for. Counts the task."""
        self.tasks += 1
        gc.collect()
        if self.tasks >= TASKS:
            return f"{TASKS} tasks"
        now = settings()
        for key, was in self.settings.items():
            if now[key] != was:
                return key
        for names, code in self.code:
            for key, value, body in code:
                if names.get(key) is not value or not same_body(body, body_of(value)):
                    return f"{names.get('__name__') or names.get('__module__')}.{key}"
        for names, code in self.classes:  # a new method hides what a class inherits
            if len(code) != len(code_in(names)):
                return f"a method of a class of {names.get('__module__')}"
        if self.held() > self.memory + MEMORY:
            return "device memory"
        random.seed(0)
        return None
