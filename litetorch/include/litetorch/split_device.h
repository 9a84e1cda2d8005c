/* split_device.h - in front of the device's half of a CUDA source (src/translate/cuda_split.h): small headers that
 * torch/extension.h brings in and kernels use without asking. */
#ifndef LITETORCH_SPLIT_DEVICE_H
#define LITETORCH_SPLIT_DEVICE_H
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#ifdef LT_USE_HALF
#include <cuda_fp16.h>
#endif
#ifdef LT_USE_BFLOAT16
#include <cuda_bf16.h>
#endif
#endif
