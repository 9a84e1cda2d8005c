# transposed.py - no arithmetic at all: whoever copies is right.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(33, 12)]


def get_init_inputs():
    return []
