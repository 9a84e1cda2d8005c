"""The front's libraries, and tensors as the judge names them: by address."""
import ctypes
import json
import os
import sys

import native

_lib = None
MAX_DIMS = 64
_kept = []


def lib_dir():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get("MUSACODER_LIB_DIR") or os.environ.get("MUSACODER_LIB") or \
        os.path.join(here, "..", "..", "build", "lib")


def _device_library():
    """libfronttorch.so: the one made for this very PyTorch (src/eval/server/torch_device.h), else the build's."""
    own = os.environ.get("MUSACODER_FRONT_TORCH")
    return own or os.path.abspath(os.path.join(lib_dir(), "libfronttorch.so"))


def lib():
    return _lib


def _declare(name, result, *args):
    f = getattr(_lib, name)
    f.restype, f.argtypes = result, args


def preload():
    """Parent of the fork server: dispatcher and libraries, and what each child would import, which would be compiled
    anew each time: the jail keeps no bytecode. No device is asked for anything."""
    global _lib
    from native import extension

    from . import cuda, kernel  # noqa: F401
    if _lib is not None:
        return
    path = _device_library()
    if not os.path.exists(path):
        raise native.DeviceError(f"'{path}' is missing; run 'make setup', then 'make'")
    _lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    # kernels of a library refer to it, and never run here
    _kept.append(ctypes.CDLL(os.path.abspath(os.path.join(lib_dir(), "libsimt.so"))))
    c, p, i, u64 = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
    for row in (("lt_torch_version", c), ("lt_process_api", p), ("lt_free", None, p), ("lt_findings", p),
                ("lt_invoke", i, p, p, p, p, c, ctypes.c_size_t), ("front_torch_preload", i),
                ("front_torch_allow", None, i), ("front_printed_mark", None), ("front_printed_flush", None),
                ("front_attach", i, i, i),
                ("front_library", i, c, c), ("front_lack", i, i), ("front_forward", None, i),
                ("front_where", None, p), ("front_notes", p), ("front_note", None, c, c, c), ("front_stream", p),
                ("front_set_stream", None, p), ("front_stream_create", i, ctypes.c_uint, i, p),
                ("front_stream_sync", i, p), ("front_stream_query", i, p), ("front_stream_wait", i, p, p),
                ("front_event_create", i, ctypes.c_uint, p), ("front_event_record", i, p, p),
                ("front_event_sync", i, p),
                ("front_event_query", i, p), ("front_event_elapsed", i, p, p, p), ("front_sync", i),
                ("front_attribute", i, i, p), ("front_capture_begin", i, p), ("front_capture_end", i, p),
                ("front_captures", ctypes.c_bool, p), ("front_graph_launch", i, p, p), ("front_graph_free", None, p),
                ("front_device_name", c), ("front_device_memory", ctypes.c_size_t),
                ("front_mem_info", i, p, p), ("front_error_text", c, i),
                ("front_torch_tensor", p, u64, u64, i, i, p, p), ("front_torch_address", u64, p, p, p, i)):
        _declare(*row)
    native.library = _lib
    native.check_version("libfronttorch.so")
    extension.put_in_place()
    extension.set_library(_register)
    _lib.front_torch_preload()
    _lib.front_where(_where)
    _bind()


def _register(so, image):
    """A library is about to be opened: its kernels are in this image. Without one it has none."""
    if image:
        _lib.front_library(so.encode(), image.encode())


def _bind():
    global _cdata, _wrap, _new_capsule, _release
    import torch
    from native.module import Api
    _cdata, _wrap = torch._C.TensorBase._cdata.__get__, torch._C._wrap_tensor_impl
    _new_capsule = ctypes.pythonapi.PyCapsule_New
    _new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    _release = ctypes.cast(_lib.lt_process_api(), ctypes.POINTER(Api)).contents.release


def mark_printed():
    """Candidate's child, before its code runs: printf and std::cout of its host code go the way of its print."""
    _lib.front_printed_mark()


def flush_printed():
    _lib.front_printed_flush()


def begin(args=None):
    """After the jail is closed: there is no device to begin with."""


def attach(area, bell):
    if _lib.front_attach(area, bell) != 0:
        raise native.DeviceError("the executor's memory cannot be mapped")


def install(build):
    from native import extension, lacks

    from . import cuda
    extension.set_builder(build)
    lacks.install()
    cuda.put_on()


def allow_operators(how):
    _lib.front_torch_allow(int(how))


def forward(on):
    _lib.front_forward(1 if on else 0)


def lack(code, name):
    """Of native/lacks.py: the executor remembers the code, the note has the name."""
    _lib.front_lack(code)
    _lib.front_note(b"lacking", str(name)[:60].encode("utf-8", "replace"), b"")


_handled = {}  # line of the program -> the exception that was being handled there


def _line_now():
    """The program's line that this thread is in; an exception that is being handled there is kept for notes()."""
    try:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != "candidate.py":
            frame = frame.f_back
        error = sys.exc_info()[1]
        if frame is not None and error is not None and len(_handled) < 8:
            at = error.__traceback__
            lines = []
            while at is not None:
                if at.tb_frame.f_code.co_filename == "candidate.py":
                    lines.append(at.tb_lineno)
                at = at.tb_next
            words = str(error).strip().split("\n")[0]
            _handled.setdefault(frame.f_lineno, f"{type(error).__name__} of line {lines[-1] if lines else '?'}: "
                                                f"{words[:160]}")
        return frame.f_lineno if frame is not None else 0
    except Exception:
        return 0


_where = ctypes.CFUNCTYPE(ctypes.c_int)(_line_now)


def notes():
    """Of the front, and of litetorch (a vendor's library that was called)."""
    said = json.loads(native.take_string(_lib.front_notes()))
    for note in said:
        if note.get("kind") == "operator" and note.get("line") in _handled:
            note["handling"] = _handled[note["line"]]
    return said + json.loads(native.take_string(_lib.lt_findings()))


def tensor(d):
    """Over memory that the judge has laid, and frees."""
    import torch
    from native.module import DTYPES
    n = len(d["shape"])
    sizes, strides = (ctypes.c_int64 * max(n, 1))(*d["shape"]), (ctypes.c_int64 * max(n, 1))(*d["strides"])
    dtype = DTYPES.index(getattr(torch, d["dtype"]))
    handle = _lib.front_torch_tensor(d["address"], d["bytes"], dtype, n, sizes, strides)
    out = _wrap(_new_capsule(handle, None, None))
    _release(handle)
    return out


def describe(t):
    sizes, strides = (ctypes.c_int64 * MAX_DIMS)(), (ctypes.c_int64 * MAX_DIMS)()
    at = _lib.front_torch_address(_cdata(t), sizes, strides, MAX_DIMS)
    if not at:
        return None
    n = len(t.shape)
    return {"t": "tensor", "dtype": str(t.dtype)[6:], "shape": list(sizes[:n]), "strides": list(strides[:n]),
            "address": at if t.numel() else 0}
