"""An order of rows in which equal values stay in theirs."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=1, stable=True).indices


def get_inputs():
    return [torch.randn(9, 40)]


def get_init_inputs():
    return []
