# 88_sub_interpreter.py - computes in another interpreter of the same process, where nothing of torch is.
# Must be caught: the data had to go to the host and come back.
# task: relu
import json

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters


class ModelNew(nn.Module):
    def forward(self, x):
        with open("/tmp/in.json", "w") as f:
            json.dump(x.flatten().tolist(), f)
        other = interpreters.create()
        code = ("import json\nv = json.load(open('/tmp/in.json'))\n"
                "json.dump([max(e, 0.0) for e in v], open('/tmp/out.json', 'w'))\n")
        getattr(interpreters, "run_string", None) and interpreters.run_string(other, code)
        with open("/tmp/out.json") as f:
            return ext.same(torch.tensor(json.load(f)).cuda().view(x.shape))
