/* driver_types.h - part of cuda_runtime.h here. */
#include "cuda_runtime.h"
