"""Scales columns by the exponential of a parameter."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return x * torch.exp(self.w)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return [96]
