"""values.py - Python values as trees in frames: what get_inputs returns, what forward returns.

Scalars are JSON scalars; non-finite floats {"t":"float","v":"inf"}; {"t":"list"|"tuple","v":[..]};
{"t":"dict","v":[[key, value]..]}; {"t":"dtype","v":"float32"}; a configuration of the transformers library, which
tasks hand to their models, {"t":"config","v":its dict}; tensors
{"t":"tensor","dtype","shape","strides","offset","nbytes"} with their values in C order in the blob. 'strides' says how
they lie in memory; decode() restores that layout. Nothing is ever pickled.
"""
import contextlib
import math
import re
import sys

import torch

_contiguous, _reshape, _view, _detach = (torch.Tensor.contiguous, torch.Tensor.reshape, torch.Tensor.view,
                                         torch.Tensor.detach)
_numpy, _resolve_conj, _resolve_neg = torch.Tensor.numpy, torch.Tensor.resolve_conj, torch.Tensor.resolve_neg
_numel, _itemsize, _narrow = torch.Tensor.numel, torch.Tensor.element_size, torch.Tensor.narrow
ALIGN = 64  # of every tensor in a section


def comparable(t):
    """The same values, NaN as zero, in a dtype that torch can compare: bytes of floating point have few operators."""
    return torch.nan_to_num(t.float() if t.is_floating_point() and t.element_size() == 1 else t)


class NotSendable(TypeError):
    """A value that has no place in a tree."""


def _is_config(v):
    hub = sys.modules.get("transformers")  # never imported for the sake of the question
    return hub is not None and isinstance(v, getattr(hub, "PretrainedConfig", ()))


def _config(fields):
    from transformers import AutoConfig
    fields = dict(fields)
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


class Packer:
    """Collects the bytes of one section; parts go to frame.send. fetch turns a tensor into one in host memory; raw,
    where a device has it, gives the elements in C order as bytes, without any operator of torch."""

    def __init__(self, fetch=None, raw=None):
        self.parts, self.size, self.fetch, self.raw = [], 0, fetch, raw

    def elements(self, t):
        if self.raw:
            return self.raw(t)
        t = _detach(t)
        host = self.fetch(t) if self.fetch else t
        flat = _reshape(_contiguous(_resolve_neg(_resolve_conj(host))), (-1,))
        return _numpy(_view(flat, torch.uint8)).tobytes() if flat.numel() else b""

    def tensor(self, t):
        raw = self.elements(t)
        desc = {"t": "tensor", "dtype": str(t.dtype)[6:], "shape": list(t.shape), "strides": list(t.stride()),
                "offset": self.size, "nbytes": len(raw)}
        pad = -len(raw) % ALIGN
        self.parts.append(raw + b"\0" * pad)
        self.size += len(raw) + pad
        return desc

    def tree(self, v, depth=0):
        if depth > 30:
            raise NotSendable("a value nested deeper than 30 levels")
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if v is None or isinstance(v, (bool, str)):
            return v
        if isinstance(v, int):
            return int(v) if -2**63 <= v < 2**63 else {"t": "int", "v": str(v)}
        if isinstance(v, float):
            return float(v) if math.isfinite(v) else {"t": "float", "v": str(float(v))}
        if isinstance(v, (list, torch.Size)):
            return {"t": "list", "v": [self.tree(x, depth + 1) for x in v]}
        if isinstance(v, tuple):
            return {"t": "tuple", "v": [self.tree(x, depth + 1) for x in v]}
        if isinstance(v, dict):
            return {"t": "dict", "v": [[k if isinstance(k, (str, int)) else str(k), self.tree(x, depth + 1)]
                                       for k, x in v.items()]}
        if isinstance(v, torch.dtype):
            return {"t": "dtype", "v": str(v)[6:]}
        if isinstance(v, torch.device):
            return {"t": "device", "v": str(v)}
        if _is_config(v):
            return {"t": "config", "v": self.tree(v.to_dict(), depth + 1)}
        raise NotSendable(f"a value of type {type(v).__name__}")


