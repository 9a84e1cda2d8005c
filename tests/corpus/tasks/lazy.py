"""A layer that learns its size from its first input."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.l = nn.LazyLinear(m)

    def forward(self, x):
        return torch.relu(self.l(x))


def get_inputs():
    return [torch.randn(20, 36)]


def get_init_inputs():
    return [28]
