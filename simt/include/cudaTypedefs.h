/* cudaTypedefs.h - pointers to driver functions that programs ask for by name. */
#ifndef SIMT_CUDA_TYPEDEFS_H
#define SIMT_CUDA_TYPEDEFS_H

#include "cuda.h"

typedef decltype(&cuTensorMapEncodeTiled) PFN_cuTensorMapEncodeTiled;
typedef PFN_cuTensorMapEncodeTiled PFN_cuTensorMapEncodeTiled_v12000;

#endif
