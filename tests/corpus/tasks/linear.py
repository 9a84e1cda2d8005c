# linear.py - a small linear layer with bias.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.rand(5, 19)]


def get_init_inputs():
    return [19, 11]
