# grows.py - a buffer that each call changes, and that the answer depends on.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("scale", torch.ones(n))

    def forward(self, x):
        self.scale.mul_(1.5)
        return x * self.scale


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64]
