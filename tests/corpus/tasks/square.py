# square.py - a product of two matrices that takes a naive kernel a while.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(256, 256), torch.rand(256, 256)]


def get_init_inputs():
    return []
