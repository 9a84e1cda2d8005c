#!/bin/bash
# compare_seeds.sh - does a stage help? Several seeds of quickstart.yaml on one corpus, side by side, against what has
# to be beaten (recipes/control.yaml): SFT continued as long, RFT with all the verdicts of RFT and RL, RL whose
# rewards go to other samples, and SFT on answers to RL's own prompts as an upper bound. 300 held-out tasks, four
# answers each, and one greedy. Continues where it was stopped; every seed that was started counts.
# usage: lab/compare_seeds.sh OUT SEED... [--jobs N] [-- --set KEY=VALUE...]     N runs at once (default 1)
# ARMS="sft rl" runs those arms alone (default: rft rl only permuted oracle sft), greedy answers only where GREEDY=1
# (default). On 16 cores, five seeds: lab/compare_seeds.sh runs/seeds 1 2 3 4 5 --jobs 8
set -euo pipefail
cd "$(dirname "$0")/.."
. lab/seeds.sh
sets=(--set synth.seed=1 --set synth.heldout=60 --set bench.samples=4)
for s in sft rft rl_single control_rft control_permuted bench; do sets+=(--set "$s.jobs=$(( each * 3 / 2 ))"); done
sets+=("${rest[@]}")

# step FOLDER SEED RECIPE STAGES BENCHED: one run, its words in FOLDER.log
step() {
    local to=$out/$1 seed=$2 recipe=$3
    "$musacoder" run "recipes/$recipe.yaml" --out "$to" --set seed="$seed" --set stages="$4" \
        --set bench-after="$5" "${sets[@]}" > "$to.log" 2>&1 || { echo "$1: failed, see $to.log" >&2; return 1; }
    echo "$(date +%T) $1: $4"
}

# greedy FOLDER STAGE: one answer at temperature 0 to each held-out task
greedy() {
    local run=$out/$1 to=$out/greedy/$1_$2
    [ "${GREEDY:-1}" = 1 ] && [ ! -s "$to/bench.json" ] || return 0
    "$musacoder" bench --model "$run/$2/model" --tasks "$run/data/tasks/heldout" --out "$to" --samples 1 \
        --temperature 0 --max-new 420 --trials 1 --jobs $(( each * 3 / 2 )) > "$to.log" 2>&1 ||
        { echo "greedy $1 $2: failed, see $to.log" >&2; return 1; }
}

# arm FOLDER SEED RECIPE "STAGES THAT SFT'S RUN HAS" STAGE
arm() {
    local head=$4
    begin "seed$2" "$1" $head && step "$1" "$2" "$3" "$head $5" "$5" && greedy "$1" "$5"
}

front() {
    begin corpus "seed$1" synth && step "seed$1" "$1" quickstart "synth init sft rft" "sft rft" &&
        greedy "seed$1" sft && greedy "seed$1" rft
}
arm_rl() { arm "rl$1" "$1" quickstart "synth init sft rft" rl_single; }
arm_permuted() { arm "permuted$1" "$1" control "synth init sft rft" control_permuted; }
arm_only() { arm "only$1" "$1" quickstart "synth init sft" rl_single; }
arm_sft() { arm "more_sft$1" "$1" control "synth init sft" control_sft; }
arm_rft() { arm "more_rft$1" "$1" control "synth init sft" control_rft; }
arm_oracle() { arm "oracle$1" "$1" control "synth init sft" control_oracle; }

mkdir -p "$out/greedy"
step corpus "${seeds[0]}" quickstart synth ""
pool "${seeds[@]/#/front }"
works=()
for a in ${ARMS:-rft rl only permuted oracle sft}; do works+=("${seeds[@]/#/arm_$a }"); done
pool "${works[@]}"
exec python3 lab/compare_seeds.py "$out" "${seeds[@]}"
