/* MUSAEvent.h of torch_musa as programs include it. */
#pragma once
#include "litetorch/musa.h"

#include <ATen/cuda/CUDAEvent.h>