class Collector(Packer):
    """Lays a section out as Packer does, and remembers the tensors: their elements go to an area (area.py) later."""

    def __init__(self, fetch=None, raw=None):
        super().__init__(fetch, raw)
        self.items = []  # (offset, tensor, dtype, shape)

    def tensor(self, t):
        n = _numel(t) * _itemsize(t)
        desc = {"t": "tensor", "dtype": str(t.dtype)[6:], "shape": list(t.shape), "strides": list(t.stride()),
                "offset": self.size, "nbytes": n}
        self.items.append((self.size, t, t.dtype, t.shape))
        self.size += n + -n % ALIGN
        return desc

    def write(self, area, base=0):
        """Into area, counted from byte base; what does not fit is left out. -> indices of tensors that are not any more
        what they were."""
        astray = []
        for k, (at, t, dtype, shape) in enumerate(self.items):
            n = _numel(t) * _itemsize(t)
            if t.dtype != dtype or t.shape != shape:
                astray.append(k)
            elif n and base + at + n <= area.size:
                area.write(base + at, t, self)
        return astray


def _laid_out(flat, shape, strides):
    """A tensor of this layout with the values of flat; also for layouts that overlap (expand)."""
    extent = 1 + sum((s - 1) * st for s, st in zip(shape, strides)) if all(shape) else 0
    out = torch.empty(max(extent, 0), dtype=flat.dtype, device=flat.device).as_strided(shape, strides)
    if any(st == 0 and s > 1 for s, st in zip(shape, strides)):
        pick = tuple(slice(0, 1) if st == 0 else slice(None) for st in strides)
        out[pick].copy_(flat.reshape(shape)[pick])
    elif flat.numel():
        out.copy_(flat.reshape(shape))
    return out


def decode_tensor(d, blob):
    lo, n = d["offset"], d["nbytes"]
    dtype = getattr(torch, d["dtype"])
    if isinstance(blob, torch.Tensor):  # an area on a device
        flat = _view(_narrow(blob, 0, lo, n), dtype)
    else:
        flat = torch.frombuffer(bytearray(blob[lo:lo + n]), dtype=dtype) if n else torch.empty(0, dtype=dtype)
    return _laid_out(flat, d["shape"], d["strides"])


def decode(tree, blob, put=None):
    """The value of a tree. put is applied to every tensor (to move it to a device)."""
    if not isinstance(tree, dict):
        return tree
    t, v = tree["t"], tree.get("v")
    if t == "tensor":
        x = decode_tensor(tree, blob)
        return put(x) if put else x
    if t == "list":
        return [decode(x, blob, put) for x in v]
    if t == "tuple":
        return tuple(decode(x, blob, put) for x in v)
    if t == "dict":
        return {k: decode(x, blob, put) for k, x in v}
    if t == "dtype":
        return getattr(torch, v)
    if t == "device":
        return torch.device(v)
    if t == "config":
        return _config(decode(v, blob, put))
    return float(v) if t == "float" else int(v)


def leaves(v):
    """The tensors of a value, in tree order."""
    if isinstance(v, torch.Tensor):
        return [v]
    if isinstance(v, (list, tuple)):
        return [t for x in v for t in leaves(x)]
    if isinstance(v, dict):
        return [t for x in v.values() for t in leaves(x)]
    return []


def map_tensors(v, f):
    if isinstance(v, torch.Tensor):
        return f(v)
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return type(v)(map_tensors(x, f) for x in v) if type(v) in (list, tuple) else [map_tensors(x, f) for x in v]
    if isinstance(v, dict):
        return {k: map_tensors(x, f) for k, x in v.items()}
    return v


# of torch's CUDA errors; the second while it starts
_OUT_OF_MEMORY = re.compile(r"(CUDA error|\bError 2): out of memory")


def out_of_memory(e):
    """Did the device's memory run out, as torch or the driver (runner/cuda/area.py) says?"""
    for _ in range(8):  # a candidate's exceptions may be chained in a ring
        if isinstance(e, torch.OutOfMemoryError) or getattr(e, "driver_error", None) == 2:
            return True
        with contextlib.suppress(Exception):
            if isinstance(e, RuntimeError) and _OUT_OF_MEMORY.search(str(e).split("\n")[0]):
                return True
        e = e.__cause__
        if e is None:
            break
    return False


def describe_error(e, filename, source):
    """{"type","message","line","text","memory"}: the last line of 'filename' that the exception went through; memory:
    the device's memory ran out."""
    line = None
    tb = e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            line = tb.tb_lineno
        tb = tb.tb_next
    if isinstance(e, SyntaxError) and e.filename == filename:
        line = e.lineno
    try:
        message = str(e)
    except Exception:  # a candidate's own exception class may raise here
        message = "(its text cannot be shown)"
    rows = source.split("\n")
    text = rows[line - 1].strip()[:200] if line and line <= len(rows) else ""
    name = type(e).__name__
    if isinstance(e, SyntaxError):
        message = e.msg or message
    return {"type": str(name)[:80], "message": message[:4000], "line": line, "text": text, "memory": out_of_memory(e)}
