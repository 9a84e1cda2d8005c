"""Softmax of each row; both sizes vary."""
import torch
import torch.nn as nn

rows = 33
columns = 257


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
