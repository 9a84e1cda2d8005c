/* c10/util/Half.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
