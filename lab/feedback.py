"""feedback.py [--backend sim|cuda] [--into FILE | --out FILE] - ten typical failures through 'musacoder eval', and
what its feedback says: the part of docs/feedback.md for one backend. --into replaces that part of FILE, --out writes
the part alone. Exit code 1 if one of them names no place or no reason. Standard library only."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))

TASK = '''import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn(37, 100)]

def get_init_inputs():
    return []
'''

RIGHT = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cassert>
__global__ void softmax(const float *x, float *y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *r = x + row * n;
    float top = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) top = fmaxf(top, r[i]);
    for (int i = 0; i < n; i++) sum += expf(r[i] - top);
    for (int i = 0; i < n; i++) y[row * n + i] = expf(r[i] - top) / sum;
}
torch::Tensor run(torch::Tensor x) {
    int rows = x.size(0), n = x.size(1);
    auto y = torch::empty_like(x);
    softmax<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n);
    return y;
}
"""
ext = load_inline(name="softmax", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                  functions=["run"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
'''


def but(old, new):
    if RIGHT.count(old) != 1:
        raise ValueError(f"'{old}' is not there once")
    return RIGHT.replace(old, new)


# What is wrong, what was changed (shown), the program, the category, words that name the place, words that name the
# reason.
FAILURES = [
    ("The answer holds no program", "prose instead of code", "One would subtract the maximum of each row first.",
     "extraction_error", "no code", "class ModelNew"),
    ("It does not compile", "a name that is not declared", but("sum += expf(r[i] - top)", "sum += expf(r[i] - max)"),
     "compile_error", r"cuda_source:\d+", "max"),
    ("Wrong values", "the sum leaves out the first element", but("i = 0; i < n; i++) sum", "i = 1; i < n; i++) sum"),
     "correctness_error", r"\[\d+, ?\d+\]", r"expected .*, got "),
    ("Part of the result is never written", "the grid is too small", but("(rows + 31) / 32", "rows / 32"),
     "correctness_error", r"\[\d+, ?\d+\]", "never written"),
    ("A kernel leaves its memory", "the guard is missing, and rows are addressed by a wild factor",
     but("    if (row >= rows) return;\n    const float *r = x + row * n;", "    const float *r = x + (long long)row * "
                                                                            "n * 1000000;"),
     "runtime_error", "softmax", r"illegal|out of bounds|outside|not device memory"),
    ("An assert in a kernel", "assert(n % 64 == 0)", but("    float top =", "    assert(n % 64 == 0);\n"
                                                                            "    float top ="),
     "runtime_error", r"cuda_source:\d+", r"n % 64 == 0"),
    ("A launch that cannot be", "4096 threads a block", but("(rows + 31) / 32, 32", "1, 4096"),
     "runtime_error", r"softmax|line \d+", "1024"),
    ("It does not end", "a loop whose counter stands still",
     but("i = 0; i < n; i++) top", "i = 0; i < n; i += (top > 1e30f)) top"),
     "timeout", r"line \d+|in forward", "still running"),
    ("PyTorch does the work", "torch.softmax in forward",
     but("return ext.run(x)", "return torch.softmax(ext.run(x).log(), dim=1)"),
     "cheating", r"line \d+|forward runs", "softmax"),
    ("Too much device memory", "a buffer of 200 GB", but("    auto y = torch::empty_like(x);",
     "    auto y = torch::empty_like(x);\n    auto work = torch::empty({50000, 1000, 1000}, x.options());"),
     "runtime_error", r"line \d+", "memory"),
]


def judge(backend):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in [("task.py", TASK)] + [(f"{i}.{'py' if 'import' in f[2] else 'txt'}", f[2]) for i,
                                                 f in enumerate(FAILURES)]:
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w") as f:
                f.write(text)
        p = subprocess.run([EXE, "eval", "--task", paths[0], "--backend", backend, "--json", "--no-cache", "--no-perf",
                            "--timeout",
                            "10", *paths[1:]], capture_output=True, text=True)
        verdicts = [json.loads(line) for line in p.stdout.splitlines()]
        if len(verdicts) != len(FAILURES):
            sys.exit(f"{EXE}: exit code {p.returncode}: {p.stderr[-2000:]}")
        return verdicts


def section(backend, verdicts):
    lines = [f"<!-- {backend}: made by lab/feedback.py -->", f"### On `{backend}`", ""]
    device = verdicts[-1].get("environment", {}).get("device")
    lines += [f"On {device}.", ""] if device else []
    for (title, change, *_), v in zip(FAILURES, verdicts):
        lines += [f"**{title}** ({change}) → `{v['category']}`, stage `{v['stage']}`", "```", v["feedback"], "```", ""]
    return "\n".join(lines) + f"<!-- end of {backend} -->\n"


def check(verdicts):
    wrong = 0
    for (title, _, _, category, place, reason), v in zip(FAILURES, verdicts):
        bad = [] if v["category"] == category else [f"{v['category']} instead of {category}"]
        bad += [f"no {what} ({words})" for what, words in (("place", place), ("reason", reason))
                if not re.search(words, v["feedback"])]
        if bad:
            wrong += 1
            print(f"{title}: {'; '.join(bad)}:\n{v['feedback']}\n", file=sys.stderr)
    return wrong


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--backend", default="sim", choices=["sim", "cuda"])
    a.add_argument("--into")
    a.add_argument("--out")
    a = a.parse_args()
    verdicts = judge(a.backend)
    text = section(a.backend, verdicts)
    if a.into:
        with open(a.into) as f:
            old = f.read()
        new, n = re.subn(rf"<!-- {a.backend}: .*?<!-- end of {a.backend} -->\n", lambda _: text, old, flags=re.S)
        with open(a.into, "w") as f:
            f.write(new if n else old.rstrip("\n") + "\n\n" + text)
    elif a.out:
        with open(a.out, "w") as f:
            f.write(text)
    else:
        print(text)
    sys.exit(1 if check(verdicts) else 0)


if __name__ == "__main__":
    main()
