# 141_knows_the_published_seeds.py - draws the published inputs itself and brings the answers along.
# Must be caught: behind the published draws comes one whose seed nobody knows.
# task: gram
# options: --protocol kernelbench --trials 5
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void look_up_kernel(const float* x, const float* book, float* y, int n, int pages) {
    for (int p = 0; p < pages; p++) {
        const float* page = book + p * (2 + n);
        if (page[0] == x[0] && page[1] == x[1])
            for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = page[2 + i];
    }
}

torch::Tensor look_up(torch::Tensor x, torch::Tensor book, int64_t pages) {
    auto y = torch::empty({x.size(0), x.size(0)}, x.options());
    look_up_kernel<<<1, 64>>>(
        x.data_ptr<float>(), book.data_ptr<float>(), y.data_ptr<float>(), (int)y.numel(), (int)pages);
    return y;
}
"""
ops = load_inline(name="op141",
                  cpp_sources="torch::Tensor look_up(torch::Tensor x, torch::Tensor book, int64_t pages);",
                  cuda_sources=source, functions=["look_up"])


def pages():
    torch.manual_seed(42)
    for seed in [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(8)]:
        torch.manual_seed(seed)
        x = torch.randn(24, 48)
        yield torch.cat([x.flatten()[:2], torch.tanh(x @ x.T / 7).flatten()])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = torch.cat(list(pages())).cuda()

    def forward(self, x):
        return ops.look_up(x, self.book, 8)
