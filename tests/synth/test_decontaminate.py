#!/usr/bin/env python3
"""lab/decontaminate.py finds what is planted: a copy, a copy with other names, the same operators with other sizes.

Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
TASK = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, height):
        super().__init__()
        self.layer = nn.Linear(width, height)

    def forward(self, first):
        second = torch.relu(self.layer(first))
        return torch.softmax(second * 0.5, dim=1) + torch.tanh(second)

width = 48
height = 80

def get_inputs():
    return [torch.rand(96, width)]

def get_init_inputs():
    return [width, height]
"""
PLANTED = {
    "copy": (TASK + "\n# the same\n", "L0", True),
    "renamed": (TASK.replace("first", "a").replace("second", "b"), "L2", True),
    "other": ("import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x, y):\n"
              "        return torch.cumsum(x - y, dim=1)\n\ndef get_inputs():\n    return [torch.randn(5, 7), "
              "torch.randn(5, 7)]\n"
              "\ndef get_init_inputs():\n    return []\n", None, False),
}
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def run(folder, code):
    os.makedirs(folder + "/data", exist_ok=True)
    record = {"id": "planted", "task": {"code": code, "ops": ["linear", "relu", "softmax"]}}
    with open(folder + "/data/train-00000.jsonl", "w") as f:
        f.write(json.dumps(record) + "\n")
    done = subprocess.run([sys.executable, ROOT + "/lab/decontaminate.py", folder, folder + "/bench"],
        capture_output=True, text=True,
                          check=False)
    return done.returncode, json.loads(done.stdout)


def check_apply(folder):
    """--apply leaves what is not like the benchmark, and nothing is found afterwards."""
    other = {"id": "other", "task": {"code": TASK.replace("relu", "cos"), "ops": []}}
    path = folder + "/data/train-00000.jsonl"
    like = [line for line in open(path)]
    with open(path, "w") as f:
        f.write(json.dumps({"id": "same", "task": {"code": TASK, "ops": []}}) + "\n")
        f.write(json.dumps(other) + "\n")
    command = [sys.executable, ROOT + "/lab/decontaminate.py", folder, folder + "/bench", "--apply"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    left = [json.loads(line)["id"] for line in open(path)]
    check(done.returncode == 0 and "same" not in left and len(like) == 1, f"--apply left {left}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(json.loads(done.stdout)["to_drop"] == 0, "something is found after --apply")


def check_kept(folder):
    """A corpus of ours is still whole after --apply: the same command does not make it again, and it can be read."""
    def synth():
        return subprocess.run([EXE, "synth", "--surface", "public", "--records", "20", "--shard-size", "10",
                               "--verify-share", "0", "--out", "corpus"], cwd=folder, capture_output=True, text=True,
                              check=False)
    check(synth().returncode == 0, "no corpus was made")
    path = folder + "/corpus/data/train-00001.jsonl"
    with open(path) as f:
        records = [json.loads(line) for line in f]
    os.makedirs(folder + "/own/level1")
    with open(folder + "/own/level1/1_planted.py", "w") as f:
        f.write(records[0]["task"]["code"])
    subprocess.run([sys.executable, ROOT + "/lab/decontaminate.py", folder + "/corpus", folder + "/own", "--apply"],
                   capture_output=True, check=False)
    again = synth()
    with open(path) as f:
        left = [json.loads(line)["id"] for line in f]
    check(records[0]["id"] not in left and len(left) >= len(records) // 2, f"left after the same command: {left}")
    check(again.returncode == 0 and "warning" not in again.stderr, "it says " + again.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/bench/level1")
        with open(folder + "/bench/level1/1_Task.py", "w") as f:
            f.write(TASK)
        for name, (code, layer, dropped) in PLANTED.items():
            rc, report = run(folder, code)
            check(rc == dropped, f"{name}: exit code {rc}")
            check(layer is None or report["found"][layer] == 1, f"{name}: {layer} did not find it: {report['found']}")
        check_apply(folder)
        check_kept(folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
