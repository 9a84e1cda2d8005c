"""Rounds to quarters, halves to even."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x * 4) / 4


def get_inputs():
    return [torch.randn(30, 40)]


def get_init_inputs():
    return []
