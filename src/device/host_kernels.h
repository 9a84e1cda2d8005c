/* host_kernels.h - private to src/device: runs a kernel of judge_kernels.h on this thread. args: the kernel's
 * struct. */
#ifndef MC_DEVICE_HOST_KERNELS_H
#define MC_DEVICE_HOST_KERNELS_H

#include "device/judge_kernels.h"

void host_kernel(enum kernel_id k, const void *args);

#endif
