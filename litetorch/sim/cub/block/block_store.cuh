/* cub/block/block_store.cuh as candidates include it. */
#pragma once
#include <cub/cub.cuh>
