"""compare_seeds.py OUT SEED... - the tables of compare_seeds.sh.

1. each stage: Avg@n, Pass@k and one greedy answer, means and standard deviations over seeds; Avg@n by held-out split;
2. pairs of stages of the same seed on the same tasks: points of Avg@n, the 95 % interval of a hierarchical bootstrap
   (seeds, and tasks within them), p of the t test over seeds, and for the first four, which were chosen beforehand,
   Holm's correction; the same difference on each split.
Seeds whose stage is not there yet are left out and counted: a seed that was started belongs into the command.
"""

import json
import math
import os
import random
import statistics
import sys

# stage, folder, benchmark, title
STAGES = [("sft", "seed", "sft", "SFT"), ("rft", "seed", "rft", "RFT"), ("rl", "rl", "rl_single", "RL after RFT"),
          ("only", "only", "rl_single", "RL after SFT"),
          ("more_sft", "more_sft", "control_sft", "control: SFT continued"),
          ("more_rft", "more_rft", "control_rft", "control: RFT with all verdicts"),
          ("permuted", "permuted", "control_permuted", "control: RL after RFT, permuted rewards"),
          ("oracle", "oracle", "control_oracle", "bound: SFT on answers to RL's prompts")]
CHOSEN = [("rft", "more_sft"), ("rl", "more_sft"), ("rl", "more_rft"), ("rl", "permuted")]
PAIRS = CHOSEN + [("only", "more_sft"), ("rl", "rft"), ("rft", "sft"), ("rl", "sft"), ("more_sft", "sft"),
                  ("permuted", "rft"), ("oracle", "rl")]
ROUNDS = 2000


def rows_of(path):
    """task -> (family, share that passed, any passed); None when it is not there."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        rows = json.load(f)["per_task"]
    return {r["task"]: (r["family"], r["passed"] / r["n"] if r["n"] else 0.0, r["passed"] > 0) for r in rows}


def load(out, folder, bench, seed):
    return rows_of(os.path.join(out, f"{folder}{seed}", "bench", bench, "bench.json"))


def load_greedy(out, folder, bench, seed):
    return rows_of(os.path.join(out, "greedy", f"{folder}{seed}_{bench}", "bench.json"))


def mean_sd(values):
    if not values:
        return ""
    return f"{100 * statistics.mean(values):.1f} ± {100 * (statistics.stdev(values) if len(values) > 1 else 0):.1f}"


def average(tasks, at=1, family=None):
    picked = [t[at] for t in tasks.values() if family in (None, t[0])]
    return sum(picked) / len(picked) if picked else math.nan


def t_test(values):
    """Two-sided p that the mean is 0: the density of Student's t, integrated by Simpson's rule."""
    n = len(values)
    if n < 2:
        return math.nan
    sd = statistics.stdev(values)
    if sd == 0:
        return 1.0 if statistics.fmean(values) == 0 else 0.0
    t, df, steps = abs(statistics.fmean(values)) / (sd / math.sqrt(n)), n - 1, 2000
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    if t > 1e3:
        return 0.0
    x = [scale * (1 + (i * t / steps) ** 2 / df) ** (-(df + 1) / 2) for i in range(steps + 1)]
    inside = t / steps / 3 * (x[0] + x[-1] + 4 * sum(x[1:-1:2]) + 2 * sum(x[2:-1:2]))
    return max(0.0, 1 - 2 * inside)


def holm(ps):
    """Holm's corrected p values, in the order given; nan where there was no test."""
    order = sorted((p, i) for i, p in enumerate(ps) if not math.isnan(p))
    fixed, worst = [math.nan] * len(ps), 0.0
    for rank, (p, i) in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p))
        fixed[i] = worst
    return fixed


def difference(a, b, family=None):
    """a, b: seed -> tasks. (points that a is above b, low, high, p, seeds), or None."""
    seeds = sorted(a.keys() & b.keys())
    shared = set.intersection(*(set(a[s]) & set(b[s]) for s in seeds)) if seeds else set()
    names = sorted(n for n in shared if family in (None, a[seeds[0]][n][0]))
    if not names:
        return None
    diff = {s: [a[s][n][1] - b[s][n][1] for n in names] for s in seeds}
    rng, means = random.Random(1), []
    for _ in range(ROUNDS):
        drawn = [statistics.fmean(rng.choices(diff[s], k=len(names))) for s in rng.choices(seeds, k=len(seeds))]
        means.append(statistics.fmean(drawn))
    means.sort()
    by_seed = [statistics.fmean(diff[s]) for s in seeds]
    return (statistics.fmean(by_seed), means[int(0.025 * ROUNDS)], means[int(0.975 * ROUNDS)], t_test(by_seed),
            len(seeds))


def stage_table(runs, greedy, families):
    print(f"| stage | seeds | Avg@n (%) | Pass@k (%) | greedy (%) | {' | '.join(families)} |")
    print(f"|{'---|' * (5 + len(families))}")
    for stage, _, _, title in STAGES:
        r, g = runs[stage], greedy[stage]
        cells = [mean_sd([average(t, 1, f) for t in r.values()]) for f in families]
        print(f"| {title} | {len(r)} | {mean_sd([average(t) for t in r.values()])} | "
              f"{mean_sd([average(t, 2) for t in r.values()])} | {mean_sd([average(t) for t in g.values()])} | "
              f"{' | '.join(cells)} |")


def pair_table(runs, families):
    found = {p: difference(runs[p[0]], runs[p[1]]) for p in PAIRS}
    fixed = dict(zip(CHOSEN, holm([found[p][3] if found[p] else math.nan for p in CHOSEN])))
    print(f"\n| compared | points | 95 % | p (t over seeds) | p (Holm) | seeds | {' | '.join(families)} |")
    print(f"|{'---|' * (6 + len(families))}")
    for p in PAIRS:
        d = found[p]
        if not d:
            print(f"| {p[0]} above {p[1]} | not there |{' |' * (4 + len(families))}")
            continue
        splits = [difference(runs[p[0]], runs[p[1]], f) for f in families]
        cells = [f"{100 * s[0]:+.1f} ({100 * s[1]:+.1f} to {100 * s[2]:+.1f})" if s else "" for s in splits]
        corrected = f"{fixed[p]:.3g}" if p in fixed and not math.isnan(fixed[p]) else ""
        print(f"| {p[0]} above {p[1]} | {100 * d[0]:+.1f} | {100 * d[1]:+.1f} to {100 * d[2]:+.1f} | {d[3]:.3g} | "
              f"{corrected} | {d[4]} | {' | '.join(cells)} |")


def main(out, seeds):
    runs = {s: {n: t for n in seeds if (t := load(out, folder, b, n))} for s, folder, b, _ in STAGES}
    greedy = {s: {n: t for n in seeds if (t := load_greedy(out, folder, b, n))} for s, folder, b, _ in STAGES}
    families = sorted({t[0] for r in runs.values() for tasks in r.values() for t in tasks.values()})
    stage_table(runs, greedy, families)
    pair_table(runs, families)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
