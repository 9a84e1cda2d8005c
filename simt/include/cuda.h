/* cuda.h - the driver API's types; candidates include this header out of habit and call the runtime API. */
#ifndef SIMT_CUDA_H
#define SIMT_CUDA_H

#include "cuda_runtime.h"

#define CUDA_VERSION 12080

typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 } CUresult;

#endif
