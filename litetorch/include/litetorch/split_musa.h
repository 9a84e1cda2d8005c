/* split_musa.h - in front of the host's half of a MUSA source (src/translate/cuda_split.h) on the
 * backend 'musa'. The emulator's headers declare the runtime, under MUSA's names by litetorch/musa.h; the process has
 * no driver, and what it asks for goes to the executor (litetorch/proxy/musa.cc). A kernel's stub packs its arguments
 * here, where their types are known: MUSA's driver is not known to tell their sizes. */
#ifndef LITETORCH_SPLIT_MUSA_H
#define LITETORCH_SPLIT_MUSA_H

#include <cuda_runtime.h>

#include <cstring>

extern "C" {
unsigned lt_musa_push(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
void lt_musa_launch(const void *stub, const void *args, size_t bytes);
}

namespace lt {
inline unsigned push(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr)
{
    return lt_musa_push(grid, block, shared, stream);
}

/* Called with the stub's own parameters: one block, each at a multiple of its alignment, as compilers lay them. */
struct launcher {
    const void *stub;
    template <class... A> void operator()(const A &...a) const
    {
        alignas(16) unsigned char block[(sizeof(A) + ... + 0) + 16 * sizeof...(A) + 1] = {};
        size_t at = 0;

        (put(block, at, a), ...);
        lt_musa_launch(stub, block, at);
    }

private:
    template <class A> static void put(unsigned char *block, size_t &at, const A &a)
    {
        at = (at + alignof(A) - 1) / alignof(A) * alignof(A);
        std::memcpy(block + at, (const void *)__builtin_addressof(a), sizeof(A));
        at += sizeof(A);
    }
};
} // namespace lt

#define LT_LAUNCH(STUB, ARGS) ::lt::launcher{STUB} ARGS

/* Device headers stay out of this half; what opens their namespaces may stay in. */
namespace cooperative_groups {}
namespace nvcuda { namespace wmma {} }
namespace mtmusa { namespace wmma {} }
namespace cub {}

#endif
