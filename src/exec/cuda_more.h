/* cuda_more.h - what the executor needs of the CUDA driver beyond device/cuda_driver.h: launches with attributes,
 * functions' parameters, streams and events as programs use them. Found with dlsym in the library that is loaded. */
#ifndef MC_EXEC_CUDA_MORE_H
#define MC_EXEC_CUDA_MORE_H

#include "device/cuda_driver.h"

struct drv_launch_attr { /* CUlaunchAttribute */
    int id, pad;
    uint32_t value[16];
};
struct drv_launch { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    drv_stream stream;
    struct drv_launch_attr *attrs;
    unsigned n_attrs;
};

enum {
    DRV_FUNC_MAX_THREADS = 0,
    DRV_FUNC_STATIC_SHARED = 1,
    DRV_FUNC_CONSTANT = 2,
    DRV_FUNC_LOCAL = 3,
    DRV_FUNC_REGISTERS = 4,
    DRV_FUNC_PTX = 5,
    DRV_FUNC_BINARY = 6,
    DRV_FUNC_MAX_DYNAMIC = 8
};

#define DRV_MORE(X)                                                                                                    \
    X(ProfilerStart, "cuProfilerStart", (void))                                                                        \
    X(ProfilerStop, "cuProfilerStop", (void))                                                                          \
    X(CtxSync, "cuCtxSynchronize", (void))                                                                             \
    X(Set16, "cuMemsetD16Async", (uint64_t, unsigned short, size_t, drv_stream))                                       \
    X(Set32, "cuMemsetD32Async", (uint64_t, unsigned, size_t, drv_stream))                                             \
    X(FuncParam, "cuFuncGetParamInfo", (drv_function, size_t, size_t *, size_t *))                                     \
    X(FuncGet, "cuFuncGetAttribute", (int *, int, drv_function))                                                       \
    X(FuncSet, "cuFuncSetAttribute", (drv_function, int, int))                                                         \
    X(LaunchEx, "cuLaunchKernelEx", (const struct drv_launch *, drv_function, void **, void **))                       \
    X(Occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, drv_function, int, size_t))                    \
    X(StreamCreatePriority, "cuStreamCreateWithPriority", (drv_stream *, unsigned, int))                               \
    X(StreamWait, "cuStreamWaitEvent", (drv_stream, drv_event, unsigned))                                              \
    X(StreamQuery, "cuStreamQuery", (drv_stream))                                                                      \
    X(EventQuery, "cuEventQuery", (drv_event))                                                                         \
    X(TensorMap, "cuTensorMapEncodeTiled",                                                                             \
      (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int,\
       int, int))

struct drv_more {
#define DRV_MEMBER_MORE(name, symbol, args) int(*name) args;
    DRV_MORE(DRV_MEMBER_MORE)
#undef DRV_MEMBER_MORE
};

/* After drv_load of that vendor. -1 with the name of what this driver lacks; of a partial one a member may be NULL. */
int drv_more_load(const struct drv_vendor *vendor, struct drv_more *ret, struct err *e);

#endif
