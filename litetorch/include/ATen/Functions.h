/* ATen/Functions.h as candidates include it. */
#pragma once
#include "litetorch/tensor.h"
#include "litetorch/dispatch.h"
