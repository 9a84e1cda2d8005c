/* cub.cuh as candidates include it: CUB's collectives inside a kernel (BlockReduce, WarpReduce, BlockScan) are plain
 * code on shared memory and shuffles; its device-wide algorithms do the kernel's work, so they are reported and
 * throw. */
#pragma once
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
    template <int N> T Sum(T (&v)[N]) { return Reduce(v, cub::Sum()); }
    template <int N, class Op> T Reduce(T (&v)[N], Op op)
    {
        T a = v[0];
        for (int i = 1; i < N; i++)
            a = op(a, v[i]);
        return Reduce(a, op);
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

/* Prefix callbacks are classes; totals are numbers. */
template <class P, bool Class = std::is_class<P>::value> struct only_callable {};
template <class P> struct only_callable<P, true> {
    typedef void type;
};

/* Every lane's result; lanes outside of LANES' segment do not matter. */
template <class T, int LANES = 32>
class WarpScan {
public:
    struct TempStorage {
        char unused;
    };
    explicit WarpScan(TempStorage &) {}
    template <class Op> void InclusiveScan(T v, T &out, Op op)
    {
        for (int d = 1; d < LANES; d *= 2) {
            T o = __shfl_up_sync(0xffffffffu, v, d, LANES);
            if (lane() >= d)
                v = op(o, v);
        }
        out = v;
    }
    template <class Op> void InclusiveScan(T v, T &out, Op op, T &total)
    {
        InclusiveScan(v, out, op);
        total = __shfl_sync(0xffffffffu, out, LANES - 1, LANES);
    }
    template <class Op> void ExclusiveScan(T v, T &out, T first, Op op)
    {
        T in;
        InclusiveScan(v, in, op);
        in = __shfl_up_sync(0xffffffffu, in, 1, LANES);
        out = lane() ? op(first, in) : first;
    }
    void InclusiveSum(T v, T &out) { InclusiveScan(v, out, cub::Sum()); }
    void InclusiveSum(T v, T &out, T &total) { InclusiveScan(v, out, cub::Sum(), total); }
    void ExclusiveSum(T v, T &out) { ExclusiveScan(v, out, T(0), cub::Sum()); }
    void ExclusiveSum(T v, T &out, T &total)
    {
        T in;
        InclusiveScan(v, in, cub::Sum(), total);
        out = in - v;
    }
    T Broadcast(T v, unsigned from) { return __shfl_sync(0xffffffffu, v, (int)from, LANES); }

private:
    static int lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % LANES; }
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
    /* prefix(total) is asked by the first warp, where it gives lane 0's answer, before anything is handed out. */
    template <class Op, class P>
    void exclusive_from(T v, T &out, Op op, P &prefix)
    {
        T *r = scan(v, op);
        T mine = index() ? r[index() - 1] : T(), total = r[N - 1], before = T();
        bool first = index() == 0;
        __syncthreads();
        if (index() < 32)
            before = prefix(total);
        if (first)
            s[0] = before;
        __syncthreads();
        before = s[0];
        out = first ? before : op(before, mine);
        __syncthreads();
    }
    template <class P> typename only_callable<P>::type ExclusiveSum(T v, T &out, P &prefix)
    {
        exclusive_from(v, out, cub::Sum(), prefix);
    }
    template <class P> typename only_callable<P>::type InclusiveSum(T v, T &out, P &prefix)
    {
        exclusive_from(v, out, cub::Sum(), prefix);
        out = out + v;
    }
    template <class Op, class P> typename only_callable<P>::type InclusiveScan(T v, T &out, Op op, P &prefix)
    {
        exclusive_from(v, out, op, prefix);
        out = op(out, v);
    }
    template <class Op, class P> typename only_callable<P>::type ExclusiveScan(T v, T &out, Op op, P &prefix)
    {
        exclusive_from(v, out, op, prefix);
    }
    template <class Op> void ExclusiveScan(T v, T &out, T first, Op op, T &total)
    {
        T *r = scan(v, op);
        out = index() ? op(first, r[index() - 1]) : first;
        total = r[N - 1];
    }
    /* Several items a thread: their sums are scanned, then each thread goes through its own. */
    template <int I, class Op> void InclusiveScan(T (&v)[I], T (&out)[I], Op op)
    {
        T total;
        InclusiveScan(v, out, op, total);
    }
    template <int I, class Op> void InclusiveScan(T (&v)[I], T (&out)[I], Op op, T &total)
    {
        T a = v[0];
        for (int i = 1; i < I; i++)
            a = op(a, v[i]);
        T *r = scan(a, op);
        total = r[N - 1];
        bool first = index() == 0;
        T before = first ? v[0] : r[index() - 1];
        for (int i = 0; i < I; i++)
            out[i] = before = first && i == 0 ? v[0] : op(before, v[i]);
    }
    template <int I, class Op> void ExclusiveScan(T (&v)[I], T (&out)[I], T start, Op op, T &total)
    {
        T a = v[0];
        for (int i = 1; i < I; i++)
            a = op(a, v[i]);
        T *r = scan(a, op);
        total = r[N - 1];
        T before = index() ? op(start, r[index() - 1]) : start;
        for (int i = 0; i < I; i++) {
            T next = op(before, v[i]);
            out[i] = before;
            before = next;
        }
    }
    template <int I, class Op> void ExclusiveScan(T (&v)[I], T (&out)[I], T start, Op op)
    {
        T total;
        ExclusiveScan(v, out, start, op, total);
    }
    template <int I> void InclusiveSum(T (&v)[I], T (&out)[I]) { InclusiveScan(v, out, cub::Sum()); }
    template <int I> void InclusiveSum(T (&v)[I], T (&out)[I], T &total) { InclusiveScan(v, out, cub::Sum(), total); }
    template <int I> void ExclusiveSum(T (&v)[I], T (&out)[I]) { ExclusiveScan(v, out, T(0), cub::Sum()); }
    template <int I> void ExclusiveSum(T (&v)[I], T (&out)[I], T &total)
    {
        ExclusiveScan(v, out, T(0), cub::Sum(), total);
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

/* ---- loads, stores, exchanges: item i of thread t is t * I + i (blocked) or i * X + t (striped) ---- */
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
struct block_place {
    static int thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
};

template <class T, int X, int I, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1>
class BlockLoad {
public:
    struct TempStorage {
        char unused;
    };
    BlockLoad() {}
    explicit BlockLoad(TempStorage &) {}
    template <class P> void Load(P from, T (&v)[I])
    {
        for (int i = 0; i < I; i++)
            v[i] = from[at(i)];
    }
    template <class P> void Load(P from, T (&v)[I], int valid)
    {
        for (int i = 0; i < I; i++)
            if (at(i) < valid)
                v[i] = from[at(i)];
    }
    template <class P, class D> void Load(P from, T (&v)[I], int valid, D other)
    {
        for (int i = 0; i < I; i++)
            v[i] = at(i) < valid ? (T)from[at(i)] : (T)other;
    }

private:
    static int at(int i) { return A == BLOCK_LOAD_STRIPED ? i * X * Y * Z + block_place::thread()
        : block_place::thread() * I + i; }
};

template <class T, int X, int I, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1>
class BlockStore {
public:
    struct TempStorage {
        char unused;
    };
    BlockStore() {}
    explicit BlockStore(TempStorage &) {}
    template <class P> void Store(P to, T (&v)[I])
    {
        for (int i = 0; i < I; i++)
            to[at(i)] = v[i];
    }
    template <class P> void Store(P to, T (&v)[I], int valid)
    {
        for (int i = 0; i < I; i++)
            if (at(i) < valid)
                to[at(i)] = v[i];
    }

private:
    static int at(int i) { return A == BLOCK_STORE_STRIPED ? i * X * Y * Z + block_place::thread()
        : block_place::thread() * I + i; }
};

template <class T, int X, int I, bool W = false, int Y = 1, int Z = 1>
class BlockExchange {
public:
    struct TempStorage {
        alignas(T) unsigned char bytes[sizeof(T) * X * I * Y * Z];
    };
    explicit BlockExchange(TempStorage &t) : s(reinterpret_cast<T *>(t.bytes)) {}
    void StripedToBlocked(T (&in)[I], T (&out)[I]) { move(in, out, X * Y * Z, 1, 1, I); }
    void BlockedToStriped(T (&in)[I], T (&out)[I]) { move(in, out, 1, I, X * Y * Z, 1); }
    void StripedToBlocked(T (&v)[I]) { StripedToBlocked(v, v); }
    void BlockedToStriped(T (&v)[I]) { BlockedToStriped(v, v); }

private:
    void move(T (&in)[I], T (&out)[I], int wi, int wt, int ri, int rt)
    {
        int t = block_place::thread();
        for (int i = 0; i < I; i++)
            s[i * wi + t * wt] = in[i];
        __syncthreads();
        for (int i = 0; i < I; i++)
            out[i] = s[i * ri + t * rt];
        __syncthreads();
    }
    T *s;
};

/* ---- sorting a block's items: each thread sorts its own, then runs are merged, each item by its rank in the other
 * run. Keys, and after them values, pass through the storage. ---- */
struct NullType {};
template <class K, int I, int THREADS> struct block_sorter {
    static const int N = THREADS * I;
    template <class Less> static void own(K (&k)[I], int (&from)[I], Less less)
    {
        for (int i = 1; i < I; i++)
            for (int j = i; j > 0 && less(k[j], k[j - 1]); j--) {
                K tk = k[j];
                int tf = from[j];
                k[j] = k[j - 1], k[j - 1] = tk;
                from[j] = from[j - 1], from[j - 1] = tf;
            }
    }
    /* How many of run [lo, hi) come before x: those less, and where x lies to the right, those equal too. */
    template <class Less> static int rank(const K *s, int lo, int hi, const K &x, bool right, Less less)
    {
        int first = lo;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (right ? !less(x, s[mid]) : less(s[mid], x))
                lo = mid + 1;
            else
                hi = mid;
        }
        return lo - first;
    }
    /* place[i]: where own item i ends up; k holds its key. */
    template <class Less> static void run(K (&k)[I], int (&from)[I], int (&place)[I], K *s, Less less)
    {
        int t = block_place::thread();
        own(k, from, less);
        for (int i = 0; i < I; i++)
            place[i] = t * I + i;
        for (int width = I; width < N; width *= 2) {
            for (int i = 0; i < I; i++)
                s[place[i]] = k[i];
            __syncthreads();
            for (int i = 0; i < I; i++) {
                int pair = place[i] / (2 * width) * (2 * width), mid = pair + width < N ? pair + width : N;
                int end = pair + 2 * width < N ? pair + 2 * width : N;
                bool right = place[i] >= mid;
                place[i] += right ? rank(s, pair, mid, k[i], true, less) - (mid - pair) : rank(s, mid, end, k[i],
                    false, less);
            }
            __syncthreads();
        }
    }
};

template <class T> struct sort_bits;
#define LT_SORT_BITS(T, B, EXPR)                                                                                       \
    template <> struct sort_bits<T> {                                                                                  \
        static unsigned long long of(T v)                                                                              \
        {                                                                                                              \
            B b = __builtin_bit_cast(B, v);                                                                            \
            const B top = (B)((B)1 << (8 * sizeof(B) - 1));                                                            \
            (void)top;                                                                                                 \
            return (B)(EXPR);                                                                                          \
        }                                                                                                              \
    };
LT_SORT_BITS(int, unsigned, b ^ top) LT_SORT_BITS(unsigned, unsigned, b)
LT_SORT_BITS(long, unsigned long, b ^ top) LT_SORT_BITS(unsigned long, unsigned long, b)
LT_SORT_BITS(long long, unsigned long long, b ^ top) LT_SORT_BITS(unsigned long long, unsigned long long, b)
LT_SORT_BITS(short, unsigned short, b ^ top) LT_SORT_BITS(unsigned short, unsigned short, b)
LT_SORT_BITS(signed char, unsigned char, b ^ top) LT_SORT_BITS(unsigned char, unsigned char, b)
LT_SORT_BITS(float, unsigned, b &top ? ~b : b ^ top) LT_SORT_BITS(double, unsigned long long, b &top ? ~b : b ^ top)
LT_SORT_BITS(__half, unsigned short, b &top ? ~b : b ^ top)
LT_SORT_BITS(__nv_bfloat16, unsigned short, b &top ? ~b : b ^ top)
#undef LT_SORT_BITS

template <class T> struct bit_less {
    int begin, end;
    bool down;
    unsigned long long cut(const T &x) const
    {
        return (sort_bits<T>::of(x) & (end >= 64 ? ~0ull : (1ull << end) - 1)) >> begin;
    }
    bool operator()(const T &a, const T &b) const { return down ? cut(b) < cut(a) : cut(a) < cut(b); }
};

template <class K, class V> struct sort_room {
    static const size_t bytes = sizeof(K) > sizeof(V) ? sizeof(K) : sizeof(V);
};
template <class K> struct sort_room<K, NullType> {
    static const size_t bytes = sizeof(K);
};

template <class K, int X, int I, class V = NullType, int RADIX = 4, bool MEMO = true,
          BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int CONFIG = 0, int Y = 1, int Z = 1>
class BlockRadixSort {
public:
    struct TempStorage {
        alignas(16) unsigned char bytes[sort_room<K, V>::bytes * X * I * Y * Z];
    };
    explicit BlockRadixSort(TempStorage &t) : s(t.bytes) {}
    void Sort(K (&k)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, nullptr, {b, e, false}, false); }
    void SortDescending(K (&k)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, nullptr, {b, e, true}, false); }
    void Sort(K (&k)[I], V (&v)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, v, {b, e, false}, false); }
    void SortDescending(K (&k)[I], V (&v)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, v, {b, e, true}, false); }
    void SortBlockedToStriped(K (&k)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, nullptr, {b, e, false}, true); }
    void SortBlockedToStriped(K (&k)[I], V (&v)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, v, {b, e, false},
        true); }
    void SortDescendingBlockedToStriped(K (&k)[I], V (&v)[I], int b = 0, int e = 8 * sizeof(K))
    {
        sort(k, v, {b, e, true}, true);
    }
    void SortDescendingBlockedToStriped(K (&k)[I], int b = 0, int e = 8 * sizeof(K)) { sort(k, nullptr, {b, e, true},
        true); }

