"""compare_stages.py RUN... - is each stage better than the stage before? The benchmarks of runs of one recipe with
different seeds (RUN/bench/STAGE/bench.json), in the order of their stages.

Two measures: all answers, a mean over tasks; and answers that hold a complete program, of which the share that passed.
Of two stages: points, the 95 % interval when the tasks of each run are drawn again (2,000 times; stages in pairs), and
p, two-sided, of the same draws. Splits are by 'family'. A run that lacks a stage is left out of its rows and counted.
"""

import json
import os
import random
import statistics
import sys

STAGES = ["sft", "rft", "rl_single", "rl_multi"]
ROUNDS = 2000
MEASURES = {"all answers": ("passed", "n"), "given a complete program": ("whole_passed", "whole")}


def load(run, stage):
    """task -> its row, or None."""
    path = os.path.join(run, "bench", stage, "bench.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return {r["task"]: r for r in json.load(f)["per_task"]}


def rate(rows, names, measure):
    passed, n = MEASURES[measure]
    if measure == "all answers":
        shares = [rows[t][passed] / rows[t][n] for t in names if rows[t][n]]
        return statistics.fmean(shares) if shares else 0.0
    total = sum(rows[t][n] for t in names)
    return sum(rows[t][passed] for t in names) / total if total else 0.0


def compared(a, b, measure, family=None):
    """a, b: of each run the rows of a stage. (points that a is above b, low, high, p, tasks), or None."""
    names = [sorted(t for t in x.keys() & y.keys() if family in (None, x[t]["family"])) for x, y in zip(a, b)]
    if not a or not all(names):
        return None

    def above(drawn):
        return statistics.fmean(rate(x, n, measure) - rate(y, n, measure) for x, y, n in zip(a, b, drawn))
    rng = random.Random(1)
    draws = sorted(above([rng.choices(n, k=len(n)) for n in names]) for _ in range(ROUNDS))
    p = 2 * min(sum(d <= 0 for d in draws), sum(d >= 0 for d in draws)) / ROUNDS
    return (above(names), draws[int(0.025 * ROUNDS)], draws[int(0.975 * ROUNDS)], min(1.0, p), sum(map(len, names)))


def has(rows, measure):
    return all(key in r for r in rows.values() for key in MEASURES[measure])


def main(runs):
    loaded = {s: {r: rows for r in runs if (rows := load(r, s))} for s in STAGES}
    stages = [s for s in STAGES if loaded[s]]
    families = sorted({row["family"] for s in stages for rows in loaded[s].values() for row in rows.values()})
    print("| measure | stage | each run (%) |\n|---|---|---|")
    for m in MEASURES:
        for s in stages:
            rates = [f"{100 * rate(rows, sorted(rows), m):.1f}" if has(rows, m) else "-" for rows in loaded[s].values()]
            print(f"| {m} | {s} | {', '.join(rates)} |")
    print("\n| measure | compared | split | runs | tasks | points | 95 % | p |\n|---|---|---|---|---|---|---|---|")
    pairs = list(zip(stages[1:], stages)) + ([(stages[-1], stages[0])] if len(stages) > 2 else [])
    for m in MEASURES:
        for after, before in pairs:
            both = [r for r in runs if all(r in loaded[s] and has(loaded[s][r], m) for s in (after, before))]
            for f in [None, *families]:
                d = compared([loaded[after][r] for r in both], [loaded[before][r] for r in both], m, f)
                if d:
                    print(f"| {m} | {after} above {before} | {f or 'all'} | {len(both)} | {d[4]} | {100 * d[0]:+.1f} | "
                          f"{100 * d[1]:+.1f} to {100 * d[2]:+.1f} | {'< 0.001' if d[3] < 0.001 else f'{d[3]:.2g}'} |")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
