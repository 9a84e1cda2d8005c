# places.py - values, each scaled by a number made of places that get_inputs draws with a generator of its own: those
# are the same in every draw.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, places):
        return x * (torch.cumsum(places * places, dim=1) % 97).float()


def get_inputs():
    own = torch.Generator().manual_seed(5)
    return [torch.randn(16, 64), torch.randint(0, 1000, (16, 64), generator=own)]


def get_init_inputs():
    return []
