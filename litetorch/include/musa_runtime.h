/* musa_runtime.h as MUSA programs include it. */
#pragma once
#include "litetorch/musa.h"
