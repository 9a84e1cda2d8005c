/* cuda_runtime.h - CUDA for the CPU emulator: everything that nvcc makes available without an include. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include <stdio.h>

#include "simt/core.h"
#include "simt/vector.h"
#include "simt/device.h"
#include "simt/math.h"
#include "simt/ptx.h"
#include "simt/host.h"

#endif
