#!/bin/bash
# compare_seeds.sh - does a stage help? Several seeds of quickstart.yaml on one corpus, side by side, against what has
# to be beaten: RFT once more with as many verdicts as RL, and SFT on answers to RL's own prompts. Continues where it
# was stopped.
# usage: lab/compare_seeds.sh OUT SEED... [--jobs N] [-- --set KEY=VALUE...]     N runs at once (default 1)
# For 300 held-out tasks in five splits: -- --set synth.heldout=60
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
out=$1 jobs=1 seeds=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift 2 ;;
    *[!0-9]*) usage ;;
    *) seeds+=("$1"); shift ;;
    esac
done
[ $# -eq 0 ] || shift
[ ${#seeds[@]} -gt 0 ] || usage
cores=$(nproc)
each=$(( cores / jobs > 0 ? cores / jobs : 1 ))
export OMP_NUM_THREADS=$each
sets=(--set synth.seed=1 "$@")
for s in sft rft rl_single rl_multi control_rft bench; do sets+=(--set "$s.jobs=$(( each * 3 / 2 ))"); done
mkdir -p "$out"

# step FOLDER SEED RECIPE STAGES BENCHED: one run, its words in FOLDER.log
step() {
    local to=$out/$1 seed=$2 recipe=$3
    "${MUSACODER:-build/musacoder}" run "recipes/$recipe.yaml" --out "$to" --set seed="$seed" --set stages="$4" \
        --set bench-after="$5" "${sets[@]}" > "$to.log" 2>&1 || { echo "$1: failed, see $to.log" >&2; return 1; }
    echo "$(date +%T) $1: $4"
}

# start FROM TO STAGE...: TO begins with what FROM has of these stages; their markers let 'run' skip them
start() {
    local from=$out/$1 to=$out/$2 s
    [ ! -d "$to" ] || return 0
    shift 2
    mkdir -p "$to.part/stages" "$to.part/bench"
    for s in "$@"; do
        cp -r "$from/$([ "$s" = synth ] && echo data || echo "$s")" "$to.part/"
        cp "$from/stages/"{,bench_}"$s.json" "$to.part/stages/" 2> /dev/null || true
        [ ! -d "$from/bench/$s" ] || cp -r "$from/bench/$s" "$to.part/bench/"
    done
    mv "$to.part" "$to"
}

# at most N at once; the first failure is the script's, after the others have ended
pool() {
    local failed=0
    for work in "$@"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || failed=1; done
        $work &
    done
    while [ -n "$(jobs -p)" ]; do wait -n || failed=1; [ -n "$(jobs -rp)" ] || break; done
    wait || failed=1
    return $failed
}

front() { start corpus "seed$1" synth && step "seed$1" "$1" quickstart "synth init sft rft" "sft rft"; }
arm_rl() { start "seed$1" "rl$1" synth init sft rft &&
    step "rl$1" "$1" quickstart "synth init sft rft rl_single rl_multi" "sft rft rl_single rl_multi"; }
arm_rft() { start "seed$1" "more_rft$1" synth init sft rft &&
    step "more_rft$1" "$1" control "synth init sft rft control_rft" "sft rft control_rft"; }
arm_oracle() { start "seed$1" "oracle$1" synth init sft rft &&
    step "oracle$1" "$1" control "synth init sft rft control_oracle" "sft rft control_oracle"; }

step corpus "${seeds[0]}" quickstart synth ""
pool "${seeds[@]/#/front }"
pool "${seeds[@]/#/arm_rl }" "${seeds[@]/#/arm_rft }" "${seeds[@]/#/arm_oracle }"
exec python3 lab/compare_seeds.py "$out" "${seeds[@]}"
