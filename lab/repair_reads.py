"""repair_reads.py OUT - the table of repair_reads.sh, from the verdicts in OUT/{own,shuffled,none}.

Recovery: the share of samples that failed in turn 1 and pass in turn 2, with Wilson's 95 % interval. Against 'own': the
difference in points, its 95 % interval (bootstrap over tasks), and McNemar's exact p over the pairs that disagree.
Accepted when recovery is at least 15 % and shuffled feedback costs at least 10 points, of tasks without unseen
operators (names that begin with "unseen"): what a model cannot know no words of a judge teach it. Both tables are
printed.
"""

import json
import math
import random
import sys

SCORED = ("passed", "failed")


def second_turns(folder):
    """(task, sample) -> passed in turn 2, of those that failed in turn 1."""
    first, second = {}, {}
    with open(f"{folder}/verdicts.jsonl", encoding="utf-8") as f:
        for line in f:
            v = json.loads(line)
            (first if v.get("turn", 1) == 1 else second)[v["task"], v["sample"]] = v["verdict"]["status"]
    return {k: s == "passed" for k, s in second.items() if first.get(k) == "failed" and s in SCORED}


def wilson(k, n, z=1.96):
    if n == 0:
        return 0, 0
    p, w = k / n, z * z / n
    half = z * math.sqrt(p * (1 - p) / n + w / n / 4)
    return (p + w / 2 - half) / (1 + w), (p + w / 2 + half) / (1 + w)


def mcnemar(a, b):
    n, least = a + b, min(a, b)
    return min(1, 2 * sum(math.comb(n, i) for i in range(least + 1)) / 2**n) if n else 1


def difference(own, other, rounds=2000):
    """Points that 'other' costs, and its interval when tasks are drawn anew."""
    pairs = {}
    for k in own.keys() & other.keys():
        pairs.setdefault(k[0], []).append(own[k] - other[k])
    tasks, rng, means = [pairs[t] for t in sorted(pairs)], random.Random(1), []
    for _ in range(rounds if tasks else 0):
        drawn = [x for t in rng.choices(tasks, k=len(tasks)) for x in t]
        means.append(sum(drawn) / len(drawn))
    flat, means = [x for t in tasks for x in t], sorted(means)
    if not flat:
        return math.nan, math.nan, math.nan, 1
    p = mcnemar(sum(x > 0 for x in flat), sum(x < 0 for x in flat))
    return sum(flat) / len(flat), means[int(0.025 * rounds)], means[int(0.975 * rounds)], p


def table(turns):
    """Prints the rows; returns the recovery with the judge's own words, and what shuffled ones cost."""
    print("| feedback | failures | recovered | 95 % | costs, points | 95 % | p |\n|---|---|---|---|---|---|---|")
    for name, t in turns.items():
        n, k = len(t), sum(t.values())
        lo, hi = wilson(k, n)
        row = f"| {name} | {n} | {100 * k / max(n, 1):.1f} % | {100 * lo:.1f}-{100 * hi:.1f} |"
        if name != "own":
            d, a, b, p = difference(turns["own"], t)
            row += f" {100 * d:.1f} | {100 * a:.1f} to {100 * b:.1f} | {p:.3g} |"
        print(row + (" | | |" if name == "own" else ""))
    own = turns["own"]
    return sum(own.values()) / max(len(own), 1), difference(own, turns["shuffled"])[0]


def main(out):
    turns = {name: second_turns(f"{out}/{name}") for name in ("own", "shuffled", "none")}
    print("All tasks:\n")
    table(turns)
    print("\nWithout unseen operators:\n")
    share, cost = table({name: {k: v for k, v in t.items() if not k[0].startswith("unseen")}
                         for name, t in turns.items()})
    print(f"\nturn 2 recovers 15 %: {'yes' if share >= 0.15 else 'no'}; shuffled feedback costs 10 points: "
          f"{'yes' if cost >= 0.10 else 'no'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
