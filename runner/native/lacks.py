"""lacks.py - what this judge does not have, told from what a program does wrong.

A program that asks for such a thing ends with an exception of these classes, or with one of torch's own that says that
there is no device in this process. front_role tells the judge which (litetorch/front/front.h), and then the program is
`unsupported` by that name. A program may raise them itself: it then has no verdict, and gains nothing.
"""
import importlib.abc
import importlib.machinery
import re
import sys

LANGUAGE, TORCH, AUTOGRAD = 13, 14, 15  # FRONT_LACK_LANGUAGE and so on of litetorch/front/front.h

# Packages that bring kernels of their own, or compile another language for the device.
LANGUAGES = {
    "triton": "Triton", "cupy": "CuPy", "numba": "Numba", "tilelang": "TileLang", "tvm": "TVM",
    "cutlass": "CUTLASS for Python",
    "pycuda": "PyCUDA", "jax": "JAX", "jaxlib": "JAX", "taichi": "Taichi", "hidet": "Hidet", "warp": "Warp",
    "helion": "Helion", "cuda": "CUDA Python", "cuda_tile": "cuTile", "thunderkittens": "ThunderKittens",
    "tensorrt": "TensorRT", "pyopencl": "PyOpenCL", "mojo": "Mojo", "gluon": "Gluon", "quack": "QuACK",
    "flash_attn": "FlashAttention", "flashinfer": "FlashInfer", "xformers": "xFormers", "apex": "Apex",
    "deep_gemm": "DeepGEMM", "transformer_engine": "Transformer Engine", "bitsandbytes": "bitsandbytes",
    "liger_kernel": "Liger", "mamba_ssm": "Mamba", "causal_conv1d": "causal_conv1d", "sgl_kernel": "sgl_kernel",
    "vllm": "vLLM", "torchao": "torchao", "fbgemm_gpu": "FBGEMM"}

# torch's words where it looks for a driver: there is none in this process, whatever the program does.
WORDS = [(re.compile(p), code, name) for p, code, name in (
    (r"Could not run 'aten::[\w.]+' with arguments from the 'CPU' backend", TORCH, "an operator without a CPU kernel"),
    (r"'_OpNamespace' '(?!aten|prim)\w+' object has no attribute", TORCH, "TORCH_LIBRARY"),
    (r"hasPrimaryContext|does not require grad and does not have a grad_fn", AUTOGRAD, "torch.autograd"),
    (r"Found no NVIDIA driver|Torch not compiled with CUDA|No CUDA GPUs are available|"
     r"CUDA driver initialization failed|"
     r"NVIDIA driver on your system is too old|Cannot initialize CUDA without ATen_cuda|"
     r"PyTorch was compiled without CUDA|Could not (?:find|load) .*(?:libcuda|libnvrtc|cudart)", TORCH, "torch.cuda"))]


class Lack(Exception):
    """Beside the class that the program expects; code and, set on each, name are for the judge."""

    code = TORCH


class LackingModule(Lack, ModuleNotFoundError):
    code = LANGUAGE


class LackingFunction(Lack, NotImplementedError):
    pass


def function(name):
    """A function that is there to be found; who calls it learns that it is not."""
    def lacking(*args, **kwargs):
        e = LackingFunction(f"{name} is not available in this judge")
        e.name = name
        raise e

    lacking.__name__ = lacking.__qualname__ = name.rsplit(".", 1)[-1]
    return lacking


class Finder(importlib.abc.MetaPathFinder):
    """Names packages of LANGUAGES where a program imports them; torch's own look for them goes on."""

    def find_spec(self, fullname, path=None, target=None):
        if path is not None or fullname not in LANGUAGES or not from_candidate():
            return None
        e = LackingModule(f"No module named '{fullname}': {LANGUAGES[fullname]} is not judged here; kernels are "
                          "CUDA or MUSA C++", name=fullname)
        raise e


def from_candidate():
    """Does the import stand in a program's text, not in a library's?"""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    path = frame.f_code.co_filename if frame else ""
    return bool(frame) and "site-packages" not in path and "dist-packages" not in path


def install():
    """In the candidate's process. What the fork server's parent has imported is found again by its name."""
    for name in [n for n in sys.modules if n.split(".")[0] in LANGUAGES]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder())


def of(e):
    """(code, name) of what an exception, or one that it came from, lacks; None: nothing."""
    seen = set()
    while isinstance(e, BaseException) and id(e) not in seen:
        seen.add(id(e))
        if isinstance(e, Lack):
            return e.code, getattr(e, "name", None) or "?"
        if isinstance(e, ModuleNotFoundError) and str(e.name).split(".")[0] in LANGUAGES:
            return LANGUAGE, LANGUAGES[str(e.name).split(".")[0]]
        for words, code, name in WORDS:
            if isinstance(e, (RuntimeError, AssertionError)) and words.search(str(e)):
                return code, name
        e = e.__cause__ or e.__context__
    return None


def spec(name, package=False):
    """Of a stand-in module, for importlib.util.find_spec."""
    return importlib.machinery.ModuleSpec(name, None, is_package=package)
