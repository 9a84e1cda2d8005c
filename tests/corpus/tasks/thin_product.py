# thin_product.py - a product with a matrix of which nine in ten are zeros, anywhere.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, x):
        return a @ x


def get_inputs():
    return [torch.randn(10, 40) * (torch.rand(10, 40) < 0.1), torch.randn(40, 8)]


def get_init_inputs():
    return []
