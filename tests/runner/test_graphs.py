"""runner/cuda/graphs.py: a replay of torch's graph counts as launches of the kernels that were recorded into it, and of
no others. The graphs here are recorded by nobody; the last test is about torch's own class, where torch has CUDA."""
import os
import sys
import unittest

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "runner"))

from cuda import core, graphs  # noqa: E402


class Library:
    """The counters of a candidate's library."""

    def __init__(self):
        self.captured, self.kernels, self.recording = 0, {}, False

    def launch(self, name):
        self.kernels[name] = self.kernels.get(name, 0) + 1
        self.captured += self.recording


def graph_class(lib):
    class Base:
        def capture_begin(self, pool=None, capture_error_mode="global"):
            lib.recording = True

        def capture_end(self):
            lib.recording = False

        def replay(self):
            if lib.recording:
                raise RuntimeError("not recorded yet")

    class Graph(Base):
        def capture_begin(self, pool=None, capture_error_mode="global"):
            super().capture_begin(pool=pool, capture_error_mode=capture_error_mode)

        def capture_end(self):
            super().capture_end()

        def replay(self):
            super().replay()

    return Base, Graph


class Replays(unittest.TestCase):
    def setUp(self):
        self.lib = Library()
        base, self.graph = graph_class(self.lib)
        self.graphs = graphs.Graphs(lambda: self.lib.captured, lambda: dict(self.lib.kernels))
        self.graphs.watch(base)

    def record(self, *kernels, graph=None):
        g = graph or self.graph()
        g.capture_begin(pool=1)
        for k in kernels:
            self.lib.launch(k)
        g.capture_end()
        return g

    def test_each_replay_counts_each_recorded_launch(self):
        self.lib.launch("relu")  # before, and not recorded
        g = self.record("relu", "scale", "scale")
        self.assertEqual(self.graphs.replayed(), {})
        g.replay()
        g.replay()
        self.assertEqual(self.graphs.replayed(), {"relu": 2, "scale": 4})

    def test_graphs_of_others_count_for_nothing(self):
        own, foreign = self.record("relu"), self.record()
        foreign.replay()
        self.assertEqual(self.graphs.replayed(), {})
        own.replay()
        self.assertEqual(self.graphs.replayed(), {"relu": 1})

    def test_launches_beside_the_recording_are_none_of_it(self):
        g = self.graph()
        g.capture_begin()
        self.lib.recording = False  # on another stream
        self.lib.launch("decoy")
        g.capture_end()
        g.replay()
        self.assertEqual(self.graphs.replayed(), {})

    def test_recorded_anew(self):
        g = self.record("relu")
        g.replay()
        self.record("scale", graph=g)
        g.replay()
        g.replay()
        self.assertEqual(self.graphs.replayed(), {"relu": 1, "scale": 2})

    def test_a_replay_that_fails_is_none(self):
        g = self.record("relu")
        self.lib.recording = True
        with self.assertRaises(RuntimeError):
            g.replay()
        self.assertEqual(self.graphs.replayed(), {})


class Stats(unittest.TestCase):
    """What the judge is told: forward's launches are the difference of two of these."""

    def setUp(self):
        self.device, self.table = core.Device(), (core.Kernel * 2)()
        for row, name in zip(self.table, (b"relu", b"scale")):
            row.symbol = row.name = name
        self.device.version, self.device.n_kernels, self.device.kernels = core.DEVICE_ABI, 2, self.table
        self.old = core._libraries, core._graphs
        core._libraries = [core.ctypes.pointer(self.device)]
        core._graphs = graphs.Graphs(core._graphs.captured, core.launched)
        base, self.graph = graph_class(Library())
        core._graphs.watch(base)

    def tearDown(self):
        core._libraries, core._graphs = self.old

    def test_recorded_before_forward_and_replayed_in_it(self):
        g = self.graph()
        g.capture_begin()
        self.table[0].launches += 1
        self.device.launches += 1
        self.device.captured += 1
        g.capture_end()
        before = core.kernels()
        g.replay()
        self.assertEqual(before, {"relu": 1, "scale": 0})
        self.assertEqual(core.kernels(), {"relu": 2, "scale": 0})

    def test_switch(self):
        for on, ablate in ((True, 1), ("recorded", 2), (False, 0)):
            core.set_ablation(on)
            self.assertEqual(self.device.ablate, ablate)


@unittest.skipUnless(hasattr(torch._C, "_CUDAGraph"), "torch without CUDA")
class OfTorch(unittest.TestCase):
    def test_methods_are_in_the_way(self):
        """torch.cuda.CUDAGraph calls its base by these names, and the base can be given others."""
        base = torch._C._CUDAGraph
        old = {name: getattr(base, name) for name in ("capture_begin", "capture_end", "replay")}
        called = []
        try:
            graphs.Graphs(lambda: called.append("captured") or 0, dict).watch(base)
            self.assertTrue(all(getattr(base, name) is not f for name, f in old.items()))
            for name in old:
                self.assertIn(name, getattr(torch.cuda.CUDAGraph, name).__code__.co_names)
            with self.assertRaises(TypeError):
                base.replay(object())  # the real one is asked, and knows its own
        finally:
            for name, f in old.items():
                setattr(base, name, f)


if __name__ == "__main__":
    unittest.main()
