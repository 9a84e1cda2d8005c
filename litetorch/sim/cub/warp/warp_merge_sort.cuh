/* cub/block/warp_merge_sort.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
