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
        return ((unsigned long long)(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) *
               thread_block::size() +
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

/* Groups shuffle whatever can be copied: what no shuffle takes by itself goes word by word. */
template <class T, class F> auto shuffled(const T &v, F &&shuffle, int) -> decltype(__shfl_sync(0u, v, 0), T())
{
    return shuffle(v);
}

template <class T, class F> T shuffled(const T &v, F &&shuffle, long)
{
    unsigned words[(sizeof(T) + 3) / 4] = {};
    T out;

    __builtin_memcpy(words, &v, sizeof v);
    for (unsigned &w : words)
        w = shuffle(w);
    __builtin_memcpy(&out, words, sizeof out);
    return out;
}

/* Lanes of one warp, named by a mask; ranks count the mask's lanes. */
struct coalesced_group {
    simt_mask_t mask;
    unsigned part = 0, parts = 1; /* meta_group_rank() and _size() of one that tiled_partition() made */

    static unsigned lane() { return thread_block::thread_rank() % SIMT_WARP_SIZE; }
    static int count(simt_mask_t m) { return __builtin_popcountll((unsigned long long)m); }
    unsigned size() const { return (unsigned)count(mask); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return (unsigned)count(mask & (((simt_mask_t)1 << lane()) - 1)); }
    unsigned meta_group_rank() const { return part; }
    unsigned meta_group_size() const { return parts; }
    void sync() const { simt_syncwarp(mask); }
    int any(int p) const { return __any_sync(mask, p); }
    int all(int p) const { return __all_sync(mask, p); }
    simt_mask_t ballot(int p) const { return by_rank(__ballot_sync(mask, p)); }
    template <class T> simt_mask_t match_any(T v) const { return by_rank(__match_any_sync(mask, v)); }
    simt_mask_t by_rank(simt_mask_t lanes) const
    {
        simt_mask_t m = 0;
        for (unsigned r = 0; r < size(); r++)
            m |= ((lanes >> lane_of(r)) & 1) << r;
        return m;
    }
    int lane_of(unsigned rank) const
    {
        for (int i = 0; i < SIMT_WARP_SIZE; i++)
            if (((mask >> i) & 1) && rank-- == 0)
                return i;
        return (int)lane();
    }
    template <class T> T from_lane(T v, int of) const
    {
        return shuffled(v, [&](auto x) { return __shfl_sync(mask, x, of); }, 0);
    }
    template <class T> T shfl(T v, unsigned rank) const { return from_lane(v, lane_of(rank)); }
    template <class T> T shfl_down(T v, unsigned d) const { return from_lane(v, lane_of(thread_rank() + d)); }
    template <class T> T shfl_up(T v, unsigned d) const
    {
        return from_lane(v, thread_rank() >= d ? lane_of(thread_rank() - d) : (int)lane());
    }
};

SIMT_INLINE coalesced_group coalesced_threads() { return coalesced_group{__activemask()}; }

/* Consecutive ranks, n at a time. */
SIMT_INLINE coalesced_group tiled_partition(const coalesced_group &g, unsigned n)
{
    unsigned part = g.thread_rank() / n;
    simt_mask_t m = 0;

    for (unsigned r = part * n; r < (part + 1) * n && r < g.size(); r++)
        m |= (simt_mask_t)1 << g.lane_of(r);
    return coalesced_group{m, part, (g.size() + n - 1) / n};
}

template <unsigned Size, class Parent = thread_block> struct thread_block_tile {
    static_assert(Size > 0 && Size <= SIMT_WARP_SIZE && (Size & (Size - 1)) == 0,
                  "a tile is a power of two within a warp");

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
    template <class T> T shfl(T v, int rank) const
    {
        return shuffled(v, [&](auto x) { return __shfl_sync(mask(), x, rank, (int)Size); }, 0);
    }
    template <class T> T shfl_down(T v, unsigned d) const
    {
        return shuffled(v, [&](auto x) { return __shfl_down_sync(mask(), x, d, (int)Size); }, 0);
    }
    template <class T> T shfl_up(T v, unsigned d) const
    {
        return shuffled(v, [&](auto x) { return __shfl_up_sync(mask(), x, d, (int)Size); }, 0);
    }
    template <class T> T shfl_xor(T v, int lanes) const
    {
        return shuffled(v, [&](auto x) { return __shfl_xor_sync(mask(), x, lanes, (int)Size); }, 0);
    }
    static int any(int p) { return __any_sync(mask(), p); }
    static int all(int p) { return __all_sync(mask(), p); }
    static simt_mask_t ballot(int p) { return __ballot_sync(mask(), p) >> (lane() / Size * Size); }
    template <class T> static simt_mask_t match_any(T v)
    {
        return __match_any_sync(mask(), v) >> (lane() / Size * Size);
    }
    operator coalesced_group() const { return coalesced_group{mask(), meta_group_rank(), meta_group_size()}; }
};

template <unsigned Size, class Group> SIMT_INLINE thread_block_tile<Size, Group> tiled_partition(const Group &)
{
    return thread_block_tile<Size, Group>();
}

/* A group whose kind is known when it runs: the block, or a tile of it whose size is no template's. */
struct thread_group {
    bool whole;
    coalesced_group part;

    thread_group(const thread_block &) : whole(true), part{0} {}
    thread_group(const coalesced_group &g) : whole(false), part(g) {}
    template <unsigned Size, class Parent>
    thread_group(const thread_block_tile<Size, Parent> &g) : whole(false), part(coalesced_group(g)) {}
    unsigned long long size() const { return whole ? thread_block::size() : part.size(); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long thread_rank() const { return whole ? thread_block::thread_rank() : part.thread_rank(); }
    bool is_valid() const { return true; }
    void sync() const
    {
        if (whole)
            thread_block::sync();
        else
            part.sync();
    }
};

/* The warp's lanes of the block, then tiles of n of them. */
SIMT_INLINE thread_group tiled_partition(const thread_group &g, unsigned n)
{
    return tiled_partition(g.whole ? coalesced_group(thread_block_tile<SIMT_WARP_SIZE>()) : g.part, n);
}

template <class Label> SIMT_INLINE coalesced_group labeled_partition(const coalesced_group &g, Label label)
{
    return coalesced_group{__match_any_sync(g.mask, (long long)label)};
}

SIMT_INLINE coalesced_group binary_partition(const coalesced_group &g, bool side)
{
    simt_mask_t yes = __ballot_sync(g.mask, side);

    return coalesced_group{side ? yes : g.mask & ~yes};
}

template <class Group> SIMT_INLINE void sync(const Group &g) { g.sync(); }

template <class Group, class F, class... A> SIMT_INLINE void invoke_one(const Group &g, F &&f, A &&...a)
{
    if (g.thread_rank() == 0)
        f(static_cast<A &&>(a)...);
}

template <class Group, class F, class... A>
SIMT_INLINE auto invoke_one_broadcast(const Group &g, F &&f, A &&...a) -> decltype(f(static_cast<A &&>(a)...))
{
    decltype(f(static_cast<A &&>(a)...)) v{};

    if (g.thread_rank() == 0)
        v = f(static_cast<A &&>(a)...);
    return g.shfl(v, 0);
}

/* reduce() of <cooperative_groups/reduce.h>. */
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct greater { T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T> struct less { T operator()(T a, T b) const { return a < b ? a : b; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, class Parent, class T, class F>
T reduce(const thread_block_tile<Size, Parent> &g, T v, F f)
{
    for (unsigned d = Size / 2; d > 0; d /= 2)
        v = f(v, g.shfl_xor(v, (int)d));
    return v;
}

template <class T, class F> T reduce(const coalesced_group &g, T v, F f)
{
    for (unsigned d = 1; d < g.size(); d *= 2) {
        T w = g.shfl_down(v, d);

        if (g.thread_rank() + d < g.size())
            v = f(v, w);
    }
    return g.shfl(v, 0);
}

} // namespace cooperative_groups

#endif
