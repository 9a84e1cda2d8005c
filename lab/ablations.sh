#!/bin/bash
# ablations.sh - what each switch of recipes/ablations is worth: several seeds of full.yaml and of the recipes that are
# named, on one corpus, each with the stages that it shares with full.yaml. Continues where it was stopped.
# usage: lab/ablations.sh OUT SEED... [--jobs N] [-- RECIPE... [--set KEY=VALUE]...]    N runs at once (default 1)
# By default: no-rft no-questions no-primeecho. The table is of what passes in up to three turns in the end.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
out=$1 jobs=1 seeds=() names=() sets=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift 2 ;;
    *[!0-9]*) usage ;;
    *) seeds+=("$1"); shift ;;
    esac
done
[ $# -eq 0 ] || shift
while [ $# -gt 0 ] && [ "$1" != --set ]; do names+=("$1"); shift; done
[ ${#names[@]} -gt 0 ] || names=(no-rft no-questions no-primeecho)
[ ${#seeds[@]} -gt 0 ] || usage
stages="synth init sft rft rl_single rl_multi"
each=$(( $(nproc) / jobs > 0 ? $(nproc) / jobs : 1 ))
export OMP_NUM_THREADS=$each
for s in synth sft rft rl_single rl_multi bench; do sets+=(--set "$s.jobs=$(( each * 3 / 2 ))"); done
sets+=("$@")
mkdir -p "$out"

# step FOLDER RECIPE SEED [OPTION...]: one run, its words in FOLDER.log
step() {
    local to=$out/$1 recipe=$2 seed=$3
    shift 3
    "${MUSACODER:-build/musacoder}" run "recipes/ablations/$recipe.yaml" --out "$to" --set seed="$seed" \
        --set synth.seed=1 --set bench-after=rl_multi "${sets[@]}" "$@" >> "$to.log" 2>&1 ||
        { echo "$to: failed, see $to.log" >&2; return 1; }
    echo "$(date +%T) $to"
}

# shared RECIPE: the first stages that it has as full.yaml does
shared() {
    local file=recipes/ablations/$1.yaml s own
    own=$(sed -n 's/^stages: //p' "$file")
    for s in $stages; do
        case " ${own:-$stages} " in *" $s "*) ;; *) return ;; esac
        ! grep -q "^$s:" "$file" || return 0
        echo "$s"
    done
}

# begin FROM TO STAGE...: TO begins with what FROM has of these stages; their markers let 'run' skip them
begin() {
    local from=$out/$1 to=$out/$2 s
    [ ! -d "$to" ] || return 0
    shift 2
    mkdir -p "$to.part/stages"
    cp "$from/.musacoder" "$to.part/"
    for s in "$@"; do
        cp -r "$from/$([ "$s" = synth ] && echo data || echo "$s")" "$to.part/"
        cp "$from/stages/$s.json" "$to.part/stages/"
    done
    mv "$to.part" "$to"
}

full() { begin corpus "full$1" synth && step "full$1" full "$1"; }
one() { begin "full$2" "$1$2" $(shared "$1") && step "$1$2" "$1" "$2"; }

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

step corpus full "${seeds[0]}" --set stages=synth --set bench-after=
pool "${seeds[@]/#/full }"
works=()
for n in "${names[@]}"; do works+=("${seeds[@]/#/one $n }"); done
pool "${works[@]}"
exec python3 lab/ablations.py "$out" "${names[*]}" "${seeds[@]}"
