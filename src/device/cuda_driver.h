/* cuda_driver.h - private to src/device: the part of the CUDA driver's C interface that the judge uses, declared here
 * so that no toolkit is needed to build, and found with dlopen("libcuda.so.1") so that none is needed to start. Prefix
 * drv_ and DRV_ instead of cu and CU: tests compare these declarations with cuda.h where it is installed. */
#ifndef MC_DEVICE_CUDA_DRIVER_H
#define MC_DEVICE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct drv_ctx_st *drv_ctx;
typedef struct drv_stream_st *drv_stream;
typedef struct drv_event_st *drv_event;
typedef struct drv_module_st *drv_module;
typedef struct drv_function_st *drv_function;
typedef unsigned long long drv_handle;

struct drv_location {
    int type, id;
};
struct drv_allocation {
    int type, handle_types;
    struct drv_location location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct drv_access {
    struct drv_location location;
    int flags;
};

enum {
    DRV_UNKNOWN = 999,
    DRV_ATTR_WARP_SIZE = 10,
    DRV_ATTR_CLOCK_KHZ = 13,
    DRV_ATTR_SM_COUNT = 16,
    DRV_ATTR_MEMORY_CLOCK_KHZ = 36,
    DRV_ATTR_BUS_BITS = 37,
    DRV_ATTR_L2 = 38,
    DRV_ATTR_CC_MAJOR = 75,
    DRV_ATTR_CC_MINOR = 76,
    DRV_ATTR_SHARED_OPTIN = 97,
    DRV_ATTR_VMM = 102,
    DRV_ATTR_POSIX_FD = 103,
    DRV_ALLOCATION_PINNED = 1,
    DRV_LOCATION_DEVICE = 1,
    DRV_HANDLE_POSIX_FD = 1,
    DRV_ACCESS_READWRITE = 3,
    DRV_GRANULARITY_MINIMUM = 0,
    DRV_STREAM_NON_BLOCKING = 1,
    DRV_HOST_REGISTER_PORTABLE_MAP = 1 | 2,
};

/* X(result, name in libcuda, arguments): one row per function that is looked up. All return 0 or an error code. */
#define DRV_FUNCTIONS(X)                                                                                               \
    X(Init, "cuInit", (unsigned))                                                                                      \
    X(DriverGetVersion, "cuDriverGetVersion", (int *))                                                                 \
    X(GetErrorString, "cuGetErrorString", (int, const char **))                                                        \
    X(GetErrorName, "cuGetErrorName", (int, const char **))                                                            \
    X(DeviceGetCount, "cuDeviceGetCount", (int *))                                                                     \
    X(DeviceGet, "cuDeviceGet", (int *, int))                                                                          \
    X(DeviceGetName, "cuDeviceGetName", (char *, int, int))                                                            \
    X(DeviceGetUuid, "cuDeviceGetUuid_v2", (void *, int))                                                              \
    X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, int))                                                          \
    X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))                                                   \
    X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (drv_ctx *, int))                                                  \
    X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                                        \
    X(CtxSetCurrent, "cuCtxSetCurrent", (drv_ctx))                                                                     \
    X(CtxResetPersistingL2, "cuCtxResetPersistingL2Cache", (void))                                                     \
    X(MemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                                             \
    X(MemAlloc, "cuMemAlloc_v2", (uint64_t *, size_t))                                                                 \
    X(MemFree, "cuMemFree_v2", (uint64_t))                                                                             \
    X(MemGranularity, "cuMemGetAllocationGranularity", (size_t *, const struct drv_allocation *, int))                 \
    X(MemCreate, "cuMemCreate", (drv_handle *, size_t, const struct drv_allocation *, unsigned long long))             \
    X(MemRelease, "cuMemRelease", (drv_handle))                                                                        \
    X(MemReserve, "cuMemAddressReserve", (uint64_t *, size_t, size_t, uint64_t, unsigned long long))                   \
    X(MemUnreserve, "cuMemAddressFree", (uint64_t, size_t))                                                            \
    X(MemMap, "cuMemMap", (uint64_t, size_t, size_t, drv_handle, unsigned long long))                                  \
    X(MemUnmap, "cuMemUnmap", (uint64_t, size_t))                                                                      \
    X(MemSetAccess, "cuMemSetAccess", (uint64_t, size_t, const struct drv_access *, size_t))                           \
    X(MemExport, "cuMemExportToShareableHandle", (void *, drv_handle, int, unsigned long long))                        \
    X(MemImport, "cuMemImportFromShareableHandle", (drv_handle *, void *, int))                                        \
    X(HostRegister, "cuMemHostRegister_v2", (void *, size_t, unsigned))                                                \
    X(HostUnregister, "cuMemHostUnregister", (void *))                                                                 \
    X(HostDevicePointer, "cuMemHostGetDevicePointer_v2", (uint64_t *, void *, unsigned))                               \
    X(CopyHtoD, "cuMemcpyHtoDAsync_v2", (uint64_t, const void *, size_t, drv_stream))                                  \
    X(CopyDtoH, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, drv_stream))                                        \
    X(CopyDtoD, "cuMemcpyDtoDAsync_v2", (uint64_t, uint64_t, size_t, drv_stream))                                      \
    X(Set8, "cuMemsetD8Async", (uint64_t, unsigned char, size_t, drv_stream))                                          \
    X(StreamCreate, "cuStreamCreate", (drv_stream *, unsigned))                                                        \
    X(StreamDestroy, "cuStreamDestroy_v2", (drv_stream))                                                               \
    X(StreamSync, "cuStreamSynchronize", (drv_stream))                                                                 \
    X(EventCreate, "cuEventCreate", (drv_event *, unsigned))                                                           \
    X(EventDestroy, "cuEventDestroy_v2", (drv_event))                                                                  \
    X(EventRecord, "cuEventRecord", (drv_event, drv_stream))                                                           \
    X(EventSync, "cuEventSynchronize", (drv_event))                                                                    \
    X(EventElapsed, "cuEventElapsedTime", (float *, drv_event, drv_event))                                             \
    X(ModuleLoad, "cuModuleLoadData", (drv_module *, const void *))                                                    \
    X(ModuleUnload, "cuModuleUnload", (drv_module))                                                                    \
    X(ModuleFunction, "cuModuleGetFunction", (drv_function *, drv_module, const char *))                               \
    X(ModuleGlobal, "cuModuleGetGlobal_v2", (uint64_t *, size_t *, drv_module, const char *))                          \
    X(Launch, "cuLaunchKernel",                                                                                        \
      (drv_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, drv_stream, void **,        \
       void **))

