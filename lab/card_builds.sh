#!/bin/sh
# card_builds.sh [MUSACODER [N]] - a GPU's verdicts an hour with device halves by nvcc, and by NVRTC first: N (default
# 120) synthesised programs each, new caches, headers made beforehand. Times are not taken (synth judges right or
# wrong). Prints seconds, CPU of the whole machine a program, verdicts an hour, and whether both sets of verdicts are
# the same. Needs a GPU and nvcc; four minutes on an H100 with 16 cores. The machine must do nothing else.
set -e
exe=${1:-build/musacoder} n=${2:-120}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export MUSACODER_OWNER=none MUSACODER_PREFIX_DIR="${MUSACODER_PREFIX_DIR:-$work/headers}" MUSACODER_SECRET=builds
now() { # seconds, and those of CPU that the machine has used
    awk -v t="$(date +%s.%N)" '/^cpu /{print t, ($2 + $3 + $4 + $7 + $8) / 100}' /proc/stat
}
run() { # NAME
    export MUSACODER_CACHE_DIR="$work/$1-warm"
    "$exe" warm --backend cuda >/dev/null 2>&1
    export MUSACODER_CACHE_DIR="$work/$1"
    before=$(now)
    "$exe" synth --out "$work/set-$1" --backend cuda --tasks "$n" --per-task 1 --heldout 0 --prompts 0 --repairs 0 \
        --knowledge 0 --trials 1 --seed 51 --verify-share 1 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    echo "$before $(now)" | awk -v w="$1" -v n="$n" '{ s = $3 - $1
        printf "%-6s %6.1f s  %6.3f s of CPU a program  %5.0f an hour\n", w, s, ($4 - $2) / n, n * 3600 / s }'
}
MUSACODER_CUDA_NVRTC=0 run nvcc
run nvrtc
cut -d, -f1 "$work/set-nvcc/train.jsonl" >"$work/a"
cut -d, -f1 "$work/set-nvrtc/train.jsonl" >"$work/b"
cmp -s "$work/a" "$work/b" && echo "the same programs pass" || { echo "other programs pass"; exit 1; }
