#!/bin/bash
# card_speed.sh - what one GPU says of the judge's speed; prints one table, seconds and CPU of the machine beside it.
#   builds   programs an hour and CPU a program with device halves by nvcc, and by NVRTC first (card_builds.sh)
#   reference   what a task's expected values cost in a new process, step by step (card_reference.py)
#   where    CPU by process of a few new tasks (cpu_by_process.py), and a trace of their stages
#   corpus   verdicts of a part of tests/corpus by nvcc and by NVRTC first: the same?
#   ours     public programs at their real sizes, where a verdict's time goes, how busy the GPU is (judge_public.py)
#   bench    the same programs by 'musacoder bench --suite', as documented
#   theirs   sixteen of them by KernelBench's own evaluation, and the table beside ours
#   devices  the service with one worker on one device, and with two workers where there are two (judge_devices.py)
#   profile  records of what ncu says of kernels (profile_records.py)
#   parity   ten steps of AdamW in bf16, eight runs of ours beside eight of PyTorch (tests/nn/test_model_dev)
# usage: lab/card_speed.sh OUT [--material FOLDER] [--backend sim] [PART...]
# MATERIAL/public is judge_public.py's WORK, MATERIAL/bench its layout; parts that need them are left out without.
# Parts are run in the order given (reference where ours devices), each within its own limit of seconds. Needs the
# program, its libraries, build/lab/judge_feed and build/tests/nn/test_model_dev; no network. With --backend sim, which
# tries the script, builds, bench, theirs, profile and parity are left out.
set -uo pipefail
[ $# -ge 1 ] || { sed -n '2,/^set/s/^# //p' "$0" >&2; exit 2; }
out=$1; shift
material= backend=cuda parts=()
while [ $# -gt 0 ]; do
    case $1 in
    --material) material=$2; shift ;;
    --backend) backend=$2; shift ;;
    *) parts+=("$1") ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(reference where ours devices)
cd "$(dirname "$0")/.." || exit 3
build=$(realpath "${B:-build}")
export MUSACODER=${MUSACODER:-$build/musacoder} JUDGE_FEED=$build/lab/judge_feed
export MUSACODER_EXE=$MUSACODER
python=${MUSACODER_PYTHON:-python3}
mkdir -p "$out"; out=$(realpath "$out")
[ -z "$material" ] || material=$(realpath "$material")
work=$(mktemp -d)
finish() { "$MUSACODER" owner --stop >/dev/null 2>&1; rm -rf "$work"; }
trap finish EXIT
export MUSACODER_RUN_DIR=$work/run MUSACODER_PREFIX_DIR=${MUSACODER_PREFIX_DIR:-$work/headers}
export MUSACODER_SECRET=card-speed MUSACODER_OWNER_IDLE=20
mkdir -m 700 "$MUSACODER_RUN_DIR"
table=$out/table.md

busy() { awk '/^cpu /{print ($2 + $3 + $4 + $7 + $8) / 100}' /proc/stat; }
row() { printf '| %-28s | %s |\n' "$1" "$2" | tee -a "$table"; }
# NAME SECONDS COMMAND...: runs it with caches of its own; a row with its seconds, its CPU and its last line.
part() {
    local name=$1 limit=$2 start cpu rc; shift 2
    export MUSACODER_CACHE_DIR=$work/cache-$name
    start=$(date +%s.%N) cpu=$(busy)
    timeout -s INT -k 10 "$limit" "$@" >"$out/$name.log" 2>&1
    rc=$?
    row "$name" "$(echo "$start $(date +%s.%N) $cpu $(busy)" |
        awk '{printf "%.1f s, %.1f s of CPU", $2 - $1, $4 - $3}')$(
        [ $rc = 0 ] || echo ", exit code $rc"): $(grep -v '^ *$' "$out/$name.log" | tail -n 1 | cut -c 1-600)"
    return $rc
}

part_builds() {
    [ $backend = sim ] || part builds 130 lab/card_builds.sh "$MUSACODER" "${CARD_PROGRAMS:-48}" || return
    grep -h 'an hour' "$out/builds.log" | while read -r line; do row builds "$line"; done
}

part_reference() {
    local place=cuda; [ $backend = sim ] && place=cpu
    part reference 60 "$python" lab/card_reference.py --place $place docs/example/task.py tests/corpus/tasks/relu.py
}

part_where() {
    MUSACODER_TRACE=$out/where.trace part where 80 python3 lab/cpu_by_process.py "$MUSACODER" synth --out \
        "$work/where" --backend $backend --tasks 12 --per-task 1 --heldout 0 --prompts 0 --repairs 0 --knowledge 0 \
        --trials 1 --seed 53 --verify-share 1
    [ ! -f "$out/where.trace" ] || gzip -f "$out/where.trace"
    grep -h kernel "$out/where.log" | head -8 | while read -r line; do row where "$line"; done
}

