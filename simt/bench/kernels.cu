/* kernels.cu - what the emulator spends its time on: starting threads, barriers, warp shuffles, plain arithmetic. */
#include <cuda_runtime.h>

__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

__global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
}

__global__ void naive(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < n; k++)
        s += a[i * n + k] * b[k * n + j];
    c[i * n + j] = s;
}

template <int T> __global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float s[T][T], t[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float v = 0;
    for (int k = 0; k < n; k += T) {
        s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < T; i++)
            v += s[threadIdx.y][i] * t[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = v;
}

__global__ void tree(const float *x, float *o, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 128; d; d /= 2) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0)
        o[blockIdx.x] = s[0];
}

__global__ void warp(const float *x, float *o, int n)
{
    __shared__ float s[8];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float v = i < n ? x[i] : 0;
    for (int d = 16; d; d /= 2)
        v += __shfl_down_sync(0xffffffff, v, d);
    if (t % 32 == 0)
        s[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        for (int k = 1; k < 8; k++)
            v += s[k];
        o[blockIdx.x] = v;
    }
}

/* The usual softmax of short rows. Compilers clone its barriers, so arrivals have several addresses of one line. */
__global__ void softmax(const float *x, float *o, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, d;
    const float *row = x + blockIdx.x * n;
    float m = -1e30f, sum = 0;
    for (int i = t; i < n; i += blockDim.x)
        m = fmaxf(m, row[i]);
    s[t] = m;
    __syncthreads();
    for (d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d)
            s[t] = fmaxf(s[t], s[t + d]);
        __syncthreads();
    }
    m = s[0];
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) {
        float e = expf(row[i] - m);
        o[blockIdx.x * n + i] = e;
        sum += e;
    }
    s[t] = sum;
    __syncthreads();
    for (d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    sum = s[0];
    for (int i = t; i < n; i += blockDim.x)
        o[blockIdx.x * n + i] /= sum;
}

static const int N = 1 << 19, M = 192;
static float *x, *y, *z;

extern "C" void setup()
{
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, N * sizeof(float));
    cudaMalloc(&z, N * sizeof(float));
    cudaMemset(x, 0, N * sizeof(float));
    cudaMemset(z, 0, N * sizeof(float));
}

static void run_relu() { relu<<<N / 256, 256>>>(x, y, N); }
static void run_gelu() { gelu<<<N / 256, 256>>>(x, y, N); }
static void run_naive() { naive<<<dim3(M / 16, M / 16), dim3(16, 16)>>>(x, z, y, M); }
static void run_tiled16() { tiled<16><<<dim3(M / 16, M / 16), dim3(16, 16)>>>(x, z, y, M); }
static void run_tiled32() { tiled<32><<<dim3(M / 32, M / 32), dim3(32, 32)>>>(x, z, y, M); }
static void run_tree() { tree<<<N / 256, 256>>>(x, y, N); }
static void run_softmax() { softmax<<<256, 256>>>(x, y, 16); }
static void run_warp() { warp<<<N / 256, 256>>>(x, y, N); }

extern "C" const struct {
    const char *name;
    void (*run)();
    int threads;
} cases[] = {{"relu", run_relu, N},           {"tanh gelu", run_gelu, N},       {"naive matmul", run_naive, M * M},
             {"tiled matmul 16", run_tiled16, M * M}, {"tiled matmul 32", run_tiled32, M * M},
             {"tree reduction", run_tree, N}, {"warp reduction", run_warp, N}, {"softmax rows", run_softmax, 256 * 256},
             {nullptr, nullptr, 0}};
