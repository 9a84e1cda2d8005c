/* c10/util/Optional.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
