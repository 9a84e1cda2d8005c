/* pybind11/functional.h as candidates include it. */
#pragma once
#include "litetorch/module.h"
