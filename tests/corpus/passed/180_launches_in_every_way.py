# 180_launches_in_every_way.py - each row of the answer is written by a launch that is spelled in another way: constants
# of the host's functions as template arguments, dispatch lambdas, pointers, macros, host templates, classes.
# Must pass: each of them is CUDA as nvcc takes it.
# task: relu_rows
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAStream.h>
#include <type_traits>
#define DEV_INLINE __device__ __forceinline__

template <int B> __global__ void kern(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = B > 0 && x[i] > 0.0f ? x[i] : 0.0f;
}
template <typename T, int B, bool WIDE = false>
__global__ void typed(const T *__restrict__ x, T *__restrict__ y, int n) {
    __shared__ T tile[B];
    for (int at = blockIdx.x * B; at < n; at += gridDim.x * B) {
        int i = at + threadIdx.x;
        tile[threadIdx.x] = i < n ? x[i] : T(0);
        __syncthreads();
        if (i < n) y[i] = tile[threadIdx.x] > T(0) ? tile[threadIdx.x] : T(0);
        __syncthreads();
    }
}
__global__ void plain(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = fmaxf(x[i], 0.f);
}
__global__ void over(const float *x, float *y, int n, float floor) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = fmaxf(x[i], floor);
}
__global__ void over(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = fmaxf(x[i], 0.f);
}
template <class F> __global__ void apply(const float *x, float *y, int n, F f) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = f(x[i]);
}
struct Relu {
    float floor;
    __device__ float operator()(float v) const { return v > floor ? v : floor; }
};
enum Width { NARROW = 32, BROAD = 64 };
enum class Kind : int { A = 3, B = 5 };
template <Kind K> __global__ void kinded(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = K == Kind::B ? fmaxf(x[i], 0.f) : 7.f;
}
template <bool A, bool B> __global__ void flags(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = A && !B ? fmaxf(x[i], 0.f) : 7.f;
}
namespace mine { namespace inner {
template <int B> __global__ void deep(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += B) y[i] = fmaxf(x[i], 0.f);
}
}}
namespace {
template <int B> __global__ void hidden(const float *x, float *y, int n) {
    for (int i = threadIdx.x; i < n; i += B) y[i] = fmaxf(x[i], 0.f);
}
}

template <int B> struct Tile {
    static constexpr int threads = B;
    using elem = float;
};
struct Config {
    int threads;
    bool wide;
};
#define THREADS 64
#define CHECK_LAUNCH() TORCH_CHECK(cudaGetLastError() == cudaSuccess, "launch failed")
#define LAUNCH(KERNEL, G, T, ...)                                                                                    \
    do {                                                                                                             \
        KERNEL<<<G, T>>>(__VA_ARGS__);                                                                               \
        CHECK_LAUNCH();                                                                                              \
    } while (0)
#define LAUNCH_B(B, ...) kern<B><<<1, B>>>(__VA_ARGS__)
#define WITH_SIZE(N, NAME, ...)                                                                                      \
    [&] {                                                                                                            \
        if (N > 16) {                                                                                                \
            constexpr int NAME = 64;                                                                                 \
            return __VA_ARGS__();                                                                                    \
        } else {                                                                                                     \
            constexpr int NAME = 32;                                                                                 \
            return __VA_ARGS__();                                                                                    \
        }                                                                                                            \
    }()
#define BOOL_SWITCH(COND, NAME, ...)                                                                                 \
    [&] {                                                                                                            \
        if (COND) {                                                                                                  \
            constexpr static bool NAME = true;                                                                       \
            return __VA_ARGS__();                                                                                    \
        } else {                                                                                                     \
            constexpr static bool NAME = false;                                                                      \
            return __VA_ARGS__();                                                                                    \
        }                                                                                                            \
    }()

