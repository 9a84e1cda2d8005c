#!/usr/bin/env python3
"""'musacoder synth diagnose': references are run, filed by their aten operators, and rated by a benchmark's verdicts.

Ends with 'N passed, M failed'."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/lib"))
import fake_openai  # noqa: E402

BINARY = os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn(2, 4, 8)]


def get_init_inputs():
    return []
"""
TASKS = {"a_map": ("nn.ReLU()", "self.layer(x) * 2"), "b_sum": ("nn.ReLU()", "x.sum(dim=-1)"),
         "c_conv": ("nn.Conv1d(4, 3, 3)", "self.layer(x).relu()"), "d_mm": ("nn.Linear(8, 5)", "self.layer(x)"),
         "e_broken": ("nn.ReLU()", "x.no_such_method()"), "f_hard": ("nn.ReLU()", "torch.softmax(x, -1)")}
FAMILIES = {"a_map": "elementwise", "b_sum": "reduction", "c_conv": "convolution", "d_mm": "matmul",
            "f_hard": "softmax"}
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def diagnose(*args, **env):
    return subprocess.run([BINARY, "synth", "diagnose", *args], capture_output=True, text=True, check=False,
                          env=dict(os.environ, **env))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return json.load(f)


def check_families(folder, out):
    done = diagnose("--tasks", folder, "--out", out)
    check(done.returncode == 0 and "5 references, 1 that do not run" in done.stdout, done.stdout + done.stderr)
    got = read(out, "diagnosis.json")
    check(got["families"] == FAMILIES, got["families"])
    check(list(got["broken"]) == ["e_broken"] and "no_such_method" in got["broken"]["e_broken"], got["broken"])
    lines = open(os.path.join(out, "traced.jsonl"), encoding="utf-8").read()
    done = diagnose("--tasks", folder, "--out", out, MUSACODER_PYTHON="/no/such/python")  # which nothing needs
    check(done.returncode == 0, done.stderr)
    check(open(os.path.join(out, "traced.jsonl"), encoding="utf-8").read() == lines, "a task was run twice")


def check_rates(folder, out):
    with open(os.path.join(out, "verdicts.jsonl"), "w", encoding="utf-8") as f:
        for name in FAMILIES:
            status = "failed" if name == "c_conv" else "passed"
            verdict = {"status": status, "compile": {"ok": True}}
            f.write(json.dumps({"task": name, "turn": 1, "verdict": verdict}) + "\n")
    done = diagnose("--tasks", folder, "--out", out, "--bench", out)
    check(done.returncode == 0 and "correct   0.0 %" in done.stdout, done.stdout + done.stderr)
    weights = read(out, "family-weights.json")
    check(weights["convolution"] > 1 > weights["matmul"], weights)
    made = subprocess.run([BINARY, "synth", "--out", os.path.join(out, "more"), "--no-verify", "--tasks", "20",
                           "--heldout", "0", "--prompts", "0", "--knowledge", "0", "--family-weights",
                           os.path.join(out, "family-weights.json")], capture_output=True, text=True, check=False)
    check(made.returncode == 0, made.stderr)


def check_asked(folder, out):
    """What a user put beside the tasks that a model is asked, and edits of those, stay and are not asked."""
    args = ("--tasks", folder, "--out", out, "--samples", "1", "--balanced", "1", "--model")
    with fake_openai.Server([("no program", True)] * 2) as server:
        done = diagnose(*args, server.url())
        check(done.returncode == 0, done.stderr)
        asked = os.path.join(out, "tasks", next(x for x in os.listdir(out + "/tasks") if x.endswith(".py")))
        for path in (asked, out + "/tasks/mine.py"):
            with open(path, "a", encoding="utf-8") as f:
                f.write("# mine")
        done = diagnose(*args, server.url())
        check(done.returncode == 0, done.stderr)
        for path in (asked, out + "/tasks/mine.py"):
            check(os.path.exists(path + ".edited") and os.path.exists(path) == (path == asked), done.stderr)
            with open(path + ".edited", encoding="utf-8") as f:
                check(f.read().endswith("# mine"), path)
        check(len(server.asked) == 1, f"asked {len(server.asked)} times")


def check_refusals(folder, out):
    for args, word in ((("--out", out), "no tasks"), (("--tasks", folder), "no output folder"),
                       (("--tasks", out, "--out", out + "/x"), "has no tasks"),
                       (("--tasks", folder, "--out", out, "--model", "m", "--bench", "b"), "give one of them")):
        done = diagnose(*args)
        check(done.returncode == 2 and word in done.stderr, f"{args}: {done.stderr}")


def check_recipe():
    done = subprocess.run([BINARY, "run", os.path.join(ROOT, "recipes/smoke.yaml"), "--plan", "--set",
                           "stages=synth init sft diagnose rft", "--set", "bench-after="], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 0 and "diagnose" in done.stdout, done.stdout + done.stderr)


def main():
    with tempfile.TemporaryDirectory() as top:
        folder, out = os.path.join(top, "tasks"), os.path.join(top, "out")
        os.mkdir(folder)
        for name, (layer, forward) in TASKS.items():
            with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as f:
                f.write(TASK.format(layer=layer, forward=forward))
        check_families(folder, out)
        check_rates(folder, out)
        check_asked(folder, out)
        check_refusals(folder, out)
    check_recipe()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
