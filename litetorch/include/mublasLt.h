/* mublasLt.h as MUSA programs include it: calls that compute are refused by their name (litetorch/library.h). */
#pragma once
#include "mublas.h"

#include <cublasLt.h>

#include "litetorch/mublaslt_names.h"
