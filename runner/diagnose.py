"""diagnose.py - which aten operators a reference calls: the other end of src/synth/diagnose.c's conversation.

  trace  {"code"}: one forward of Model on get_inputs().  -> {"op":"traced","operators":{"relu":1,"mm":2}}
A task that does not run is {"op":"refused","detail"}. Runs foreign code, in a jailed child.
"""
import collections

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import frame
import reference


class Counter(TorchDispatchMode):
    """Counts what reaches the dispatcher below autograd, by name without overload."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "aten":
            self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def traced(code):
    task = reference.load(code)
    model, inputs = reference.construct(task, task.get_init_inputs(), 0), task.get_inputs()
    with torch.no_grad(), Counter() as counter:
        model(*inputs)
    return dict(counter.calls)


def serve(sock, args):
    torch.set_num_threads(1)
    for req, _ in frame.requests(sock):
        try:
            head = {"op": "traced", "operators": traced(req["code"])}
        except Exception as e:
            head = {"op": "refused", "detail": f"{type(e).__name__}: {e}"[:300]}
        frame.send(sock, reference.scrub(head))
