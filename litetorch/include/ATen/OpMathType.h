/* ATen/OpMathType.h as candidates include it. */
#pragma once
#include "litetorch/dispatch.h"
