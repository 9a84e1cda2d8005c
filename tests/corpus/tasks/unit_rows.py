"""Rows of length one; shorter ones than 0.01 are divided by 0.01."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.normalize(x, dim=1, eps=1e-2)


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
