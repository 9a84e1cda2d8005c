"""test_in_place.py - timed calls of a streamed task's baseline: data drawn where the inputs lie, by a seed, masks put
back; and nothing is asked of the device's clock before the device is done (here: a device that minds)."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import torch  # noqa: E402

import baseline  # noqa: E402
import main  # noqa: E402
import reference  # noqa: E402
import streamed  # noqa: E402
import timing  # noqa: E402

FORK = "torch"


class Queue(timing.HostDevice):
    """Work is done when it has been waited for, as on a GPU."""

    kernels, running = True, False

    def record(self, which):
        self.running = True
        return super().record(which)

    def sync(self):
        self.running = False

    def elapsed_ms(self, a, b):
        if self.running:
            raise RuntimeError("the event has not been reached")
        return super().elapsed_ms(a, b)


class InPlace(unittest.TestCase):
    def setUp(self):
        reference.PLACE = torch.device("cpu")
        self.x, self.mask = torch.rand(5000), torch.randint(0, 2, (50,))
        self.t = baseline.InPlace("cpu", None)
        self.t.device = Queue()
        self.t.take([self.x, self.mask], ["plain", "kept"], "task", [torch.empty(0), torch.empty(0)])
        self.t.arm([])
        self.seen = []

    def model(self, x, mask):
        self.seen.append((x.clone(), mask.clone()))
        return x * 2

    def test_every_mode_waits(self):
        for mode in (timing.COLD, timing.COLD, timing.NULL):
            ms, _ = self.t.call(self.model, mode, 11, 0)
            self.assertGreaterEqual(ms, 0)
            self.t.settle()
        self.assertEqual(len(self.seen), 2)

    def test_a_seed_is_its_data(self):
        least, most, mask = float(self.x.min()), float(self.x.max()), self.mask.clone()
        for seed in (1 << 63, 5, 1 << 63):
            self.mask.fill_(9)  # as a candidate may have left it
            self.t.call(self.model, timing.COLD, seed)
            self.t.settle()
        (a, m), (b, _), (c, _) = self.seen
        self.assertTrue(torch.equal(a, c) and torch.equal(m, mask) and not (a == b).any())
        self.assertTrue(least <= float(a.min()) and float(a.max()) <= most)
        self.assertAlmostEqual(float(a.mean()), 0.5, delta=0.05)
        self.assertEqual(self.x.data_ptr(), self.t.given[0].data_ptr())

    def test_kinds(self):
        square = torch.triu(torch.rand(20, 20))
        share = torch.softmax(torch.rand(8, 9), 1)
        views, kinds = [torch.randn(9000) * 3 + 1, square.clone(), share.clone()], ["plain", "shaped", "shaped"]
        fresh = streamed.Fresh(views, kinds, "task")
        self.assertEqual(fresh.leaves(), [0, 1])
        fresh.draw(77)
        self.assertAlmostEqual(float(views[0].mean()), 1, delta=0.2)
        self.assertAlmostEqual(float(views[0].std()), 3, delta=0.2)
        ratio = views[1][square > 0] / square[square > 0]
        self.assertTrue(0.75 <= float(ratio.min()) and float(ratio.max()) <= 1 and float(ratio.std()) < 1e-5)
        self.assertTrue(torch.equal(views[2], share))


class Prepared(unittest.TestCase):
    def test_nothing_is_left_to_import_that_facts_need(self):
        """A child of the fork server imports it anew, which is a second of CPU; modules that it has itself are free."""
        main.prepare("baseline")
        before = set(sys.modules)
        from torch.utils.flop_counter import FlopCounterMode
        with torch.no_grad(), FlopCounterMode(display=False) as flops, baseline.Trace() as trace:
            torch.nn.Linear(3, 4)(torch.ones(2, 3))
        self.assertEqual((flops.get_total_flops(), trace.ops.get("addmm")), (48, 1))
        self.assertLess(len(set(sys.modules) - before), 20)


class Truth(unittest.TestCase):
    def test_slow_in_double(self):
        """What takes long in double is expected in double once a distribution, or never."""
        t = streamed.Task.__new__(streamed.Task)
        t.in_double, t.req, t.rows = True, {"protocol": "strict"}, object()
        large = torch.empty(streamed.SMALL + 1)
        for seconds, trial, truth in ((0.1, 0, "rows"), (0.1, 4, "rows"), (1.0, 0, "rows"), (1.0, 4, "own"),
                                      (9.0, 0, "own")):
            t.double_s, t.laid_trial = seconds, trial
            self.assertEqual(t.truth_of([large], [large]), truth, (seconds, trial))
        t.double_s, t.laid_trial = 0.1, 4
        self.assertEqual(t.truth_of([large[:9]], [large[:9]]), "double")


if __name__ == "__main__":
    unittest.main()
