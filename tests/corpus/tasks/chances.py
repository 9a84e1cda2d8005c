"""chances.py - binary cross entropy of chances and labels that are 0 or 1. PyTorch's kernel on a card asserts that both
lie in [0, 1], which ends its whole context."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, p, t):
        return F.binary_cross_entropy(p, t, reduction="none")


def get_inputs():
    return [torch.rand(9, 60), (torch.rand(9, 60) > 0.5).float()]


def get_init_inputs():
    return []
