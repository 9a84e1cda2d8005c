# hops.py - how many steps lead from node 0 to each other one; -1 where none do.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, adj):
        n = adj.shape[0]
        hops = torch.full((n,), -1, dtype=torch.int64, device=adj.device)
        hops[0] = 0
        front = hops == 0
        for step in range(1, n):
            front = (adj & front[:, None]).any(0) & (hops < 0)
            hops = torch.where(front, step, hops)
        return hops


def get_inputs():
    return [torch.rand(24, 24) < 0.15]


def get_init_inputs():
    return []
