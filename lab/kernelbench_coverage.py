#!/usr/bin/env python3
"""For how many KernelBench tasks of levels 1 and 2 the operator registry has every operator.

usage: kernelbench_coverage.py KERNELBENCH_FOLDER [--musacoder build/musacoder] [--verbose]

KERNELBENCH_FOLDER is a checkout of KernelBench, or its folder with level1/ and level2/. Tasks are parsed, never run:
    every
call of torch, torch.nn, torch.nn.functional or a tensor's method in the class Model,
    and every arithmetic operator in its
forward, must have a row of the registry (a table below maps spellings to rows). A task with one unknown call is not
covered."""
import argparse
import ast
import collections
import os
import subprocess
import sys

# Spellings as tasks write them -> rows that must all exist. An empty list: no arithmetic (shapes, containers, views).
MODULES = {
    "Linear": ["linear"], "Conv1d": ["conv1d"], "Conv2d": ["conv2d"], "Conv3d": ["conv3d"],
    "ConvTranspose1d": ["conv_transpose1d"], "ConvTranspose2d": ["conv_transpose2d"], "ConvTranspose3d":
        ["conv_transpose3d"],
    "MaxPool1d": ["max_pool1d"], "MaxPool2d": ["max_pool2d"], "MaxPool3d": ["max_pool3d"],
    "AvgPool1d": ["avg_pool1d"], "AvgPool2d": ["avg_pool2d"], "AvgPool3d": ["avg_pool3d"],
    "BatchNorm1d": ["batch_norm"], "BatchNorm2d": ["batch_norm"], "BatchNorm3d": ["batch_norm"],
    "InstanceNorm1d": ["instance_norm"], "InstanceNorm2d": ["instance_norm"], "InstanceNorm3d": ["instance_norm"],
    "GroupNorm": ["group_norm"], "LayerNorm": ["layer_norm"], "ReLU": ["relu"], "GELU": ["gelu"], "Tanh": ["tanh"],
    "Sigmoid": ["sigmoid"], "Mish": ["mish"], "Hardtanh": ["hardtanh"], "LeakyReLU": ["leaky_relu"], "Softmax":
        ["softmax"],
    "Hardswish": ["hardswish"], "SiLU": ["silu"], "TripletMarginLoss": ["triplet_rows", "mean"],
    "Parameter": [], "Module": [], "Sequential": [], "ModuleList": [], "Identity": []}
# adaptive pooling to one element is a mean over the spatial axes
TO_ONE = {"AdaptiveAvgPool1d": ["mean"], "AdaptiveAvgPool2d": ["mean"], "AdaptiveAvgPool3d": ["mean"],
          "adaptive_avg_pool1d": ["mean"], "adaptive_avg_pool2d": ["mean"], "adaptive_avg_pool3d": ["mean"]}
FUNCTIONS = {
    "matmul": ["matmul"], "bmm": ["matmul"], "mm": ["matmul"], "einsum": ["einsum_last"], "relu": ["relu"],
    "leaky_relu": ["leaky_relu"], "sigmoid": ["sigmoid"], "tanh": ["tanh"], "softmax": ["softmax"],
    "log_softmax": ["log_softmax"], "gelu": ["gelu"], "selu": ["selu"], "hardsigmoid": ["hardsigmoid"],
    "softplus": ["softplus"], "softsign": ["softsign"], "elu": ["elu"], "hardtanh": ["hardtanh"], "mish": ["mish"],
    "hardswish": ["hardswish"], "silu": ["silu"], "abs": ["abs"], "exp": ["exp"], "log": ["log"], "pow":
        ["pow_scalar", "cube"],
    "sqrt": ["sqrt"], "mean": ["mean"], "sum": ["sum"], "max": ["amax", "maximum"], "min": ["amin", "minimum"],
    "argmax": ["argmax"], "argmin": ["argmin"], "prod": ["prod"], "var": ["var"], "std": ["std"], "norm": ["norm2"],
    "cumsum": ["cumsum"], "cumprod": ["cumprod"], "logsumexp": ["logsumexp"], "clamp": ["clamp"], "clamp_": ["clamp"],
    "diag": ["diag_matmul"], "tril": ["tril"], "triu": ["triu"], "cat": ["cat"], "flip": ["flip"], "mse_loss":
        ["mse_loss"],
    "cross_entropy": ["cross_entropy_rows", "mean"], "smooth_l1_loss": ["smooth_l1_loss"], "kl_div": ["kl_div"],
    "cosine_similarity": ["cosine_similarity"], "scaled_dot_product_attention": ["attention"], "normalize":
        ["l2_normalize"],
    "max_pool1d": ["max_pool1d"], "max_pool2d": ["max_pool2d"], "max_pool3d": ["max_pool3d"], "avg_pool1d":
        ["avg_pool1d"],
    "avg_pool2d": ["avg_pool2d"], "avg_pool3d": ["avg_pool3d"], "add": ["add"], "sub": ["sub"], "mul": ["mul"],
    "div": ["div_safe", "div_scalar"], "multiply": ["mul"], "maximum": ["maximum"], "minimum": ["minimum"], "square":
        ["square"],
    "batch_norm": ["batch_norm"], "layer_norm": ["layer_norm"], "group_norm": ["group_norm"],
    "instance_norm": ["instance_norm"], "conv2d": ["conv2d"], "linear": ["linear"], "select": ["narrow"], "narrow":
        ["narrow"],
    "masked_fill": ["masked_fill"], "where": ["where"], "transpose": ["transpose"], "permute": ["permute"], "t":
        ["transpose"]}
