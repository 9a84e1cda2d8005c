/* engine_musa.h - the engine for Moore Threads cards: the names of CUDA that it uses, as MUSA spells them. The only
 * header that knows both, and all that a card of theirs needs here: it is compiled with -DNN_MUSA by mcc, or by 'make
 * MUSA=1' against headers that know MUSA's names alone (litetorch/musa/headers.py), where a name that is missing
 * below is an error.
 *
 * Nothing here has run on a card. What is PTX has the emulator's portable form (NN_PORTABLE), attention and decoding
 * take their plain kernels, and sums over cards ask MCCL for NCCL's functions under its own names. */
#ifndef MC_NN_CUDA_MUSA_H
#define MC_NN_CUDA_MUSA_H

#include <musa_bf16.h>
#include <musa_runtime.h>

#define CUBLASLT_MATMUL_DESC_TRANSA MUBLASLT_MATMUL_DESC_TRANSA
#define CUBLASLT_MATMUL_DESC_TRANSB MUBLASLT_MATMUL_DESC_TRANSB
#define CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES MUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#define CUBLAS_COMPUTE_32F MUBLAS_COMPUTE_32F
#define CUBLAS_OP_N MUBLAS_OP_N
#define CUBLAS_OP_T MUBLAS_OP_T
#define CUBLAS_STATUS_SUCCESS MUBLAS_STATUS_SUCCESS
#define CUDA_R_16BF MUSA_R_16BF
#define CUDA_R_32F MUSA_R_32F
#define __nv_bfloat16 __mt_bfloat16
#define __nv_bfloat162 __mt_bfloat162
#define cublasLtCreate mublasLtCreate
#define cublasLtDestroy mublasLtDestroy
#define cublasLtGetVersion mublasLtGetVersion
#define cublasLtHandle_t mublasLtHandle_t
#define cublasLtMatmulAlgoGetHeuristic mublasLtMatmulAlgoGetHeuristic
#define cublasLtMatmulAlgo_t mublasLtMatmulAlgo_t
#define cublasLtMatmulDescCreate mublasLtMatmulDescCreate
#define cublasLtMatmulDescDestroy mublasLtMatmulDescDestroy
#define cublasLtMatmulDescSetAttribute mublasLtMatmulDescSetAttribute
#define cublasLtMatmulDesc_t mublasLtMatmulDesc_t
#define cublasLtMatmulHeuristicResult_t mublasLtMatmulHeuristicResult_t
#define cublasLtMatmulPreferenceCreate mublasLtMatmulPreferenceCreate
#define cublasLtMatmulPreferenceSetAttribute mublasLtMatmulPreferenceSetAttribute
#define cublasLtMatmulPreference_t mublasLtMatmulPreference_t
#define cublasLtMatrixLayoutCreate mublasLtMatrixLayoutCreate
#define cublasLtMatrixLayoutDestroy mublasLtMatrixLayoutDestroy
#define cublasLtMatrixLayout_t mublasLtMatrixLayout_t
#define cublasOperation_t mublasOperation_t
#define cublasStatus_t mublasStatus_t
#define cudaDataType musaDataType
#define cudaDevAttrComputeCapabilityMajor musaDevAttrComputeCapabilityMajor
#define cudaDevAttrMultiProcessorCount musaDevAttrMultiProcessorCount
#define cudaDeviceGetAttribute musaDeviceGetAttribute
#define cudaDeviceProp musaDeviceProp
#define cudaErrorInvalidValue musaErrorInvalidValue
#define cudaError_t musaError_t
#define cudaEventCreate musaEventCreate
#define cudaEventDestroy musaEventDestroy
#define cudaEventElapsedTime musaEventElapsedTime
#define cudaEventRecord musaEventRecord
#define cudaEventSynchronize musaEventSynchronize
#define cudaEvent_t musaEvent_t
#define cudaFree musaFree
#define cudaFuncAttributeMaxDynamicSharedMemorySize musaFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncSetAttribute musaFuncSetAttribute
#define cudaGetDeviceCount musaGetDeviceCount
#define cudaGetDeviceProperties musaGetDeviceProperties
#define cudaGetErrorString musaGetErrorString
#define cudaGetLastError musaGetLastError
#define cudaGraphDestroy musaGraphDestroy
#define cudaGraphExecDestroy musaGraphExecDestroy
#define cudaGraphExec_t musaGraphExec_t
#define cudaGraphInstantiate musaGraphInstantiate
#define cudaGraphLaunch musaGraphLaunch
#define cudaGraph_t musaGraph_t
#define cudaLaunchCooperativeKernel musaLaunchCooperativeKernel
#define cudaMalloc musaMalloc
#define cudaMemGetInfo musaMemGetInfo
#define cudaMemcpyAsync musaMemcpyAsync
#define cudaMemcpyDeviceToDevice musaMemcpyDeviceToDevice
#define cudaMemcpyDeviceToHost musaMemcpyDeviceToHost
#define cudaMemcpyHostToDevice musaMemcpyHostToDevice
#define cudaMemset musaMemset
#define cudaMemsetAsync musaMemsetAsync
#define cudaSetDevice musaSetDevice
#define cudaStreamBeginCapture musaStreamBeginCapture
#define cudaStreamCaptureModeThreadLocal musaStreamCaptureModeThreadLocal
#define cudaStreamCaptureStatus musaStreamCaptureStatus
#define cudaStreamCaptureStatusNone musaStreamCaptureStatusNone
#define cudaStreamCreate musaStreamCreate
#define cudaStreamCreateWithFlags musaStreamCreateWithFlags
#define cudaStreamDestroy musaStreamDestroy
#define cudaStreamEndCapture musaStreamEndCapture
#define cudaStreamIsCapturing musaStreamIsCapturing
#define cudaStreamNonBlocking musaStreamNonBlocking
#define cudaStreamSynchronize musaStreamSynchronize
#define cudaStream_t musaStream_t
#define cudaSuccess musaSuccess
#define cublasLtMatmul mublasLtMatmul


/* MCCL has NCCL's interface; these are looked up by name alone. */
#define ncclAllReduce mcclAllReduce
#define ncclBroadcast mcclBroadcast
#define ncclCommAbort mcclCommAbort
#define ncclCommGetAsyncError mcclCommGetAsyncError
#define ncclCommInitRank mcclCommInitRank
#define ncclGetErrorString mcclGetErrorString
#define ncclGetUniqueId mcclGetUniqueId

#define NN_KIND "musa"
#define BLAS_HEADER <mublasLt.h>
#define BLAS_LIBRARY "mublasLt", NULL /* without a number at its end */
#define COMM_LIBRARY "mccl", NULL

#endif
