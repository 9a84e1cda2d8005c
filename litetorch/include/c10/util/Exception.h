/* c10/util/Exception.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
