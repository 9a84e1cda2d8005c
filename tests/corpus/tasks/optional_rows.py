import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, idx):
        got = x[idx.clamp(min=0)]
        return torch.where((idx >= 0).unsqueeze(1), got, torch.zeros_like(got))


def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 64, (100,))]


def get_init_inputs():
    return []
