/* c10/macros/Macros.h as candidates include it. */
#pragma once
#include "litetorch/types.h"
