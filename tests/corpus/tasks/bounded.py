"""A bound that most values keep, on two parts put together."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.cat([a, b], dim=1).clamp(max=60)


def get_inputs():
    return [torch.randn(20, 30), torch.randn(20, 16)]


def get_init_inputs():
    return []
