/* kernels.cu - correct kernels of every style that candidates use, each compared with a plain loop on the host.
 * Every function 'int check_NAME(void)' returns the number of wrong values; CHECKS at the end lists them. */
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <cooperative_groups.h>

#include <vector>

template <class T> struct device_array {
    T *p = nullptr;
    size_t n;

    explicit device_array(size_t n_) : n(n_) { cudaMalloc(&p, n * sizeof(T)); }
    explicit device_array(const std::vector<T> &v) : device_array(v.size())
    {
        cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~device_array() { cudaFree(p); }
    std::vector<T> get() const
    {
        std::vector<T> v(n);
        cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
};

static std::vector<float> ramp(size_t n, unsigned seed = 1)
{
    std::vector<float> v(n);
    for (auto &x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = (float)(seed >> 8) / (1 << 23) - 1.0f;
    }
    return v;
}

static int differs(float got, double want, double tol = 1e-5)
{
    return !(fabs(got - want) <= tol * (1.0 + fabs(want)));
}

/* ---- elementwise, launched from a macro, a lambda and a function pointer ---- */

__global__ void scale(const float *__restrict__ x, float *__restrict__ y, float f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * f;
}

#define SCALE(grid, block, ...)                                                                                       \
    do {                                                                                                              \
        scale<<<grid, block>>>(__VA_ARGS__);                                                                          \
    } while (0)

static int check_scale()
{
    int n = 1000, wrong = 0;
    auto x = ramp(n);
    device_array<float> dx(x), dy(n), dz(n), dw(n);
    auto launch = [&](float *out) { scale<<<dim3((n + 255) / 256), dim3(256), 0, nullptr>>>(dx.p, out, 3.0f, n); };
    void (*pointer)(const float *, float *, float, int) = scale;

    SCALE((n + 127) / 128, 128, dx.p, dy.p, 2, n); /* the int 2 converts to float, as in CUDA */
    launch(dz.p);
    pointer<<<8, 128>>>(dx.p, dw.p, 4.0f, n);
    auto y = dy.get(), z = dz.get(), w = dw.get();
    for (int i = 0; i < n; i++)
        wrong += y[i] != x[i] * 2 || z[i] != x[i] * 3 || w[i] != x[i] * 4;
    return wrong;
}

/* ---- templates: explicit, deduced, with value parameters and functors; a NULL argument ---- */

template <typename F> __global__ void apply(const float *x, float *y, int n, F f, const int *mask)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = mask && mask[i] ? 0.0f : f(x[i]);
}

struct square {
    __device__ float operator()(float v) const { return v * v; }
};

template <int BLOCK, typename T> __global__ void block_sum(const T *x, T *out)
{
    __shared__ T s[BLOCK];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * BLOCK + t];
    __syncthreads();
#pragma unroll
    for (int d = BLOCK / 2; d > 0; d >>= 1) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}

static int check_templates()
{
    const int n = 512;
    int wrong = 0;
    auto x = ramp(n);
    std::vector<double> xd(x.begin(), x.end());
    device_array<float> dx(x), dy(n), ds(2);
    device_array<double> dxd(xd), dsd(2);
    float k = 7;

    apply<<<2, 64>>>(dx.p, dy.p, n, square(), NULL);
    auto y = dy.get();
    for (int i = 0; i < n; i++)
        wrong += y[i] != x[i] * x[i];
    apply<<<2, 64>>>(dx.p, dy.p, n, [=] __device__(float v) { return v + k; }, nullptr);
    y = dy.get();
    for (int i = 0; i < n; i++)
        wrong += y[i] != x[i] + k;
    block_sum<256><<<2, 256>>>(dx.p, ds.p);
    block_sum<256, double><<<2, 256>>>(dxd.p, dsd.p);
    for (int b = 0; b < 2; b++) {
        double want = 0;
        for (int i = 0; i < 256; i++)
            want += xd[b * 256 + i];
        wrong += differs(ds.get()[b], want) + (fabs(dsd.get()[b] - want) > 1e-12);
    }
    return wrong;
}

/* ---- reductions: dynamic shared memory, warp shuffles, early return before a barrier ---- */

__global__ void tree_sum(const float *x, float *out, int n)
{
    extern __shared__ float sdata[];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    float v = i < (unsigned)n ? x[i] : 0;
    if (i + blockDim.x < (unsigned)n)
        v += x[i + blockDim.x];
    sdata[t] = v;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            sdata[t] = v = v + sdata[t + s];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(out, v);
}

