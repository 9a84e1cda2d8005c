# masked.py - a product with a mask of 100 KiB that is part of the construction, and of no checkpoint.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(n))
        self.register_buffer("mask", torch.tril(torch.ones(n, n)) / (1 + torch.arange(n))[:, None], persistent=False)

    def forward(self, x):
        return x @ self.mask.T * self.scale


def get_inputs():
    return [torch.rand(32, 160)]


def get_init_inputs():
    return [160]
