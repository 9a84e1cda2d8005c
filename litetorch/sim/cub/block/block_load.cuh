/* cub/block/block_load.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
