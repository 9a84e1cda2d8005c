#!/usr/bin/env python3
"""'musacoder synth mine': what becomes a task, what is refused and why, hints, what is like a known task, resuming.

Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "faults"))
import crash  # noqa: E402

BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
HEAD = """import math
import einops
import torch
import torch.nn as nn
from torch import Tensor

from .sub.helpers import Half, SLOPE as OTHER
from .sub import twice

SLOPE = 0.2


def gate(x):
    return x * torch.sigmoid(SLOPE * x)


class Base(nn.Module):
    def forward(self, x):
        return torch.tanh(self.layer(x))
"""
GATED = """
class NAME(nn.Module):
    def __init__(self, dim, hidden_dim=48, dropout=0.1):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.drop(gate(self.up(x))))
"""
CLASSES = {  # name -> (text, what becomes of it, its input shapes)
    "Gated": (GATED.replace("NAME", "Gated"), "task", [[4, 32]]),
    "Residual": ("""
class Residual(nn.Module):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(in_channels, out_channels, 3, stride, 1), nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + x)
""", "task", [[4, 32, 16, 16]]),
    "Words": ("""
class Words(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.e = nn.Embedding(vocab_size, dim)

    def forward(self, ids):
        return self.e(ids).cumsum(1)
""", "task", [[4, 12]]),
    "Derived": ("""
class Derived(Base):
    def __init__(self, in_features):
        super().__init__()
        self.layer = nn.Linear(in_features, 7)
""", "task", [[4, 32]]),
    "Configured": ("""
class Configured(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.l = nn.Linear(config["dim"], 3)

    def forward(self, x):
        return self.l(x).exp()
""", "constructor_unknown", None),
    "Base": ("", "no_shapes", None),
    "Across": ("""
class Across(Half):
    def forward(self, x):
        return twice(super().forward(x)).cumsum(-1)
""", "task", [[4, 32]]),
    "Renamed": ("\nclass Renamed(nn.Module):\n    def forward(self, x):\n        return x / OTHER\n", "name_clash",
                None),
    "Twin": (GATED.replace("NAME", "Twin"), "repeated", None),
    "Patches": ("""
class Patches(nn.Module):
    def forward(self, x):
        return einops.rearrange(x, "b c h w -> b (c h w)")
""", "foreign_import", None),
    "Noise": ("\nclass Noise(nn.Module):\n    def forward(self, x):\n        return x + torch.randn(x.shape)\n",
              "stochastic", None),
    "Reads": ("\nclass Reads(nn.Module):\n    def forward(self, x):\n        return len(open('hosts').read()) * x\n",
              "external_state", None),
    "Nothing": ("\nclass Nothing(nn.Module):\n    def forward(self, values):\n        return (values * 0.0).sum(-1)\n",
                "trivial", None),
    "Scale": ("\nclass Scale(nn.Module):\n    def forward(self, x, factor: float):\n        return x * factor\n",
              "scalar_input", None),
    "Picks": ("\nclass Picks(nn.Module):\n    def forward(self, x):\n        return x[x > 0]\n",
              "data_dependent_shape", None),
    "Counts": ("""
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x.mean(-1) * self.seen
""", "changes_state", None),
}
OTHERS = {"sub/__init__.py": "from .helpers import twice\n", "sub/helpers.py": """import torch
import torch.nn as nn

FACTOR = 2
SLOPE = 3


def twice(x):
    return FACTOR * x


class Half(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.l = nn.Linear(features, features // 2)

    def forward(self, x):
        return self.l(x)
"""}
KNOWN = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.e = nn.Embedding(vocab_size, dim)

    def forward(self, tokens):
        return self.e(tokens).cumsum(1)


def get_inputs():
    return [torch.randint(0, 64, (4, 12,))]


def get_init_inputs():
    return [64, 32]
"""
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def mine(*args):
    return subprocess.run([BINARY, "synth", "mine", *args], capture_output=True, text=True, check=False)


def journal(out):
    with open(out + "/mined.jsonl", encoding="utf-8") as f:
        return {r["class"]: r for r in map(json.loads, f)}


def check_tree(tree, out):
    done = mine(tree, "--out", out)
    check(done.returncode == 0, done.stderr[-1500:])
    rows = journal(out)
    for name, (_, want, shapes) in CLASSES.items():
        got = rows.get(name, {})
        check((got.get("reason") or "task") == want, f"{name}: {got}, wanted {want}")
        check(want != "task" or got.get("inputs") == shapes, f"{name} has inputs {got.get('inputs')}")
    report = json.load(open(out + "/report.json"))
    check(report["tasks"] == 6 and report["refused"]["unreadable"] == 1, report)
    check(report["refused"].get("symbolic_link") == 3, f"a link is followed: {report}")
    check(sum(report["refused"].values()) + report["tasks"] == len(CLASSES) + 5, report)  # and sub/bad.py, Half, links


def check_torn(tree, out):
    """A run that was killed inside its last line: that class is tried again, and the file stays readable."""
    path = out + "/mined.jsonl"
    with open(path, "rb+") as f:
        f.truncate(os.path.getsize(path) - 9)
    done = mine(tree, "--out", out)
    check(done.returncode == 0, done.stderr[-500:])
    check(len(journal(out)) == len(CLASSES) + 1, "a torn line is lost or stays")


def check_hints(tree, out, folder):
    again = mine(tree, "--out", out)
    check(f"({len(CLASSES) + 1} were known)" in again.stdout, f"classes are mined again: {again.stdout}")
    hints = os.path.join(folder, "hints.yaml")
    with open(hints, "w", encoding="utf-8") as f:
        f.write("Configured: {init: [{dim: 16}], inputs: [[5, 16]]}\n")
    done = mine(tree, "--out", out, "--hints", hints)
    check(f"({len(CLASSES)} were known)" in done.stdout, done.stdout + done.stderr)
    check(journal(out)["Configured"]["inputs"] == [[5, 16]], "hints are not used")


def task_of(out, name):
    return f"{out}/tasks/{journal(out)[name]['task']}.py"


def check_damage(tree, out):
    """A task that somebody altered, and a line that somebody altered, are mined again."""
    path = task_of(out, "Residual")
    with open(path, encoding="utf-8") as f:
        whole = f.read()
    with open(path, "a", encoding="utf-8") as f:
        f.write("# altered\n")
    done = mine(tree, "--out", out)
    with open(path, encoding="utf-8") as f:
        check(f.read() == whole, "an altered task stays")
    with open(path + ".edited", encoding="utf-8") as f:
        check(f.read() == whole + "# altered\n", "what somebody altered is gone")
    check("is not what was mined" in done.stderr and f"({len(CLASSES)} were known)" in done.stdout, done.stderr)
    with open(out + "/mined.jsonl", encoding="utf-8") as f:
        text = f.read()
    with open(out + "/mined.jsonl", "w", encoding="utf-8") as f:
        f.write(text.replace('"does_not_load"', '"no_inputs"', 1) if '"does_not_load"' in text else
                text.replace('"reason":"', '"reason":"x', 1))
    done = mine(tree, "--out", out)
    check("altered since" in done.stderr, done.stderr)
    check(f"({len(CLASSES)} were known)" in done.stdout, done.stdout)


def check_changed_class(folder):
    """A class whose text changed is mined as it is now; the task of what it was goes, and comes back with it."""
    tree, out = folder + "/changing", folder + "/changed"
    os.makedirs(tree)

    def write(function):
        with open(tree + "/net.py", "w", encoding="utf-8") as f:
            f.write("import torch\nimport torch.nn as nn\n\n\nclass Blk(nn.Module):\n    def __init__(self, dim=32):\n"
                    "        super().__init__()\n        self.l = nn.Linear(dim, dim)\n\n"
                    f"    def forward(self, x):\n        return torch.{function}(self.l(x))\n")
        done = mine(tree, "--out", out, "--no-lint")
        tasks = [open(f"{out}/tasks/{n}", encoding="utf-8").read() for n in os.listdir(out + "/tasks")]
        check(len(tasks) == 1 and f"torch.{function}" in tasks[0], f"{function}: {tasks} {done.stdout} {done.stderr}")

    for function in ("relu", "tanh", "relu"):
        write(function)


def check_stop(folder):
    """What a stopped call has mined is not all, and is told as unfinished; nothing is written through a link."""
    tree, out, mine_own = folder + "/changing", folder + "/stopped", folder + "/own.py"
    stop = dict(os.environ, LD_PRELOAD=crash.library(folder), CRASH_UNDER=out, CRASH_ONLY="/tasks/", CRASH_AT="2",
                OMP_WAIT_POLICY="passive")
    done = subprocess.run([BINARY, "synth", "mine", tree, "--out", out, "--no-lint"], capture_output=True, env=stop,
                          check=False)
    check(done.returncode == -9, done.stderr)
    done = subprocess.run([BINARY, "tasks", out + "/tasks"], capture_output=True, text=True, check=False)
    check(done.returncode == 2 and "is unfinished" in done.stderr, done.stderr)
    done = mine(tree, "--out", out, "--no-lint")
    check(done.returncode == 0, done.stderr)
    task = task_of(out, "Blk")
    with open(mine_own, "w", encoding="utf-8") as f:
        f.write("# own\n")
    os.remove(task)
    os.symlink(mine_own, task)
    done = mine(tree, "--out", out, "--no-lint")
    check(done.returncode == 2 and "is a link" in done.stderr, done.stderr)
    with open(mine_own, encoding="utf-8") as f:
        check(f.read() == "# own\n", "a user's file is written through a link")


def check_known(tree, folder):
    known, out = os.path.join(folder, "known"), os.path.join(folder, "other")
    os.makedirs(known)
    with open(known + "/1_words.py", "w", encoding="utf-8") as f:
        f.write(KNOWN)
    mine(tree, "--out", out, "--against", known, "--no-lint", "--limit", "4")
    got = journal(out)["Words"]
    check(got["reason"] == "contaminated" and "1_words" in got["detail"], f"a known task is mined: {got}")
    with open(known + "/1_words.py", "w", encoding="utf-8") as f:
        f.write("# nothing that is known\n")
    mine(tree, "--out", out, "--against", known, "--no-lint", "--limit", "4")
    got = journal(out)["Words"]
    check(got["reason"] != "contaminated", f"what another --against said is believed: {got}")


def check_usage(folder):
    for args, word in (((), "say one folder"), ((folder,), "--out"),
                       ((folder + "/none", "--out", folder + "/x"), "no folder")):
        done = mine(*args)
        check(done.returncode == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree, out = folder + "/tree", folder + "/out"
        os.makedirs(tree + "/sub")
        with open(tree + "/blocks.py", "w", encoding="utf-8") as f:
            f.write(HEAD + "\n".join(text for text, _, _ in CLASSES.values()))
        for name, text in OTHERS.items():
            with open(os.path.join(tree, name), "w", encoding="utf-8") as f:
                f.write(text)
        with open(tree + "/sub/bad.py", "w", encoding="utf-8") as f:
            f.write("def broken(:\n")
        os.makedirs(folder + "/elsewhere")
        with open(folder + "/elsewhere/out.py", "w", encoding="utf-8") as f:
            f.write(HEAD + GATED.replace("NAME", "Outside"))
        os.symlink(folder + "/elsewhere", tree + "/leads_out")
        os.symlink(folder + "/elsewhere/out.py", tree + "/out.py")
        os.symlink("..", tree + "/sub/circle")
        check_usage(folder)
        check_tree(tree, out)
        check_torn(tree, out)
        check_hints(tree, out, folder)
        check_damage(tree, out)
        check_changed_class(folder)
        check_stop(folder)
        check_known(tree, folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
