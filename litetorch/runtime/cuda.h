/* cuda.h - C interface of the real device's library (libcudatorch.so), used from Python through ctypes; what it shares with
 * the simulated device is in process.h.
 *
 * The allocator stands behind torch's CUDAPluggableAllocator: every block is filled with 0xFF (NaN in every floating type)
 * when it is given out, lies between red zones, and comes from a pool (cudaMalloc once, then reuse in stream order), so that
 * a timed call pays for the fill and for nothing else. Thread-safe. */
#ifndef LT_CUDA_H
#define LT_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For torch.cuda.memory.CUDAPluggableAllocator. malloc throws c10::OutOfMemoryError. */
void *lt_cuda_malloc(size_t size, int device, void *stream);
void lt_cuda_free(void *p, size_t size, int device, void *stream);
void lt_cuda_record_stream(void *p, void *stream);
/* The block that was at p and is free: to the driver, for other processes, and not kept for the next allocation. Waits
 * for the device. Does nothing where somebody uses it, or where it is a piece of a larger one. */
void lt_cuda_give_back(void *p);

/* f is called once, by the thread that next asks for memory, before it gets any; NULL: nobody is told. */
void lt_cuda_before_use(void (*f)(void));
void lt_cuda_limit(size_t bytes);  /* device memory that the pool and the candidate's libraries may hold; 0: no limit */
void lt_cuda_poison(int fill, int zones); /* both are on at first; zones cost two small fills per block */
/* Looks at the red zones of all blocks that live or were given back since the last call, waits for the device. Adds
 * findings (process.h). Returns how many it looked at, or -1 if the device does not answer (a fault is pending). */
int lt_cuda_check(void);

struct lt_cuda_memory {
    size_t in_use, peak, held, limit; /* bytes: asked for by live tensors, their maximum, held by the pool */
    int64_t blocks, allocations, short_of; /* short_of: refused by the driver although the pool was within its limit */
};
void lt_cuda_memory(struct lt_cuda_memory *ret);
void lt_cuda_reset_peak(void);

/* The runtime's last error, forgotten by asking: its number, 0 = none; *ret_text is static. It is what an unchecked bad
 * launch leaves behind. */
int lt_cuda_last_error(const char **ret_text);

#ifdef __cplusplus
}
#endif
#endif
