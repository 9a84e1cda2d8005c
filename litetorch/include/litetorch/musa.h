/* musa.h - the MUSA dialect where only CUDA's headers are: the emulator, and nvcc. In front of every MUSA
 * source; what mcc and load_inline make available without an include.
 *
 * Names are macros (musa_names.h), so errors and findings keep the program's lines. LT_MUSA_ARCH is the
 * generation that is stood in for: 210, 220, 310. What MUSA does otherwise than CUDA and shows in a source's
 * meaning is here: half operators exist, __MUSA_ARCH__ is defined in device code, intrinsics that a generation
 * lacks are no names. Warp width, memory limits and rounding are the device's, not a header's (docs/musa.md). */
#ifndef LITETORCH_MUSA_H
#define LITETORCH_MUSA_H

#undef __CUDA_NO_HALF_OPERATORS__ /* torch's load_inline disables them for nvcc, torch_musa's for nobody */
#undef __CUDA_NO_HALF_CONVERSIONS__
#undef __CUDA_NO_HALF2_OPERATORS__
#undef __CUDA_NO_BFLOAT16_CONVERSIONS__

#include <cuda_runtime.h>

#include "litetorch/musa_names.h"

#ifndef LT_MUSA_ARCH
#define LT_MUSA_ARCH 310
#endif
#define __MUSACC__ 1
#define __MUSA__ 1
#define MUSA_COMP_VERSION 50200
#undef MUSART_VERSION
#define MUSART_VERSION 50200
#define MUSA_VERSION 50200
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
#define __MUSA_ARCH__ LT_MUSA_ARCH
#endif

/* A MUSA tensor is of torch's private device; here that is the device which plays its part. */
#define is_privateuseone is_cuda
#define kMUSA kCUDA
#define PrivateUse1 CUDA

#define __syncthreads_lm() __syncthreads() /* orders shared memory only: this orders more */

namespace c10 {
namespace cuda {}
namespace musa = cuda;
}
namespace at {
namespace cuda {}
namespace musa = cuda;
}
namespace torch {
namespace cuda {}
namespace musa = cuda;
}

#endif
