/* sm_35_intrinsics.h - part of cuda_runtime.h here. */
#include "cuda_runtime.h"
