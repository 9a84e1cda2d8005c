/* c10/util/BFloat16.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
