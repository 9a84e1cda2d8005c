/* ATen/native/cuda/Loops.cuh as candidates include it. */
#pragma once
#include "litetorch/dispatch.h"
