"""runner/compiling.py with torch's own compiler, for the host: what runs of the model runs while the device is lent,
and the compiler works while it is not. The model's operator is one of the test's, that says when it ran.
slow_compiling.py has more models."""
import os
import socket
import sys
import tempfile
import threading
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "runner"))
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
CACHE = tempfile.TemporaryDirectory()  # what another run compiled is not compiled again
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE.name
import torch  # noqa: E402

import compiling  # noqa: E402
import frame  # noqa: E402

FORK = "torch"
PATIENCE_S = 200
lent = None  # the test's Turn
events = []


@torch.library.custom_op("judged::probe", mutates_args=())
def probe(x: torch.Tensor) -> torch.Tensor:
    events.append("ran" if lent is None or lent.held else "ran without the device")
    return x * 2


@probe.register_fake
def _(x):
    if lent is not None and isinstance(x, torch._subclasses.fake_tensor.FakeTensor):
        events.append("traced with the device" if lent.held else "traced")
    return torch.empty_like(x)


class Once(torch.nn.Module):
    def forward(self, x):
        return torch.ops.judged.probe(x)


class Broken(torch.nn.Module):
    def forward(self, x):
        x = torch.ops.judged.probe(x)
        torch._dynamo.graph_break()
        return torch.ops.judged.probe(x)


class Case(unittest.TestCase):
    def setUp(self):
        global lent
        self.ours, judge = socket.socketpair()
        self.answer = "go"
        self.said = []
        self.thread = threading.Thread(target=self.lend, args=(judge,), daemon=True)
        self.thread.start()
        events.clear()
        lent = self.turn = compiling.Turn(self.ours, lambda: events.append("synced"))
        torch._dynamo.reset()

    def tearDown(self):
        global lent
        lent = None
        self.ours.close()
        self.thread.join(PATIENCE_S)

    def lend(self, judge):
        while True:
            try:
                head, _ = frame.recv(judge, timeout=PATIENCE_S)
            except frame.FrameError:
                return judge.close()
            self.said.append(head["op"])
            events.append(head["op"])
            if head["op"] == "device":
                frame.send(judge, {"op": self.answer})

    def compiled(self, model, mode="default", calls=2):
        with compiling.asking(self.turn, model, mode), torch.no_grad():
            f = torch.compile(model, **({} if mode == "default" else {"mode": mode}))
            out = [f(torch.ones(4)) for _ in range(calls)]
        return out[-1]


class Compiles(Case):
    def test_the_device_is_lent_after_the_host_worked_and_once(self):
        self.assertTrue(torch.equal(self.compiled(Once(), calls=3), torch.full((4,), 2.0)))
        self.assertEqual(self.said, ["device"])
        self.assertEqual(events.count("ran"), 3)
        self.assertIn("traced", events[:events.index("device")])
        self.assertNotIn("ran without the device", events)
        self.assertNotIn("traced with the device", events)
        self.assertEqual((self.turn.held, self.turn.asked), (True, 1))
        self.turn.rest()  # it is over: nothing more is said
        self.turn.take()
        self.assertEqual(self.said, ["device"])

    def test_a_graph_that_breaks_gives_it_back_in_between(self):
        self.assertTrue(torch.equal(self.compiled(Broken()), torch.full((4,), 4.0)))
        self.assertEqual(self.said, ["device", "rest", "device"])
        self.assertNotIn("ran without the device", events)
        self.assertNotIn("traced with the device", events)
        self.assertIn("synced", events[events.index("ran"):events.index("rest")])

    def test_refused(self):
        self.answer = "no"
        with self.assertRaises(frame.FrameError):
            self.compiled(Once())
        self.assertNotIn("ran", events)
        self.assertNotIn("ran without the device", events)

    def test_another_torch(self):
        """A place that is missing: asked for at once, and nothing stays in the way."""
        places = list(compiling.PLACES)
        before = [self.at(p) for p in places]
        for missing in (("_inductor.no_such_module", "", "f"), ("_dynamo.callback", "NoClass", "f"),
                        ("_inductor.output_code", "CompiledFxGraph", "no_such")):
            self.said.clear()
            self.turn.held = self.turn.over = False
            compiling.PLACES = tuple(places + [missing + (compiling.before,)])
            try:
                with compiling.asking(self.turn, Once(), "default"):
                    self.assertTrue(self.turn.held)
                    self.assertEqual([self.at(p) for p in places], before)
            finally:
                compiling.PLACES = tuple(places)
            self.assertEqual(self.said, ["device"])

    @staticmethod
    def at(place):
        owner = sys.modules.get("torch." + place[0]) or compiling.importlib.import_module("torch." + place[0])
        return vars(getattr(owner, place[1]) if place[1] else owner)[place[2]]

    def test_this_torch_has_all_places_and_gets_them_back(self):
        before = [self.at(p) for p in compiling.PLACES]
        with compiling.asking(self.turn, Once(), "default"):
            self.assertFalse(self.turn.held)
            self.assertTrue(all(self.at(p) is not old for p, old in zip(compiling.PLACES, before)))
        self.assertEqual([self.at(p) for p in compiling.PLACES], before)


class Ways(Case):
    def test_benchmarks_while_compiling_borrow_it(self):
        f = compiling.during(self.turn, lambda x: events.append("ran") or x)
        self.assertEqual(f(5), 5)
        self.assertEqual(self.said_now(2), ["device", "rest"])
        self.turn.take()
        f(5)
        self.assertTrue(self.turn.held)

    def said_now(self, n):
        for _ in range(PATIENCE_S * 100):
            if len(self.said) >= n:
                break
            threading.Event().wait(0.01)
        return self.said

    def test_padding_benchmarks_only_what_is_not_known(self):
        for known, want in ((True, []), (False, []), (None, ["device", "rest"])):
            self.said.clear()
            look = compiling.not_cached(self.turn, lambda key, known=known: known)
            self.assertEqual(compiling.scoped(self.turn, lambda: look("k"))(), known)
            self.assertEqual(self.said_now(len(want)), want)

    def test_kernels_are_loaded_when_they_run(self):
        """As CachingAutotuner is built: compiled kernels first, launchers when there are none at run."""
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        loaded = []

        class Result:
            config, kernel = "c", types.SimpleNamespace(hash="0" * 64)

            def make_launcher(self):
                loaded.append(lent.held)
                return "launcher"

        class Tuner(CachingAutotuner):
            def __init__(self):
                self.lock, self.launchers, self.compile_results = threading.Lock(), [], []
                self.triton_meta, self.configs = {"device": None}, ["c"]

            def _precompile_config(self, config):
                return Result()

            def _dynamic_scale_rblock(self):
                self._make_launchers()

            def get_device_interface(self):
                from torch._dynamo.device_interface import get_interface_for_device
                return get_interface_for_device("cpu")

        with compiling.asking(self.turn, Once(), "default"):
            t = Tuner()
            t.precompile()
            self.assertEqual((loaded, t.launchers, len(t.compile_results)), ([], [], 1))
            self.turn.take()
            t.precompile()
            self.assertEqual((loaded, t.launchers), ([True], ["launcher"]))


if __name__ == "__main__":
    unittest.main()
