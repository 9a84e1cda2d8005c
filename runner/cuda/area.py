"""Device memory that the judge made (src/device, CUDA's virtual memory management), mapped here: see runner/area.py.

The driver is asked directly: torch has no call for this. A mapping is a tensor of bytes without an owner, made through
__cuda_array_interface__.
"""
import ctypes

_driver = None
_torch = {}


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Bytes:
    """Device memory as torch.as_tensor takes it."""

    def __init__(self, address, n):
        self.__cuda_array_interface__ = {"shape": (n,), "typestr": "|u1", "data": (address, False), "version": 2}


def bind():
    """When the driver is loaded."""
    global _driver
    import torch

    _driver = ctypes.CDLL("libcuda.so.1")
    p, z, u, i = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ulonglong, ctypes.c_int
    for name, *args in (("cuMemImportFromShareableHandle", p, p, i), ("cuMemAddressReserve", p, z, z, u, u),
                        ("cuMemMap", u, z, z, u, u), ("cuMemSetAccess", u, z, p, z), ("cuMemRelease", u),
                        ("cuMemUnmap", u, z), ("cuMemAddressFree", u, z)):
        f = getattr(_driver, name)
        f.restype, f.argtypes = i, args
    _torch.update(as_tensor=torch.as_tensor, sync=torch._C._cuda_synchronize, narrow=torch.Tensor.narrow,
                  view=torch.Tensor.view, copy=torch.Tensor.copy_, detach=torch.Tensor.detach)


def _call(name, *args):
    code = getattr(_driver, name)(*args)
    if code:
        e = RuntimeError(f"{name} fails with error {code} of the driver")
        e.driver_error = code
        raise e


class Area:
    def __init__(self, fd, spec):
        self.size, self.capacity = spec["size"], spec["capacity"]
        handle, at = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        _call("cuMemImportFromShareableHandle", ctypes.byref(handle), fd, 1)
        try:
            _call("cuMemAddressReserve", ctypes.byref(at), self.capacity, 0, 0, 0)
            _call("cuMemMap", at, self.capacity, 0, handle, 0)
        finally:
            _call("cuMemRelease", handle)
        access = _Access(_Location(1, 0), 3)
        _call("cuMemSetAccess", at, self.capacity, ctypes.byref(access), 1)
        self.at = at
        self.blob = _torch["as_tensor"](_Bytes(at.value, self.size), device="cuda")

    def write(self, at, t, packer):
        n = t.numel() * t.element_size()
        to = _torch["view"](_torch["narrow"](self.blob, 0, at, n), t.dtype)
        _torch["copy"](_torch["view"](to, t.shape), _torch["detach"](t))

    def settle(self):
        _torch["sync"]()

    def close(self):
        self.blob = None
        _torch["sync"]()
        _call("cuMemUnmap", self.at, self.capacity)
        _call("cuMemAddressFree", self.at, self.capacity)


def open_area(fd, spec):
    return Area(fd, spec)