corpus_once() { # NAME
    python3 tests/corpus/run.py --backend $backend --no-perf --keep "$out/$1.jsonl" --jobs "$(($(nproc) / 2 + 1))" \
        --only 'passed/[0-4]*' --only 'correctness_error/*' --only 'compile_error/*' --only 'runtime_error/[0-2]*'
}
part_corpus() {
    export -f corpus_once; export out backend
    MUSACODER_CUDA_NVRTC=0 part corpus-nvcc 100 bash -c 'corpus_once corpus-nvcc'
    "$MUSACODER" owner --stop >/dev/null 2>&1
    part corpus-nvrtc 100 bash -c 'corpus_once corpus-nvrtc'
    "$MUSACODER" owner --stop >/dev/null 2>&1
    row corpus "$(python3 - "$out" <<'EOF'
import json, statistics as st, sys
def read(name):
    rows = map(json.loads, open(f"{sys.argv[1]}/corpus-{name}.jsonl"))
    return {r["name"]: r["verdict"] for r in rows if r["verdict"]}
a, b = read("nvcc"), read("nvrtc")
said = lambda v: v["category"] or "passed"
other = [f"{n}: {said(a[n])}, then {said(b[n])}" for n in a if n in b and said(a[n]) != said(b[n])]
took = lambda x: [v["compile"]["ms"] for v in x.values()
                  if isinstance(v.get("compile"), dict) and v["compile"].get("cache") == "miss"]
print(f"{len(a.keys() & b.keys())} judged by both, {len(other)} other verdicts; median build "
      f"{st.median(took(a) or [0]):.0f} ms by nvcc, {st.median(took(b) or [0]):.0f} ms by NVRTC first",
      "; ".join(other)[:400])
EOF
)"
}

need() { [ -d "$material/$1" ] || { row "$1" "left out: no MATERIAL/$1"; return 1; }; }

part_ours() {
    need public || return
    local more=(); [ $backend = cuda ] || more=(--limit 4 --max-elements 65536)
    MUSACODER_TRACE=$out/ours.trace part ours 110 python3 lab/judge_public.py ours "$material/public" "$out/public" \
        --backend $backend --seconds "${CARD_OURS_S:-75}" "${more[@]}"
    python3 lab/judge_public.py table "$material/public" "$out/public" >"$out/public.md" 2>&1
    [ ! -f "$out/ours.trace" ] || gzip -f "$out/ours.trace"
}

part_bench() {
    need bench || return
    rm -rf "$work/suite"
    [ $backend = sim ] || part bench 150 "$MUSACODER" bench --suite "kernelbench:$material/bench/suite" \
        --samples "$material/bench/samples" --backend cuda --out "$work/suite"
    cp "$work"/suite/*.csv "$work/suite/bench.json" "$out/" 2>/dev/null
    row bench "$(wc -l <"$work/suite/verdicts.jsonl" 2>/dev/null || echo 0) programs judged"
}

part_theirs() {
    need public || return
    [ $backend = sim ] && return
    part theirs-build 200 "$python" lab/judge_public.py theirs-build "$material/public" "$out/public" --limit 16 \
        --seconds 190 --reserve 180 --each 185 --build-dir "$work/theirs"
    part theirs-judge 100 "$python" lab/judge_public.py theirs-judge "$material/public" "$out/public" --limit 16 \
        --seconds 90 --reserve 15 --each 60 --build-dir "$work/theirs"
    python3 lab/judge_public.py table "$material/public" "$out/public" >"$out/public.md" 2>&1
    grep '^| ' "$out/public.md" | while read -r line; do echo "$line" >>"$table"; done
}

part_devices() {
    local d n=600; [ $backend = cuda ] || n=8
    part records 60 "$MUSACODER" synth --out "$work/records" --no-verify --tasks $n --per-task 1 --heldout 0 \
        --prompts 0 --repairs 0 --knowledge 0 --style full --seed 52 --max-ops 2 || return
    for d in 1 2; do
        [ $d -le "$(nvidia-smi -L 2>/dev/null | wc -l)" ] || [ $d$backend = 1sim ] || continue
        part "devices-$d" $((90 + ${CARD_DEVICES_S:-60})) python3 lab/judge_devices.py \
            --records "$work/records/train.jsonl" --devices $d --backend $backend --seconds "${CARD_DEVICES_S:-60}" \
            --work "$work/service-$d" --cache "$work/service-cache"
        cp "$work/service-$d/"*.log "$out/" 2>/dev/null
    done
}

part_profile() {
    [ $backend = sim ] || part profile 110 python3 lab/profile_records.py "$work/profiles" --tasks 300 \
        --seconds "${CARD_PROFILE_S:-60}"
    tar -C "$work" -czf "$out/profiles.tar.gz" profiles 2>/dev/null
}

part_parity() {
    local f
    [ $backend = sim ] && return
    for f in llama qwen2 tied; do
        NN_TEST_STEPS=1 NN_TEST_TELL=1 NN_TEST_DEVICE=cuda part "parity-$f" 60 "$build/tests/nn/test_model_dev" \
            "tests/nn/fixtures/model/$f"
        grep -h 'AdamW' "$out/parity-$f.log" | while read -r line; do row "parity-$f" "$line"; done
    done
}

printf '%s, %s, %s cores, commit %s\n\n| part | result |\n|---|---|\n' "$(date -u +%FT%H:%M)" "$(nvidia-smi \
    --query-gpu=name --format=csv,noheader 2>/dev/null || echo 'no card')" "$(nproc)" "$(git rev-parse --short HEAD \
    2>/dev/null || cat "${material:-.}/commit" 2>/dev/null)" | tee -a "$table"
part warm 120 "$MUSACODER" warm --backend $backend
MUSACODER_CUDA_NVRTC=0 part warm-nvcc 120 "$MUSACODER" warm --backend $backend
for p in "${parts[@]}"; do
    case $p in
    builds | reference | where | corpus | ours | bench | theirs | devices | profile | parity) "part_$p" ;;
    *) echo "$0: no part '$p'" >&2; exit 2 ;;
    esac
done
cat "$table"
