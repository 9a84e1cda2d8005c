/* plain.cu - inline PTX beside the plain code that translations get for it (litetorch/ptx_plain.h): the same bits.
 * Rules as in kernels.cu: the same source must give the same answers on a GPU of compute capability 9.0. */
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

/* litetorch/ptx_plain.h stands in front of this file, as it does in a translation (nvcc -include). */
namespace plain = musacoder::ptx;

enum { WORDS = 64 };

template <class T> static T *shared_with_host(size_t n)
{
    T *p;
    cudaMallocManaged(&p, n * sizeof(T));
    for (size_t i = 0; i < n; i++)
        p[i] = T();
    return p;
}

__device__ __forceinline__ unsigned window(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/* Words of a lane's results: out by PTX, out + 32 * WORDS by plain code. */
struct results {
    unsigned *ptx, *own;
    int n;
    __device__ void put(unsigned a, unsigned b) { ptx[32 * n] = a, own[32 * n++] = b; }
};

__device__ void matrices(results &r, char *s)
{
    unsigned a[4] = {}, b[4] = {}, row = (threadIdx.x % 8 + threadIdx.x / 8 * 8) * 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(window(s + row)));
    plain::ldmatrix<false>(plain::shared(plain::to_shared(s + row)), b[0], b[1], b[2], b[3]);
    for (int i = 0; i < 4; i++)
        r.put(a[i], b[i]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(window(s + row)));
    plain::ldmatrix<true>(plain::shared(plain::to_shared(s + row)), b[0], b[1], b[2], b[3]);
    for (int i = 0; i < 4; i++)
        r.put(a[i], b[i]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(a[0]), "=r"(a[1])
                 : "r"(window(s + row % 256)));
    plain::ldmatrix<true>(s + row % 256, b[0], b[1]);
    r.put(a[0], b[0]), r.put(a[1], b[1]);
}

/* Behind the asm statement that left d: the same by plain code. */
#define OWN(T, K, A)                                                                                                  \
    plain::mma<K, plain::f32, plain::T, plain::T, plain::f32>::run(e[0], e[1], e[2], e[3], A(x, y), c[0], c[1], \
        c[2], c[3]); \
    for (int i = 0; i < 4; i++)                                                                                       \
        r.put(__float_as_uint(d[i]), __float_as_uint(e[i]));
#define SIX(X, Y) X[0], X[1], X[2], X[3], Y[0], Y[1]
#define THREE(X, Y) X[0], X[1], Y[0]

__device__ void products(results &r, const unsigned *bf, const unsigned *hf, const unsigned *tf)
{
    const unsigned l = threadIdx.x;
    unsigned x[4], y[2];
    float c[4] = {1, 2, 3, 4}, d[4] = {}, e[4] = {};
    for (int i = 0; i < 4; i++)
        x[i] = bf[l * 4 + i], y[i & 1] = bf[(l * 3 + i + 7) % 128];
    asm
        volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,"
                 "%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                     "f"(c[3]));
    OWN(bf16, 16, SIX)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
    OWN(bf16, 8, THREE)
    for (int i = 0; i < 4; i++)
        x[i] = hf[l * 4 + i], y[i & 1] = hf[(l * 5 + i + 3) % 128];
    asm
        volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,"
                 "%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                     "f"(c[3]));
    OWN(f16, 16, SIX)
    unsigned hc[2] = {0x3c003c00u, 0x40003800u}, hd[2] = {}, he[2] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
                 : "=r"(hd[0]), "=r"(hd[1])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(hc[0]), "r"(hc[1]));
    plain::mma<16, plain::f16, plain::f16, plain::f16, plain::f16>::run(he[0], he[1], SIX(x, y), hc[0], hc[1]);
    r.put(hd[0], he[0]), r.put(hd[1], he[1]);
    for (int i = 0; i < 4; i++)
        x[i] = tf[l * 4 + i], y[i & 1] = tf[(l * 7 + i + 1) % 128];
    asm
        volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,"
                 "%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                     "f"(c[3]));
    OWN(tf32, 8, SIX)
}

