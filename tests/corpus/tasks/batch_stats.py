"""Normalises a batch, and keeps statistics of what it has seen: its sidecar asks for them."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm1d(c)

    def forward(self, x):
        return self.bn(x)


def get_inputs():
    return [torch.randn(40, 24)]


def get_init_inputs():
    return [24]
