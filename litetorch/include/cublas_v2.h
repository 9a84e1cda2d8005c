/* cublas_v2.h as candidates include it: see litetorch/library.h. */
#pragma once
#include "litetorch/library.h"

typedef struct cublasContext *cublasHandle_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 } cublasFillMode_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32I = 72
} cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;

inline cublasStatus_t cublasCreate(cublasHandle_t *h) { *h = reinterpret_cast<cublasHandle_t>(1);
                                                        return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetStream(cublasHandle_t, cudaStream_t *s) { *s = nullptr; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t *m) { *m = CUBLAS_DEFAULT_MATH;
                                                                           return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline const char *cublasGetStatusString(cublasStatus_t) { return "cuBLAS status"; }
inline const char *cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS"; }
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
namespace at { namespace cuda {
inline cublasHandle_t getCurrentCUDABlasHandle() { return reinterpret_cast<cublasHandle_t>(1); }
} }
#define TORCH_CUDABLAS_CHECK(EXPR) (void)(EXPR)

#define cublasSgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgemm")
#define cublasDgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgemm")
#define cublasHgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgemm")
#define cublasCgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgemm")
#define cublasZgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgemm")
#define cublasSgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgemv")
#define cublasDgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgemv")
#define cublasHgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgemv")
#define cublasCgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgemv")
#define cublasZgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgemv")
#define cublasSger(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSger")
#define cublasDger(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDger")
#define cublasHger(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHger")
#define cublasCger(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCger")
#define cublasZger(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZger")
#define cublasSaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSaxpy")
#define cublasDaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDaxpy")
#define cublasHaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHaxpy")
#define cublasCaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCaxpy")
#define cublasZaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZaxpy")
#define cublasSdot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSdot")
#define cublasDdot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDdot")
#define cublasHdot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHdot")
#define cublasCdot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCdot")
#define cublasZdot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZdot")
#define cublasSscal(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSscal")
#define cublasDscal(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDscal")
#define cublasHscal(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHscal")
#define cublasCscal(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCscal")
#define cublasZscal(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZscal")
#define cublasSnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSnrm2")
#define cublasDnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDnrm2")
#define cublasHnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHnrm2")
#define cublasCnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCnrm2")
#define cublasZnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZnrm2")
#define cublasSasum(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSasum")
#define cublasDasum(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDasum")
#define cublasHasum(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHasum")
#define cublasCasum(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCasum")
#define cublasZasum(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZasum")
#define cublasScopy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasScopy")
#define cublasDcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDcopy")
#define cublasHcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHcopy")
#define cublasCcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCcopy")
#define cublasZcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZcopy")
#define cublasSswap(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSswap")
#define cublasDswap(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDswap")
#define cublasHswap(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHswap")
#define cublasCswap(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCswap")
#define cublasZswap(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZswap")
#define cublasSgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgemmBatched")
#define cublasDgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgemmBatched")
#define cublasHgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgemmBatched")
#define cublasCgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgemmBatched")
#define cublasZgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgemmBatched")
#define cublasSgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgemmStridedBatched")
#define cublasDgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgemmStridedBatched")
#define cublasHgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgemmStridedBatched")
#define cublasCgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgemmStridedBatched")
#define cublasZgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgemmStridedBatched")
#define cublasSgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgeam")
#define cublasDgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgeam")
#define cublasHgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgeam")
#define cublasCgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgeam")
#define cublasZgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgeam")
#define cublasSdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSdgmm")
#define cublasDdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDdgmm")
#define cublasHdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHdgmm")
#define cublasCdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCdgmm")
#define cublasZdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZdgmm")
#define cublasStrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasStrsm")
#define cublasDtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDtrsm")
#define cublasHtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHtrsm")
#define cublasCtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCtrsm")
#define cublasZtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZtrsm")
#define cublasSsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSsyrk")
#define cublasDsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDsyrk")
#define cublasHsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHsyrk")
#define cublasCsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCsyrk")
#define cublasZsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZsyrk")
#define cublasSsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSsymm")
#define cublasDsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDsymm")
#define cublasHsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHsymm")
#define cublasCsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCsymm")
#define cublasZsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZsymm")
#define cublasSgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgbmv")
#define cublasDgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDgbmv")
#define cublasHgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHgbmv")
#define cublasCgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCgbmv")
#define cublasZgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZgbmv")
#define cublasSsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSsbmv")
#define cublasDsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDsbmv")
#define cublasHsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHsbmv")
#define cublasCsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCsbmv")
#define cublasZsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZsbmv")
#define cublasSsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSsymv")
#define cublasDsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDsymv")
#define cublasHsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHsymv")
#define cublasCsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCsymv")
#define cublasZsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZsymv")
#define cublasStrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasStrmv")
#define cublasDtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDtrmv")
#define cublasHtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHtrmv")
#define cublasCtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCtrmv")
#define cublasZtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZtrmv")
#define cublasSsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSsyr")
#define cublasDsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDsyr")
#define cublasHsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHsyr")
#define cublasCsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCsyr")
#define cublasZsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZsyr")
#define cublasSrot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSrot")
#define cublasDrot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDrot")
#define cublasHrot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasHrot")
#define cublasCrot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasCrot")
#define cublasZrot(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasZrot")
#define cublasGemmEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasGemmEx")
#define cublasSgemmEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgemmEx")
#define cublasGemmStridedBatchedEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasGemmStridedBatchedEx")
#define cublasGemmBatchedEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasGemmBatchedEx")
#define cublasIsamax(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasIsamax")
#define cublasIsamin(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasIsamin")
#define cublasIdamax(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasIdamax")
#define cublasIdamin(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasIdamin")
#define cublasAxpyEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasAxpyEx")
#define cublasDotEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasDotEx")
#define cublasNrm2Ex(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasNrm2Ex")
#define cublasScalEx(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasScalEx")
#define cublasSgetrfBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgetrfBatched")
#define cublasSgetriBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSgetriBatched")
#define cublasSmatinvBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "cublasSmatinvBatched")
