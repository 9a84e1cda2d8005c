"""A sparse matrix in COO times a vector; places may repeat, and then add up."""
import torch
import torch.nn as nn

rows = 45
columns = 64
nonzeros = 500


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, row, col, values, x):
        return torch.sparse_coo_tensor(torch.stack([row, col]), values, (self.rows, x.numel())) @ x


def get_inputs():
    row, col = torch.randint(0, rows, (nonzeros,)), torch.randint(0, columns, (nonzeros,))
    return [row, col, torch.randn(nonzeros), torch.randn(columns)]


def get_init_inputs():
    return [rows]