private:
    template <class T> void hand_out(T *v, const int (&from)[I], const int (&place)[I], bool striped)
    {
        T *room = reinterpret_cast<T *>(s), old[I];
        int t = block_place::thread();
        for (int i = 0; i < I; i++)
            old[i] = v[i];
        __syncthreads();
        for (int i = 0; i < I; i++)
            room[place[i]] = old[from[i]];
        __syncthreads();
        for (int i = 0; i < I; i++)
            v[i] = room[striped ? i * X * Y * Z + t : t * I + i];
        __syncthreads();
    }
    void sort(K (&k)[I], V *v, bit_less<K> less, bool striped)
    {
        int from[I], place[I], same[I];
        for (int i = 0; i < I; i++)
            same[i] = from[i] = i;
        __syncthreads();
        block_sorter<K, I, X * Y * Z>::run(k, from, place, reinterpret_cast<K *>(s), less);
        hand_out(k, same, place, striped);
        if constexpr (!std::is_same<V, NullType>::value)
            if (v)
                hand_out(v, from, place, striped);
    }
    unsigned char *s;
};

/* The calls of a merge sort, of a block's items or of a warp's: Self sorts, and says the running thread's place. */
template <class Self, class K, int I, class V>
class merge_sort {
public:
    template <class Less> void Sort(K (&k)[I], Less less) { self().sort(k, nullptr, less); }
    template <class Less> void Sort(K (&k)[I], V (&v)[I], Less less) { self().sort(k, v, less); }
    /* Keys behind the first 'valid' ones count as 'rest'. */
    template <class Less> void Sort(K (&k)[I], Less less, int valid, K rest)
    {
        limit(k, valid, rest), self().sort(k, nullptr, less);
    }
    template <class Less> void Sort(K (&k)[I], V (&v)[I], Less less, int valid, K rest)
    {
        limit(k, valid, rest), self().sort(k, v, less);
    }
    template <class... A> void StableSort(K (&k)[I], A &&...a) { Sort(k, static_cast<A &&>(a)...); }

private:
    Self &self() { return static_cast<Self &>(*this); }
    static void limit(K (&k)[I], int valid, K rest)
    {
        for (int i = 0; i < I; i++)
            if (Self::place() * I + i >= valid)
                k[i] = rest;
    }
};