__inline__ __device__ float warp_sum(float v)
{
    for (int d = warpSize / 2; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

__global__ void softmax_rows(const float *x, float *y, int cols)
{
    __shared__ float part[32], whole;
    const float *row = x + blockIdx.x * cols;
    int t = threadIdx.x, lane = t % warpSize, warp = t / warpSize, warps = blockDim.x / warpSize;
    float m = -CUDART_INF_F, s = 0;

    for (int i = t; i < cols; i += blockDim.x)
        m = fmaxf(m, row[i]);
    for (int d = 16; d; d >>= 1)
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
    if (lane == 0)
        part[warp] = m;
    __syncthreads();
    if (t == 0) {
        for (int i = 1; i < warps; i++)
            m = fmaxf(m, part[i]);
        whole = m;
    }
    __syncthreads();
    m = whole;
    for (int i = t; i < cols; i += blockDim.x)
        s += __expf(row[i] - m);
    s = warp_sum(s);
    __syncthreads();
    if (lane == 0)
        part[warp] = s;
    __syncthreads();
    if (warp == 0) {
        s = warp_sum(lane < warps ? part[lane] : 0.0f);
        if (lane == 0)
            whole = s;
    }
    __syncthreads();
    for (int i = t; i < cols; i += blockDim.x)
        y[blockIdx.x * cols + i] = __fdividef(__expf(row[i] - m), whole);
}

__global__ void tail_sum(const float *x, float *out, int n)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t >= n)
        return; /* returned threads do not hold up the barrier */
    s[t] = x[t];
    __syncthreads();
    if (t == 0) {
        float v = 0;
        for (int i = 0; i < n; i++)
            v += s[i];
        *out = v;
    }
}

static int check_reductions()
{
    const int rows = 5, cols = 137, n = rows * cols;
    int wrong = 0;
    auto x = ramp(n);
    device_array<float> dx(x), dy(n), ds(std::vector<float>{0.0f}), dt(1);
    double sum = 0, tail = 0;

    tree_sum<<<3, 128, 128 * sizeof(float)>>>(dx.p, ds.p, n);
    for (float v : x)
        sum += v;
    wrong += differs(ds.get()[0], sum);
    softmax_rows<<<rows, 64>>>(dx.p, dy.p, cols);
    auto y = dy.get();
    for (int r = 0; r < rows; r++) {
        double total = 0;
        for (int i = 0; i < cols; i++)
            total += exp((double)x[r * cols + i]);
        for (int i = 0; i < cols; i++)
            wrong += differs(y[r * cols + i], exp((double)x[r * cols + i]) / total);
    }
    tail_sum<<<1, 64>>>(dx.p, dt.p, 41);
    for (int i = 0; i < 41; i++)
        tail += x[i];
    return wrong + differs(dt.get()[0], tail);
}

/* ---- tiled matrix product with 2-D blocks, ragged edges; transpose with padding; 3-D grid ---- */

#define TILE 16
__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;

    for (int t = 0; t < (k + TILE - 1) / TILE; t++) {
        int ac = t * TILE + threadIdx.x, br = t * TILE + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ac < k ? a[row * k + ac] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = br < k && col < n ? b[br * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

__global__ void transpose(const float *x, float *y, int rows, int cols)
{
    extern __shared__ float tile[][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (c < cols && r + j < rows)
            tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * cols + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (c < rows && r + j < cols)
            y[(r + j) * rows + c] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void cube(int *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz)
        out[(z * ny + y) * nx + x] = x + 100 * y + 10000 * z;
}

static int check_shapes()
{
    const int m = 37, n = 45, k = 50;
    int wrong = 0;
    auto a = ramp(m * k), b = ramp(k * n, 7);
    device_array<float> da(a), db(b), dc(m * n), dt(m * k);
    device_array<int> dq(5 * 6 * 7);

    matmul<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(da.p, db.p, dc.p, m, n, k);
    auto c = dc.get();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double want = 0;
            for (int l = 0; l < k; l++)
                want += (double)a[i * k + l] * b[l * n + j];
            wrong += differs(c[i * n + j], want);
        }
    transpose<<<dim3((k + 31) / 32, (m + 31) / 32), dim3(32, 8), 32 * 33 * sizeof(float)>>>(da.p, dt.p, m, k);
    auto t = dt.get();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            wrong += t[j * m + i] != a[i * k + j];
    cube<<<dim3(2, 3, 4), dim3(3, 2, 2)>>>(dq.p, 5, 6, 7);
    auto q = dq.get();
    for (int i = 0; i < 5 * 6 * 7; i++)
        wrong += q[i] != i % 5 + 100 * (i / 5 % 6) + 10000 * (i / 30);
    return wrong;
}

/* ---- scan, histogram, atomics ---- */

__global__ void scan(const int *x, int *y, int n)
{
    __shared__ int sums[32];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int v = t < n ? x[t] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int u = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d)
            v += u;
    }
    if (lane == 31)
        sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane < (int)blockDim.x / 32 ? sums[lane] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int u = __shfl_up_sync(0xffffffff, s, d);
            if (lane >= d)
                s += u;
        }
        sums[lane] = s;
    }
    __syncthreads();
    if (t < n)
        y[t] = v + (warp ? sums[warp - 1] : 0);
}

