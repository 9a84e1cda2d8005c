/* cublas_api.h as candidates include it. */
#pragma once
#include <cublas_v2.h>
