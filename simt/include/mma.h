/* mma.h - nvcuda::wmma: products of small matrices by a warp. CUDA leaves open which lane holds which element; here
 * lane l holds elements l, l + 32, ... in row-major order, so loading and storing need no other lane, and a product
 * is made by the last lane that comes (libsimt: simt_wmma). Accumulation is in float, or in int for integers. */
#ifndef SIMT_MMA_H
#define SIMT_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

extern "C" void simt_wmma(int m, int n, int k, const float *a, const float *b, float *acc);

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

template <class T> struct element { typedef T type; };
template <> struct element<precision::tf32> { typedef float type; };
SIMT_INLINE float to_float(float v) { return v; }
SIMT_INLINE float to_float(double v) { return (float)v; }
SIMT_INLINE float to_float(int v) { return (float)v; }
SIMT_INLINE float to_float(signed char v) { return (float)v; }
SIMT_INLINE float to_float(unsigned char v) { return (float)v; }
SIMT_INLINE float to_float(__half v) { return simt_widen(v); }
SIMT_INLINE float to_float(__nv_bfloat16 v) { return simt_widen(v); }
SIMT_INLINE void from_float(float v, float &d) { d = v; }
SIMT_INLINE void from_float(float v, int &d) { d = (int)v; }
SIMT_INLINE void from_float(float v, __half &d) { d = __float2half(v); }
SIMT_INLINE float __float_to_tf32(float v) { return simt::ptx::bits_f32(simt::ptx::calc<simt::ptx::tf32>::down(v)); }

template <class Use, int M, int N, int K> struct shape;
template <int M, int N, int K> struct shape<matrix_a, M, N, K> { static const int rows = M, cols = K; };
template <int M, int N, int K> struct shape<matrix_b, M, N, K> { static const int rows = K, cols = N; };
template <int M, int N, int K> struct shape<accumulator, M, N, K> { static const int rows = M, cols = N; };

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    typedef typename element<T>::type element_type;
    typedef shape<Use, M, N, K> size;
    static const int num_elements = size::rows * size::cols / 32;
    element_type x[num_elements];
};

SIMT_INLINE int lane() { return (int)(simt::ptx::linear_thread() % 32); }
template <class L> struct is_col { static const bool value = false; };
template <> struct is_col<col_major> { static const bool value = true; };

template <class F, class P> SIMT_INLINE void load_as(F &f, const P *p, unsigned ld, bool col)
{
    simt_syncwarp(~(simt_mask_t)0);
    for (int i = 0; i < F::num_elements; i++) {
        int e = lane() + 32 * i, r = e / F::size::cols, c = e % F::size::cols;
        f.x[i] = p[col ? (size_t)c * ld + r : (size_t)r * ld + c];
    }
}
template <class Use, int M, int N, int K, class T, class L, class P>
SIMT_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, L> &f, const P *p, unsigned ld)
{
    load_as(f, p, ld, is_col<L>::value);
}
template <int M, int N, int K, class T, class P>
SIMT_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const P *p, unsigned ld, layout_t layout)
{
    load_as(f, p, ld, layout == mem_col_major);
}
template <int M, int N, int K, class T, class P>
SIMT_INLINE void store_matrix_sync(P *p, const fragment<accumulator, M, N, K, T> &f, unsigned ld, layout_t layout)
{
    typedef fragment<accumulator, M, N, K, T> F;
    for (int i = 0; i < F::num_elements; i++) {
        int e = lane() + 32 * i, r = e / N, c = e % N;
        p[layout == mem_col_major ? (size_t)c * ld + r : (size_t)r * ld + c] = f.x[i];
    }
    simt_syncwarp(~(simt_mask_t)0);
}
template <class F, class V> SIMT_INLINE void fill_fragment(F &f, const V &v)
{
    for (int i = 0; i < F::num_elements; i++)
        f.x[i] = (typename F::element_type)v;
}
template <int M, int N, int K, class T, class LA, class LB, class TD, class TC>
SIMT_INLINE void mma_sync(fragment<accumulator, M, N, K, TD> &d, const fragment<matrix_a, M, N, K, T, LA> &a,
                          const fragment<matrix_b, M, N, K, T, LB> &b, const fragment<accumulator, M, N, K, TC> &c,
                          bool = false)
{
    float fa[M * K / 32], fb[K * N / 32], acc[M * N / 32];
    for (int i = 0; i < M * K / 32; i++)
        fa[i] = to_float(a.x[i]);
    for (int i = 0; i < K * N / 32; i++)
        fb[i] = to_float(b.x[i]);
    for (int i = 0; i < M * N / 32; i++)
        acc[i] = to_float(c.x[i]);
    simt_wmma(M, N, K, fa, fb, acc);
    for (int i = 0; i < M * N / 32; i++)
        from_float(acc[i], d.x[i]);
}

} // namespace wmma
} // namespace nvcuda

#endif
