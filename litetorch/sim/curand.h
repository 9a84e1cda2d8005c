/* curand.h as candidates include it. */
#pragma once
#include <curand_kernel.h>
