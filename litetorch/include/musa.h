/* musa.h as MUSA programs include it. */
#pragma once
#include "litetorch/musa.h"
