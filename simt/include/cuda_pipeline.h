/* cuda_pipeline.h - __pipeline_memcpy_async and its waits: copies that happen when the thread waits for them. */
#ifndef SIMT_CUDA_PIPELINE_H
#define SIMT_CUDA_PIPELINE_H

#include "cuda_runtime.h"

SIMT_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t n, size_t zeros = 0)
{
    simt_async_copy(to, from, (unsigned)n, (unsigned)(n - zeros));
}
SIMT_INLINE void __pipeline_commit() { simt_async_commit(); }
SIMT_INLINE void __pipeline_wait_prior(size_t n) { simt_async_wait((unsigned)n); }

#endif
