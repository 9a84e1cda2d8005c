# small_term.py - a sum whose second term is a millionth.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x, z):
        return x + 1e-6 * z


def get_inputs():
    return [torch.randn(64, 40), torch.randn(64, 40)]


def get_init_inputs():
    return []
