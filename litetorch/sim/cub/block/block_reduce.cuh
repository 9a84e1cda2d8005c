/* cub/block/block_reduce.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
