/* headers.cu - what stands in for the toolkit's headers: 8-bit floats, wmma, copies in the background, barriers and
 * atomics of libcu++, collectives of CUB. Rules as in kernels.cu: a GPU must give the same answers. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace cg = cooperative_groups;

template <class T> static T *managed(size_t n)
{
    T *p;
    cudaMallocManaged(&p, n * sizeof(T));
    memset((void *)p, 0, n * sizeof(T));
    return p;
}

static int failed() { return cudaDeviceSynchronize() != cudaSuccess; }

/* ---- 8-bit floats and half forms ---- */

__global__ void small(float *f, unsigned char *b)
{
    const float in[8] = {0.0f, 1.0f, -1.0625f, 448.0f, 1000.0f, 0.001953125f, -0.0048828125f, 17.0f};
    int t = threadIdx.x;
    __nv_fp8_e4m3 a(in[t]);
    __nv_fp8_e5m2 c(in[t]);
    b[t] = a.__x;
    b[8 + t] = c.__x;
    f[t] = float(a);
    f[8 + t] = float(c);
    f[16 + t] = __half2float(__hfma_relu(__float2half(in[t]), __float2half(2.0f), __float2half(-3.0f)));
    f[24 + t] = __half2float(__hadd_sat(__float2half(in[t]), __float2half(0.25f)));
    __half2 r = __hfma2_relu(__float2half2_rn(in[t]), __float2half2_rn(1.0f), __float2half2_rn(-1.0f));
    f[32 + t] = __low2float(r);
}

static int check_small()
{
    const unsigned char want[16] = {0, 0x38, 0xb8, 0x7e, 0x7e, 1, 0x82, 0x58, 0, 0x3c, 0xbc, 0x5f, 0x64, 0x18, 0x9d,
        0x4c};
    const float back[16] = {0, 1, -1, 448, 448, 0.001953125f, -0.00390625f, 16, 0, 1, -1, 448, 1024, 0.001953125f,
                            -0.0048828125f, 16};
    const float in[8] = {0.0f, 1.0f, -1.0625f, 448.0f, 1000.0f, 0.001953125f, -0.0048828125f, 17.0f};
    float *f = managed<float>(40);
    unsigned char *b = managed<unsigned char>(16);
    small<<<1, 8>>>(f, b);
    int wrong = failed();
    for (int i = 0; i < 16; i++)
        wrong += b[i] != want[i] || f[i] != back[i];
    for (int i = 0; i < 8; i++) {
        float r = in[i] * 2 - 3, s = in[i] + 0.25f, q = in[i] - 1;
        wrong += fabsf(f[16 + i] - (r > 0 ? r : 0)) > 1.0f || (r < 0 && f[16 + i] != 0);
        wrong += fabsf(f[24 + i] - (s > 1 ? 1 : s < 0 ? 0 : s)) > 1e-3f;
        wrong += fabsf(f[32 + i] - (q > 0 ? q : 0)) > 1.0f;
    }
    return wrong;
}

/* ---- wmma ---- */

__global__ void wmma_product(const __half *a, const __half *b, float *c)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < 32; k += 16) {
        wmma::load_matrix_sync(fa, a + k, 32);
        wmma::load_matrix_sync(fb, b + k, 32);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    for (int i = 0; i < acc.num_elements; i++)
        acc.x[i] *= 2.0f;
    wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
}

static int check_wmma()
{
    __half *a = managed<__half>(512), *b = managed<__half>(512);
    float *c = managed<float>(256);
    for (int i = 0; i < 512; i++)
        a[i] = __float2half((float)(i % 5 - 2)), b[i] = __float2half((float)(i % 3 - 1));
    wmma_product<<<1, 32>>>(a, b, c);
    int wrong = failed();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float s = 0;
            for (int k = 0; k < 32; k++)
                s += (float)((i * 32 + k) % 5 - 2) * (float)((j * 32 + k) % 3 - 1);
            wrong += c[i * 16 + j] != 2 * s;
        }
    return wrong;
}

/* ---- copies in the background ---- */

