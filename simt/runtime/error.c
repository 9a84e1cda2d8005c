/* error.c - the device's error state, and the names of errors. */
#include <string.h>

#include "runtime.h"

static int last_error, sticky_error;

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {999, "cudaErrorUnknown", "unknown error"},
};
#define N_ERRORS (sizeof errors / sizeof errors[0])

void device_error(int code)
{
    last_error = code;
}

void device_error_sticky(int code)
{
    if (!sticky_error)
        sticky_error = code;
}

int device_error_state(void)
{
    return sticky_error;
}

int cudaGetLastError(void), cudaPeekAtLastError(void);
const char *cudaGetErrorString(int code), *cudaGetErrorName(int code);

int cudaPeekAtLastError(void)
{
    return sticky_error ? sticky_error : last_error;
}

int cudaGetLastError(void)
{
    int code = cudaPeekAtLastError();

    last_error = 0;
    return code;
}

const char *cudaGetErrorString(int code)
{
    for (size_t i = 0; i < N_ERRORS; i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(int code)
{
    for (size_t i = 0; i < N_ERRORS; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "unrecognized error code";
}

void error_reset(void)
{
    last_error = sticky_error = 0;
}
