# channel_prelu.py - PReLU with a slope for each channel.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((40,), 0.25))

    def forward(self, x):
        return F.prelu(x, self.w)


def get_inputs():
    return [torch.randn(64, 40)]


def get_init_inputs():
    return []
