/* library.h - NVIDIA's math libraries as names: handles can be made, any call that computes is reported and throws. */
#ifndef LITETORCH_LIBRARY_H
#define LITETORCH_LIBRARY_H

#include <cuda_runtime.h>
#include <library_types.h>

#include "litetorch/tensor.h"

namespace lt {
template <class S>
[[noreturn]] inline S refuse_call(const char *name, int line, const char *file)
{
    refuse(name, {line, file});
}
}
#define LT_LIBRARY_CALL(STATUS, name) ::lt::refuse_call<STATUS>(name, __LINE__, __FILE__)

#endif
