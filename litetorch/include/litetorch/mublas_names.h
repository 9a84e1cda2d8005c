/* mublas_names.h - muBLAS under its own names; made by make musa-names, never by hand. */
#pragma once
#define MUBLAS_COMPUTE_16F CUBLAS_COMPUTE_16F
#define MUBLAS_COMPUTE_32F CUBLAS_COMPUTE_32F
#define MUBLAS_COMPUTE_32F_FAST_16F CUBLAS_COMPUTE_32F_FAST_16F
#define MUBLAS_COMPUTE_32F_FAST_TF32 CUBLAS_COMPUTE_32F_FAST_TF32
#define MUBLAS_COMPUTE_32I CUBLAS_COMPUTE_32I
#define MUBLAS_COMPUTE_64F CUBLAS_COMPUTE_64F
#define MUBLAS_DEFAULT_MATH CUBLAS_DEFAULT_MATH
#define MUBLAS_DIAG_NON_UNIT CUBLAS_DIAG_NON_UNIT
#define MUBLAS_DIAG_UNIT CUBLAS_DIAG_UNIT
#define MUBLAS_FILL_MODE_LOWER CUBLAS_FILL_MODE_LOWER
#define MUBLAS_FILL_MODE_UPPER CUBLAS_FILL_MODE_UPPER
#define MUBLAS_GEMM_DEFAULT CUBLAS_GEMM_DEFAULT
#define MUBLAS_OP_C CUBLAS_OP_C
#define MUBLAS_OP_N CUBLAS_OP_N
#define MUBLAS_OP_T CUBLAS_OP_T
#define MUBLAS_PEDANTIC_MATH CUBLAS_PEDANTIC_MATH
#define MUBLAS_POINTER_MODE_DEVICE CUBLAS_POINTER_MODE_DEVICE
#define MUBLAS_POINTER_MODE_HOST CUBLAS_POINTER_MODE_HOST
#define MUBLAS_SIDE_LEFT CUBLAS_SIDE_LEFT
#define MUBLAS_SIDE_RIGHT CUBLAS_SIDE_RIGHT
#define MUBLAS_STATUS_ALLOC_FAILED CUBLAS_STATUS_ALLOC_FAILED
#define MUBLAS_STATUS_ARCH_MISMATCH CUBLAS_STATUS_ARCH_MISMATCH
#define MUBLAS_STATUS_EXECUTION_FAILED CUBLAS_STATUS_EXECUTION_FAILED
#define MUBLAS_STATUS_INTERNAL_ERROR CUBLAS_STATUS_INTERNAL_ERROR
#define MUBLAS_STATUS_INVALID_VALUE CUBLAS_STATUS_INVALID_VALUE
#define MUBLAS_STATUS_MAPPING_ERROR CUBLAS_STATUS_MAPPING_ERROR
#define MUBLAS_STATUS_NOT_IMPLEMENTED CUBLAS_STATUS_NOT_SUPPORTED
#define MUBLAS_STATUS_NOT_INITIALIZED CUBLAS_STATUS_NOT_INITIALIZED
#define MUBLAS_STATUS_SUCCESS CUBLAS_STATUS_SUCCESS
#define MUBLAS_TENSOR_OP_MATH CUBLAS_TENSOR_OP_MATH
#define TORCH_MUSABLAS_CHECK TORCH_CUDABLAS_CHECK
#define getCurrentMUSABlasHandle getCurrentCUDABlasHandle
#define mublasAxpyEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasAxpyEx")
#define mublasCasum(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCasum")
#define mublasCaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCaxpy")
#define mublasCcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCcopy")
#define mublasCdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCdgmm")
#define mublasCdot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCdot")
#define mublasCgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgbmv")
#define mublasCgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgeam")
#define mublasCgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgemm")
#define mublasCgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgemmBatched")
#define mublasCgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgemmStridedBatched")
#define mublasCgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCgemv")
#define mublasCger(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCger")
#define mublasCnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCnrm2")
#define mublasComputeType_t cublasComputeType_t
#define mublasContext cublasContext
#define mublasCreate cublasCreate
#define mublasCreate_v2 cublasCreate_v2
#define mublasCrot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCrot")
#define mublasCsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCsbmv")
#define mublasCscal(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCscal")
#define mublasCswap(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCswap")
#define mublasCsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCsymm")
#define mublasCsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCsymv")
#define mublasCsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCsyr")
#define mublasCsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCsyrk")
#define mublasCtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCtrmv")
#define mublasCtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasCtrsm")
#define mublasDasum(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDasum")
#define mublasDaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDaxpy")
#define mublasDcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDcopy")
#define mublasDdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDdgmm")
#define mublasDdot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDdot")
#define mublasDestroy cublasDestroy
#define mublasDestroy_v2 cublasDestroy_v2
#define mublasDgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgbmv")
#define mublasDgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgeam")
#define mublasDgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgemm")
#define mublasDgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgemmBatched")
#define mublasDgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgemmStridedBatched")
#define mublasDgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDgemv")
#define mublasDger(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDger")
#define mublasDiagType_t cublasDiagType_t
#define mublasDnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDnrm2")
#define mublasDotEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDotEx")
#define mublasDrot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDrot")
#define mublasDsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDsbmv")
#define mublasDscal(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDscal")
#define mublasDswap(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDswap")
#define mublasDsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDsymm")
#define mublasDsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDsymv")
#define mublasDsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDsyr")
#define mublasDsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDsyrk")
#define mublasDtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDtrmv")
#define mublasDtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasDtrsm")
#define mublasFillMode_t cublasFillMode_t
#define mublasGemmAlgo_t cublasGemmAlgo_t
#define mublasGemmBatchedEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasGemmBatchedEx")
#define mublasGemmEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasGemmEx")
#define mublasGemmStridedBatchedEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasGemmStridedBatchedEx")
#define mublasGetMathMode cublasGetMathMode
#define mublasGetStatusName cublasGetStatusName
#define mublasGetStream cublasGetStream
#define mublasHandle_t cublasHandle_t
#define mublasHasum(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHasum")
#define mublasHaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHaxpy")
#define mublasHcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHcopy")
#define mublasHdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHdgmm")
#define mublasHdot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHdot")
#define mublasHgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgbmv")
#define mublasHgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgeam")
#define mublasHgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgemm")
#define mublasHgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgemmBatched")
#define mublasHgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgemmStridedBatched")
#define mublasHgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHgemv")
#define mublasHger(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHger")
#define mublasHnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHnrm2")
#define mublasHrot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHrot")
#define mublasHsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHsbmv")
#define mublasHscal(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHscal")
#define mublasHswap(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHswap")
#define mublasHsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHsymm")
#define mublasHsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHsymv")
#define mublasHsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHsyr")
#define mublasHsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHsyrk")
#define mublasHtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHtrmv")
#define mublasHtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasHtrsm")
#define mublasIdamax(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasIdamax")
#define mublasIdamin(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasIdamin")
#define mublasIsamax(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasIsamax")
#define mublasIsamin(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasIsamin")
#define mublasMath_t cublasMath_t
#define mublasNrm2Ex(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasNrm2Ex")
#define mublasOperation_t cublasOperation_t
#define mublasPointerMode_t cublasPointerMode_t
#define mublasSasum(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSasum")
#define mublasSaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSaxpy")
#define mublasScalEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasScalEx")
#define mublasScopy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasScopy")
#define mublasSdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSdgmm")
#define mublasSdot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSdot")
#define mublasSetMathMode cublasSetMathMode
#define mublasSetPointerMode cublasSetPointerMode
#define mublasSetStream cublasSetStream
#define mublasSetStream_v2 cublasSetStream_v2
#define mublasSetWorkspace cublasSetWorkspace
#define mublasSgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgbmv")
#define mublasSgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgeam")
#define mublasSgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgemm")
#define mublasSgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgemmBatched")
#define mublasSgemmEx(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgemmEx")
#define mublasSgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgemmStridedBatched")
#define mublasSgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgemv")
#define mublasSger(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSger")
#define mublasSgetrfBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgetrfBatched")
#define mublasSgetriBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSgetriBatched")
#define mublasSideMode_t cublasSideMode_t
#define mublasSmatinvBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSmatinvBatched")
#define mublasSnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSnrm2")
#define mublasSrot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSrot")
#define mublasSsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSsbmv")
#define mublasSscal(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSscal")
#define mublasSswap(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSswap")
#define mublasSsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSsymm")
#define mublasSsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSsymv")
#define mublasSsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSsyr")
#define mublasSsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasSsyrk")
#define mublasStatus_t cublasStatus_t
#define mublasStatus_to_string cublasGetStatusString
#define mublasStrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasStrmv")
#define mublasStrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasStrsm")
#define mublasZasum(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZasum")
#define mublasZaxpy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZaxpy")
#define mublasZcopy(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZcopy")
#define mublasZdgmm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZdgmm")
#define mublasZdot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZdot")
#define mublasZgbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgbmv")
#define mublasZgeam(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgeam")
#define mublasZgemm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgemm")
#define mublasZgemmBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgemmBatched")
#define mublasZgemmStridedBatched(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgemmStridedBatched")
#define mublasZgemv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZgemv")
#define mublasZger(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZger")
#define mublasZnrm2(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZnrm2")
#define mublasZrot(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZrot")
#define mublasZsbmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZsbmv")
#define mublasZscal(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZscal")
#define mublasZswap(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZswap")
#define mublasZsymm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZsymm")
#define mublasZsymv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZsymv")
#define mublasZsyr(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZsyr")
#define mublasZsyrk(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZsyrk")
#define mublasZtrmv(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZtrmv")
#define mublasZtrsm(...) LT_LIBRARY_CALL(cublasStatus_t, "mublasZtrsm")
#define musaStream_t cudaStream_t
