# relu_shapes.py - relu whose sidecar asks for a second shape.
import torch
import torch.nn as nn

rows = 37
cols = 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
