/* kernels.cu - what test_executor_cuda.c and lab/bench_exec.c run on a GPU: nvcc -cubin -arch=sm_90. */
extern "C" __global__ void scale(const float *x, float *y, int n, float f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = x[i] * f;
}

extern "C" __global__ void fault(const float *x, float *y, int n, float f)
{
    *(volatile float *)8 = f;
}
