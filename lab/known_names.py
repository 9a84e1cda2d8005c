"""known_names.py - the lists of litetorch/names: names of PyTorch's C++ and of the CUDA toolkit, one a line.

    known_names.py torch INCLUDE >litetorch/names/torch.txt     INCLUDE: the folder 'include' of an installed PyTorch
    known_names.py used FOLDER..       names of at, torch and c10 in these sources, with the number of files that have
                                       them: litetorch/names/torch_used.txt holds the first 200 that PyTorch has
    known_names.py cuda INCLUDE >litetorch/names/cuda.txt       INCLUDE: the folder 'include' of a toolkit

".name" is a field of the runtime's structures. A build that fails for want of such a name is nobody's fault
(src/eval/build/build_lack.h). Names alone are taken: of macros, types, namespaces, functions and
constants; what is private, or made by a generator of wrappers, is left out.
Standard library only.
"""
import collections
import glob
import os
import re
import sys

TORCH = ("c10/**/*.h", "ATen/*.h", "ATen/core/*.h", "ATen/cuda/**/*.h", "ATen/cuda/**/*.cuh", "ATen/detail/*.h",
         "ATen/ops/*.h", "ATen/native/*.h", "ATen/native/cuda/*.h", "ATen/native/cuda/*.cuh", "torch/*.h",
         "torch/headeronly/**/*.h", "torch/csrc/*.h", "torch/csrc/autograd/*.h", "torch/csrc/utils/*.h",
         "torch/csrc/stable/**/*.h", "torch/csrc/inductor/aoti_torch/c/*.h", "torch/csrc/api/include/torch/**/*.h",
         "torch/csrc/cuda/*.h", "pybind11/**/*.h")
CUDA = ("cuda.h", "cuda_runtime*.h", "cuda_device_runtime_api.h", "cuda_fp*.h*", "cuda_bf16.h*", "cudaTypedefs.h",
        "cuda_profiler_api.h", "cuda_pipeline_primitives.h", "device_*.h*", "math_functions.h", "common_functions.h",
        "sm_*",
        "vector_*", "driver_*", "texture_*", "surface_*", "cuComplex.h", "math_constants.h", "curand*",
        "library_types.h", "channel_descriptor.h", "crt/math_functions.h", "crt/device_functions.h",
        "crt/device_double_functions.h", "crt/sm_*.h", "nvtx3/nvToolsExt*.h")
LEFT_OUT = re.compile(r"_[A-Z]\w*|\w+_generated_plumbing|\w+_outf|_?\w+_symint\w*|\w+_H_*|PYBIND11_INTERNALS\w*|"
                      r"\w{1,2}|"
                      r"\w+_ptsz|\w+_ptds|\w+_fn_t|\w+_st|THO_AP\d+|AT_AP\d+|__UNDEF_\w+|PFN_\w+|PyList\w*|"
                      r"mod\d+|\w+_v\d+|"
                      r"__\w+_DECL__|__\w+_HPP__|__internal_\w+|__nvvm_\w+|__cuda[A-Z]\w+|\w+_impl|__\w{1,3}Atomic\w+|"
                      r"__attribute__|__func__|\w+_MACRO\w*|mtgp32_\w+|MTGP\w+|MRG32\w+|_?_?curand_M\w+|__has_\w+")
# Constants of enumerations that the compiler would name with their type, and words that programs use for their own.
WORDS = set("""class struct enum typename const void int long short char float double bool unsigned signed auto
if for while switch return sizeof alignof decltype static_assert catch throw new delete operator template inline
static extern noexcept asm alignas volatile elif else defined have the tag push warning message comment
deprecated release
move visibility requires std any all align aligned main block grid tile tid idx value size data input output
result stream kernel launch shape dims count offset stride index
""".split())


USED = {"RegisterOperators", "None"}  # of headers whose other names are words that programs use


def text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        t = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    return re.sub(r"//[^\n]*", "", t)


def names_of(t, constants):
    out = set(re.findall(r"^\s*#\s*define\s+(\w+)", t, re.M))
    out |= set(re.findall(r"\b(?:struct|class|enum|using|namespace)\s+(?:[A-Z0-9_]+(?:\([^)]*\))?\s+|__\w+__\S*\s+)*"
                          r"(?:class\s+)?([A-Za-z_]\w*)", t))
    out |= {n for scope in re.findall(r"\bnamespace\s+(\w+(?:::\w+)+)", t) for n in scope.split("::")}
    out |= set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", t))
    return out | set(re.findall(constants, t))


def names(root, patterns, constants):
    files = {f for p in patterns for f in glob.glob(os.path.join(root, p), recursive=True) if os.path.isfile(f)}
    out = set()
    for f in sorted(files):
        if not f.endswith(("_native.h", "_dispatch.h")):
            out |= names_of(text(f), constants)
    return {n for n in out if not LEFT_OUT.fullmatch(n) and n not in WORDS}


def headers(root, depth):
    for folder, _, files in os.walk(root):
        for f in files:
            path = os.path.relpath(os.path.join(folder, f), root)
            if path.count("/") < depth and f.endswith((".h", ".hpp", ".cuh")):
                yield path


SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp", ".py")


def used(folders):
    """Lines 'name files' of qualified names."""
    count = collections.Counter()
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "**"), recursive=True)):
            if path.endswith(SOURCES) and os.path.isfile(path):
                count.update(set(re.findall(r"\b(?:at|torch|c10)(?:::[A-Za-z_]\w*)+", text(path))))
    return [f"{n} {k}" for n, k in count.most_common()]


def main():
    kind, root = sys.argv[1:3]
    if kind == "used":
        print("\n".join(used(sys.argv[2:])))
        return
    if kind == "torch":
        out = {n for n in names(root, TORCH, r"\b(k[A-Z]\w*)\b") if n[0] != "_"} | USED
    else:
        out = names(root, CUDA, r"\b(cuda[A-Z]\w*|cu[A-Z]\w*|CU(?:DA|RAND|DART)?_\w+|curand\w*|nvtx\w*)\b")
        out |= {"." + f for f in re.findall(r"\b([a-z]\w+)(?:\[\w+\])?;", text(os.path.join(root, "driver_types.h")))}
        out |= set(headers(root, 2))
    print("\n".join(sorted(out)))


if __name__ == "__main__":
    main()
