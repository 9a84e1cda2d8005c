# loss.py - one number for all of the input: the mean square.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (x * x).mean()


def get_inputs():
    return [torch.randn(48, 32)]


def get_init_inputs():
    return []
