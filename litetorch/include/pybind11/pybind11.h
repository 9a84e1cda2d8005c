/* pybind11/pybind11.h as candidates include it. */
#pragma once
#include "litetorch/module.h"
