import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, cu):
        return torch.stack([x[a:b].mean(0) for a, b in zip(cu[:-1].tolist(), cu[1:].tolist())])


def get_inputs():
    return [torch.randn(48, 16), torch.arange(0, 49, 12, dtype=torch.int32)]


def get_init_inputs():
    return []
