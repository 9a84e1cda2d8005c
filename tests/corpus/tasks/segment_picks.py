import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("starts", torch.tensor([0, 12, 40], dtype=torch.int32))
        self.table = nn.Parameter(torch.randn(40))

    def forward(self, x):
        s = self.starts.tolist()
        return torch.stack([x * self.table[a + 12345 % (b - a)] for a, b in zip(s, s[1:])])


def get_inputs():
    return [torch.randn(50)]


def get_init_inputs():
    return []
