#!/bin/sh
# fresh_verdicts.sh [MUSACODER [N [EACH [SEED]]]] - where the CPU of a fresh verdict on sim goes: N (default 80)
# synthesised tasks with EACH programs (1: every task is new; 8: as a group of answers, whose task is known but for the
# first), one trial a distribution, references included, one after the other. perf samples all processes; prints
# milliseconds of CPU a verdict, by the name of the process, and those of the largest one of Python, the fork
# server, which imports PyTorch once: of 40 verdicts each bears a fortieth of that. Groups of answers are judged in
# RL's loop, so 'verdicts a second and core' is its rate, of answers that are all right: wrong ones cost less. Wall
# time is not looked at: the machine may be shared. Needs perf (Debian's linux-perf). Headers are precompiled first,
# which does not count; caches are new.
set -e
exe=${1:-build/musacoder} n=${2:-80} each=${3:-1} seed=${4:-41}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export MUSACODER_OWNER=none MUSACODER_CACHE_DIR="$work/warm"
export MUSACODER_PREFIX_DIR="${MUSACODER_PREFIX_DIR:-$work/headers}"
"$exe" warm >/dev/null 2>&1
export MUSACODER_CACHE_DIR="$work/cache"
perf record -q -o "$work/data" -e cpu-clock -F 997 -- "$exe" synth --out "$work/set" --tasks "$n" \
    --per-task "$each" --heldout 0 --prompts 0 --repairs 0 --knowledge 0 --trials 1 --seed "$seed" --jobs 1 \
    --verify-share 1 2>"$work/log" || {
    cat "$work/log" >&2
    exit 1
}
n=$(grep -c '"kind":"generate"' "$work/set/train.jsonl")
perf script -i "$work/data" -F comm,pid,period 2>/dev/null | awk -v n="$n" '
    { ms[$1] += $3 / 1e6; all += $3 / 1e6 }
    $1 ~ /^python/ { of[$2] += $3 / 1e6; if (of[$2] > server) server = of[$2] }
    END { for (c in ms) if (ms[c] / n >= 0.5) printf "%8.1f ms  %s\n", ms[c] / n, c
          printf "%8.1f ms  of these the fork server\n%8.1f ms  all\n", server / n, all / n
          printf "%8.2f verdicts a second and core\n", n * 1e3 / all }' | sort -rn
