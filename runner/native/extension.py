"""torch.utils.cpp_extension without a compiler: load_inline and load become build requests; the answer is a module.

The checks that torch makes in Python are made here with torch's words; everything else is the compile stage's
(src/eval/build/build.h). The request is the one of ARCHITECTURE.md.
"""
import os
import re
import sys
import types

from . import module

_builder = None
_before_load = None


def set_builder(build):
    global _builder
    _builder = build


def set_library(before_load):
    """before_load(path, image): called with every library before it is opened; image: of its device code, or None."""
    global _before_load
    _before_load = before_load


def _as_list(value, name):
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    out = list(value)
    for v in out:
        if not isinstance(v, str):
            raise TypeError(f"{name} must be strings, not {type(v).__name__}")
    return out


def _function_table(functions):
    if functions is None:
        return None
    if isinstance(functions, str):
        functions = [functions]
    if isinstance(functions, (list, tuple)):
        functions = {f: f for f in functions}
    if not isinstance(functions, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    return {str(k): str(v) for k, v in functions.items()}


def _check_name(name):
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise RuntimeError(f"Error building extension '{name}': the name is not an identifier")


def _run(name, request):
    if _builder is None:
        raise RuntimeError(f"Error building extension '{name}': no compile stage is attached to this process")
    reply = _builder(request)
    if not reply.get("ok"):
        raise RuntimeError(f"Error building extension '{name}': {reply.get('error', 'unknown error')}")
    if _before_load:
        _before_load(reply["so"], reply.get("image"))
    return module.load(name, reply["so"])


def load_inline(name, cpp_sources, cuda_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
                build_directory=None, verbose=False, with_cuda=None, with_sycl=None,
                with_pytorch_error_handling=True, keep_intermediates=True, use_pch=False, no_implicit_headers=False):
    """As torch.utils.cpp_extension.load_inline of PyTorch 2.11."""
    _check_name(name)
    return _run(name, {
        "kind": "load_inline", "name": name, "cpp_sources": _as_list(cpp_sources, "cpp_sources"),
        "cuda_sources": _as_list(cuda_sources, "cuda_sources"), "functions": _function_table(functions),
        "extra_cflags": _as_list(extra_cflags, "extra_cflags"),
        "extra_cuda_cflags": _as_list(extra_cuda_cflags, "extra_cuda_cflags"),
        "extra_ldflags": _as_list(extra_ldflags, "extra_ldflags"),
        "extra_include_paths": _as_list(extra_include_paths, "extra_include_paths"),
        "with_cuda": None if with_cuda is None else bool(with_cuda), "no_implicit_headers": bool(no_implicit_headers)})


def musa_load_inline(name, cpp_sources, musa_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                     extra_musa_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
                     build_directory=None, verbose=False, with_musa=None, with_sycl=None,
                     with_pytorch_error_handling=True, keep_intermediates=True):
    """As torch_musa.utils.musa_extension.load_inline: the same request, in the MUSA dialect."""
    _check_name(name)
    sources = _as_list(musa_sources, "musa_sources")
    names = ["musa_source"] if len(sources) == 1 else [f"musa_sources[{i}]" for i in range(len(sources))]
    return _run(name, {
        "kind": "load_inline", "dialect": "musa", "name": name, "cpp_sources": _as_list(cpp_sources, "cpp_sources"),
        "cuda_sources": sources, "cuda_names": names, "functions": _function_table(functions),
        "extra_cflags": _as_list(extra_cflags, "extra_cflags"),
        "extra_cuda_cflags": _as_list(extra_musa_cflags, "extra_musa_cflags"),
        "extra_ldflags": _as_list(extra_ldflags, "extra_ldflags"),
        "extra_include_paths": _as_list(extra_include_paths, "extra_include_paths"),
        "with_cuda": None if with_musa is None else bool(with_musa)})


def musa_load(name, sources, extra_cflags=None, extra_musa_cflags=None, extra_ldflags=None, extra_include_paths=None,
              build_directory=None, verbose=False, with_musa=None, **rest):
    """As torch_musa.utils.musa_extension.load."""
    return load(name, sources, extra_cflags=extra_cflags, extra_cuda_cflags=extra_musa_cflags,
                extra_ldflags=extra_ldflags, extra_include_paths=extra_include_paths, with_cuda=with_musa,
                dialect="musa", **rest)


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
         extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None,
         is_python_module=True, is_standalone=False, keep_intermediates=True, dialect="cuda"):
    """As torch.utils.cpp_extension.load; the files are read here, in the candidate's process."""
    _check_name(name)
    cpp, cuda, cpp_names, cuda_names = [], [], [], []
    for path in _as_list(sources, "sources"):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        is_cuda = path.endswith((".cu", ".cuh", ".mu", ".muh"))
        (cuda if is_cuda else cpp).append(text)
        (cuda_names if is_cuda else cpp_names).append(os.path.basename(path))
    return _run(name, {
        "kind": "load", "dialect": dialect,
        "name": name, "cpp_sources": cpp, "cuda_sources": cuda, "cpp_names": cpp_names,
        "cuda_names": cuda_names, "functions": None, "extra_cflags": _as_list(extra_cflags, "extra_cflags"),
        "extra_cuda_cflags": _as_list(extra_cuda_cflags, "extra_cuda_cflags"),
        "extra_ldflags": _as_list(extra_ldflags, "extra_ldflags"),
        "extra_include_paths": _as_list(extra_include_paths, "extra_include_paths"),
        "with_cuda": None if with_cuda is None else bool(with_cuda)})


class _Extension:
    """setup.py-style building has no place in a candidate; the names exist so that imports work."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    @classmethod
    def with_options(cls, **options):
        return cls


def _fake(name, **names):
    m = types.ModuleType(name)
    m.__dict__.update({"load_inline": load_inline, "load": load, **names})
    return m


def put_in_place():
    """Makes the names importable, before anyone imports the real module (which asks for devices)."""
    import torch.utils

    class CUDAExtension(_Extension):
        pass

    class CppExtension(_Extension):
        pass

    class BuildExtension(_Extension):
        pass

    names = dict(CUDAExtension=CUDAExtension, CppExtension=CppExtension, BuildExtension=BuildExtension,
                 CUDA_HOME="/usr/local/cuda", CUDNN_HOME=None, ROCM_HOME=None, IS_HIP_EXTENSION=False,
                 include_paths=lambda *a, **k: [], library_paths=lambda *a, **k: [],
                 is_ninja_available=lambda: True, verify_ninja_availability=lambda: None,
                 check_compiler_abi_compatibility=lambda compiler: True, get_default_build_root=lambda: "/tmp",
                 _get_build_directory=lambda name, verbose=False: "/tmp", COMMON_NVCC_FLAGS=[])
    ours = _fake("torch.utils.cpp_extension", **names)
    ours.__doc__ = "load_inline and load, answered by the compile stage"
    sys.modules["torch.utils.cpp_extension"] = ours
    torch.utils.cpp_extension = ours
    if "torch_musa" not in sys.modules:
        root, utils = types.ModuleType("torch_musa"), types.ModuleType("torch_musa.utils")
        musa = _fake("torch_musa.utils.musa_extension", MUSAExtension=CUDAExtension, BuildExtension=BuildExtension,
                     CppExtension=CppExtension, MUSA_HOME="/usr/local/musa",
                     load_inline=musa_load_inline, load=musa_load)
        root.utils, utils.musa_extension = utils, musa
        root.__path__ = utils.__path__ = []
        for m in (root, utils, musa):
            sys.modules[m.__name__] = m
