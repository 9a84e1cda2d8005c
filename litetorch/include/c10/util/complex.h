/* c10/util/complex.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
