/* cub/block/block_exchange.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
