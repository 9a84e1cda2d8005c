"""test_home.py - tasks that name a device themselves, and init inputs as KernelBook gives them."""
import os
import sys
import unittest

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import home  # noqa: E402

FORK = "torch"


class Model:
    def __init__(self, a, b=2, *, c=3):
        pass


class Arguments(unittest.TestCase):
    def test_positional_and_named(self):
        for init, want in (([[], {"a": 1}], {"a": 1}), ([[1, 5], {}], [1, 5]), ([[1], {"c": 4}], {"a": 1, "c": 4}),
                           ([1, 2], [1, 2]), ([], []), ({"a": 1}, {"a": 1}), ([[1, 2], [3]], [[1, 2], [3]])):
            self.assertEqual(home.arguments(Model, init), want, init)


class Home(unittest.TestCase):
    def test_what_goes_to_the_device_stays(self):
        home.stay("x = torch.zeros(2)")
        self.assertEqual(home._inside, [])
        home.stay("x.cuda()")
        try:
            for t in (torch.zeros(2, device="cuda"), torch.zeros(2).cuda(), torch.zeros(2).to("cuda:0"),
                      torch.zeros(2).to(device=torch.device("cuda", 0)), torch.nn.Linear(2, 2).cuda().weight,
                      torch.nn.Linear(2, 2).to("cuda").weight, torch.nn.Linear(2, 2, device="cuda").weight):
                self.assertEqual(t.device.type, "cpu")
        finally:
            home._inside.pop().__exit__(None, None, None)


if __name__ == "__main__":
    unittest.main()
