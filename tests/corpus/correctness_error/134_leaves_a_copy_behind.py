# 134_leaves_a_copy_behind.py - the kernel runs in order; the answer comes by a copy on a stream of its own that
# nobody waits for.
# Must be caught: a copy that is left behind is work like a launch.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x), t = torch::empty_like(x);
    int n = x.numel();
    cudaStream_t side;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), t.data_ptr<float>(), n);
    cudaEventRecord(done, 0);
    cudaStreamWaitEvent(side, done, 0);
    cudaMemcpyAsync(y.data_ptr(), t.data_ptr(), n * 4, cudaMemcpyDeviceToDevice, side);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