struct drv {
#define DRV_MEMBER(name, symbol, args) int(*name) args;
    DRV_FUNCTIONS(DRV_MEMBER)
#undef DRV_MEMBER
};

/* A vendor whose driver has CUDA's interface: its functions under another prefix, with the same numbers and structs.
 * One row a device (cuda_driver.c); a new device of this kind is a row there. */
struct drv_vendor {
    const char *device;       /* the backend's name */
    const char *owner;        /* in messages */
    const char *env, *library; /* the variable that names another library (tests), and the library's own name */
    const char *prefix;       /* in place of "cu" */
    bool partial;             /* some functions may be missing, and are NULL; versions ("_v2") too */
    const char *needs, *remedy; /* what to do where a function, or all of it, is missing */
    const char *kernels, *kernels_env; /* the executor's own kernels in build/lib, and a variable that names others */
    const char *compiler;     /* that makes them */
    int wire_backend;         /* wire_info.backend */
};

const struct drv_vendor *drv_vendor_find(const char *device); /* NULL: none, or a device of another kind */

/* Loads a device's driver library once and initialises it. NULL with one message that says what is missing and what
 * to do. Threads: safe. */
const struct drv *drv_load(const char *device, struct err *e);

/* The function that libcuda calls so, in that vendor's loaded driver: with the vendor's prefix, then without a version.
 * 0 with *ret NULL where a partial driver may lack it; -1 with what is missing. */
int drv_symbol(const struct drv_vendor *v, const char *name, void **ret, struct err *e);

/* -1 with "what: text (NAME)" for code, which is not 0. */
int drv_fail(const struct drv *c, int code, struct err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
