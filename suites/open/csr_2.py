"""A sparse matrix in CSR times a dense one."""
import torch
import torch.nn as nn

rows = 40
columns = 30
nonzeros = 200
width = 33


class Model(nn.Module):
    def forward(self, crow, col, values, x):
        return torch.sparse_csr_tensor(crow, col, values, (crow.numel() - 1, x.shape[0])) @ x


def get_inputs():
    cuts = torch.sort(torch.randint(0, nonzeros + 1, (rows - 1,))).values
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), cuts, torch.full((1,), nonzeros)])
    col = torch.randint(0, columns, (nonzeros,))
    return [crow, col, torch.randn(nonzeros), torch.randn(columns, width)]


def get_init_inputs():
    return []