__device__ void numbers(results &r, const float *f)
{
    const unsigned l = threadIdx.x;
    const float x = f[l], y = f[l + 32];
    unsigned a = 0, b = 0, u = __float_as_uint(x), v = __float_as_uint(y);
    unsigned short h = 0, g = 0;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(x), "f"(y));
    plain::cvt<plain::bf16x2, plain::f32, plain::rn, false, false>(b, x, y);
    r.put(a, b);
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(x), "f"(y));
    plain::cvt<plain::bf16x2, plain::f32, plain::rn, false, true>(b, x, y);
    r.put(a, b);
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(x), "f"(y * 1e-7f));
    plain::cvt<plain::f16x2, plain::f32, plain::rn, false, false>(b, x, y * 1e-7f);
    r.put(a, b);
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x * 3e4f));
    plain::cvt<plain::f16, plain::f32, plain::rn, false, false>(g, x * 3e4f);
    r.put(h, g);
    float s = 0, t = 0;
    asm("cvt.f32.f16 %0, %1;" : "=f"(s) : "h"((unsigned short)(l * 0x7c1u)));
    plain::cvt<plain::f32, plain::f16, plain::rn, false, false>(t, (unsigned short)(l * 0x7c1u));
    r.put(s != s ? 0 : __float_as_uint(s), t != t ? 0 : __float_as_uint(t));
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(a) : "r"(u), "r"(v), "r"(l));
    plain::lop3<plain::b32>(b, u, v, l, 0xea);
    r.put(a, b);
    asm("prmt.b32 %0, %1, %2, 0x9c40;" : "=r"(a) : "r"(u), "r"(v));
    plain::prmt<plain::b32>(b, u, v, 0x9c40u);
    r.put(a, b);
    asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.b32 %0, 5, 9, p; }" : "=r"(a) : "f"(x), "f"(y));
    bool p;
    plain::setp<plain::f32>(plain::how_lt, p, x, y);
    plain::selp<plain::b32>(b, 5, 9, p);
    r.put(a, b);
    asm("shr.s32 %0, %1, %2;" : "=r"(a) : "r"(u), "r"(l));
    plain::shr<plain::s32>(b, u, l);
    r.put(a, b);
    asm("mov.b64 {%0, _}, %1;" : "=r"(a) : "l"(0x123456789abcdefull * (l + 1)));
    plain::unpack<plain::b64>(0x123456789abcdefull * (l + 1), b, plain::sink());
    r.put(a, b);
}

__global__ void both(unsigned *out, const unsigned *bf, const unsigned *hf, const unsigned *tf, const float *f)
{
    __shared__ __align__(16) char s[2 * 32 * 16];
    results r = {out + threadIdx.x, out + 32 * WORDS + threadIdx.x, 0};
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;"
                 ::"r"(window(s + 16 * threadIdx.x)), "l"(bf + 4 * threadIdx.x) : "memory");
    char *to = plain::shared(plain::to_shared(s + 512 + 16 * threadIdx.x));
    plain::async_copy(to, plain::global(bf + 4 * threadIdx.x), 16);
    plain::async_commit();
    plain::async_wait(0);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        r.put(*(const unsigned *)(s + 16 * threadIdx.x + 4 * i), *(const unsigned *)(s + 512 + 16 * threadIdx.x + 4 *
            i));
    matrices(r, s);
    products(r, bf, hf, tf);
    numbers(r, f);
}

static int check_plain()
{
    unsigned *out = shared_with_host<unsigned>(2 * 32 * WORDS), *bf = shared_with_host<unsigned>(128),
             *hf = shared_with_host<unsigned>(128), *tf = shared_with_host<unsigned>(128), seed = 1;
    float *f = shared_with_host<float>(64);
    int wrong = 0;
    for (int i = 0; i < 128; i++) {
        float v[2];
        for (int k = 0; k < 2; k++)
            seed = seed * 1664525u + 1013904223u, v[k] = (float)(int)(seed >> 16 & 255u) / 64 - 2; /* sums are exact */
        const __nv_bfloat162 b = __floats2bfloat162_rn(v[0], v[1]);
        const __half2 h = __floats2half2_rn(v[0], v[1]);
        memcpy(&bf[i], &b, 4), memcpy(&hf[i], &h, 4), memcpy(&tf[i], &v[0], 4);
        f[i / 2] = v[0] * 1.00390625f + v[1];
    }
    both<<<1, 32>>>(out, bf, hf, tf, f);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (int i = 0; i < 32 * WORDS; i++)
        wrong += out[i] != out[32 * WORDS + i];
    wrong += out[32 * 4] == 0 && out[32 * 5] == 0 && out[32 * 6] == 0;
    return wrong;
}

struct check {
    const char *name;
    int (*run)();
};
extern "C" const check checks[] = {{"plain", check_plain}, {nullptr, nullptr}};
