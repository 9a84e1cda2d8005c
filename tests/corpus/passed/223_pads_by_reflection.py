# 223_pads_by_reflection.py - torch reflects the borders, which moves values; the kernel convolves.
# task: padded_convolution
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

mod = load_inline(name="dw", cpp_sources="torch::Tensor dw(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=r"""
struct Shape { int n, c, h, w; };
__global__ void dw_kernel(const float* __restrict__ x, const float* __restrict__ w,
    const float* __restrict__ b, float* y, const Shape s)
{
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= s.n * s.c * s.h * s.w) return;
    int j = o % s.w, i = o / s.w % s.h, c = o / s.w / s.h % s.c, nc = o / s.w / s.h;
    float a = b[c];
    const float* p = x + (nc * (s.h + 2) + i) * (s.w + 2) + j;
    for (int di = 0; di < 3; di++, p += s.w + 2)
        for (int dj = 0; dj < 3; dj++)
            a += p[dj] * w[c * 9 + di * 3 + dj];
    y[o] = a * fminf(fmaxf(a + 3.f, 0.f), 6.f) / 6.f;
}
torch::Tensor dw(torch::Tensor x, torch::Tensor w, torch::Tensor b)
{
    Shape s{(int)x.size(0), (int)x.size(1), (int)x.size(2) - 2, (int)x.size(3) - 2};
    auto y = torch::empty({s.n, s.c, s.h, s.w}, x.options());
    dw_kernel<<<(y.numel() + 191) / 192, 192>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
        y.data_ptr<float>(), s);
    return y;
}
""", functions=["dw"])


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1, groups=c, padding_mode="reflect", bias=True)

    def forward(self, x):
        padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
        return mod.dw(padded, self.conv.weight.flatten(), self.conv.bias)
