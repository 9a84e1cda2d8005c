#!/bin/bash
# ablations.sh - what each switch of recipes/ablations is worth: several seeds of full.yaml and of the recipes that are
# named, on one corpus, each with the stages that it shares with full.yaml: these are made first, then all runs at once.
# Continues where it was stopped.
# usage: lab/ablations.sh OUT SEED... [--jobs N] [-- RECIPE... [--set KEY=VALUE]...]    N runs at once (default 1)
# By default: no-rft no-questions no-primeecho. The table is of what passes in up to three turns in the end. With
# '--set stages="synth init sft rl_multi"' the runs have these stages alone (not for a recipe with stages of its own).
set -euo pipefail
cd "$(dirname "$0")/.."
. lab/seeds.sh
set -- "${rest[@]}"
names=() sets=()
while [ $# -gt 0 ] && [ "$1" != --set ]; do names+=("$1"); shift; done
[ ${#names[@]} -gt 0 ] || names=(no-rft no-questions no-primeecho)
stages="synth init sft rft rl_single rl_multi"
for s in synth sft rft rl_single rl_multi bench; do sets+=(--set "$s.jobs=$(( each * 3 / 2 ))"); done
sets+=("$@")
for s in "$@"; do [ "${s#stages=}" = "$s" ] || stages=${s#stages=}; done

# step FOLDER RECIPE SEED [OPTION...]: one run, its words in FOLDER.log
step() {
    local to=$out/$1 recipe=$2 seed=$3
    shift 3
    "$musacoder" run "recipes/ablations/$recipe.yaml" --out "$to" --set seed="$seed" \
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

# the longest start of full.yaml that one of the names shares
longest() {
    local n s most=synth
    for n in "${names[@]}"; do
        s=$(shared "$n" | tr '\n' ' ')
        [ ${#s} -le ${#most} ] || most=${s% }
    done
    echo "$most"
}

start() { begin corpus "full$1" synth && step "full$1" full "$1" --set "stages=$first" --set bench-after=; }
full() { step "full$1" full "$1"; }
one() { begin "full$2" "$1$2" $(shared "$1") && step "$1$2" "$1" "$2"; }

step corpus full "${seeds[0]}" --set stages=synth --set bench-after=
first=$(longest)
pool "${seeds[@]/#/start }"
works=("${seeds[@]/#/full }")
for n in "${names[@]}"; do works+=("${seeds[@]/#/one $n }"); done
pool "${works[@]}"
exec python3 lab/ablations.py "$out" "${names[*]}" "${seeds[@]}"
