#!/bin/bash
# repair_reads.sh - does a model read its feedback? Turn 2 on its own failures with the judge's feedback, with another
# failure's, and with none. Turn 1 is the same in all three (same seed), so the second turns are compared in pairs.
# A model that was trained with 'edits: true' wants --edits among the options; another failure's words are of the same
# category where there are some.
# usage: lab/repair_reads.sh MODEL TASKS OUT [bench options...]      continues where it was stopped
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 3 ] || { echo "usage: $0 MODEL TASKS OUT [bench options...]" >&2; exit 2; }
model=$1 tasks=$2 out=$3
shift 3
for f in own shuffled none; do
    "${MUSACODER:-build/musacoder}" bench --model "$model" --tasks "$tasks" --out "$out/$f" --turns 2 \
        --feedback $f "$@" > /dev/null
done
exec python3 lab/repair_reads.py "$out"
