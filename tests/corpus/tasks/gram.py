"""A small answer, drawn by the published seeds where the published protocol is asked for."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ x.T / 7)


def get_inputs():
    return [torch.randn(24, 48)]


def get_init_inputs():
    return []
