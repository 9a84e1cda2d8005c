/* musa_runtime_api.h as MUSA programs include it. */
#pragma once
#include "litetorch/musa.h"
