/* library_types.h as candidates include it. */
#pragma once
#include "litetorch/library.h"
