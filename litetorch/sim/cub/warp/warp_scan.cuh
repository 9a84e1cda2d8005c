/* cub/block/warp_scan.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