template <class K, int X, int I, class V = NullType, int Y = 1, int Z = 1>
class BlockMergeSort : public merge_sort<BlockMergeSort<K, X, I, V, Y, Z>, K, I, V> {
public:
    struct TempStorage {
        alignas(16) unsigned char bytes[sort_room<K, V>::bytes * X * I * Y * Z];
    };
    explicit BlockMergeSort(TempStorage &t) : s(t.bytes) {}

private:
    friend class merge_sort<BlockMergeSort, K, I, V>;
    static int place() { return block_place::thread(); }
    template <class T> void hand_out(T *v, const int (&from)[I], const int (&place)[I])
    {
        T *room = reinterpret_cast<T *>(s), old[I];
        int t = block_place::thread();
        for (int i = 0; i < I; i++)
            old[i] = v[i];
        __syncthreads();
        for (int i = 0; i < I; i++)
            room[place[i]] = old[from[i]];
        __syncthreads();
        for (int i = 0; i < I; i++)
            v[i] = room[t * I + i];
        __syncthreads();
    }
    template <class Less> void sort(K (&k)[I], V *v, Less less)
    {
        int from[I], place[I], same[I];
        for (int i = 0; i < I; i++)
            same[i] = from[i] = i;
        __syncthreads();
        block_sorter<K, I, X * Y * Z>::run(k, from, place, reinterpret_cast<K *>(s), less);
        hand_out(k, same, place);
        if constexpr (!std::is_same<V, NullType>::value)
            if (v)
                hand_out(v, from, place);
    }
    unsigned char *s;
};

