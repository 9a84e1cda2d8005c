"""task_sizes.py - what tasks need on a device, without one: inputs, parameters, outputs and the reference's own peak.

    task_sizes.py FOLDER... >sizes.jsonl

One line a task of a folder of KernelBench-format files: {"task","inputs":[bytes..],"state":bytes,"outputs":[bytes..],
"eager_peak":bytes} or {"task","error"}. Everything runs on torch's meta device: tensors have shapes and no values.
eager_peak counts what forward has alive at most, outputs included, inputs and parameters not; no library's workspace.
src/exec/memory_plan.h says what follows from the numbers: 'build/lab/plan_tasks <sizes.jsonl' prints it.
"""

import glob
import json
import os
import sys
import types
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


def leaves(v):
    return [t for t in tree_flatten(v)[0] if isinstance(t, torch.Tensor)]


def nbytes(t):
    return t.numel() * t.element_size()


class Alive(TorchDispatchMode):
    """Counts the bytes of storages that are alive, and their largest sum."""

    def __init__(self, known):
        super().__init__()
        self.seen = {t.untyped_storage()._cdata for t in known}
        self.now = self.peak = 0

    def drop(self, key, n):
        self.seen.discard(key)
        self.now -= n

    def note(self, t):
        storage = t.untyped_storage()
        if t.device.type != "meta" or storage._cdata in self.seen:
            return
        self.seen.add(storage._cdata)
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.drop, storage._cdata, storage.nbytes())

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in leaves(out):
            self.note(t)
        return out


def to_meta(v):
    if isinstance(v, torch.Tensor):
        return v.to("meta")
    if isinstance(v, (list, tuple)):
        return type(v)(to_meta(x) for x in v)
    return v


def made(module):
    """The model; on the CPU where its constructor reads values."""
    try:
        return construct(module)
    except RuntimeError:
        with torch.device("cpu"):
            return construct(module)


def construct(module):
    init = module.get_init_inputs()
    return module.Model(**init) if isinstance(init, dict) else module.Model(*init)


def sizes(path):
    module = types.ModuleType("task")
    with open(path, encoding="utf-8") as f:
        exec(compile(f.read(), path, "exec"), module.__dict__)
    with torch.device("meta"), torch.no_grad():
        model = made(module).to("meta")
        inputs = to_meta(module.get_inputs())
        state = list(model.parameters()) + list(model.buffers())
        alive = Alive(leaves(inputs) + state)
        with alive:
            outputs = leaves(model(*inputs))
    return {"inputs": [nbytes(t) for t in leaves(inputs)], "state": sum(nbytes(t) for t in state),
            "outputs": [nbytes(t) for t in outputs], "eager_peak": max(alive.peak, sum(nbytes(t) for t in outputs))}


def order(path):
    folder, name = os.path.split(path)
    return folder, int(name.split("_")[0]) if name.split("_")[0].isdigit() else 0, name


def main(folders):
    for path in sorted((p for d in folders for p in glob.glob(os.path.join(d, "*.py"))), key=order):
        name = "/".join(path.split(os.sep)[-2:])[:-3]
        try:
            row = sizes(path)
        except Exception as e:
            row = {"error": f"{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}"}
        print(json.dumps(dict({"task": name}, **row)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