__global__ void histogram(const unsigned char *x, unsigned *bins, int n)
{
    __shared__ unsigned local[16];
    if (threadIdx.x < 16)
        local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__device__ float atomic_max_float(float *p, float v)
{
    int *ip = (int *)p, old = *ip, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= v)
            break;
        old = atomicCAS(ip, assumed, __float_as_int(v));
    } while (assumed != old);
    return __int_as_float(old);
}

__global__ void atomics(int *i, unsigned *u, unsigned long long *l, double *d)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMax(&i[0], (int)t - 10);
    atomicMin(&i[1], -(int)t);
    atomicSub(&i[2], 1);
    atomicInc(&u[0], 4);
    atomicDec(&u[1], 4);
    atomicXor(&u[2], t);
    atomicOr(&u[3], 1u << (t % 32));
    atomicAnd(&u[4], ~(1u << (t % 8)));
    atomicAdd(l, 1ull << 33);
    atomicAdd(d, 0.5);
}

__global__ void float_max(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    (void)out;
    if (i < n && threadIdx.x == 0)
        atomic_max_float(out, x[i]);
}

static int check_atomics()
{
    const int n = 200;
    int wrong = 0, run = 0;
    std::vector<int> x(n);
    std::vector<unsigned char> h(3000);
    std::vector<unsigned> want(16);
    for (int i = 0; i < n; i++)
        x[i] = (i * 37) % 11 - 3;
    for (size_t i = 0; i < h.size(); i++)
        want[(h[i] = (unsigned char)(i * i >> 3)) & 15]++;
    device_array<int> dx(x), dy(n), di(std::vector<int>{0, 0, 0});
    device_array<unsigned char> dh(h);
    device_array<unsigned> db(std::vector<unsigned>(16, 0)), du(std::vector<unsigned>{0, 0, 0, 0, 0xff});
    device_array<unsigned long long> dl(std::vector<unsigned long long>{0});
    device_array<double> dd(std::vector<double>{0});

    scan<<<1, 256>>>(dx.p, dy.p, n);
    auto y = dy.get();
    for (int i = 0; i < n; i++)
        wrong += y[i] != (run += x[i]);
    histogram<<<4, 64>>>(dh.p, db.p, (int)h.size());
    wrong += db.get() != want;
    atomics<<<2, 32>>>(di.p, du.p, dl.p, dd.p); /* 64 threads */
    auto i = di.get();
    auto u = du.get();
    wrong += i[0] != 53 || i[1] != -63 || i[2] != -64 || u[0] != 64 % 5 || u[1] != 1 || u[2] != 0 || u[3] != ~0u ||
        u[4];
    wrong += dl.get()[0] != 64ull << 33 || dd.get()[0] != 32.0;
    device_array<float> df(std::vector<float>{-2.0f, 5.0f, 1.0f}), dm(std::vector<float>{-9.0f});
    float_max<<<3, 1>>>(df.p, dm.p, 3);
    return wrong + (dm.get()[0] != 5.0f);
}

/* ---- warp operations ---- */

