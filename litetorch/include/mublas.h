/* mublas.h as MUSA programs include it: calls that compute are refused by their name (litetorch/library.h). */
#pragma once
#include "litetorch/musa.h"

#include <cublas_v2.h>

#include "litetorch/mublas_names.h"
