"""Sums by index into zeros that the task makes without saying of which type."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, index, x):
        return torch.zeros(40, device=x.device).index_add(0, index, x)


def get_inputs():
    return [torch.randint(0, 40, (900,)), torch.randn(900)]


def get_init_inputs():
    return []