__global__ void warp_ops(unsigned *out, int *pieces)
{
    unsigned t = threadIdx.x, lane = t % 32;
    out[t] = __ballot_sync(0xffffffff, lane % 3 == 0);
    out[64 + t] = (unsigned)__any_sync(0xffffffff, lane == 31) * 2 + (unsigned)__all_sync(0xffffffff, lane < 31);
    out[128 + t] = __match_any_sync(0xffffffff, (int)lane / 8);
    out[192 + t] = __reduce_add_sync(0xffffffff, lane);
    out[256 + t] = (unsigned)__shfl_sync(0xffffffff, (int)lane, (int)lane + 1, 8);
    if (lane < 16) /* two halves work apart */
        pieces[t] = __shfl_xor_sync(0x0000ffff, (int)lane, 1);
    else
        pieces[t] = __shfl_down_sync(0xffff0000, (int)lane, 2) + (int)__ballot_sync(0xffff0000, lane == 20);
    __syncwarp();
    out[320 + t] = (unsigned)__syncthreads_count(t % 2) + 1000u * (unsigned)__syncthreads_and(t < 63) +
                   10000u * (unsigned)__syncthreads_or(t == 5);
    double d = __shfl_up_sync(0xffffffff, t * 0.5, 1);
    out[384 + t] = (unsigned)(d * 2);
    int all;
    unsigned same = __match_all_sync(0xffffffff, 5LL, &all);
    out[448 + t] = same + (unsigned)all;
}

static int check_warp()
{
    int wrong = 0;
    device_array<unsigned> du(512);
    device_array<int> dp(64);
    unsigned thirds = 0;

    warp_ops<<<1, 64>>>(du.p, dp.p);
    auto u = du.get();
    auto p = dp.get();
    for (int i = 0; i < 32; i += 3)
        thirds |= 1u << i;
    for (int t = 0; t < 64; t++) {
        int lane = t % 32;
        wrong += u[t] != thirds;
        wrong += u[64 + t] != 2;
        wrong += u[128 + t] != 0xffu << (lane / 8 * 8);
        wrong += u[192 + t] != 31 * 16;
        wrong += u[256 + t] != (unsigned)(lane / 8 * 8 + (lane + 1) % 8);
        if (lane < 16)
            wrong += p[t] != (lane ^ 1);
        else if (lane < 30) /* above, lane + 2 is outside of the warp: one's own value */
            wrong += p[t] != lane + 2 + (1 << 20);
        else
            wrong += p[t] != lane + (1 << 20);
        wrong += u[320 + t] != 32 + 0 + 10000;
        wrong += u[384 + t] != (unsigned)(lane ? t - 1 : t);
        wrong += u[448 + t] != 0; /* the full mask plus one */
    }
    return wrong;
}

/* ---- small floats and vector types ---- */

__global__ void halves(const float *x, __half *h, __nv_bfloat16 *b, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    h[i] = __float2half(x[i]);
    b[i] = __float2bfloat16(x[i]);
    __half2 two = __halves2half2(h[i], __float2half(2.0f));
    two = __hmul2(two, two);
    out[i] = __low2float(two) + __high2float(two) + __bfloat162float(__hadd(b[i], b[i])) +
             __half2float(__hfma(h[i], h[i], __float2half(1.0f)));
#ifndef __CUDA_NO_HALF_OPERATORS__
    out[i] += (float)(h[i] * h[i] + __half(1.0f)) - (float)__hfma(h[i], h[i], __half(1.0f));
#endif
}

__global__ void vectors(const float4 *x, float4 *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = __ldg(&x[i]);
        y[i] = make_float4(v.w, v.z * 2, fminf(v.y, 0), v.x);
    }
}

static int check_types()
{
    const int n = 256;
    int wrong = 0;
    auto x = ramp(n);
    device_array<float> dx(x), dout(n), dv(n);
    device_array<__half> dh(n);
    device_array<__nv_bfloat16> db(n);

    halves<<<1, n>>>(dx.p, dh.p, db.p, dout.p, n);
    auto out = dout.get();
    auto h = dh.get();
    auto b = db.get();
    for (int i = 0; i < n; i++) {
        double hv = __half2float(h[i]), bv = __bfloat162float(b[i]);
        wrong += fabs(hv - x[i]) > 0x1p-11 * fabs(x[i]) + 0x1p-25 || fabs(bv - x[i]) > 0x1p-8 * fabs(x[i]);
        wrong += differs(out[i], hv * hv + 4 + 2 * bv + hv * hv + 1, 4e-3);
    }
    wrong += __half_as_ushort(__float2half(1.0f)) != 0x3c00 || __half_as_ushort(__float2half(65520.0f)) != 0x7c00 ||
             __half_as_ushort(__float2half(5.9604645e-8f)) != 1 || __half_as_ushort(__float2half(2049.0f)) != 0x6800 ||
             __bfloat16_as_ushort(__float2bfloat16(1.00390625f)) != 0x3f80;
    vectors<<<1, 64>>>((const float4 *)dx.p, (float4 *)dv.p, n / 4);
    auto v = dv.get();
    for (int i = 0; i < n; i += 4)
        wrong += v[i] != x[i + 3] || v[i + 1] != x[i + 2] * 2 || v[i + 2] != fminf(x[i + 1], 0) || v[i + 3] != x[i];
    return wrong;
}

