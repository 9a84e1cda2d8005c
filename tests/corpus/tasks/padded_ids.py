"""Rows of a table for ids; an id of 0, which get_inputs does not draw, is padding."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(30, 8))

    def forward(self, ids):
        return self.table[ids] * (ids != 0).unsqueeze(-1)


def get_inputs():
    return [torch.randint(1, 30, (6, 9))]


def get_init_inputs():
    return []