PLAIN = {  # shapes, containers, creation, and views
    "size", "view", "reshape", "flatten", "unsqueeze", "squeeze", "contiguous", "dim", "shape", "expand", "expand_as",
        "to",
    "float", "tensor", "zeros", "ones", "zeros_like", "ones_like", "randn", "rand", "empty", "full", "numel", "type",
        "super",
    "__init__", "int", "tuple", "list", "len", "range", "bool", "is_cuda", "detach", "clone", "parameters", "item"}
OPERATORS = {ast.Add: ["add", "add_scalar"], ast.Sub: ["sub", "sub_scalar"], ast.Mult: ["mul", "mul_scalar"],
             ast.Div: ["div_safe", "div_scalar"], ast.Pow: ["pow_scalar", "square"], ast.MatMult: ["matmul"],
                 ast.USub: ["neg"]}


def registry(binary):
    lines = subprocess.run([binary, "synth", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[1] for line in lines if line.startswith("operator ")}


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id] + parts[::-1] if isinstance(node, ast.Name) else [None] + parts[::-1]


def to_one(call):
    """Is the wanted size 1 in every dimension?"""
    values = [n.value for a in call.args[-1:] for n in ast.walk(a) if isinstance(n, ast.Constant)]
    return bool(values) and all(v == 1 for v in values)


class Model(ast.NodeVisitor):
    """Collects rows that a Model class needs, and what has none."""

    def __init__(self):
        self.rows, self.unknown, self.fields = set(), [], set()

    def need(self, rows):
        self.rows.update(rows)

    def visit_Assign(self, node):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and dotted(target)[0] == "self":
                self.fields.add(target.attr)
        self.generic_visit(node)

    def visit_Call(self, node):
        path = dotted(node.func)
        name = path[-1]
        if path[0] == "self" and len(path) == 2:
            pass  # a module of __init__, counted there
        elif name in TO_ONE:
            self.need(TO_ONE[name] if to_one(node) else [])
            if not to_one(node):
                self.unknown.append(name)
        elif name in MODULES and (path[0] in ("nn", "torch") or len(path) == 1):
            self.need(MODULES[name])
        elif name in FUNCTIONS:
            self.need(FUNCTIONS[name])
        elif name not in PLAIN:
            self.unknown.append(".".join(p or "?" for p in path))
        self.generic_visit(node)

    def visit_BinOp(self, node):
        self.need(OPERATORS.get(type(node.op), []))
        if type(node.op) not in OPERATORS and not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            self.unknown.append(type(node.op).__name__)
        self.generic_visit(node)


def judge(path, rows):
    """What a task lacks; empty when it is covered."""
    tree = ast.parse(open(path, encoding="utf-8").read())
    model = Model()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            model.visit(node)
    return sorted(set(model.unknown) | {f"row {r}" for r in model.rows - rows})


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folder")
    p.add_argument("--musacoder", default="build/musacoder")
    p.add_argument("--verbose", action="store_true", help="name every task that is not covered, and why")
    a = p.parse_args()
    base = os.path.join(a.folder, "KernelBench") if os.path.isdir(os.path.join(a.folder, "KernelBench",
        "level1")) else a.folder
    rows = registry(a.musacoder)
    print(f"registry: {len(rows)} operators")
    for level, goal in (("level1", 95), ("level2", 85)):
        folder = os.path.join(base, level)
        if not os.path.isdir(folder):
            sys.exit(f"no folder '{folder}'; give a checkout of KernelBench")
        lacks = {f: judge(os.path.join(folder, f), rows) for f in sorted(os.listdir(folder)) if f.endswith(".py")}
        good = sum(not v for v in lacks.values())
        print(f"{level}: {good} of {len(lacks)} tasks have every operator (goal {goal})")
        reasons = collections.Counter(r for v in lacks.values() for r in v)
        print("  missing:", ", ".join(f"{r} ({n})" for r, n in reasons.most_common(20)) or "nothing")
        for name, why in lacks.items():
            if a.verbose and why:
                print(f"  {name}: {', '.join(why)}")


if __name__ == "__main__":
    main()
