/* ptx.cu - inline PTX of the kinds that programs use, each compared with plain arithmetic. Rules as in kernels.cu:
 * the same source must give the same answers on a GPU of compute capability 9.0 or 8.x. */
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

template <class T> static T *shared_with_host(size_t n)
{
    T *p;
    cudaMallocManaged(&p, n * sizeof(T));
    for (size_t i = 0; i < n; i++)
        p[i] = T();
    return p;
}

__device__ __forceinline__ uint32_t window(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void copy16(void *to, const void *from, bool there)
{
    int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(window(to)), "l"(from), "r"(bytes));
}

/* ---- mma: 16x16 times 16x8, rows by cp.async, fragments by ldmatrix ---- */

__device__ __forceinline__ void load4(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(window(row)));
}

__device__ __forceinline__ void load2_transposed(uint32_t (&r)[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1])
        : "r"(window(row)));
}

template <class T> __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
    const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void multiply<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <> __device__ __forceinline__ void multiply<__half>(float (&c)[4], const uint32_t (&a)[4],
    const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,"
                 "%12,%13};\n"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                   "f"(c[3]));
}

template <class T> __global__ void product(const T *a, const T *b, float *c)
{
    __shared__ __align__(16) T sa[16][16], sb[16][8];
    int l = threadIdx.x, g = l / 4, t = l % 4;
    copy16(&sa[l / 2][l % 2 * 8], a + l * 8, true);
    if (l < 16)
        copy16(&sb[l][0], b + l * 8, true);
    asm volatile("cp.async.commit_group;\n" ::);
    asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
    __syncwarp();
    uint32_t ra[4], rb[2];
    load4(ra, &sa[l % 16][l / 16 * 8]);
    load2_transposed(rb, &sb[l % 16][0]);
    float r[4] = {1, 1, 1, 1};
    multiply<T>(r, ra, rb);
    for (int i = 0; i < 4; i++)
        c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = r[i];
}

template <class T, class F> static int check_product(F make)
{
    T *a = shared_with_host<T>(256), *b = shared_with_host<T>(128);
    float *c = shared_with_host<float>(128), wrong = 0;
    for (int i = 0; i < 256; i++)
        a[i] = make((float)(i % 7 - 3));
    for (int i = 0; i < 128; i++)
        b[i] = make((float)(i % 5 - 2));
    product<T><<<1, 32>>>(a, b, c);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float s = 1;
            for (int k = 0; k < 16; k++)
                s += (float)((i * 16 + k) % 7 - 3) * (float)((k * 8 + j) % 5 - 2);
            wrong += c[i * 8 + j] != s;
        }
    return (int)wrong;
}

static int check_mma()
{
    return check_product<__nv_bfloat16>([](float v) { return __float2bfloat16(v); }) +
           check_product<__half>([](float v) { return __float2half(v); });
}

/* tf32 and 8-bit integers: each lane writes the registers that the layout gives it. */
__global__ void others(float *f, int *s)
{
    int l = threadIdx.x, g = l / 4, t = l % 4, a[2][4], b[2][2];
    for (int r = 0; r < 4; r++) {
        a[0][r] = __float_as_int((float)(g + 8 * (r & 1) + t + 4 * (r >> 1)));
        a[1][r] = 0x01010101 * (g + 1);
    }
    for (int r = 0; r < 2; r++) {
        b[0][r] = __float_as_int((float)(g - t));
        b[1][r] = r ? 0x02020202 : (int)0xffffffff;
    }
    float c[4] = {};
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[0][2]), "r"(a[0][3]), "r"(b[0][0]), "r"(b[0][1]));
    int d[4] = {5, 5, 5, 5};
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[1][0]), "r"(a[1][1]), "r"(a[1][2]), "r"(a[1][3]), "r"(b[1][0]), "r"(b[1][1]));
    for (int i = 0; i < 4; i++) {
        f[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
        s[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
    }
}

static int check_other_mma()
{
    float *f = shared_with_host<float>(128);
    int *s = shared_with_host<int>(128), wrong = 0;
    others<<<1, 32>>>(f, s);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = 0;
            for (int k = 0; k < 8; k++)
                sum += (float)(i + k) * (float)(j - k % 4);
            wrong += f[i * 8 + j] != sum;
            wrong += s[i * 8 + j] != 5 + 16 * (i % 8 + 1) * (2 - 1);
        }
    return wrong;
}

/* ---- single instructions, with local registers, predicates, labels ---- */

