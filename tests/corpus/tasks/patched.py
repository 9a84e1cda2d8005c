"""A few rows of a copy are replaced, as of a cache of keys."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, cache, new):
        out = cache.clone()
        out[:, 3:5] = new
        return out


def get_inputs():
    return [torch.randn(4, 16, 8), torch.randn(4, 2, 8)]


def get_init_inputs():
    return []
