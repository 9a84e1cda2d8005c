"""A product of matrices with a bias, cut at zero; all three sizes vary."""
import torch
import torch.nn as nn

m = 33
k = 65
n = 47


class Model(nn.Module):
    def forward(self, x, w, b):
        return torch.relu(x @ w + b)


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n), torch.randn(n)]


def get_init_inputs():
    return []
