"""ablations.py OUT "RECIPE..." SEED... - the table of ablations.sh: what each recipe ends with, and how far it is from
full.yaml on the same seeds and tasks, with the interval of compare_seeds.py (seeds and tasks drawn again)."""

import sys

import compare_seeds as cs


def main(out, names, seeds):
    runs = {n: {s: t for s in seeds if (t := cs.load(out, n, "rl_multi", s))} for n in ["full", *names]}
    families = sorted({t[0] for r in runs.values() for tasks in r.values() for t in tasks.values()})
    print(f"| recipe | seeds | pass (%) | above full, points | 95 % | p (t over seeds) | {' | '.join(families)} |")
    print(f"|{'---|' * (6 + len(families))}")
    for name, r in runs.items():
        d = cs.difference(r, runs["full"]) if name != "full" else None
        cells = [f"{100 * d[0]:+.1f}", f"{100 * d[1]:+.1f} to {100 * d[2]:+.1f}", f"{d[3]:.3g}"] if d else [""] * 3
        cells += [cs.mean_sd([cs.average(t, 1, f) for t in r.values()]) for f in families]
        print(f"| {name} | {len(r)} | {cs.mean_sd([cs.average(t) for t in r.values()])} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2].split(), sys.argv[3:])
