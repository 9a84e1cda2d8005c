"""compiling.py - torch.compile without the device: most of it is work of the host, during which others may be timed.

The child asks for the device when something is about to run on it, and gives it back where the host works on:
  {"op":"device"} -> {"op":"go"}    the judge lends it, when others have left it
  {"op":"rest"}                     given back: no answer. All that was launched has ended
What asks: frames that torch's compiler is done with (what follows runs, compiled or not), compiled graphs, kernels of
Triton's, benchmarks while compiling. Kernels are loaded when they first run. Where torch has no such places, or what
runs cannot be seen coming, the device is asked for before anything else and kept until all is done.
"""
import contextlib
import functools
import importlib
import os
import sys
import time
import types

import torch

import frame


class Turn:
    """The device, as the judge lends it. sync() waits for all that was launched."""

    def __init__(self, sock, sync):
        self.sock, self.sync = sock, sync
        self.held, self.asked, self.waited_s = False, 0, 0.0
        self.over = False

    def take(self):
        if self.held or self.over:
            return
        start = time.monotonic()
        frame.send(self.sock, {"op": "device"})
        head, _ = frame.recv(self.sock)
        if head.get("op") != "go":
            raise frame.FrameError("the judge did not lend the device")
        self.held, self.asked = True, self.asked + 1
        self.waited_s += time.monotonic() - start

    def rest(self):
        if self.held and not self.over:
            self.sync()
            self.held = False
            frame.send(self.sock, {"op": "rest"})


IMPORTED = ("torch.utils.flop_counter", "torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.codegen.triton",
            "torch._inductor.runtime.triton_heuristics")


def preload(names=IMPORTED):
    """In a fork server whose children compile: what that imports takes seconds. Nothing may touch the device here,
    and no workers may start: children are forked. Where something cannot be imported, children say why when they need
    it."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    sys.modules.pop("torch.utils.cpp_extension", None)  # ours, for candidates
    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: True  # the driver would begin to work
    try:
        for name in names:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    finally:
        torch.cuda.is_available = asked


# Ways to stand before a function f ---------------------------------------------------------------------------------


def scoped(turn, f):
    """What asks inside gives back at the end."""
    def g(*args, **kwargs):
        had = turn.held
        try:
            return f(*args, **kwargs)
        finally:
            if not had:
                turn.rest()
    return g


def during(turn, f):
    def g(*args, **kwargs):
        turn.take()
        return f(*args, **kwargs)
    return scoped(turn, g)


def before(turn, f):
    def g(*args, **kwargs):
        turn.take()
        return f(*args, **kwargs)
    return g


def frames(turn, f):
    """torch's compiler has seen a frame: it runs now, as what was made of it or as it is. torch's own Module.__call__
    is such a frame, which calls the one that matters."""
    def g(self, python, *args, **kwargs):
        out = f(self, python, *args, **kwargs)
        if python.f_code.co_filename != torch.nn.Module.__call__.__code__.co_filename:
            turn.take()
        return out
    return g


def loading(turn, f):
    """A kernel's code goes to the device when it first runs, not when it is compiled: run() finds no launchers and
    makes them."""
    def g(self):
        return f(self) if turn.held else None
    return g


def not_cached(turn, f):
    """What is known needs no benchmark; else its operands are made now."""
    def g(*args, **kwargs):
        out = f(*args, **kwargs)
        if out is None:
            turn.take()
        return out
    return g


def folds(turn, f):
    """Constants of one element are worked out on the device: a product with a whole number zero is one."""
    def g(gm, *args, **kwargs):
        for node in gm.graph.nodes:
            if str(node.target).startswith("aten.mul.") and any(isinstance(a, int) and a == 0 for a in node.args):
                turn.take()
        return f(gm, *args, **kwargs)
    return scoped(turn, g)


def constants(turn, f):
    """The others: what makes a tensor out of nothing, or is one."""
    def g(self, node, *args, **kwargs):
        if node.op == "get_attr" or str(node.target).startswith(("aten.full.", "aten.lift_fresh", "prims.device_put")):
            turn.take()
        return f(self, node, *args, **kwargs)
    return g


PLACES = (  # module of torch, class or "", function, way
    ("_dynamo.convert_frame", "CatchErrorsWrapper", "__call__", frames),
    ("_inductor.output_code", "CompiledFxGraph", "__call__", before),
    ("_inductor.runtime.triton_heuristics", "CachingAutotuner", "_make_launchers", loading),
    ("_inductor.runtime.triton_heuristics", "CachingAutotuner", "run", during),
    ("_inductor.runtime.triton_heuristics", "CachingAutotuner", "bench", during),
    ("_inductor.runtime.benchmarking", "Benchmarker", "benchmark_gpu", during),
    ("_inductor.runtime.benchmarking", "TritonBenchmarker", "benchmark_gpu", during),
    ("_inductor.runtime.benchmarking", "InductorBenchmarker", "benchmark_gpu", during),
    ("_inductor.fx_passes.pad_mm", "", "_should_pad", scoped),
    ("_inductor.fx_passes.pad_mm", "", "get_cached_should_pad", not_cached),
    ("_inductor.fx_passes.joint_graph", "", "constant_fold_uniform_value", folds),
    ("_inductor.fx_passes.joint_graph", "UniformValueConstantFolder", "_deduce_value", constants),
)


def stand_in(turn, undo):
    """Puts itself before all of PLACES. AttributeError, ImportError or KeyError: this torch has other places."""
    for module, owner, name, way in PLACES:
        at = importlib.import_module("torch." + module)
        at = getattr(at, owner) if owner else at
        old = vars(at)[name]  # its own, not an inherited one
        undo.callback(setattr, at, name, old)
        setattr(at, name, functools.wraps(old)(way(turn, old)))
    handler = importlib.import_module("torch._dynamo.callback").callback_handler

    def starts(_):  # the host's turn again: the next graph after a break, or a shape that is new
        turn.rest()

    handler.register_start_callback(starts)
    undo.callback(handler.remove_start_callback, starts)


def seen_coming(model):
    """Does torch's compiler see the model's forward before it runs? Not what is no Python, or is kept away from it."""
    f = model.forward
    return (isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType) and
            not isinstance(model, torch.jit.ScriptModule) and not hasattr(f.__func__, "_torchdynamo_disable"))


@contextlib.contextmanager
def asking(turn, model, mode):
    """Inside, torch.compile of model and its calls ask for the device. If it is held at the end it goes back with the
    answer to the judge, and nothing asks any more: what is said on the socket from then on is something else."""
    with contextlib.ExitStack() as undo:
        undo.callback(setattr, turn, "over", True)
        places = mode == "default" and seen_coming(model)  # else: benchmarks all along
        if places:
            try:
                stand_in(turn, undo)
            except (ImportError, AttributeError, KeyError):
                undo.close()
                places, turn.over = False, False
        if not places:
            turn.take()
        yield