/* A warp's items: every lane finds the ranks of its own among all. */
template <class K, int I, int LANES = 32, class V = NullType>
class WarpMergeSort : public merge_sort<WarpMergeSort<K, I, LANES, V>, K, I, V> {
public:
    struct TempStorage {
        alignas(16) unsigned char bytes[sort_room<K, V>::bytes * LANES * I];
    };
    explicit WarpMergeSort(TempStorage &t) : s(t.bytes) {}

private:
    friend class merge_sort<WarpMergeSort, K, I, V>;
    static int place() { return lane(); }
    static int lane() { return block_place::thread() % LANES; }
    template <class T> void hand_out(T *v, const int (&place)[I])
    {
        T *room = reinterpret_cast<T *>(s);
        __syncwarp();
        for (int i = 0; i < I; i++)
            room[place[i]] = v[i];
        __syncwarp();
        for (int i = 0; i < I; i++)
            v[i] = room[lane() * I + i];
        __syncwarp();
    }
    template <class Less> void sort(K (&k)[I], V *v, Less less)
    {
        K *room = reinterpret_cast<K *>(s);
        int place[I];
        __syncwarp();
        for (int i = 0; i < I; i++)
            room[lane() * I + i] = k[i];
        __syncwarp();
        for (int i = 0; i < I; i++) {
            int own = lane() * I + i;
            place[i] = 0;
            for (int j = 0; j < LANES * I; j++)
                place[i] += less(room[j], k[i]) || (j < own && !less(k[i], room[j]));
        }
        hand_out(k, place);
        if constexpr (!std::is_same<V, NullType>::value)
            if (v)
                hand_out(v, place);
    }
    unsigned char *s;
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
