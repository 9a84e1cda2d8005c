/* api.h - C interface of libsimt.so, for the code that loads candidates and judges them (through ctypes too).
 *
 * One worker per process: kernels run on the thread that launches them, one launch at a time, blocks and threads in
 * a fixed order, so the same program gives the same bits and the same findings every time.
 * No function here prints or exits. Strings returned are valid until the next call of the same function. */
#ifndef SIMT_API_H
#define SIMT_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_ABI 2
#ifndef SIMT_WARP_SIZE
#define SIMT_WARP_SIZE 32 /* 128 for the MUSA parts that have it; candidates and libsimt must agree */
#endif

/* ---- device memory ------------------------------------------------------------------------------------------
 * Kernels may touch registered ranges, shared memory, their own stack and the globals of their .so; nothing else.
 * 'bytes' is the exact size of the tensor: check mode reports the first byte behind it. Ranges must not overlap.
 * name is copied (may be NULL) and appears in messages: "4 bytes past the end of 'x'". Returns 0, or -1 if the range
 * overlaps a registered one. Any thread may call these at any time, also while kernels run. */
int simt_mem_register(const void *ptr, size_t bytes, const char *name);
int simt_mem_unregister(const void *ptr); /* 0, or -1 if ptr is not the start of a registered range */

/* Called around every launch and every cudaMemcpy/cudaMemset, so that enter() can open device memory and leave() close
 * it again. Nested calls of one thread count as one; threads may be inside together. NULL removes them. */
void simt_set_memory_hooks(void (*enter)(void), void (*leave)(void));

/* cudaMalloc and cudaFree go here when set; else libsimt maps its own memory, with a guard page behind the end. alloc
 * must register what it returns. */
void simt_set_allocator(void *(*alloc)(size_t bytes), int (*release)(void *ptr));

/* A whole arena that counts as device memory when *host* code faults in it: such a fault is a host_access finding.
 * Registered ranges count anyway. */
void simt_set_device_arena(const void *lo, size_t bytes);

/* What the host hands the device, before it is done; not called in ablation. shape: grid, block (x, y, z) and bytes of
 * dynamic shared memory. host_memory: pinned or managed memory was allocated, or given back (bytes == 0). NULL:
 * nobody. */
struct simt_watch {
    void (*launch)(const char *kernel, const uint64_t *shape, int n_args, const void *const *args, const size_t *sizes);
    void (*copy)(void *to, const void *from, size_t bytes, int from_device, int to_device);
    void (*set)(void *p, int value, size_t bytes);
    void (*host_memory)(const void *p, size_t bytes);
};
void simt_set_watch(const struct simt_watch *w);

/* A bit for each byte from base on: has anything written it? Checked kernels set bits, and a read of a byte without
 * one is an uninitialised_global finding; who fills memory otherwise sets them too. NULL: nobody looks. */
void simt_set_written(uint8_t *bits, const void *base, size_t bytes);

/* ---- running host code of a candidate -----------------------------------------------------------------------
 * Calls fn(ctx) so that a crash of host code (bad pointer, touched device memory, abort, division by zero) becomes a
 * finding and a return value of -1 instead of the death of the process; 0 if fn returned. Frames of fn are abandoned
 * without running destructors, so locks that it held stay locked: finish up and end the process soon. A fault inside
 * malloc or free (a corrupted heap) is not survived: it ends the process by the fatal hook and the old signal action,
 * as does one in a kernel. C++ exceptions pass through. */
int simt_call_guarded(void (*fn)(void *ctx), void *ctx);

/* Called from the signal handler when host code crashes outside simt_call_guarded or the heap is corrupted, after the
 * finding is recorded and before the old signal action: the place to write the findings somewhere and _exit. malloc may
 * be locked: simt_findings_json does without, and so must the hook. */
void simt_set_fatal_hook(void (*hook)(void));

/* A signal that asks a running kernel where it stands: a still_running finding names the thread and its line, then the
 * fatal hook is called. Nothing happens outside kernels, or if wanted (NULL: always), asked there, says 0. */
void simt_set_stop_signal(int sig, int (*wanted)(void));

/* ---- modes --------------------------------------------------------------------------------------------------- */
void simt_set_check(int on);    /* 1: use the instrumentation of check builds; 0: skip it. Default 1 */
void simt_set_ablation(int on); /* 1: launches are counted and checked against limits, but no kernel runs */
void simt_set_poison(int byte); /* fills shared memory before a block begins; default 0xff: floats are NaN */
void simt_set_limit(int max_findings); /* default 64; more are counted but not kept */
/* Order in which threads of a block and blocks of a grid run: 0 forward, 1 reverse, else a seed for a random order. */
void simt_set_schedule(uint64_t order);
/* What a device may do with blocks, too, whatever the schedule: start them in the order of their numbers, the last one
 * first; or let each one wait behind its first atomic of device memory until the others have begun, and let those that
 * began last go on first (the first 64 that come to one). Threads of a block run as the schedule says. */
enum simt_blocks { SIMT_BLOCKS_IN_ORDER, SIMT_BLOCKS_LAST_FIRST, SIMT_BLOCKS_GIVE_WAY };
void simt_set_blocks(int how);

/* ---- what happened --------------------------------------------------------------------------------------------
 * A JSON list of {"kind","message","kernel","file","line","block":[x,y,z],"thread":[x,y,z]}; "file" and "line" are
 * null when unknown, "block" and "thread" null outside kernels. The first finding of each (kind, file, line) is kept.
 * kind: out_of_bounds race divergence uninitialised_shared uninitialised_global launch_error host_access misaligned
 * illegal_access crash
 *       assertion unsupported. The last one says what the emulator lacks: the launch ended there, nobody is to blame.
 * */
const char *simt_findings_json(void);
int simt_findings_count(void);
/* {"launches":N,"threads":N,"failed":N,"kernels":{"name":{"launches":N,"threads":N}},"check_build":true} */
const char *simt_stats_json(void);
void simt_reset(void); /* forgets findings, statistics and the sticky device error; keeps memory, hooks and modes */

/* 1 between enter and leave of a launch or copy: lets an allocator avoid closing memory too early. */
int simt_busy(void);

#ifdef __cplusplus
}
#endif
#endif
