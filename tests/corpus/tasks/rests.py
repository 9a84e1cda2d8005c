"""Dropout that is on in training only."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.weight = nn.Parameter(torch.randn(50))

    def forward(self, x):
        return self.drop(torch.sigmoid(x * self.weight))


def get_inputs():
    return [torch.randn(30, 50)]


def get_init_inputs():
    return []
