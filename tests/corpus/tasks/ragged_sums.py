import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, begins):
        """Sums of the rows of each segment; begins: where segments begin, and the end."""
        out = x.new_zeros(begins.numel() - 1, x.shape[1])
        for s, (a, b) in enumerate(zip(begins[:-1].tolist(), begins[1:].tolist())):
            out[s] = x[a:b].sum(0)
        return out


def get_inputs():
    return [torch.randn(40, 6), torch.tensor([0, 7, 9, 25, 40])]


def get_init_inputs():
    return []
