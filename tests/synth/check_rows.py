#!/usr/bin/env python3
"""Compares what the operator registry's fp64 references say with PyTorch, in fp64, on the same numbers.

usage: check_rows.py VALUES.jsonl      (musacoder synth --probe all --values VALUES.jsonl)
Each line holds a task's code, its inputs and the expected output. Shapes, dtypes and values must agree.
Ends with 'N passed, M failed'."""
import json
import math
import sys

import torch


TOLERANCE = {"float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2}  # of the output's scale, at a dtype's own precision


def tensor(entry, floating=torch.float64):
    dtype = torch.int64 if entry["dtype"] == "int64" else floating
    flat = [float(v) for v in entry["data"]]
    return torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(entry["shape"])


def wanted_values(line):
    return torch.tensor([float(v) for v in line["output"]], dtype=torch.float64).reshape(line["shape"])


def load_model(line, floating=torch.float64):
    """The task's model in the given precision, its parameters set to the line's."""
    space = {}
    exec(compile(line["code"], "task", "exec"), space)
    model = space["Model"](*space["get_init_inputs"]()).to(floating)
    values = [tensor(i, floating) for i in line["inputs"] if i["param"]]
    names = [p for _, p in model.named_parameters()]
    with torch.no_grad():
        for p, v in zip(names, values, strict=True):
            p.copy_(v)
    return model, space


def meta_agrees(line, space):
    """The shape and dtype rule, as torch derives it without values."""
    made = space["get_inputs"]()
    return [list(t.shape) for t in made] == [i["shape"] for i in line["inputs"] if not i["param"]]


def complaint(line):
    model, space = load_model(line)
    if not meta_agrees(line, space):
        return "get_inputs makes other shapes"
    with torch.no_grad():
        got = model(*[tensor(i) for i in line["inputs"] if not i["param"]])
    want = wanted_values(line)
    if list(got.shape) != line["shape"]:
        return f"shape {list(got.shape)}, the rule says {line['shape']}"
    if (got.dtype == torch.int64) != (line["dtype"] == "int64"):
        return f"dtype {got.dtype}, the rule says {line['dtype']}"
    got = got.double()
    if not torch.allclose(got, want, rtol=1e-6, atol=1e-6, equal_nan=True):
        worst = (got - want).abs().nan_to_num(nan=math.inf).max().item()
        return f"values differ by up to {worst:g}"
    return native_complaint(line, want)


def native_complaint(line, want):
    """The same at the task's own precision, where there is one."""
    floats = {i["dtype"] for i in line["inputs"]} - {"int64"}
    if len(floats) != 1 or line["dtype"] == "int64" or line["op"] == "graph":  # graphs may be ill conditioned
        return None
    floating = getattr(torch, floats.pop())
    model, _ = load_model(line, floating)
    # oneDNN's convolutions in bfloat16 answer 1e33 on some CPUs (AVX-512 without AMX); PyTorch's own kernels do not.
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        got = model(*[tensor(i, floating) for i in line["inputs"] if not i["param"]])
    if str(got.dtype) != "torch." + line["dtype"]:
        return f"dtype {got.dtype}, the rule says {line['dtype']}"
    # PyTorch may round after each of an output's m inputs (prod does, in bfloat16): 2 u sqrt(m), as in tolerance.h.
    terms = max([1] + [math.prod(i["shape"]) / max(1, want.numel()) for i in line["inputs"]])
    rounding = max(TOLERANCE[line["dtype"]], torch.finfo(floating).eps * math.sqrt(terms))
    bound = rounding * (want.abs().nan_to_num(0, 0, 0).max().item() + 1)
    if not torch.allclose(got.double(), want, rtol=0, atol=bound, equal_nan=True):
        return f"in {line['dtype']} values differ by more than {bound:g}"
    return None


def main():
    passed, failed = 0, {}
    for text in open(sys.argv[1]):
        line = json.loads(text)
        try:
            wrong = complaint(line)
        except Exception as error:  # pylint: disable=broad-except
            wrong = f"{type(error).__name__}: {error}"
        if not wrong:
            passed += 1
            continue
        failed.setdefault(line["op"], []).append(wrong)
        if len(failed[line["op"]]) <= 2:
            print(f"FAILED: {line['op']}: {wrong}\n{line['code']}")
    print(f"{passed} passed, {sum(map(len, failed.values()))} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