template <typename T, int B> void host_launch(const T *x, T *y, int n) {
    const int T2 = 2 * B;
    constexpr int half = T2 / 4;
    typed<T, half * 2><<<1, half * 2>>>(x, y, n);
}
template <typename K, typename... A> void launch_any(K kernel, int g, int b, A... args) { kernel<<<g, b>>>(args...); }
template <typename K, typename... A> void launch_ref(K &&kernel, A &&...args) {
    kernel<<<1, 32>>>(std::forward<A>(args)...);
}
template <class Fn> void visit(int n, Fn f) {
    if (n > 4) f(std::integral_constant<int, 64>{});
    else f(std::integral_constant<int, 32>{});
}
struct Runner {
    static constexpr int B = 64;
    void (*kernel)(const float *, float *, int) = kern<7>;
    cudaStream_t stream = nullptr;
    void by_member(const float *x, float *y, int n) { kern<B><<<1, B, 0, stream>>>(x, y, n); }
    void by_field(const float *x, float *y, int n) { kernel<<<1, 32, 0, this->stream>>>(x, y, n); }
    void by_this(const float *x, float *y, int n) { (this->kernel)<<<1, 32>>>(x, y, n); }
    template <int N> static void by_static(const float *x, float *y, int n) {
        constexpr int M = N + B;
        kern<M><<<1, M>>>(x, y, n);
    }
};
typedef void (*kernel_t)(const float *, float *, int);
static kernel_t table[2] = {kern<1>, plain};
static kernel_t pick(int i) { return i ? plain : kern<9>; }

#define ROW(...)                                                                                                     \
    {                                                                                                                \
        const float *p = x.data_ptr<float>() + row * n;                                                              \
        float *q = y.data_ptr<float>() + row * n;                                                                    \
        row++;                                                                                                       \
        __VA_ARGS__                                                                                                  \
    }

torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel() / 48, row = 0;
    auto stream = at::cuda::getCurrentCUDAStream();
    ROW(constexpr int BLOCK = 128; kern<BLOCK><<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(p, q, n);)
    ROW(const int BLOCK = 64; kern<BLOCK><<<1, BLOCK>>>(p, q, n); CHECK_LAUNCH();)
    ROW(static constexpr int BLOCK = 64; kern<BLOCK><<<1, BLOCK>>>(p, q, n);)
    ROW(constexpr int TX = 16, TY = 4; typed<float, TX * TY><<<1, dim3(TX * TY)>>>(p, q, n); CHECK_LAUNCH();)
    ROW(constexpr Config c{64, true}; typed<float, c.threads, c.wide><<<1, c.threads>>>(p, q, n);)
    ROW(constexpr int sizes[2] = {32, 64}; typed<float, sizes[1]><<<1, sizes[1]>>>(p, q, n);)
    ROW(constexpr bool big = true; constexpr int B = big ? 64 : 32; typed<float, (big ? B : 1)><<<1, B>>>(p, q, n);)
    ROW(enum {B = 64}; typed<float, B><<<1, B>>>(p, q, n);)
    ROW(kern<BROAD><<<1, NARROW>>>(p, q, n);)
    ROW(kern<THREADS><<<1, THREADS, 0, stream>>>(p, q, n);)
    ROW(constexpr auto B = 64; typed<float, B><<<dim3(1, 1, 1), dim3(B, 1, 1), 0, stream.stream()>>>(p, q, n);)
    ROW(using T = Tile<64>; typed<T::elem, T::threads><<<1, T::threads>>>(p, q, n);)
    ROW(constexpr Kind k = Kind::B; kinded<k><<<1, 32>>>(p, q, n); CHECK_LAUNCH();)
    ROW(constexpr size_t B = sizeof(float) * 16; typed<float, int(B)><<<1, B>>>(p, q, n);)
    ROW(const float *px = p; AT_DISPATCH_FLOATING_TYPES(
            x.scalar_type(), "go", [&] { typed<scalar_t, 64><<<1, 64>>>((const scalar_t *)px, (scalar_t *)q, n); });)
    ROW(constexpr int B = 64;
        AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "go", ([&] {
                                                typed<scalar_t, B><<<1, B>>>((const scalar_t *)p, (scalar_t *)q, n);
                                                CHECK_LAUNCH();
                                            }));)
    ROW(AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "go", [&] {
            constexpr int B = 32;
            typed<scalar_t, B, true><<<1, B>>>((const scalar_t *)p, (scalar_t *)q, n);
        });)
    ROW(auto run =
            [&](auto b) {
                constexpr int B = decltype(b)::value;
                typed<float, B><<<1, B>>>(p, q, n);
            };
        run(std::integral_constant<int, 32>{});)
    ROW(visit(n, [&](auto b) { typed<float, b.value><<<1, b.value>>>(p, q, n); });)
    ROW(visit(n, [&](auto b) { typed<float, b()><<<1, b.value>>>(p, q, n); });)
    ROW(visit(n, [=](auto b) {
            typed<float, b><<<1, b.value>>>(p, q, n);
            CHECK_LAUNCH();
        });)
    ROW(WITH_SIZE(n, B, [&] { typed<float, B><<<1, B>>>(p, q, n); });)
    ROW(BOOL_SWITCH(n > 2, A, [&] { BOOL_SWITCH(n < 0, C, [&] { flags<A, C><<<1, 32>>>(p, q, n); }); });)
    ROW(auto k = kern<64>; k<<<1, 64>>>(p, q, n);)
    ROW(auto k = &kern<64>; LAUNCH(k, 1, 64, p, q, n);)
    ROW(kernel_t k = n > 3 ? kern<2> : kern<3>; LAUNCH(k, 1, 64, p, q, n);)
    ROW(void (*k)(const float *, float *, int) = typed<float, 32>; k<<<1, 32>>>(p, q, n); CHECK_LAUNCH();)
    ROW(constexpr int B = 64; auto k = typed<float, B>; LAUNCH(k, 1, B, p, q, n);)
    ROW(const auto k = kern<64>; auto f = [&] { LAUNCH(k, 1, 64, p, q, n); }; f();)
    ROW(table[n > 3]<<<1, 32>>>(p, q, n);)
    ROW((*table[0]) <<<1, 32>>>(p, q, n);)
    ROW(pick(0) <<<1, 32>>>(p, q, n);)
    ROW((n > 3 ? kern<5> : kern<6>) <<<1, 32>>>(p, q, n);)
    ROW(LAUNCH(plain, 1, 32, p, q, n);)
    ROW(LAUNCH((typed<float, 32>), 1, 32, p, q, n);)
    ROW(constexpr int B = 32; LAUNCH((typed<float, B>), 1, B, p, q, n);)
    ROW(constexpr int B = 32; LAUNCH_B(B, p, q, n); CHECK_LAUNCH();)
    ROW(host_launch<float, 64>(p, q, n);)
    ROW(launch_any(kern<4>, 1, 32, p, q, n);)
    ROW(launch_ref(plain, p, q, n);)
    ROW(constexpr int B = 32; launch_any(typed<float, B>, 1, B, p, q, n);)
    ROW(mine::inner::deep<32><<<1, 32>>>(p, q, n);)
    ROW(constexpr int B = 32; using namespace mine; inner::deep<B><<<1, B>>>(p, q, n); CHECK_LAUNCH();)
    ROW(const int B = 32; hidden<B><<<1, B>>>(p, q, n);)
    ROW(over<<<1, 32>>>(p, q, n, 0);)
    ROW(constexpr float zero = 0; apply<<<1, 32>>>(p, q, n, Relu{zero});)
    ROW(float floor = 0; apply<<<1, 32>>>(p, q, n, [=] __device__(float v) { return v > floor ? v : floor; });)
    ROW(Runner r; int third = n / 3; r.by_member(p, q, third); r.by_field(p + third, q + third, third);
        r.by_this(p + 2 * third, q + 2 * third, n - 2 * third); Runner::by_static<32>(p, q, 1);)
    TORCH_CHECK(row == 48, row);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);", extra_cuda_cflags=["--extended-lambda"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
