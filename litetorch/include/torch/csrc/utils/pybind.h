/* torch/csrc/utils/pybind.h as candidates include it. */
#pragma once
#include "litetorch/module.h"
