# chain.py - two linear maps in a row: their product could be made ahead of time.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n_in, n_mid, n_out):
        super().__init__()
        self.a = nn.Parameter(torch.randn(n_in, n_mid) * 0.3)
        self.b = nn.Parameter(torch.randn(n_mid, n_out) * 0.3)

    def forward(self, x):
        return x @ self.a @ self.b


def get_inputs():
    return [torch.rand(6, 12)]


def get_init_inputs():
    return [12, 7, 9]
