"""The place of each row's largest value, of which there are often several."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randint(0, 40, (64, 24)).float()]


def get_init_inputs():
    return []
