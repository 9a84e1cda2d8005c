#!/bin/bash
# card_judge.sh - what a card has to show of the judge: the corpus, a folder of cases (lab/cases.py), and the published
# evaluation of KernelBench beside ours on public programs (lab/judge_public.py collect makes PUBLIC).
# usage: lab/card_judge.sh OUT [--cases FOLDER] [--public PUBLIC] [--backend cuda] [--seconds 530]
#        [--only GLOB of the corpus] [--parts "warm corpus cases ours theirs table"]
# Logs and tables go to OUT and are written as verdicts come, so a run that is stopped has shown what it reached. Each
# part has a limit of its own. Needs no git and no network; MUSACODER_EXE, JUDGE_FEED and MUSACODER_LIB_DIR name
# binaries elsewhere.
set -uo pipefail
[ $# -ge 1 ] || { sed -n 's/^# usage: //p' "$0" >&2; exit 2; }
out=$1; shift
cases=; public=; backend=cuda; seconds=530; only='*'
parts="warm corpus cases ours theirs table"
while [ $# -gt 1 ]; do
    case $1 in
    --cases) cases=$2 ;;
    --public) public=$2 ;;
    --backend) backend=$2 ;;
    --seconds) seconds=$2 ;;
    --only) only=$2 ;;
    --parts) parts=$2 ;;
    *) echo "$0: no option '$1'" >&2; exit 2 ;;
    esac
    shift 2
done
here=$(cd "$(dirname "$0")/.." && pwd)
export MUSACODER_EXE=${MUSACODER_EXE:-${B:-$here/build}/musacoder} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export JUDGE_FEED=${JUDGE_FEED:-${B:-$here/build}/lab/judge_feed}
export MUSACODER_SECRET=${MUSACODER_SECRET:-00112233445566778899aabbccddeeff}
mkdir -p "$out"
start=$SECONDS
left() { echo $((seconds - (SECONDS - start))); }
part() { # NAME SECONDS COMMAND...: its output on the terminal and in OUT/NAME.log
    local name=$1 limit=$2; shift 2
    case " $parts " in *" $name "*) ;; *) return ;; esac
    [ "$limit" -le "$(left)" ] || limit=$(left)
    [ "$limit" -gt 5 ] || { echo "== $name: no time is left"; return; }
    echo "== $name, at $((SECONDS - start)) s, $limit s at most"
    timeout -s INT -k 20 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "== $name ended with $? at $((SECONDS - start)) s"; tail -n 60 "$out/$name.log" | cut -c 1-400
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >"$out/machine.txt" 2>&1; nproc >>"$out/machine.txt"
jobs=$((($(nproc) + 3) / 4))
part warm 60 "$MUSACODER_EXE" warm --backend "$backend"
part corpus 170 python3 "$here/tests/corpus/run.py" --backend "$backend" --no-perf --jobs "$jobs" \
    --only "$only" --keep "$out/corpus.jsonl"
[ -z "$cases" ] || part cases 100 python3 "$here/lab/cases.py" "$cases" --backend "$backend" --jobs $((2 * jobs))
if [ -n "$public" ]; then
    third=$(($(left) / 3)) # of what the parts before have left; what is not asked for takes no time
    part ours "$third" python3 "$here/lab/judge_public.py" ours "$public" "$out/public" --protocol kernelbench \
        --backend "$backend" --no-times --seconds $((third - 10))
    rest=$(($(left) - 10))
    [ "$backend" != cuda ] || part theirs "$rest" python3 "$here/lab/judge_public.py" theirs-judge "$public" \
        "$out/public" --no-times --each 170 --reserve 45 --seconds $((rest - 8)) --build-dir "$out/builds"
    rm -rf "$out/builds"
    part table 30 python3 "$here/lab/judge_public.py" table "$public" "$out/public"
fi
