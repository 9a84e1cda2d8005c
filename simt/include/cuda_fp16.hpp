/* cuda_fp16.hpp - part of cuda_fp16.h here. */
#include "cuda_fp16.h"
