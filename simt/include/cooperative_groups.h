/* cooperative_groups.h - thread blocks, tiles of a warp, coalesced groups, and the grid of a cooperative launch. */
#ifndef SIMT_COOPERATIVE_GROUPS_H
#define SIMT_COOPERATIVE_GROUPS_H

#include "cuda_runtime.h"

int simt_grid_valid() SIMT_SYM("grid_valid");
void simt_grid_sync() SIMT_SYM("grid_sync");

namespace cooperative_groups {

struct thread_block {
    static void sync() { __syncthreads(); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static unsigned thread_rank()
    {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

SIMT_INLINE thread_block this_thread_block() { return thread_block(); }

struct grid_group {
    static unsigned long long size()
    {
        return (unsigned long long)thread_block::size() * gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long thread_rank()
    {
        return ((unsigned long long)(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * thread_block::size() +
               thread_block::thread_rank();
    }
    static unsigned long long block_rank()
    {
        return (unsigned long long)(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_threads() { return size(); }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
    static bool is_valid() { return simt_grid_valid(); }
    static void sync() { simt_grid_sync(); }
};

SIMT_INLINE grid_group this_grid() { return grid_group(); }

/* Lanes of one warp, named by a mask; ranks count the mask's lanes. */
struct coalesced_group {
    simt_mask_t mask;

    static unsigned lane() { return thread_block::thread_rank() % SIMT_WARP_SIZE; }
    static int count(simt_mask_t m) { return __builtin_popcountll((unsigned long long)m); }
    unsigned size() const { return (unsigned)count(mask); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return (unsigned)count(mask & (((simt_mask_t)1 << lane()) - 1)); }
    void sync() const { simt_syncwarp(mask); }
    int any(int p) const { return __any_sync(mask, p); }
    int all(int p) const { return __all_sync(mask, p); }
    int lane_of(unsigned rank) const
    {
        for (int i = 0; i < SIMT_WARP_SIZE; i++)
            if (((mask >> i) & 1) && rank-- == 0)
                return i;
        return (int)lane();
    }
    template <class T> T shfl(T v, unsigned rank) const { return __shfl_sync(mask, v, lane_of(rank)); }
    template <class T> T shfl_down(T v, unsigned d) const { return __shfl_sync(mask, v, lane_of(thread_rank() + d)); }
    template <class T> T shfl_up(T v, unsigned d) const
    {
        return __shfl_sync(mask, v, thread_rank() >= d ? lane_of(thread_rank() - d) : (int)lane());
    }
};

SIMT_INLINE coalesced_group coalesced_threads() { return coalesced_group{__activemask()}; }

template <unsigned Size, class Parent = thread_block> struct thread_block_tile {
    static_assert(Size > 0 && Size <= SIMT_WARP_SIZE && (Size & (Size - 1)) == 0, "a tile is a power of two within a warp");

    static unsigned lane() { return thread_block::thread_rank() % SIMT_WARP_SIZE; }
    static simt_mask_t mask()
    {
        return Size == SIMT_WARP_SIZE ? ~(simt_mask_t)0
                                      : (((simt_mask_t)1 << (Size % SIMT_WARP_SIZE)) - 1) << (lane() / Size * Size);
    }
    static void sync() { simt_syncwarp(mask()); }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return thread_block::thread_rank() % Size; }
    static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
    static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
    template <class T> T shfl(T v, int rank) const { return __shfl_sync(mask(), v, rank, (int)Size); }
    template <class T> T shfl_down(T v, unsigned d) const { return __shfl_down_sync(mask(), v, d, (int)Size); }
    template <class T> T shfl_up(T v, unsigned d) const { return __shfl_up_sync(mask(), v, d, (int)Size); }
    template <class T> T shfl_xor(T v, int lanes) const { return __shfl_xor_sync(mask(), v, lanes, (int)Size); }
    static int any(int p) { return __any_sync(mask(), p); }
    static int all(int p) { return __all_sync(mask(), p); }
    static simt_mask_t ballot(int p) { return __ballot_sync(mask(), p) >> (lane() / Size * Size); }
};

template <unsigned Size, class Group> SIMT_INLINE thread_block_tile<Size, Group> tiled_partition(const Group &)
{
    return thread_block_tile<Size, Group>();
}

template <class Group> SIMT_INLINE void sync(const Group &g) { g.sync(); }

/* reduce() of <cooperative_groups/reduce.h>. */
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct greater { T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T> struct less { T operator()(T a, T b) const { return a < b ? a : b; } };

template <unsigned Size, class Parent, class T, class F>
T reduce(const thread_block_tile<Size, Parent> &g, T v, F f)
{
    for (unsigned d = Size / 2; d > 0; d /= 2)
        v = f(v, g.shfl_xor(v, (int)d));
    return v;
}

} // namespace cooperative_groups

#endif
