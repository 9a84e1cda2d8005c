/* test_abi.c - our own declarations of the CUDA driver (device/cuda_driver.h) against cuda.h of the toolkit. Constants
 * and layouts are checked when it is compiled; without a toolkit there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "device/cuda_driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(DRV_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(DRV_ATTR_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(DRV_ATTR_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(DRV_ATTR_SM_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(DRV_ATTR_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(DRV_ATTR_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(DRV_ATTR_L2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(DRV_ATTR_CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(DRV_ATTR_CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(DRV_ATTR_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(DRV_ATTR_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(DRV_ATTR_POSIX_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(DRV_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(DRV_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(DRV_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(DRV_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(DRV_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(DRV_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(DRV_HOST_REGISTER_PORTABLE_MAP, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(sizeof(struct drv_allocation), sizeof(CUmemAllocationProp));
SAME(offsetof(struct drv_allocation, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(struct drv_allocation, handle_types), offsetof(CUmemAllocationProp, requestedHandleTypes));
SAME(offsetof(struct drv_allocation, win32), offsetof(CUmemAllocationProp, win32HandleMetaData));
SAME(offsetof(struct drv_allocation, flags.usage), offsetof(CUmemAllocationProp, allocFlags.usage));
SAME(sizeof(struct drv_access), sizeof(CUmemAccessDesc));
SAME(offsetof(struct drv_access, flags), offsetof(CUmemAccessDesc, flags));
SAME(sizeof(drv_handle), sizeof(CUmemGenericAllocationHandle));
SAME(sizeof(uint64_t), sizeof(CUdeviceptr));
#endif

static void test_driver_loads(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    if (!drv_load("cuda", &e))
        fail_msg("%s", e.msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_driver_loads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
