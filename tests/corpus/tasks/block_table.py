import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, cache, table, q):
        k = cache[table.long()].reshape(-1, cache.shape[-1])
        return torch.softmax(q @ k.t() / 4, -1) @ k


def get_inputs():
    return [torch.randn(8, 4, 16), torch.arange(8, dtype=torch.int32), torch.randn(6, 16)]


def get_init_inputs():
    return []