__global__ void singles(uint32_t *o, float *f, const float4 *in)
{
    uint32_t t = threadIdx.x, r[16] = {};
    asm("{ .reg .pred p; setp.ne.b32 p, %1, 0; selp.b32 %0, 7, 9, p; }" : "=r"(r[0]) : "r"(t));
    asm("mov.u32 %0, %%laneid;" : "=r"(r[1]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r[2]) : "f"(2.0f), "f"(1.0f));
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r[3]) : "r"(0xf0f0f0f0u), "r"(0xccccccccu), "r"(1u));
    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r[4]) : "r"(0x11112222u), "r"(0x33334444u));
    asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r[5]) : "r"(0x12345678u));
    asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(r[6]) : "r"(0x89abcdefu), "r"(0x01234567u));
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r[7]) : "r"(3), "r"(-5), "r"(100));
    asm("mul.hi.u32 %0, %1, %2;" : "=r"(r[8]) : "r"(0x80000000u), "r"(6u));
    asm("{ .reg .u32 i; mov.u32 i, 0; mov.u32 %0, 0; AGAIN%=: add.u32 %0, %0, 3; add.u32 i, i, 1; .reg .pred q; "
        "setp.lt.u32 q, i, 5; @q bra AGAIN%=; }" : "=&r"(r[9]));
    asm("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(r[10]) : "r"(t * 10));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[11]) : "f"(1.0f + 0x1p-11f));
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r[12]) : "f"(-2.75f));
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r[13]) : "r"(0x40003f80u), "r"(0x40404040u), "r"(0x3f803f80u));
    asm("max.f16x2 %0, %1, %2;" : "=r"(r[14]) : "r"(0x3c00bc00u), "r"(0x38003800u));
    for (int i = 0; i < 15; i++)
        o[t * 15 + i] = r[i];
    float v[4], e;
    asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
        : "l"(in + t));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(3.0f));
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(f + 2 * t), "f"(v[0] + v[1] + v[2] + v[3]), "f"(e)
        : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(f + 64), "f"(1.0f) : "memory");
    uint64_t swapped;
    asm("{ .reg .u32 a, b; mov.b64 {a, b}, %1; mov.b64 %0, {b, a}; }" : "=l"(swapped) : "l"(0x1122334455667788ull));
    if (swapped != 0x5566778811223344ull)
        f[65] = 1;
}

static int check_singles()
{
    uint32_t *o = shared_with_host<uint32_t>(32 * 15), wrong = 0;
    float *f = shared_with_host<float>(66);
    float4 *in = shared_with_host<float4>(32);
    for (int i = 0; i < 32; i++)
        in[i] = make_float4((float)i, 1, 2, 3);
    singles<<<1, 32>>>(o, f, in);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (unsigned t = 0; t < 32; t++) {
        const uint32_t want[15] = {t ? 7u : 9u, t, 0x40003f80u, 0xc0c0c0c1u, 0x44442222u, 0x67u, 0x23456789u, 85u, 3u,
            15u,
                                   (t ^ 1) * 10, 0x3f802000u, (uint32_t)-2, 0x40e04080u, 0x3c003800u};
        for (int i = 0; i < 15; i++)
            wrong += o[t * 15 + i] != want[i];
        wrong += f[2 * t] != (float)t + 6 || f[2 * t + 1] < 7.999f || f[2 * t + 1] > 8.001f;
    }
    return (int)wrong + (f[64] != 32) + (f[65] != 0);
}

/* ---- two stages of copies; a barrier in shared memory; named barriers ---- */

__global__ void stages(const int4 *in, int4 *out, int tiles)
{
    __shared__ int4 s[2][32];
    __shared__ __align__(8) uint64_t bar;
    int t = threadIdx.x;
    if (t == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(window(&bar)), "r"(64));
    __syncthreads();
    if (t < 32) {
        copy16(&s[0][t], in + t, true);
        asm volatile("cp.async.commit_group;");
        for (int k = 0; k < tiles; k++) {
            if (k + 1 < tiles)
                copy16(&s[(k + 1) % 2][t], in + (k + 1) * 32 + t, t != 7);
            asm volatile("cp.async.commit_group;");
            asm volatile("cp.async.wait_group 1;");
            __syncwarp();
            int4 v = s[k % 2][31 - t];
            out[k * 32 + t] = v;
            __syncwarp();
        }
    } else {
        asm volatile("bar.sync 3, 32;");
    }
    uint32_t done = 0;
    asm volatile("{ .reg .b64 st; mbarrier.arrive.shared::cta.b64 st, [%0]; }" ::"r"(window(&bar)) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(window(&bar)), "r"(0)
                     : "memory");
    if (t == 63)
        out[tiles * 32] = out[0];
}

static int check_stages()
{
    const int tiles = 4;
    int4 *in = shared_with_host<int4>(tiles * 32), *out = shared_with_host<int4>(tiles * 32 + 1);
    int wrong = 0;
    for (int i = 0; i < tiles * 32; i++)
        in[i] = make_int4(i, i + 1, i + 2, i + 3);
    stages<<<1, 64>>>(in, out, tiles);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    for (int i = 0; i < tiles * 32; i++) {
        int from = i / 32 * 32 + 31 - i % 32;
        wrong += out[i].x != (from >= 32 && from % 32 == 7 ? 0 : from);
    }
    return wrong + (out[tiles * 32].x != 31);
}

struct check {
    const char *name;
    int (*run)();
};
extern "C" const check checks[] = {{"mma", check_mma}, {"other_mma", check_other_mma}, {"singles", check_singles},
                                   {"stages", check_stages}, {nullptr, nullptr}};
