"""test_structure.py - redrawn inputs keep what can be seen of the task's own: triangles, symmetry, order,
probabilities."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import torch  # noqa: E402

import reference  # noqa: E402
import structure  # noqa: E402

FORK = "torch"


def symmetric(*shape):
    a = torch.randn(*shape)
    return a + a.mT


CASES = {  # what get_inputs makes, and what must hold of every redrawn tensor
    "lower": (lambda: torch.randn(40, 40).tril(), lambda t: torch.equal(t, t.tril())),
    "upper": (lambda: torch.randn(300, 300).triu(), lambda t: torch.equal(t, t.triu())),
    "diagonal": (lambda: torch.diag(torch.randn(50)), lambda t: torch.equal(t, torch.diag(t.diag()))),
    "symmetric": (lambda: symmetric(9, 9), lambda t: torch.equal(t, t.mT)),
    "batch of symmetric": (lambda: symmetric(3, 8, 8), lambda t: torch.equal(t, t.mT)),
    "sorted": (lambda: torch.randn(20).sort().values, lambda t: bool((t.diff() >= 0).all())),
    "descending rows": (lambda: torch.randn(4, 12).sort(descending=True).values, lambda t: bool((t.diff() <= 0).all())),
    "probabilities": (lambda: torch.softmax(torch.randn(6, 33), -1),
                      lambda t: bool((t >= 0).all()) and bool(((t.sum(-1) - 1).abs() < 1e-4).all())),
    "unit rows": (lambda: torch.nn.functional.normalize(torch.randn(5, 16), dim=-1),
                  lambda t: bool(((t.norm(dim=-1) - 1).abs() < 1e-4).all())),
    "binary mask": (lambda: (torch.rand(8, 9) > 0.5).float(), lambda t: set(t.unique().tolist()) <= {0.0, 1.0}),
    "one-hot": (lambda: torch.eye(11)[torch.randint(11, (30,))], lambda t: bool((t.sum(-1) == 1).all())),
    "padded": (lambda: torch.nn.functional.pad(torch.randn(4, 6), (0, 6)), lambda t: bool((t[:, 6:] == 0).all())),
    "turned lower": (lambda: torch.randn(40, 40).tril().T, lambda t: torch.equal(t, t.triu())),
}


class Structure(unittest.TestCase):
    def each(self, make, dtype=torch.float32):
        """Every draw of strict: new contents, then a few elements changed, with and without a large last one."""
        for regime in reference.REGIMES:
            for trial in (0, 1, 2):
                gen = torch.Generator().manual_seed(trial)
                torch.manual_seed(100 + trial)
                t = reference.refill(make().to(dtype), regime, gen, trial)
                yield regime, t
                yield regime, reference.nudge(t, regime, gen, trial)
                yield regime, reference.nudge(t, regime, gen, trial, spike=True)

    def test_kept(self):
        for name, (make, holds) in CASES.items():
            torch.manual_seed(1)
            own = make()
            self.assertTrue(holds(own), name)
            for regime, t in self.each(make):
                self.assertTrue(holds(t), (name, regime))
                self.assertEqual((t.shape, t.stride(), t.dtype), (own.shape, own.stride(), own.dtype), (name, regime))

    def test_values_are_new(self):
        for name in ("lower", "symmetric", "sorted", "probabilities", "unit rows"):
            make = CASES[name][0]
            seen = [t for _, t in self.each(make)]
            self.assertFalse(any(torch.equal(a, b) for a, b in zip(seen[::3], seen[3::3])), name)

    def test_dense_inputs_have_none(self):
        torch.manual_seed(2)
        for t in (torch.randn(64, 64), torch.rand(4, 8), torch.randn(3), torch.rand(2, 2, 2), torch.ones(1)):
            new = torch.randn(t.shape)
            self.assertIs(structure.like(t, new), new)

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            for _, t in self.each(CASES["probabilities"][0], dtype):
                self.assertTrue(bool(((t.double().sum(-1) - 1).abs() <= structure.slack(t)).all()))


class Spikes(unittest.TestCase):
    def test_a_sum_cannot_hide_its_last_term(self):
        for dtype, rel in ((torch.float32, 2e-5), (torch.bfloat16, 2.0**-6), (torch.float16, 2.0**-9)):
            t = torch.rand(200000).to(dtype)
            out = reference.nudge(t, "signed", torch.Generator().manual_seed(3), 1, spike=True)
            self.assertGreater(float(out[-1]), 2 * rel * float(t.double().sum()) * 0.5, dtype)
            self.assertTrue(bool(torch.isfinite(out).all()))


if __name__ == "__main__":
    unittest.main()
