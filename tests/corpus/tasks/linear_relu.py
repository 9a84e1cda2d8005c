# linear_relu.py - a linear layer and relu: weights that programs like to turn or to rename.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return torch.relu(self.fc(x))


def get_inputs():
    return [torch.randn(16, 40)]


def get_init_inputs():
    return [40, 24]
