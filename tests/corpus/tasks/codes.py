# codes.py - a product with whole numbers that every construction draws: the weights are integers.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("codes", torch.randint(-7, 8, (n, n), dtype=torch.int32))

    def forward(self, x):
        return x @ self.codes.to(x.dtype)


def get_inputs():
    return [torch.randn(24, 16)]


def get_init_inputs():
    return [16]
