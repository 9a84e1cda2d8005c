#!/usr/bin/env python3
"""The fp64 interpreter and the emitted tasks must agree with PyTorch: every operator, five input regimes.

usage: test_values.py [SEEDS]
Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile

import torch


HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")


def tensor(flat, shape):
    return torch.tensor([float(x) for x in flat], dtype=torch.float64).reshape(shape)


def expected(line):
    names = {}
    exec(line["code"], names)
    model = names["Model"](*names["get_init_inputs"]()).double()
    shapes = [t.shape for t in names["get_inputs"]()]
    with torch.no_grad():
        for p, flat in zip(model.parameters(), line["parameters"]):
            p.copy_(tensor(flat, p.shape))
        return model(*[tensor(f, s) for f, s in zip(line["inputs"], shapes)])


def difference(line):
    want = expected(line)
    if list(want.shape) != line["shape"]:
        return f"shape {list(want.shape)}, the interpreter says {line['shape']}"
    got = tensor(line["output"], want.shape)
    scale = want.abs().max().item() + 1e-300
    error = (want - got).abs().max().item() / scale
    return None if error < 1e-9 else f"relative difference {error:.3g}"


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    torch.set_num_threads(1)
    passed, failed, seen = 0, 0, set()
    with tempfile.TemporaryDirectory() as out:
        for seed in range(1, seeds + 1):
            subprocess.run([BINARY, "synth", "--out", out, "--no-verify", "--ops", "all", "--max-ops", "5", "--tasks",
                "150",
                            "--heldout", "13", "--prompts", "0", "--seed", str(seed), "--values", out + "/values"],
                           check=True, stdout=subprocess.DEVNULL)
            seen |= {op for r in open(out + "/train.jsonl") for op in json.loads(r)["task"]["ops"]}
            for text in open(out + "/values"):
                line = json.loads(text)
                why = difference(line)
                passed, failed = passed + (why is None), failed + (why is not None)
                if why:
                    print(line["task"], line["regime"], why, line["code"], sep="\n")
    print(f"{len(seen)} operators seen\n{passed} passed, {failed} failed")
    return failed > 0 or len(seen) < 90


if __name__ == "__main__":
    sys.exit(main())
