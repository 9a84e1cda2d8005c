/* pybind11/numpy.h as candidates include it. */
#pragma once
#include "litetorch/module.h"
