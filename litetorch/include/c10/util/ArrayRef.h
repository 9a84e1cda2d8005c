/* c10/util/ArrayRef.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
