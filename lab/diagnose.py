"""diagnose.py TASKS --out FILE [--balanced N] [--bench RUN] - where is a model weak, by what its tasks really compute?

Runs each reference of the folder once under PyTorch's profiler and files the aten operators that it calls under
families (convolution, matmul, reduction, normalisation, softmax, indexing, pooling, elementwise, plumbing); a task
belongs to its rarest family. --balanced N picks a set with as many tasks of each family as there are, N in all. With
--bench, a finished run of 'musacoder bench' on these tasks: compile rate, correctness and speed of its samples by
family, and weights for drawing more of what is weak: (1 - correctness) / mean of it, within 0.25 to 4. Prints tables,
writes all to FILE. Runs the tasks unjailed: for tasks that you trust. Needs PyTorch.
"""

import argparse
import collections
import glob
import json
import os
import statistics
import sys

import torch

FAMILIES = [  # the rarest first: a task is filed under the first that it calls
    ("convolution", ("conv",)), ("pooling", ("pool",)), ("normalisation", ("norm",)),
    ("softmax", ("softmax", "logsumexp")),
    ("attention", ("attention",)), ("scan", ("cumsum", "cumprod", "cummax", "cummin")),
    ("matmul", ("mm", "matmul", "linear", "addmv", "mv", "dot", "einsum")),
    ("indexing", ("index", "gather", "scatter", "embedding", "take", "roll", "flip", "tril", "triu")),
    ("reduction", ("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "var", "std", "max", "min", "loss")),
]
PLUMBING = {"empty", "empty_strided", "empty_like", "as_strided", "view", "reshape", "permute", "transpose", "expand",
            "slice", "select", "unsqueeze", "squeeze", "clone", "copy_", "contiguous", "to", "_to_copy", "detach",
            "detach_", "alias", "t", "resize_", "resolve_conj", "resolve_neg", "zeros", "ones", "full", "fill_",
            "zero_"}


def called(path):
    """aten operator -> calls, of one forward."""
    space = {}
    with open(path, encoding="utf-8") as f:
        exec(compile(f.read(), path, "exec"), space)
    torch.manual_seed(0)
    model, inputs = space["Model"](*space["get_init_inputs"]()), space["get_inputs"]()
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        model(*inputs)
    return {e.key[6:]: e.count for e in p.key_averages() if e.key.startswith("aten::")}


def family_of(calls):
    work = [c for c in calls if c not in PLUMBING]
    for family, words in FAMILIES:
        if any(w == c or w in c.split("_") or (len(w) > 3 and w in c) for c in work for w in words):
            return family
    return "elementwise" if work else "plumbing"


def balanced(families, n):
    """Round robin over the families, in the tasks' order."""
    queues = {f: collections.deque(t for t, g in families.items() if g == f) for f in sorted(set(families.values()))}
    picked = []
    while len(picked) < n and any(queues.values()):
        picked += [q.popleft() for q in queues.values() if q]
    return sorted(picked[:n])


def rates(run, families):
    rows = collections.defaultdict(list)
    with open(os.path.join(run, "verdicts.jsonl"), encoding="utf-8") as f:
        for line in f:
            v = json.loads(line)
            name = os.path.basename(v["task"])
            if v.get("turn", 1) == 1 and name in families and v["verdict"]["status"] in ("passed", "failed"):
                rows[families[name]].append(v["verdict"])
    table = {}
    for family, verdicts in sorted(rows.items()):
        speeds = [(v.get("performance") or {}).get("speedup_eager") for v in verdicts if v["status"] == "passed"]
        speeds = [s for s in speeds if s]
        table[family] = {"samples": len(verdicts), "compile_rate": sum((v.get("compile") or {}).get("ok") is True
                                                                       for v in verdicts) / len(verdicts),
                         "correct": sum(v["status"] == "passed" for v in verdicts) / len(verdicts),
                         "speedup": statistics.median(speeds) if speeds else None}
    weak = {f: 1 - r["correct"] for f, r in table.items()}
    mean = statistics.fmean(weak.values()) if weak else 0
    for f, r in table.items():
        r["weight"] = min(4.0, max(0.25, weak[f] / mean)) if mean else 1.0
    return table


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("tasks")
    p.add_argument("--out", required=True)
    p.add_argument("--balanced", type=int, default=0)
    p.add_argument("--bench")
    o = p.parse_args()
    torch.set_num_threads(1)
    families, operators, broken = {}, collections.Counter(), {}
    for path in sorted(glob.glob(os.path.join(o.tasks, "**", "*.py"), recursive=True)):
        name = os.path.basename(path)[:-3]
        try:
            calls = called(path)
        except Exception as e:  # pylint: disable=broad-except
            broken[name] = f"{type(e).__name__}: {e}"[:200]
            continue
        families[name] = family_of(calls)
        operators.update({c: 1 for c in calls if c not in PLUMBING})
    result = {"families": families, "operators": dict(operators.most_common()), "broken": broken,
              "balanced": balanced(families, o.balanced) if o.balanced else None,
              "rates": rates(o.bench, families) if o.bench else None}
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    print(f"{len(families)} tasks, {len(broken)} that do not run, {len(operators)} aten operators")
    for family, n in collections.Counter(families.values()).most_common():
        print(f"  {family:14} {n}")
    for family, r in (result["rates"] or {}).items():
        speed = f"{r['speedup']:.2f}" if r["speedup"] else "-"
        print(f"  {family:14} {r['samples']:5} samples  compile {100 * r['compile_rate']:5.1f} %  correct "
              f"{100 * r['correct']:5.1f} %  speedup {speed}  weight {r['weight']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
