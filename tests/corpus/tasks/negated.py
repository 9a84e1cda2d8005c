# negated.py - a sign change, which a view can pretend to do.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return -torch.relu(x)


def get_inputs():
    return [torch.randn(33, 12)]


def get_init_inputs():
    return []
