"""Native extensions in a candidate's process, on any device: load_inline and load become build requests (extension.py), the
shared object that comes back becomes a module (module.py). A device package calls

    attach(library, on_load)   library: ctypes.CDLL of libfronttorch.so or libcudatorch.so (litetorch/runtime/process.h);
                               on_load(so): called with every ctypes.CDLL of a candidate, before its functions run
    take_string(pointer)       the text behind a char * of that library, which is then freed
    watch(mode), watched()     around one call of forward: what the host hands the device (litetorch/runtime/watch.cc);
                               mode "record", or "gate", which asks whether the call waits for its other streams
"""
import ctypes
import json
import os

library = None
on_load = None


class DeviceError(RuntimeError):
    """The device itself is unfit: infra, never the candidate's fault."""


def attach(lib, loaded=None):
    global library, on_load
    library, on_load = lib, loaded
    c, p, i = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
    for name, result, *args in (
            ("lt_torch_version", c), ("lt_process_api", p), ("lt_findings", p), ("lt_library_calls", p), ("lt_free", None, p),
            ("lt_watch_begin", None, i), ("lt_watch_end", p), ("lt_trace_start", None), ("lt_trace_counts", p),
            ("lt_trace_pause", i, i), ("lt_trace_open", None), ("lt_trace_alive", i),
            ("lt_invoke", i, p, p, p, p, c, ctypes.c_size_t)):
        f = getattr(lib, name)
        f.restype, f.argtypes = result, args
    lib.lt_lookups_watch.restype, lib.lt_lookups_watch.argtypes = None, [c]
    lib.lt_foreign.restype, lib.lt_foreign.argtypes = None, [i]


def check_version(path):
    import torch

    built = library.lt_torch_version().decode()
    if built != torch.__version__:
        raise DeviceError(f"{path} was built for PyTorch {built}, but {torch.__version__} is running; run 'make'")


def watch_lookups():
    """From now on, what foreign code looks up in loaded libraries (ctypes) is noted: litetorch/runtime/lookups.cc."""
    runner = os.path.dirname(os.path.dirname(watch_lookups.__code__.co_filename))
    library.lt_lookups_watch((runner + os.sep).encode())


class Foreign:
    """A context: foreign code runs."""

    def __enter__(self):
        library.lt_foreign(1)

    def __exit__(self, *exc):
        library.lt_foreign(0)


foreign = Foreign()


MODES = {"record": 1, "gate": 3}  # LT_WATCH_* of litetorch/include/litetorch/abi.h


def watch(mode):
    library.lt_watch_begin(MODES[mode])


def watched():
    return json.loads(take_string(library.lt_watch_end()))


def take_string(pointer):
    text = ctypes.string_at(pointer).decode("utf-8", "replace")
    library.lt_free(pointer)
    return text
