/* error.c - the device's error state, and the names of errors. */
#include <string.h>

#include "runtime.h"

static int last_error, sticky_error;

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define SIMT_ERROR(code, name, text) {code, #name, text},
#include "simt/errors.h"
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
