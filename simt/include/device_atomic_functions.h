/* device_atomic_functions.h - part of cuda_runtime.h here. */
#include "cuda_runtime.h"
