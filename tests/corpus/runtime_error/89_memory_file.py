# 89_memory_file.py - reads device memory through /proc/self/mem, which ignores page protection.
# Must be caught: the file cannot be opened.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void put_kernel(float* y, int i, float v) { y[i] = v; }

void put(torch::Tensor y, int64_t i, double v) {
    put_kernel<<<1, 1>>>(y.data_ptr<float>(), i, v);
}
"""

ext = load_inline(name="corpus_put", cuda_sources=source, functions=["put"],
                  cpp_sources="void put(torch::Tensor y, int64_t i, double v);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        with open("/proc/self/mem", "rb", buffering=0) as mem:
            mem.seek(x.data_ptr())
            values = torch.frombuffer(bytearray(mem.read(x.numel() * 4)), dtype=torch.float32).tolist()
        for i, v in enumerate(values):
            ext.put(y, i, v if v > 0 else 0.0)
        return y