/* ---- constants, device variables, intrinsics ---- */

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ unsigned finished;

__global__ void last_block(const float *x, float *part, float *out)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = x[blockIdx.x] * weights[blockIdx.x % 4];
        __threadfence();
        last = atomicAdd(&finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float s = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            s += part[i];
        *out = s;
        finished = 0;
    }
}

__global__ void intrinsics(int *o)
{
    o[0] = __popc(0xf0f0u), o[1] = __clz(1), o[2] = __ffs(8), o[3] = (int)__brev(1u), o[4] = __clz(0);
    o[5] = __float2int_rn(2.5f), o[6] = __float2int_rz(-2.7f), o[7] = __float2int_ru(1.1f), o[8] =
        __float2int_rd(-1.1f);
    o[9] = __float2int_rn(1e20f), o[10] = __float_as_int(1.0f), o[11] = (int)__byte_perm(0x03020100, 0x07060504,
        0x7531);
    o[12] = __dp4a(0x01020304, 0x01010101, 5), o[13] = (int)__umulhi(0x80000000u, 4u), o[14] = max(3, 7) - min(2.0f,
        5.0f);
    o[15] = (int)(rsqrtf(4.0f) * 100 + 0.5f), o[16] = (int)__fsqrt_rn(81.0f), o[17] = (int)(__saturatef(3.0f) * 9);
    o[18] = (int)__funnelshift_l(0x80000000u, 1u, 1), o[19] = fabsf(erfinvf(erff(0.5f)) - 0.5f) < 1e-6f;
    o[20] = __fadd_rn(1.0f, 2.0f) == 3.0f && isinf(CUDART_INF_F) && fabsf(normcdff(0.0f) - 0.5f) < 1e-7f;
    o[21] = __float2int_rz(CUDART_NAN_F);
}

static int check_rest()
{
    const int want[] = {8, 31, 4, INT32_MIN, 32, 2, -2, 2, -2, INT32_MAX, 0x3f800000, 0x07050301, 15, 2, 5, 50, 9, 9,
        3, 1, 1, 0};
    const int n = sizeof want / sizeof want[0];
    int wrong = 0;
    float w[4];
    auto x = ramp(8);
    device_array<float> dx(x), dp(8), dout(1);
    device_array<int> di(n);
    double sum = 0;

    last_block<<<8, 32>>>(dx.p, dp.p, dout.p);
    for (int i = 0; i < 8; i++)
        sum += x[i] * (i % 4 + 1);
    wrong += differs(dout.get()[0], sum);
    cudaMemcpyFromSymbol(w, weights, sizeof w);
    wrong += w[2] != 3;
    intrinsics<<<1, 1>>>(di.p);
    auto got = di.get();
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            wrong++, printf("intrinsic %d: %d, not %d\n", i, got[i], want[i]);
    return wrong;
}

/* ---- cooperative groups, large dynamic shared memory, launches through the API ---- */

namespace cg = cooperative_groups;

__global__ void groups(const float *x, float *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    __shared__ float part[8];
    float v = x[blockIdx.x * block.size() + block.thread_rank()];

    for (int d = warp.size() / 2; d > 0; d /= 2)
        v += warp.shfl_down(v, d);
    if (warp.thread_rank() == 0)
        part[warp.meta_group_rank()] = v;
    block.sync();
    if (block.thread_rank() == 0) {
        for (unsigned i = 1; i < block.size() / 32; i++)
            v += part[i];
        out[blockIdx.x] = v;
    }
    auto quad = cg::tiled_partition<4>(warp);
    if (blockIdx.x == 0)
        out[2 + block.thread_rank()] = quad.shfl_xor((float)quad.thread_rank(), 1) + (quad.any(quad.thread_rank() ==
            3) ? 10 : 0);
}

