/* bench_plain.cu - the kernel of bench_exec.c timed by a plain CUDA program: cold L2, a pad before it, events. What a
 * replay says must agree. nvcc -O3 -arch=sm_90 -o bench_plain lab/bench_plain.cu tests/exec/kernels.cu -rdc=true */
#include <algorithm>
#include <cstdio>

extern "C" __global__ void scale(const float *x, float *y, int n, float f);

static __global__ void spin(long long ns)
{
    long long start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

int main()
{
    const size_t bytes = (size_t)64 << 20, flush_bytes = (size_t)116 << 20;
    float *x, *y, ms[100];
    void *flush;
    cudaEvent_t a, b;

    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMalloc(&flush, flush_bytes);
    cudaMemset(x, 0x3c, bytes);
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    for (int i = 0; i < 100; i++) {
        cudaMemset(y, 0xff, bytes);
        cudaMemset(flush, 0, flush_bytes);
        cudaDeviceSynchronize();
        spin<<<1, 1>>>(50000);
        cudaEventRecord(a);
        scale<<<bytes / 1024, 256>>>(x, y, (int)(bytes / 4), 2);
        cudaEventRecord(b);
        cudaDeviceSynchronize();
        cudaEventElapsedTime(&ms[i], a, b);
    }
    std::sort(ms, ms + 100);
    printf("{\"what\":\"scale 64 MiB, plain program\",\"median_us\":%.2f,\"p10_us\":%.2f,\"p90_us\":%.2f,"
           "\"error\":%d}\n", ms[50] * 1e3, ms[10] * 1e3, ms[90] * 1e3, (int)cudaGetLastError());
    return 0;
}
