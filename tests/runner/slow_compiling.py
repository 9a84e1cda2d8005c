"""slow_compiling.py - test_compiling.py with more models: not compiled, failing, with constants, a mode that
measures."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_compiling as base  # noqa: E402
import torch  # noqa: E402


class EagerFirst(torch.nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return self.kept_away(x)

    @torch._dynamo.disable
    def kept_away(self, x):
        return torch.ops.judged.probe(x)


class Disabled(torch.nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return torch.ops.judged.probe(x)


class Failing(torch.nn.Module):
    def forward(self, x):
        torch.ops.judged.probe(x)
        raise ValueError("no")


class Full(torch.nn.Module):
    def forward(self, x):
        return torch.ops.judged.probe(x) + torch.full((4,), 3.0)


class Models(base.Case):
    def test_what_is_not_compiled_asks_too(self):
        self.compiled(EagerFirst())
        self.assertEqual(base.events.count("ran"), 2)
        self.assertNotIn("ran without the device", base.events)

    def test_what_cannot_be_seen_coming_asks_first(self):
        self.compiled(Disabled())
        self.assertEqual(base.events[0], "device")
        self.assertNotIn("ran without the device", base.events)
        self.assertEqual(self.said, ["device"])

    def test_a_mode_that_benchmarks_asks_first(self):
        self.compiled(base.Once(), "max-autotune-no-cudagraphs")
        self.assertEqual(base.events[0], "device")
        self.assertEqual(self.said, ["device"])

    def test_constants_are_worked_out_on_the_device(self):
        self.assertTrue(torch.equal(self.compiled(Full()), torch.full((4,), 5.0)))
        self.assertEqual(self.said, ["device", "rest", "device"])

    def test_a_call_that_fails(self):
        with self.assertRaises(ValueError):
            self.compiled(Failing())
        self.assertNotIn("ran without the device", base.events)


if __name__ == "__main__":
    unittest.main()
