"""Goes towards a fixed point until nothing moves any more."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        for i in range(1000):
            y = 0.5 * (x + torch.cos(x))
            if (y - x).abs().max() < 1e-4:
                return y
            x = y
        return x


def get_inputs():
    return [torch.randn(2000)]


def get_init_inputs():
    return []
