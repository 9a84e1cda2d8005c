/* MUSACachingAllocator.h of torch_musa as programs include it. */
#pragma once
#include "litetorch/musa.h"

#include <c10/cuda/CUDACachingAllocator.h>
