#!/bin/bash
# compare_seeds.sh - does RL help? quickstart.yaml against control.yaml (the RL stages' time spent on more SFT), for
# several seeds: mean and spread of Pass@8 and Avg@8 on the held-out tasks. Continues where it was stopped.
# usage: lab/compare_seeds.sh OUT SEED... [-- --set KEY=VALUE...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "usage: $0 OUT SEED... [-- --set KEY=VALUE...]" >&2; exit 2; }
out=$1; shift
seeds=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do seeds+=("$1"); shift; done
[ $# -eq 0 ] || shift
bin=${MUSACODER:-build/musacoder}

for s in "${seeds[@]}"; do
    "$bin" run recipes/quickstart.yaml --out "$out/seed$s" --set seed="$s" "$@"
    if [ ! -d "$out/control$s" ]; then # the stages before RL are the same: their markers let the control skip them
        mkdir -p "$out/control$s.part/bench"
        for d in data init sft rft stages; do cp -r "$out/seed$s/$d" "$out/control$s.part/"; done
        cp -r "$out/seed$s/bench/sft" "$out/seed$s/bench/rft" "$out/control$s.part/bench/"
        rm -f "$out/control$s.part/stages/"{,bench_}rl_*.json
        mv "$out/control$s.part" "$out/control$s"
    fi
    "$bin" run recipes/control.yaml --out "$out/control$s" --set seed="$s" "$@"
done

python3 - "$out" "${seeds[@]}" <<'EOF'
import json, statistics as st, sys
out, seeds = sys.argv[1], sys.argv[2:]
rows = {}
for s in seeds:
    for run in ("seed", "control"):
        for g in json.load(open(f"{out}/{run}{s}/summary.json"))["stages"]:
            if run == "seed" or g["name"] == "control":
                rows.setdefault(g["name"], []).append((g["pass_at_8"], g["avg_at_8"]))
def cell(v):
    return f"{100 * st.mean(v):5.1f} ± {100 * (st.stdev(v) if len(v) > 1 else 0):4.1f}"
print(f"\n| stage | Pass@8 (%) | Avg@8 (%) | Avg@8 by seed |\n|---|---|---|---|")
for name, v in rows.items():
    print(f"| {name} | {cell([a for a, _ in v])} | {cell([b for _, b in v])} |",
          " ".join(f"{100 * b:.1f}" for _, b in v), "|")
EOF
