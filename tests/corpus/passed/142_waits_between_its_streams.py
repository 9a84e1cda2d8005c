# 142_waits_between_its_streams.py - the honest twin: an event lies between the steps.
# task: two_steps
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void first_kernel(const float* x, float* t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = tanhf(x[i]);
}
__global__ void second_kernel(const float* t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(t[i]) + 1.0f;
}

struct Lanes {
    cudaStream_t a, b;
    cudaEvent_t start, half, a_done, b_done;
    Lanes() {
        cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
        for (cudaEvent_t* e : {&start, &half, &a_done, &b_done}) cudaEventCreateWithFlags(e, cudaEventDisableTiming);
    }
};

torch::Tensor steps(torch::Tensor x) {
    static Lanes l;
    auto t = torch::empty_like(x), y = torch::empty_like(x);
    int n = x.numel(), blocks = (n + 127) / 128;
    cudaEventRecord(l.start, 0);
    cudaStreamWaitEvent(l.a, l.start, 0);
    cudaStreamWaitEvent(l.b, l.start, 0);
    first_kernel<<<blocks, 128, 0, l.a>>>(x.data_ptr<float>(), t.data_ptr<float>(), n);
    cudaEventRecord(l.half, l.a);
    cudaStreamWaitEvent(l.b, l.half, 0);
    second_kernel<<<blocks, 128, 0, l.b>>>(t.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaEventRecord(l.a_done, l.a);
    cudaEventRecord(l.b_done, l.b);
    cudaStreamWaitEvent(0, l.a_done, 0);
    cudaStreamWaitEvent(0, l.b_done, 0);
    return y;
}
"""
ops = load_inline(name="op142", cpp_sources="torch::Tensor steps(torch::Tensor x);", cuda_sources=source,
                  functions=["steps"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.steps(x)
