"""compare_seeds.py OUT SEED... - the tables of compare_seeds.sh.

1. each stage: Avg@k and Pass@k, mean and standard deviation over seeds, and Avg@k by held-out split;
2. pairs of stages of the same seed on the same tasks: difference in points of Avg@k, its 95 % interval (bootstrap over
   seeds and tasks at once), and the sign test's p over seeds and tasks that differ. That p takes each task of each seed
   for a draw of its own, though a seed's tasks share its weights: where the two disagree, the interval is right.
Seeds whose stage is not there yet are left out and counted.
"""

import json
import math
import os
import random
import statistics
import sys

STAGES = [("sft", "seed", "SFT, repairs included"), ("rft", "seed", "RFT"), ("rl_single", "rl", "RL, one turn"),
          ("rl_multi", "rl", "RL, up to three turns"),
          ("control_rft", "more_rft", "control: RFT with as many verdicts"),
          ("control_oracle", "oracle", "control: SFT on answers to RL's prompts")]
PAIRS = [("rft", "sft"), ("rl_single", "sft"), ("rl_single", "rft"), ("rl_multi", "rft"), ("rl_multi", "control_rft"),
         ("rl_multi", "control_oracle")]
ROUNDS = 2000


def load(out, folder, stage, seed):
    """task -> (family, share that passed, any passed); None when it is not there."""
    path = os.path.join(out, f"{folder}{seed}", "bench", stage, "bench.json")
    if not os.path.exists(path):
        return None
    rows = json.load(open(path, encoding="utf-8"))["per_task"]
    return {r["task"]: (r["family"], r["passed"] / r["n"] if r["n"] else 0.0, r["passed"] > 0) for r in rows}


def mean_sd(values):
    return f"{100 * statistics.mean(values):.1f} ± {100 * (statistics.stdev(values) if len(values) > 1 else 0):.1f}"


def average(tasks, at=1, family=None):
    picked = [t[at] for t in tasks.values() if family in (None, t[0])]
    return sum(picked) / len(picked) if picked else math.nan


def sign_test(diffs):
    up, down = sum(d > 0 for d in diffs), sum(d < 0 for d in diffs)
    n = up + down
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(min(up, down) + 1)) / 2**n) if n else 1.0


def difference(a, b):
    """a, b: seed -> tasks. Points that a is above b."""
    seeds = sorted(a.keys() & b.keys())
    names = sorted(set.intersection(*(set(a[s]) & set(b[s]) for s in seeds))) if seeds else []
    if not names:
        return None
    diff = {s: [a[s][n][1] - b[s][n][1] for n in names] for s in seeds}
    rng, means = random.Random(1), []
    for _ in range(ROUNDS):
        tasks = rng.choices(range(len(names)), k=len(names))
        drawn = [statistics.fmean(diff[s][t] for t in tasks) for s in rng.choices(seeds, k=len(seeds))]
        means.append(statistics.fmean(drawn))
    means.sort()
    flat = [d for s in seeds for d in diff[s]]
    return statistics.fmean(flat), means[int(0.025 * ROUNDS)], means[int(0.975 * ROUNDS)], sign_test(flat), len(flat)


def main(out, seeds):
    runs = {stage: {s: t for s in seeds if (t := load(out, folder, stage, s))} for stage, folder, _ in STAGES}
    families = sorted({t[0] for r in runs.values() for tasks in r.values() for t in tasks.values()})
    print(f"| stage | seeds | Avg@k (%) | Pass@k (%) | {' | '.join(families)} |\n|{'---|' * (4 + len(families))}")
    for stage, _, title in STAGES:
        r = runs[stage]
        if not r:
            print(f"| {title} | 0 | | |{' |' * len(families)}")
            continue
        cells = [mean_sd([average(t, 1, f) for t in r.values()]) for f in families]
        print(f"| {title} | {len(r)} | {mean_sd([average(t) for t in r.values()])} | "
              f"{mean_sd([average(t, 2) for t in r.values()])} | {' | '.join(cells)} |")
    print("\n| compared | points of Avg@k | 95 % | p (signs) | pairs |\n|---|---|---|---|---|")
    for a, b in PAIRS:
        d = difference(runs[a], runs[b])
        print(f"| {a} above {b} | " + ("not there | | | |" if not d else
              f"{100 * d[0]:+.1f} | {100 * d[1]:+.1f} to {100 * d[2]:+.1f} | {d[3]:.3g} | {d[4]} |"))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
