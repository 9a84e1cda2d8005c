"""A flag and a shift that get_inputs gives as they are."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, shift, negate):
        y = torch.roll(x, shift, 1)
        return -y if negate else y * 2


def get_inputs():
    return [torch.randn(12, 30), 3, True]


def get_init_inputs():
    return []
