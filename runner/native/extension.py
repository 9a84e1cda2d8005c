"""torch.utils.cpp_extension without a compiler: load_inline and load become build requests; the answer is a module.

The checks that torch makes in Python are made here with torch's words; everything else is the compile stage's
(src/eval/build/build.h). The request is the one of ARCHITECTURE.md.
"""
import importlib.util
import os
import re
import sys
import types

from . import headers, lacks, module

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise RuntimeError(f"Error building extension '{name}': the name is not an identifier")


def _run(name, request, is_module=True):
    if _builder is None:
        raise RuntimeError(f"Error building extension '{name}': no compile stage is attached to this process")
    reply = _builder(request)
    if not reply.get("ok"):
        raise RuntimeError(f"Error building extension '{name}': {reply.get('error', 'unknown error')}")
    if _before_load:
        _before_load(reply["so"], reply.get("image"))
    return module.load(name, reply["so"], is_module)


def load_inline(name, cpp_sources, cuda_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
                build_directory=None, verbose=False, with_cuda=None, with_sycl=None, is_python_module=True,
                with_pytorch_error_handling=True, keep_intermediates=True, use_pch=False, no_implicit_headers=False):
    """As torch.utils.cpp_extension.load_inline of PyTorch 2.11."""
    _check_name(name)
    paths = _as_list(extra_include_paths, "extra_include_paths")
    return _run(name, {
        "kind": "load_inline", "name": name,
        "cpp_sources": headers.put_in(_as_list(cpp_sources, "cpp_sources"), paths, "cpp_source"),
        "cuda_sources": headers.put_in(_as_list(cuda_sources, "cuda_sources"), paths, "cuda_source"),
        "functions": _function_table(functions),
        "extra_cflags": _as_list(extra_cflags, "extra_cflags"),
        "extra_cuda_cflags": _as_list(extra_cuda_cflags, "extra_cuda_cflags"),
        "extra_ldflags": _as_list(extra_ldflags, "extra_ldflags"),
        "extra_include_paths": _as_list(extra_include_paths, "extra_include_paths"),
        "with_cuda": None if with_cuda is None else bool(with_cuda), "no_implicit_headers": bool(no_implicit_headers)},
        is_python_module)


def musa_load_inline(name, cpp_sources, musa_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                     extra_musa_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None,
                     build_directory=None, verbose=False, with_musa=None, with_sycl=None,
                     with_pytorch_error_handling=True, keep_intermediates=True):
    """As torch_musa.utils.musa_extension.load_inline: the same request, in the MUSA dialect."""
    _check_name(name)
    paths = _as_list(extra_include_paths, "extra_include_paths")
    sources = headers.put_in(_as_list(musa_sources, "musa_sources"), paths, "musa_source")
    names = ["musa_source"] if len(sources) == 1 else [f"musa_sources[{i}]" for i in range(len(sources))]
    return _run(name, {
        "kind": "load_inline", "dialect": "musa", "name": name,
        "cpp_sources": headers.put_in(_as_list(cpp_sources, "cpp_sources"), paths, "cpp_source"),
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


def _text(path):
    path = os.fspath(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"'{path}' is not there: a program is judged as one file, with what it writes itself; "
                                f"put the text of '{os.path.basename(path)}' into the program") from None


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
         extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None,
         is_python_module=True, is_standalone=False, keep_intermediates=True, dialect="cuda"):
    """As torch.utils.cpp_extension.load; the files are read here, in the candidate's process."""
    _check_name(name)
    if is_standalone:
        lacks.function("torch.utils.cpp_extension.load(is_standalone=True)")()
    cpp, cuda, cpp_names, cuda_names = [], [], [], []
    paths = _as_list(extra_include_paths, "extra_include_paths")
    for path in _as_list(sources, "sources"):
        text = headers.put_in([_text(path)], [os.path.dirname(path) or ".", *paths], os.path.basename(path))[0]
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
        "with_cuda": None if with_cuda is None else bool(with_cuda)}, is_python_module)


class _Extension:
    """setup.py-style building has no place in a candidate; the names exist so that imports work."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    @classmethod
    def with_options(cls, **options):
        return cls


class CUDAExtension(_Extension):
    pass


class CppExtension(_Extension):
    pass


class BuildExtension(_Extension):
    pass


_OURS = dict(CUDAExtension=CUDAExtension, CppExtension=CppExtension, BuildExtension=BuildExtension,
             load_inline=load_inline, load=load,
             CUDA_HOME="/usr/local/cuda", CUDNN_HOME=None, ROCM_HOME=None, IS_HIP_EXTENSION=False,
             include_paths=lambda *a, **k: [], library_paths=lambda *a, **k: [],
             is_ninja_available=lambda: True, verify_ninja_availability=lambda: None,
             check_compiler_abi_compatibility=lambda compiler: True, get_default_build_root=lambda: "/tmp",
             get_cxx_compiler=lambda: "g++", check_compiler_is_gcc=lambda compiler: True,
             check_compiler_ok_for_platform=lambda compiler: True,
             _get_build_directory=lambda name, verbose=False: "/tmp", COMMON_NVCC_FLAGS=[])
_real = None


def _real_module():
    """torch's own module under another name: its constants are answered as they are."""
    global _real
    if _real is None:
        import torch.utils
        path = os.path.join(os.path.dirname(torch.utils.__file__), "cpp_extension.py")
        s = importlib.util.spec_from_file_location("torch.utils._cpp_extension_constants", path)
        _real = importlib.util.module_from_spec(s)
        s.loader.exec_module(_real)
    return _real


def _other_name(name):
    """A name of the real module that is not among ours: its functions would start a compiler here."""
    if name.startswith("__"):
        raise AttributeError(name)
    value = getattr(_real_module(), name)
    return lacks.function("torch.utils.cpp_extension." + name) if isinstance(value, types.FunctionType) else value


def _fake(name, **names):
    m = types.ModuleType(name)
    m.__spec__ = lacks.spec(name)
    m.__dict__.update(names)
    return m


def _musa_modules():
    root, utils = _fake("torch_musa"), _fake("torch_musa.utils")
    root.__spec__, utils.__spec__ = lacks.spec("torch_musa", True), lacks.spec("torch_musa.utils", True)
    musa = _fake("torch_musa.utils.musa_extension", MUSAExtension=CUDAExtension, BuildExtension=BuildExtension,
                 CppExtension=CppExtension, MUSA_HOME="/usr/local/musa", load_inline=musa_load_inline, load=musa_load)
    root.utils, utils.musa_extension = utils, musa
    root.__path__ = utils.__path__ = []
    return root, utils, musa


def put_in_place():
    """Makes the names importable, before anyone imports the real module (which asks for devices)."""
    import torch.utils

    ours = _fake("torch.utils.cpp_extension", **_OURS)
    ours.__doc__ = "load_inline and load, answered by the compile stage"
    ours.__getattr__ = _other_name
    sys.modules["torch.utils.cpp_extension"] = ours
    torch.utils.cpp_extension = ours
    if "torch_musa" not in sys.modules:
        for m in _musa_modules():
            sys.modules[m.__name__] = m
