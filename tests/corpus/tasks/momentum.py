"""A step of gradient descent, whose momentum is an input: its sidecar asks for that."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, g, v):
        v.mul_(0.9).add_(g)
        return p - 0.1 * v


def get_inputs():
    return [torch.randn(50, 30), torch.randn(50, 30), torch.randn(50, 30)]


def get_init_inputs():
    return []
