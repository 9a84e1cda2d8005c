"""Three steps of power iteration with a pull: a product, a norm of the whole, a division and a sum over shared
buffers."""
import torch
import torch.nn as nn

size = 66


class Model(nn.Module):
    def forward(self, a, v, w):
        for _ in range(3):
            v = a @ v
            v = v / torch.sqrt((v * v).mean() + 1.0) + w
        return v


def get_inputs():
    return [torch.randn(size, size), torch.randn(size), torch.randn(size)]


def get_init_inputs():
    return []
