"""Rows of whole numbers of eight bits, in the scale of their largest."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(torch.round(x / (x.abs().amax(1, keepdim=True) / 127)), -127, 127).to(torch.int8)


def get_inputs():
    return [torch.randn(25, 130)]


def get_init_inputs():
    return []
