"""headers.py OUT: headers that know MUSA's names and none of CUDA's, made of the emulator's by the table of names.

A source that compiles against them (make MUSA=1) asks for nothing that MUSA does not spell so: what is missing in a
list of aliases is an error. They are for compiling, not for running; where mcc is, the SDK's own headers are taken.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIMT, TORCH = os.path.join(ROOT, "simt/include"), os.path.join(ROOT, "litetorch/include")
FILES = {"cuda_runtime.h": "musa_runtime.h", "cuda_bf16.h": "musa_bf16.h", "cuda_fp16.h": "musa_fp16.h",
         "cublas_v2.h": "mublas.h", "cublasLt.h": "mublasLt.h"}
# The types are those that candidates see; the functions are those that the engine calls.
FUNCTIONS = """
typedef enum { MUSA_R_32F = 0, MUSA_R_16F = 2, MUSA_R_16BF = 14 } musaDataType;
mublasStatus_t mublasLtCreate(mublasLtHandle_t *);
mublasStatus_t mublasLtDestroy(mublasLtHandle_t);
size_t mublasLtGetVersion(void);
mublasStatus_t mublasLtMatmulDescCreate(mublasLtMatmulDesc_t *, mublasComputeType_t, musaDataType);
mublasStatus_t mublasLtMatmulDescDestroy(mublasLtMatmulDesc_t);
mublasStatus_t mublasLtMatmulDescSetAttribute(mublasLtMatmulDesc_t, mublasLtMatmulDescAttributes_t, const void *,
                                              size_t);
mublasStatus_t mublasLtMatrixLayoutCreate(mublasLtMatrixLayout_t *, musaDataType, uint64_t, uint64_t, int64_t);
mublasStatus_t mublasLtMatrixLayoutDestroy(mublasLtMatrixLayout_t);
mublasStatus_t mublasLtMatmulPreferenceCreate(mublasLtMatmulPreference_t *);
mublasStatus_t mublasLtMatmulPreferenceSetAttribute(mublasLtMatmulPreference_t, mublasLtMatmulPreferenceAttributes_t,
                                                    const void *, size_t);
mublasStatus_t mublasLtMatmulAlgoGetHeuristic(mublasLtHandle_t, mublasLtMatmulDesc_t, mublasLtMatrixLayout_t,
                                              mublasLtMatrixLayout_t, mublasLtMatrixLayout_t, mublasLtMatrixLayout_t,
                                              mublasLtMatmulPreference_t, int, mublasLtMatmulHeuristicResult_t *,
                                              int *);
mublasStatus_t mublasLtMatmul(mublasLtHandle_t, mublasLtMatmulDesc_t, const void *, const void *,
                              mublasLtMatrixLayout_t, const void *, mublasLtMatrixLayout_t, const void *,
                              const void *, mublasLtMatrixLayout_t, void *, mublasLtMatrixLayout_t,
                              const mublasLtMatmulAlgo_t *, void *, size_t, musaStream_t);
"""


def aliases():
    """CUDA's name -> MUSA's."""
    names = {}
    for table in ("musa_names.h", "mublas_names.h", "mublaslt_names.h"):
        with open(os.path.join(TORCH, "litetorch", table)) as f:
            for musa, cuda in re.findall(r"^#define (\w+) (\w+)$", f.read(), re.M):
                names.setdefault(cuda, musa)
    return names


def spelled(text, names):
    text = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m.group(), m.group()), text)
    text = re.sub(r"\bcublas(Lt)?(?=[A-Z]\w*)", r"mublas\1", text)
    return re.sub(r'(#\s*include\s*[<"])([^>"]+)', lambda m: m.group(1) + FILES.get(m.group(2), m.group(2)), text)


def library(text):
    """The types of a vendor library's header: its functions come last there."""
    return text[:text.index("\ninline ") + 1].replace('#include "litetorch/library.h"', "#include <musa_runtime.h>")


def write(out, name, text):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def main(out):
    names = aliases()
    for folder in (SIMT, TORCH):
        for where, _, files in os.walk(folder):
            for name in files:
                inside = os.path.relpath(os.path.join(where, name), folder)
                if not name.endswith(".h") or (folder == TORCH and inside not in FILES):
                    continue
                with open(os.path.join(where, name)) as f:
                    text = spelled(f.read() if folder == SIMT else library(f.read()), names)
                write(out, FILES.get(inside, inside), text + (FUNCTIONS if name == "cublasLt.h" else ""))


if __name__ == "__main__":
    main(sys.argv[1])
