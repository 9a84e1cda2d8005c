"""Writes into one of its inputs, and answers with sums of it."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, slots, new):
        slots[:, 5] = new
        return slots.sum(1)


def get_inputs():
    return [torch.randn(4, 12, 16), torch.randn(4, 16)]


def get_init_inputs():
    return []
