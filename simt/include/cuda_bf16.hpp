/* cuda_bf16.hpp - part of cuda_bf16.h here. */
#include "cuda_bf16.h"
