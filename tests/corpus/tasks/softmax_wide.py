# softmax_wide.py - rows of 16384: every value lies below the absolute tolerance that KernelBench uses.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(2, 16384)]


def get_init_inputs():
    return []