__global__ void copies(const float4 *in, float4 *out)
{
    __shared__ float4 s[4][64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    cg::thread_block block = cg::this_thread_block();
    if (t == 0)
        init(&bar, blockDim.x);
    __pipeline_memcpy_async(&s[0][t], &in[t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    cg::memcpy_async(block, &s[1][0], &in[64], sizeof(float4) * 64);
    cg::wait(block);
    cuda::memcpy_async(&s[2][t], &in[128 + t], cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&s[3][t], &in[192 + t], sizeof(float4), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    __syncthreads();
    for (int k = 0; k < 4; k++)
        out[k * 64 + t] = s[k][63 - t];
    pipe.consumer_release();
}

static int check_copies()
{
    float4 *in = managed<float4>(256), *out = managed<float4>(256);
    for (int i = 0; i < 256; i++)
        in[i] = make_float4((float)i, 1, 2, 3);
    copies<<<1, 64>>>(in, out);
    int wrong = failed();
    for (int i = 0; i < 256; i++)
        wrong += out[i].x != (float)(i / 64 * 64 + 63 - i % 64) || out[i].w != 3;
    return wrong;
}

/* ---- atomics of libcu++: a ticket for the last block ---- */

__global__ void last_block(const int *x, int *sums, int *total, unsigned *ticket)
{
    __shared__ bool last;
    typedef cub::BlockReduce<int, 64> reduce;
    __shared__ typename reduce::TempStorage room;
    int s = reduce(room).Sum(x[blockIdx.x * 64 + threadIdx.x]);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = s;
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> r(*ticket);
        last = r.fetch_add(1u, cuda::memory_order_acq_rel) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (unsigned b = 0; b < gridDim.x; b++)
            *total += sums[b];
}

static int check_last_block()
{
    int *x = managed<int>(640), *sums = managed<int>(10), *total = managed<int>(1), want = 0;
    unsigned *ticket = managed<unsigned>(1);
    for (int i = 0; i < 640; i++)
        want += x[i] = i % 11;
    last_block<<<10, 64>>>(x, sums, total, ticket);
    return failed() + (*total != want);
}

/* ---- CUB ---- */

struct running {
    int total;
    __device__ int operator()(int sum)
    {
        int before = total;
        total += sum;
        return before;
    }
};

__global__ void collectives(const float *in, float *sorted, int *place, int *sums, int *scan)
{
    typedef cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE> load;
    typedef cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE> store;
    typedef cub::BlockRadixSort<float, 64, 4, int> sort;
    typedef cub::BlockScan<int, 64> block_scan;
    typedef cub::WarpScan<int> warp_scan;
    __shared__ union {
        typename load::TempStorage load_room;
        typename store::TempStorage store_room;
        typename sort::TempStorage sort_room;
        typename block_scan::TempStorage scan_room;
        typename warp_scan::TempStorage warp_room[2];
    } room;
    float key[4];
    int value[4], t = threadIdx.x, out, total;
    load(room.load_room).Load(in, key, 250, -1.0f);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        value[i] = t * 4 + i;
    sort(room.sort_room).SortDescending(key, value);
    __syncthreads();
    store(room.store_room).Store(sorted, key);
    for (int i = 0; i < 4; i++)
        place[t * 4 + i] = value[i];
    __syncthreads();
    running prefix = {100};
    block_scan(room.scan_room).ExclusiveSum(t, out, prefix);
    sums[t] = out;
    __syncthreads();
    block_scan(room.scan_room).InclusiveSum(1, out, total);
    sums[64 + t] = out * 1000 + total;
    __syncthreads();
    warp_scan(room.warp_room[t / 32]).InclusiveSum(t, out);
    scan[t] = out;
}

static int check_collectives()
{
    float *in = managed<float>(256), *sorted = managed<float>(256);
    int *place = managed<int>(256), *sums = managed<int>(128), *scan = managed<int>(64), sum = 0;
    for (int i = 0; i < 256; i++)
        in[i] = (float)(i * 37 % 101);
    collectives<<<1, 64>>>(in, sorted, place, sums, scan);
    int wrong = failed();
    for (int i = 0; i < 256; i++) {
        float of_place = place[i] < 250 ? in[place[i]] : -1.0f;
        wrong += sorted[i] != of_place;
        wrong += i > 0 && (sorted[i] > sorted[i - 1] || (sorted[i] == sorted[i - 1] && place[i] < place[i - 1]));
    }
    for (int t = 0; t < 64; t++) {
        wrong += sums[t] != 100 + t * (t - 1) / 2;
        wrong += sums[64 + t] != (t + 1) * 1000 + 64;
        sum = t % 32 ? sum + t : t;
        wrong += scan[t] != sum;
    }
    return wrong;
}

/* ---- groups of lanes: partitions, scans, reductions, a group whose size is known late ---- */

__device__ static int sum_over(cg::thread_group g, int *room, int v)
{
    for (int i = (int)g.size() / 2; i > 0; i /= 2) {
        room[g.thread_rank()] = v;
        g.sync();
        if ((int)g.thread_rank() < i)
            v += room[g.thread_rank() + i];
        g.sync();
    }
    return v;
}

__global__ void lanes(int *out, cuda::atomic<int, cuda::thread_scope_device> *total)
{
    __shared__ alignas(16) int room[64];
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int t = threadIdx.x, *row = out + t;

    row[0] = cg::inclusive_scan(warp, t);
    row[64] = cg::exclusive_scan(warp, t % 7, cg::plus<int>());
    auto same = cg::labeled_partition(warp, t % 3);
    row[128] = (int)same.size() * 1000 + cg::reduce(same, t, cg::plus<int>());
    row[192] = cg::exclusive_scan(same, t, cg::bit_xor<int>());
    auto half = cg::binary_partition(warp, t % 5 < 2);
    row[256] = half.shfl(t, 1) * 100 + (int)half.thread_rank();
    row[320] = t % 32 < 11 ? cg::reduce(cg::coalesced_threads(), t * 7 % 13, cg::greater<int>()) : -1;
    row[384] = sum_over(block, room, t);
    cg::thread_group eight = cg::tiled_partition(block, 8);
    row[448] = sum_over(eight, room + t / 8 * 8, t);
    auto tile = cg::tiled_partition<4>(warp);
    row[512] = (int)tile.match_any(t % 2) * 16 + (int)tile.ballot(t % 4 == 1);
    if (t % 2) {
        auto odd = cg::coalesced_threads();
        int place = cg::exclusive_scan_update(odd, *total, 1);
        row[576] = place - odd.shfl(place, 0);
        cg::invoke_one(odd, [&] { out[640 + t / 32] = (int)odd.size(); });
    }
}

static int check_lanes()
{
    int *out = managed<int>(642), wrong = 0, incl = 0, excl = 0;
    auto *total = managed<cuda::atomic<int, cuda::thread_scope_device>>(1);

    lanes<<<1, 64>>>(out, total);
    wrong += failed() || *(int *)total != 32 || out[640] != 16 || out[641] != 16;
    for (int t = 0; t < 64; t++) {
        int first = t / 32 * 32, count = 0, sum = 0, bits = 0, second = -1, rank = 0, seen = 0, most = 0, eight = 0;

        incl = t % 32 ? incl + t : t;
        excl = t % 32 ? excl + (t - 1) % 7 : 0;
        for (int k = first; k < first + 32; k++) {
            bool alike = (k % 5 < 2) == (t % 5 < 2);

            count += k % 3 == t % 3;
            sum += k % 3 == t % 3 ? k : 0;
            bits ^= k % 3 == t % 3 && k < t ? k : 0;
            rank += alike && k < t;
            second = alike && seen == 1 ? k : second;
            seen += alike;
            most = k % 32 < 11 && k * 7 % 13 > most ? k * 7 % 13 : most;
        }
        for (int k = t / 8 * 8; k < t / 8 * 8 + 8; k++)
            eight += k;
        wrong += out[t] != incl || out[64 + t] != excl || out[128 + t] != count * 1000 + sum || out[192 + t] != bits;
        wrong += out[256 + t] != second * 100 + rank || out[320 + t] != (t % 32 < 11 ? most : -1);
        wrong += (t == 0 && out[384] != 2016) || (t % 8 == 0 && out[448 + t] != eight);
        wrong += out[512 + t] != (t % 2 ? 10 : 5) * 16 + 2 || (t % 2 && out[576 + t] != t % 32 / 2);
    }
    return wrong;
}

struct check {
    const char *name;
    int (*run)();
};
extern "C" const check checks[] = {{"small", check_small}, {"wmma", check_wmma}, {"copies", check_copies},
                                   {"last_block", check_last_block}, {"collectives", check_collectives},
                                   {"lanes", check_lanes},
                                   {nullptr, nullptr}};
