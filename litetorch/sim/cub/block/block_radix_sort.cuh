/* cub/block/block_radix_sort.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
