"""home.py - tasks that name a device themselves, where there is none: what goes to "cuda" stays on the CPU."""
import inspect

import torch
from torch.overrides import TorchFunctionMode

_inside = []
place = "cpu"  # what stands for the device; "meta" where shapes alone are asked for


def _here(x):
    name = x if isinstance(x, str) else str(x) if isinstance(x, torch.device) else ""
    return torch.device(place) if name.split(":")[0] in ("cuda", "musa") else x


class Home(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.device:  # of a device, or of a name and a number
            made = func(*args, **(kwargs or {}))
            return torch.device(place) if made.type in ("cuda", "musa") else made
        given = {k: _here(v) for k, v in (kwargs or {}).items() if place != "meta" or k != "generator"}
        return func(*(_here(a) for a in args), **given)


class _Made(type):
    """torch asks isinstance(x, torch.Generator), so what stands for it is a class."""
    of_torch = torch.Generator

    def __call__(cls, device="cpu"):
        return cls.of_torch("cpu")

    def __instancecheck__(cls, x):
        return isinstance(x, cls.of_torch)


class Generator(metaclass=_Made):
    """torch.Generator, on the CPU whatever device is named."""


def stay(source):
    """From here on, in a process without a device, if the task's text names one."""
    if ("cuda" in source or "musa" in source) and not _inside:
        torch.nn.Module.cuda = lambda self, device=None: self
        torch.cuda.is_available = lambda: False
        torch.Generator = Generator
        _inside.append(Home())
        _inside[0].__enter__()


def arguments(cls, init):
    """KernelBook's [[positional, ...], {name: value}] as the names that cls gives them; other inputs as they are."""
    if not (isinstance(init, (list, tuple)) and len(init) == 2 and isinstance(init[0], (list, tuple)) and
            isinstance(init[1], dict)):
        return init
    if not init[1]:
        return list(init[0])
    return dict(inspect.signature(cls).bind_partial(*init[0], **init[1]).arguments) if init[0] else dict(init[1])
