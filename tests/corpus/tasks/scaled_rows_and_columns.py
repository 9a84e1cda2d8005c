"""Rows and columns are scaled in turn, 60 times: all draws of ordinary size have converged long before."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        k = torch.exp(x / 4)
        for _ in range(60):
            k = k / k.sum(dim=2, keepdim=True)
            k = k / k.sum(dim=1, keepdim=True)
        return k


def get_inputs():
    return [torch.randn(3, 24, 24)]


def get_init_inputs():
    return []
