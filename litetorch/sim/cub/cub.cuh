/* cub.cuh as candidates include it: CUB's collectives inside a kernel (BlockReduce, WarpReduce, BlockScan) are plain
 * code on shared memory and shuffles; its device-wide algorithms do the kernel's work, so they are reported and throw. */
#pragma once
#include "litetorch/library.h"

namespace cub {

struct Sum {
    template <class T> T operator()(const T &a, const T &b) const { return a + b; }
};
struct Max {
    template <class T> T operator()(const T &a, const T &b) const { return b > a ? b : a; }
};
struct Min {
    template <class T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
template <class K, class V>
struct KeyValuePair {
    K key;
    V value;
};
struct ArgMax {
    template <class P> P operator()(const P &a, const P &b) const
    {
        return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class P> P operator()(const P &a, const P &b) const
    {
        return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};

/* Every thread of the block calls; the result is thread 0's. Between two uses of one TempStorage the caller puts a
 * __syncthreads, as with CUB. */
template <class T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1>
class BlockReduce {
public:
    struct TempStorage {
        alignas(T) unsigned char bytes[sizeof(T) * X * Y * Z];
    };
    explicit BlockReduce(TempStorage &t) : s(reinterpret_cast<T *>(t.bytes)) {}
    template <class Op>
    T Reduce(T v, Op op, int valid = X * Y * Z)
    {
        int i = threadIdx.x + X * (threadIdx.y + Y * threadIdx.z), n = 1;
        s[i] = v;
        while (n < X * Y * Z)
            n *= 2;
        __syncthreads();
        for (int d = n / 2; d > 0; d /= 2) {
            if (i < d && i + d < valid)
                s[i] = op(s[i], s[i + d]);
            __syncthreads();
        }
        return s[0];
    }
    T Sum(T v) { return Reduce(v, cub::Sum()); }
    T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
    template <int N>
    T Sum(T (&v)[N])
    {
        T a = v[0];
        for (int i = 1; i < N; i++)
            a = a + v[i];
        return Sum(a);
    }

private:
    T *s;
};

/* The result is the first lane's. */
template <class T, int LANES = 32>
class WarpReduce {
public:
    struct TempStorage {
        char unused;
    };
    explicit WarpReduce(TempStorage &) {}
    template <class Op>
    T Reduce(T v, Op op, int valid = LANES)
    {
        int lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % LANES;
        for (int d = 1; d < LANES; d *= 2) {
            T o = __shfl_down_sync(0xffffffffu, v, d, LANES);
            if (lane + d < valid && lane + d < LANES)
                v = op(v, o);
        }
        return v;
    }
    T Sum(T v) { return Reduce(v, cub::Sum()); }
    T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
};

template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
class BlockScan {
public:
    struct TempStorage {
        alignas(T) unsigned char bytes[2 * sizeof(T) * X * Y * Z];
    };
    explicit BlockScan(TempStorage &t) : s(reinterpret_cast<T *>(t.bytes)) {}
    template <class Op>
    void InclusiveScan(T v, T &out, Op op) { out = scan(v, op)[index()]; }
    template <class Op>
    void InclusiveScan(T v, T &out, Op op, T &total)
    {
        T *r = scan(v, op);
        out = r[index()];
        total = r[N - 1];
    }
    template <class Op>
    void ExclusiveScan(T v, T &out, T first, Op op)
    {
        T *r = scan(v, op);
        out = index() ? op(first, r[index() - 1]) : first;
    }
    void InclusiveSum(T v, T &out) { InclusiveScan(v, out, cub::Sum()); }
    void InclusiveSum(T v, T &out, T &total) { InclusiveScan(v, out, cub::Sum(), total); }
    void ExclusiveSum(T v, T &out) { ExclusiveScan(v, out, T(0), cub::Sum()); }
    void ExclusiveSum(T v, T &out, T &total)
    {
        T *r = scan(v, cub::Sum());
        out = index() ? r[index() - 1] : T(0);
        total = r[N - 1];
    }

private:
    static const int N = X * Y * Z;
    static int index() { return threadIdx.x + X * (threadIdx.y + Y * threadIdx.z); }
    /* Hillis and Steele between two halves of the storage. */
    template <class Op>
    T *scan(T v, Op op)
    {
        T *from = s, *to = s + N, *t;
        int i = index();
        from[i] = v;
        __syncthreads();
        for (int d = 1; d < N; d *= 2) {
            to[i] = i >= d ? op(from[i - d], from[i]) : from[i];
            __syncthreads();
            t = from, from = to, to = t;
        }
        return from;
    }
    T *s;
};

#define LT_DEVICE_WIDE(NAME)                                                                                   \
    struct NAME {                                                                                              \
        template <class... A> static cudaError_t refuse(const char *n) { lt::refuse(n, {0, nullptr}); }        \
        template <class... A> static cudaError_t Sum(A &&...) { return refuse("cub::" #NAME "::Sum"); }        \
        template <class... A> static cudaError_t Max(A &&...) { return refuse("cub::" #NAME "::Max"); }        \
        template <class... A> static cudaError_t Min(A &&...) { return refuse("cub::" #NAME "::Min"); }        \
        template <class... A> static cudaError_t ArgMax(A &&...) { return refuse("cub::" #NAME "::ArgMax"); }  \
        template <class... A> static cudaError_t ArgMin(A &&...) { return refuse("cub::" #NAME "::ArgMin"); }  \
        template <class... A> static cudaError_t Reduce(A &&...) { return refuse("cub::" #NAME "::Reduce"); }  \
        template <class... A> static cudaError_t InclusiveSum(A &&...) { return refuse("cub::" #NAME); }       \
        template <class... A> static cudaError_t ExclusiveSum(A &&...) { return refuse("cub::" #NAME); }       \
        template <class... A> static cudaError_t InclusiveScan(A &&...) { return refuse("cub::" #NAME); }      \
        template <class... A> static cudaError_t SortKeys(A &&...) { return refuse("cub::" #NAME); }           \
        template <class... A> static cudaError_t SortPairs(A &&...) { return refuse("cub::" #NAME); }          \
        template <class... A> static cudaError_t SortPairsDescending(A &&...) { return refuse("cub::" #NAME); } \
    };
LT_DEVICE_WIDE(DeviceReduce) LT_DEVICE_WIDE(DeviceScan) LT_DEVICE_WIDE(DeviceRadixSort)
LT_DEVICE_WIDE(DeviceSegmentedReduce) LT_DEVICE_WIDE(DeviceSegmentedRadixSort)
#undef LT_DEVICE_WIDE

} // namespace cub