__global__ void big_shared(float *out, int n)
{
    extern __shared__ __align__(16) unsigned char raw[];
    float *s = reinterpret_cast<float *>(raw);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s[i] = (float)i;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}

template <int N> __global__ void both_shared(float *out, int n)
{
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float fixed[N];
    float *s = reinterpret_cast<float *>(raw);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s[i] = (float)i;
    for (int i = threadIdx.x; i < N; i += blockDim.x)
        fixed[i] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x] + fixed[N - 1 - threadIdx.x];
}

/* The attribute bounds the dynamic part alone; what an instance declares is its own. */
static int check_shared_limits()
{
    device_array<float> out(32);
    const int bytes = 40 * 1024;
    int wrong = 0;

    wrong += cudaFuncSetAttribute(both_shared<2048>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes + 10240) !=
        cudaSuccess;
    both_shared<2048><<<1, 32, bytes + 10240>>>(out.p, bytes / 4);
    wrong += cudaGetLastError() != cudaSuccess || out.get()[3] != (float)(bytes / 4 - 4) + 1;
    both_shared<64><<<1, 32, bytes>>>(out.p, bytes / 4); /* 48 KB are not reached, as they are with 2048 floats */
    wrong += cudaGetLastError() != cudaSuccess || out.get()[0] != (float)(bytes / 4);
    return wrong;
}

static int check_host_api()
{
    int wrong = 0, n = 64 * 1024 / 4, dev = -1, sms = 0, blocks = 0;
    auto x = ramp(256);
    device_array<float> dx(x), dout(2 + 128), db(32);
    cudaDeviceProp prop;
    cudaEvent_t start, stop;
    cudaStream_t stream;
    float ms = -1;
    double sum = 0;

    groups<<<2, 128>>>(dx.p, dout.p);
    auto out = dout.get();
    for (int i = 0; i < 128; i++)
        sum += x[i], wrong += out[2 + i] != (float)((i % 4) ^ 1) + 10;
    wrong += differs(out[0], sum);
    wrong += cudaFuncSetAttribute(big_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024) != cudaSuccess;
    wrong += cudaStreamCreate(&stream) || cudaEventCreate(&start) || cudaEventCreate(&stop) || cudaEventRecord(start,
        stream);
    big_shared<<<1, 32, 64 * 1024, stream>>>(db.p, n);
    wrong += cudaGetLastError() != cudaSuccess;
    wrong += cudaEventRecord(stop, stream) || cudaEventSynchronize(stop) || cudaEventElapsedTime(&ms, start, stop) ||
        ms < 0;
    wrong += db.get()[3] != (float)(n - 4);
    void *args[] = {&db.p, &n};
    n = 100;
    wrong += cudaLaunchKernel(big_shared, dim3(1), dim3(32), args, 400, stream) != cudaSuccess || db.get()[0] != 99.0f;
    wrong += cudaGetDevice(&dev) || dev != 0 || cudaGetDeviceProperties(&prop, 0) || prop.warpSize != 32 ||
             cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) || sms != prop.multiProcessorCount ||
             cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, big_shared, 256, 0) || blocks != 8;
    float *pinned, *managed;
    wrong += cudaMallocHost(&pinned, 64 * sizeof(float)) || cudaMallocManaged(&managed, 64 * sizeof(float));
    for (int i = 0; i < 64; i++)
        pinned[i] = (float)i;
    scale<<<1, 64>>>(pinned, managed, 2.0f, 64);
    wrong += cudaDeviceSynchronize() != cudaSuccess || managed[63] != 126.0f;
    wrong += cudaFreeHost(pinned) || cudaFree(managed);
    cudaStreamDestroy(stream), cudaEventDestroy(start), cudaEventDestroy(stop);
    return wrong + (cudaSetDevice(1) != cudaErrorInvalidDevice) + (cudaGetLastError() != cudaErrorInvalidDevice);
}

struct check {
    const char *name;
    int (*run)();
};
extern "C" const check checks[] = {
    {"scale", check_scale}, {"templates", check_templates}, {"reductions", check_reductions}, {"shapes", check_shapes},
    {"atomics", check_atomics}, {"warp", check_warp}, {"types", check_types}, {"rest", check_rest},
    {"shared_limits", check_shared_limits}, {"host_api", check_host_api}, {nullptr, nullptr}};
