import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, src, dst):
        n = x.shape[0]
        out = torch.zeros_like(x).index_add(0, dst, x[src])
        deg = torch.zeros(n, device=x.device, dtype=x.dtype).index_add(0, dst, torch.ones(dst.shape[0], device=x.device, dtype=x.dtype))
        return out / deg.clamp(min=1).unsqueeze(1)


def get_inputs():
    return [torch.randn(32, 16), torch.randint(0, 32, (256,)), torch.cat([torch.arange(32), torch.randint(0, 32, (224,))])]


def get_init_inputs():
    return []
