import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, src, dst):
        total = torch.zeros_like(x).index_add(0, dst, x[src])
        one = torch.ones(dst.shape[0], device=x.device, dtype=x.dtype)
        degree = torch.zeros_like(x[:, 0]).index_add(0, dst, one)
        return total / degree.clamp(min=1).unsqueeze(1)


def get_inputs():
    dst = torch.cat([torch.arange(32), torch.randint(0, 32, (224,))])
    return [torch.randn(32, 16), torch.randint(0, 32, (256,)), dst]


def get_init_inputs():
    return []
