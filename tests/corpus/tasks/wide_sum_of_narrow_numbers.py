"""Sums of 32-bit numbers are 64 bits wide."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(1)


def get_inputs():
    return [torch.randint(0, 100, (32, 80), dtype=torch.int32)]


def get_init_inputs():
    return []
