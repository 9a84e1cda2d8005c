"""Native extensions in a candidate's process: load_inline and load become build requests (extension.py), the shared
object that comes back becomes a module (module.py). runner/front sets

    library                    ctypes.CDLL of libfronttorch.so (litetorch/front/api.cc)
    take_string(pointer)       the text behind a char * of that library, which is then freed
"""
import ctypes

library = None


class DeviceError(RuntimeError):
    """The device itself is unfit: infra, never the candidate's fault."""


def check_version(path):
    import torch

    built = library.lt_torch_version().decode()
    if built != torch.__version__:
        raise DeviceError(f"{path} was built for PyTorch {built}, but {torch.__version__} is running; run 'make'")


def take_string(pointer):
    text = ctypes.string_at(pointer).decode("utf-8", "replace")
    library.lt_free(pointer)
    return text
