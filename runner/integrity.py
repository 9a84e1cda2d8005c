"""integrity.py - has foreign code put something in the place of what it should only use? Convicts, never acquits.

seal() remembers, before foreign code runs, which object stands behind each name that the harness or its measurements
rest on: torch's functions, methods and timers, Python's clocks and statistics, the harness's own modules. broken()
names those that are another object now, and interpreter hooks that would run foreign code inside the harness's. New
names are nobody's business; setting options (torch.backends...) is not replacing.
"""
import builtins
import gc
import json
import socket
import statistics
import struct
import sys
import threading
import time

import torch
import torch.testing

HARNESS = ("candidate", "frame", "values", "area", "integrity", "timing", "cuda", "cuda.core", "cuda.area",
           "cuda.graphs", "native", "native.trace", "native.module", "native.extension")
BY_TORCH = {"torch.manual_seed"}  # torch itself wraps these when torch.compile or torch.library is imported
_callable, _type, _sys, _threading, _gc = callable, type, sys, threading, gc
_getprofile, _gettrace, _modules = sys.getprofile, sys.gettrace, sys.modules


def owners():
    """[(name, namespace)] of everything whose callables count."""
    rows = [("time", time), ("statistics", statistics), ("json", json), ("struct", struct), ("socket", socket.socket),
            ("builtins", builtins), ("torch", torch), ("torch.Tensor", torch.Tensor), ("torch._C.TensorBase", torch._C.TensorBase),
            ("torch.nn.functional", torch.nn.functional), ("torch.nn.Module", torch.nn.Module), ("torch.testing", torch.testing),
            ("torch.cuda", torch.cuda), ("torch.cuda.Event", torch.cuda.Event), ("torch.cuda.Stream", torch.cuda.Stream)]
    for name in HARNESS:
        module = _modules.get(name)
        if module is None:
            continue
        rows.append((name, module))
        rows += [(f"{name}.{k}", v) for k, v in list(vars(module).items())
                 if isinstance(v, _type) and v.__module__ == module.__name__]
    return rows


def counts(value):
    return _callable(value) or isinstance(value, (property, staticmethod, classmethod))


class Seal:
    def __init__(self):
        self.rows = [(name, space, {k: v for k, v in vars(space).items() if counts(v)}) for name, space in owners()]
        self.code = [(f"{name}.{k}", v, v.__code__, v.__defaults__) for name, space, table in self.rows
                     for k, v in table.items() if name.split(".")[0] in HARNESS and hasattr(v, "__code__")]
        self.callbacks = len(_gc.callbacks)

    def broken(self):
        found = [f"{name}.{k}" for name, space, table in self.rows for k, v in table.items()
                 if vars(space).get(k) is not v and f"{name}.{k}" not in BY_TORCH]
        found += [name for name, f, code, defaults in self.code if f.__code__ is not code or f.__defaults__ is not defaults]
        if _getprofile() is not None or _gettrace() is not None:
            found.append("sys.setprofile")
        if len(_gc.callbacks) > self.callbacks:
            found.append("gc.callbacks")
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            found.append("a torch mode left on")
        return found[:16]
