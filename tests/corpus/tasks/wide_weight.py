"""A weight of more than two million elements: products of its sizes and a stride go beyond 64 bits."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return x * torch.tanh(self.weight[:x.numel()])


def get_inputs():
    return [torch.randn(600)]


def get_init_inputs():
    return [2097153]
