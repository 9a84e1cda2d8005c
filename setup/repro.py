"""repro.py - a failure that 'musacoder eval --repro' wrote down, again, with PyTorch alone.

    python repro.py          the reference on the same inputs and weights; compares what the kernel left
    python repro.py --run    builds the candidate and runs it too (an NVIDIA GPU and nvcc)

Beside this file: task.py, candidate.py, sizes.py (the judge's: a workload's sizes), verdict.json, draw.json and
the *.bin that it names. In Python:
    import repro; case = repro.Case(); case.inputs, case.expected, case.got, case.model()
Exit code: 0 what was compared matches, 1 it does not."""

import json
import os
import re
import sys
import types

import sizes
import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def module(name):
    """task.py or candidate.py as a module. A task's line '#@workload' changes its sizes, and the type of its model."""
    found = types.ModuleType(name)
    found.__file__ = os.path.join(HERE, name + ".py")
    with open(found.__file__, encoding="utf-8") as f:
        source = f.read()
    said = {}
    for line in re.findall(r"^#@workload: (\{.*\})$", source, re.M):
        said.update(json.loads(line))
    source = sizes.with_sizes(source, said.get("sizes") or {})
    exec(compile(source, found.__file__, "exec"), found.__dict__)
    found.in_dtype = said.get("dtype")
    return found


def value(node, blob):
    """A tree of draw.json as Python has it: tensors, numbers, lists, tuples, dicts."""
    if isinstance(node, dict) and node.get("t") == "tensor":
        dtype, shape = getattr(torch, node["dtype"].split(".")[-1]), node["shape"]
        part = blob[node["offset"]:node["offset"] + node["nbytes"]]
        flat = torch.frombuffer(bytearray(part), dtype=dtype) if part else torch.empty(0, dtype=dtype)
        packed, strides = flat.reshape(shape), node.get("strides")
        if not strides or list(packed.stride()) == strides or not packed.numel():
            return packed
        return torch.empty_strided(shape, strides, dtype=dtype).copy_(packed)
    if isinstance(node, dict) and node.get("t") in ("list", "tuple"):
        return (list if node["t"] == "list" else tuple)(value(x, blob) for x in node["v"])
    if isinstance(node, dict) and node.get("t") == "dict":
        return {value(k, blob): value(v, blob) for k, v in node["v"]}
    return node


def tensors(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for x in tree for t in tensors(x)] if isinstance(tree, (list, tuple)) else []


def moved(tree, device):
    """The tree with its tensors on another device; layouts stay."""
    if isinstance(tree, torch.Tensor):
        return tree.to(device)
    if isinstance(tree, dict):
        return {k: moved(v, device) for k, v in tree.items()}
    return type(tree)(moved(v, device) for v in tree) if isinstance(tree, (list, tuple)) else tree


class Case:
    """Inputs, expected, got and a model with the weights of the trial; got is None where the kernel left nothing."""

    def __init__(self):
        with open(os.path.join(HERE, "draw.json"), encoding="utf-8") as f:
            self.draw = json.load(f)
        self.inputs, self.init, self.state, self.expected, self.got = map(
            self.part, ("inputs", "init", "state", "expected", "got"))

    def part(self, name):
        if name not in self.draw:
            return None
        with open(os.path.join(HERE, name + ".bin"), "rb") as f:
            return value(self.draw[name], f.read())

    def model(self, kind=None, device="cpu"):
        """The task's Model, or another class in its place, with the trial's weights."""
        task = module("task")
        m = (kind or task.Model)(*(self.init or []))
        dtype = self.draw["dtype"] or task.in_dtype
        m = m.to(getattr(torch, dtype)) if dtype else m
        there = {**dict(m.named_parameters()), **dict(m.named_buffers())}
        with torch.no_grad():
            for row, now in zip(self.draw["rows"] or [], self.state or []):
                if row["name"] in there and isinstance(now, torch.Tensor):
                    there[row["name"]].copy_(now)
        return m.to(device).train(self.draw["mode"] == "train")


    def run(self):
        """What the candidate's kernels leave on this machine's GPU, on the CPU."""
        if not torch.cuda.is_available():
            sys.exit("--run needs an NVIDIA GPU that PyTorch finds, and nvcc to build the candidate")
        model = self.model(module("candidate").ModelNew, "cuda")
        with torch.no_grad():
            return [t.cpu() for t in tensors(model(*moved(self.inputs, "cuda")))]


def compare(name, expected, got, tolerance):
    """Prints how far two answers are from each other; True if within tolerance."""
    right, n, m = True, len(tensors(expected)), len(tensors(got))
    if n != m:
        print(f"{name}: {m} tensors, expected {n}")
        return False
    for i, (want, have) in enumerate(zip(tensors(expected), tensors(got))):
        if want.dtype != have.dtype:
            print(f"{name}: output {i} is {have.dtype}, expected {want.dtype}")
            right = False
        if want.shape != have.shape:
            print(f"{name}: output {i} has shape {tuple(have.shape)}, expected {tuple(want.shape)}")
            return False
        a, b = want.double(), have.double()
        off = (b - a).abs()
        bad = ~(off <= tolerance["abs"] + tolerance["rel"] * a.abs()) & ~(a == b) & ~(a.isnan() & b.isnan())
        if bad.any():
            at = tuple(bad.nonzero()[0].tolist())
            print(f"{name}: output {i}: {int(bad.sum())} of {bad.numel()} elements are wrong; first at {list(at)}: "
                  f"expected {a[at].item():.9g}, got {b[at].item():.9g}")
        else:
            most = f"; the largest difference is {float(off.max()):.3g}" if off.numel() else ""
            print(f"{name}: output {i}: all {bad.numel()} elements match{most}")
        right = right and not bad.any()
    return right


def main(words):
    with open(os.path.join(HERE, "verdict.json"), encoding="utf-8") as f:
        verdict = json.load(f)
    case = Case()
    print(f"task {verdict['task']}, {case.draw['regime']} inputs, draw {case.draw['trial']}: {verdict.get('code')} "
          f"{verdict['category']}")
    for i, t in enumerate(tensors(case.inputs)):
        print(f"  input {i}: {tuple(t.shape)} {t.dtype}")
    if case.inputs is None:
        sys.exit("the task's values are too large to be written down; judge it again, made small by 'musacoder shrink'")
    tolerance = case.draw["tolerance"]
    with torch.no_grad():
        again = case.model()(*(t.clone() if isinstance(t, torch.Tensor) else t for t in case.inputs))
    print("reference, computed again here:")
    compare("  reference", case.expected, again, {k: max(tolerance[k], 1e-5) for k in ("abs", "rel")})
    right = True
    if case.got is not None:
        right = compare("kernel, as judged", case.expected, case.got, tolerance)
    else:
        print("the kernel left no answer:\n" + "\n".join("  " + x for x in verdict["feedback"].split("\n")))
        right = False
    if "--run" in words:
        right = compare("kernel, run here", case.expected, case.run(), tolerance)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
