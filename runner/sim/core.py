"""The device's libraries, how a candidate's process is prepared, and what the judge asks afterwards.

libsimt.so runs kernels (simt/), libsimtorch.so is the device inside torch (litetorch/runtime). Both are loaded in the
fork server's parent; memory is mapped in the child, so that no two candidates share a page.
"""
import ctypes
import json
import os

import native

ARENA_BYTES = 64 << 30  # address space, not memory

_lib = None
_simt = None
_installed = False


SimError = native.DeviceError


def lib_dir():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get("MUSACODER_LIB_DIR") or os.path.join(here, "..", "..", "build", "lib")


def lib():
    return _lib


def simt():
    return _simt


def _declare(library, name, result, *args):
    f = getattr(library, name)
    f.restype, f.argtypes = result, args


def _load():
    global _lib, _simt
    path = os.path.join(lib_dir(), "libsimt.so")
    if not os.path.exists(path):
        raise SimError(f"'{path}' is missing; run 'make'")
    _simt = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    path = os.path.join(lib_dir(), "libsimtorch.so")
    if not os.path.exists(path):
        raise SimError(f"'{path}' is missing; run 'make setup', then 'make'")
    _lib = ctypes.CDLL(path)
    c, p, i = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
    for name, result, *args in (
            ("sim_device_preload", i), ("sim_device_open", i, ctypes.c_size_t), ("sim_bind_simt", i),
            ("sim_arena_in_use", ctypes.c_size_t), ("sim_arena_scribble", None, p), ("sim_upload", p, p),
            ("sim_download", ctypes.c_long, p, p, ctypes.c_size_t), ("sim_refill", i, p, p),
            ("sim_watch_library", None, p)):
        _declare(_lib, name, result, *args)
    for name, result, *args in (("simt_set_check", None, i), ("simt_set_ablation", None, i),
                                ("simt_findings_json", c), ("simt_stats_json", c), ("simt_reset", None)):
        _declare(_simt, name, result, *args)


def _bind():
    """What the judge's copies need of torch, taken before foreign code could replace it."""
    global _cdata, _wrap, _new_capsule, _api_release, _numel, _itemsize
    import torch
    base = torch._C.TensorBase
    _cdata, _wrap = base._cdata.__get__, torch._C._wrap_tensor_impl
    _numel, _itemsize = base.numel, base.element_size
    _new_capsule = ctypes.pythonapi.PyCapsule_New
    _new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    from native.module import Api
    _api_release = ctypes.cast(_lib.lt_process_api(), ctypes.POINTER(Api)).contents.release


def preload():
    """Parent of the fork server: libraries, dispatch kernels, and our cpp_extension before anyone imports torch's."""
    from native import extension
    if _lib is not None:
        return
    _load()
    native.attach(_lib, lambda so: _lib.sim_watch_library(so._handle))
    native.check_version("libsimtorch.so")
    extension.put_in_place()
    _lib.sim_device_preload()
    _bind()


def install(build):
    """Candidate's child, before its code runs. build(request) -> reply blocks until the compile stage answers."""
    global _installed
    from native import extension

    from . import disguise
    preload()
    extension.set_builder(build)
    if _installed:
        return
    if _lib.sim_device_open(ARENA_BYTES) != 0:
        raise SimError("no address space for the simulated device's memory")
    if _lib.sim_bind_simt() != 0:
        raise SimError("libsimt.so does not fit libsimtorch.so; run 'make'")
    disguise.put_on()
    _installed = True


def begin(args=None):
    """After the jail is closed, before install: nothing to do for a device that is memory."""


def finish():
    """After forward: work that is still under way, and faults that nobody asked for."""


def explain(error):
    """A finding that says what an exception of the device means, or None."""
    return None


def to_device(t):
    """A copy on cuda:0 of a host tensor, with its layout."""
    handle = _lib.sim_upload(_cdata(t))
    if not handle:
        raise RuntimeError("CUDA out of memory (simulated device), or not a plain host tensor")
    out = _wrap(_new_capsule(handle, None, None))
    _api_release(handle)
    return out


def raw_bytes(t):
    """The elements of a tensor of either side, in C order."""
    out = bytearray(_numel(t) * _itemsize(t))
    n = _lib.sim_download(_cdata(t), (ctypes.c_char * len(out)).from_buffer(out) if out else None, len(out))
    if n != len(out):
        raise TypeError("the tensor is not a plain one: sparse, conjugated or negated views cannot be read")
    return out


def refill(t, host):
    """New contents in a tensor on cuda:0 that keeps its address and its version; False if the layouts differ."""
    return _lib.sim_refill(_cdata(t), _cdata(host)) == 0


def from_device(t):
    """A host copy, contiguous."""
    import torch
    raw = raw_bytes(t)
    return torch.frombuffer(raw, dtype=t.dtype).reshape(t.shape) if raw else torch.empty(t.shape, dtype=t.dtype)


def set_ablation(on):
    _simt.simt_set_ablation(1 if on and on != "recorded" else 0)  # there are no graphs


def set_check(on):
    _simt.simt_set_check(1 if on else 0)


def take_findings():
    """Everything found since the last call: the emulator's findings, library calls, red zones."""
    found = json.loads(_simt.simt_findings_json().decode("utf-8", "replace"))
    found += json.loads(native.take_string(_lib.lt_findings()))
    _kept["stats"] = _merge(_kept.get("stats"), _raw_stats())
    _simt.simt_reset()
    return found


_kept = {}


def _raw_stats():
    return json.loads(_simt.simt_stats_json().decode("utf-8", "replace"))


def _merge(a, b):
    if not a:
        return b
    out = dict(b)
    for key in ("launches", "threads", "failed", "to_host", "to_device"):
        out[key] = a.get(key, 0) + b.get(key, 0)
    out["kernels"] = {k: dict(v) for k, v in a.get("kernels", {}).items()}
    for name, k in b.get("kernels", {}).items():
        have = out["kernels"].setdefault(name, {"launches": 0, "threads": 0})
        for key in ("launches", "threads"):
            have[key] = have.get(key, 0) + k.get(key, 0)
    return out


def stats():
    """Counts since install: {"launches", "threads", "failed", "kernels": {name: {..}}, "library_calls": {name: n}}."""
    out = _merge(_kept.get("stats"), _raw_stats())
    out["library_calls"] = json.loads(native.take_string(_lib.lt_library_calls()))
    return out
