# tail.py - relu and a term that is smaller than KernelBench's tolerance.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x) + 1e-4 * torch.sin(x)


def get_inputs():
    return [torch.randn(37, 16)]


def get_init_inputs():
    return []
