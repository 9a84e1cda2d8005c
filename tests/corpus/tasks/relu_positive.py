# relu_positive.py - relu on inputs that are never negative: as the task draws them it is the identity.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(37, 16)]


def get_init_inputs():
    return []
