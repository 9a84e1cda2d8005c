/* pybind11/stl.h as candidates include it. */
#pragma once
#include "litetorch/module.h"
