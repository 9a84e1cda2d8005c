#!/bin/bash
# four_gpus.sh - what a host with four or eight GPUs has to show; prints one table.
#   1. RL of recipes/smollm2.yaml: one GPU trains, all cores judge; seconds a step by phase, answers judged a second,
#      the benchmark before and after
#   2. SFT of a 1.7 B shape on 1, 2, 4 (8) GPUs: tokens a second, share of the peak, the same loss; whole, ZeRO-1 and 2
#   3. the 9 B shape of recipes/musacoder-9b.yaml, random weights: what the planner says, then ten SFT steps at 4K and
#      rollouts of 64 prompts, a share on each GPU. Where its state does not fit the GPUs with ZeRO-2 it has so many
#      of its 32 layers as the planner says fit
#   4. the service with one worker a device, each with its share of the cores: new programs of tasks whose references
#      are known, judged on 1, 2, 4 (8) devices
# usage: lab/four_gpus.sh OUT [PART...] [--base FOLDER] [--scratch FOLDER] [--tiny]
# A part that was done is not done again; each ends by its own limit: 400, 400, 270, 480 s. Models of random weights lie
# in the scratch folder (default: /dev/shm where that has room, else OUT). --tiny: two ranks of the emulator and small
# shapes, to try the script on CPU. FOUR_STEPS: steps of part 2 (12); FOUR_BATCH: tokens a step of part 3 (65536);
# FOUR_ZERO: its ways to divide state (1 2 where ZeRO-1 fits a card, else 2; the second one makes three steps);
# FOUR_SERVICE_S: seconds that part 4 counts (60); FOUR_RL_STEPS, FOUR_SFT_STEPS: of part 1 (20, 400). Multicast stays
# off in all that is started.
set -uo pipefail
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
out=$1; shift
parts=(); base=base:SmolLM2-135M-Instruct; tiny=; only=; scratch=; given=("$@")
while [ $# -gt 0 ]; do
    case $1 in
    --base) base=$2; shift ;;
    --scratch) scratch=$2; shift ;;
    --tiny) tiny=1 ;;
    --only) only=$2; shift ;;
    [1-4]) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(2 3 4 1)
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${MUSACODER:-${B:-$here/build}/musacoder}
export NCCL_NVLS_ENABLE=0 NCCL_MNNVL_ENABLE=0 CUDA_DISABLE_MULTICAST=1
cards=$(nvidia-smi -L 2>/dev/null | grep -c .)
device=cuda
[ -n "$tiny" ] && { device=sim; cards=2; }
[ "$cards" -gt 0 ] || { echo "$0: no GPU here; --tiny runs without one" >&2; exit 2; }
mkdir -p "$out"; out=$(cd "$out" && pwd)
if [ -z "$scratch" ]; then
    scratch=$out
    [ "$(df --output=avail -BG /dev/shm 2>/dev/null | tail -n 1 | tr -dc 0-9)0" -ge 600 ] && scratch=/dev/shm/four_gpus
fi
mkdir -p "$scratch"
table=$out/table.md
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null)
[ -f "$table" ] || printf '%s, %s x %s, %s cores, commit %s\n\n| part | what | result |\n|---|---|---|\n' \
    "$(date -u +%F)" "$cards" "${card:-emulator}" "$(nproc)" "${commit:-unknown}" >"$table"

row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3" | tee -a "$table"; }
counts() { local n; for n in 1 2 4 8; do [ "$n" -le "$cards" ] && echo "$n"; done; }
why() { grep -E 'error' "$1" | tail -n 1 | grep . || tail -n 1 "$1"; }

# A corpus, and a folder of random weights with a tokenizer: CONFIG OUT
corpus() {
    local n=${tiny:+20}
    [ -f "$out/data/train.jsonl" ] || "$bin" synth --tasks "${n:-3000}" --per-task 1 --heldout 0 --prompts 64 \
        --knowledge 40 --repairs 0 --verify-share 0 --style full --out "$out/data" >"$out/synth.log" 2>&1
}
random_model() {
    local from=$SECONDS
    [ -f "$2/tokenizer.json" ] && return
    "$bin" init --config "$1" --out "$2" --dtype bf16 --shard-size 1 >"$out/init.log" 2>&1 &&
        cp "$here/tests/nn/data/tok_qwen3.json" "$2/tokenizer.json" &&
        row "$3" "random weights" "$(tail -n 1 "$out/init.log"), $((SECONDS - from)) s"
}

# SFT on so many GPUs: NAME MODEL GPUS ZERO STEPS BATCH MICRO LIMIT BILLIONS; ended without a checkpoint once the steps
# are made. Prints tokens a second of the second half, seconds a step, the share of the peak that 6 x BILLIONS of
# multiplied weights are of 989 TFLOPS, losses, memory, and how long the first step took to come.
sft() {
    local run=$out/$1 log=$out/$1.log from=$SECONDS first= used= pid
    rm -rf "$run"
    setsid "$bin" sft --model "$2" --data "$out/data/train.jsonl" --out "$run" --device $device --gpus "$3" \
        --zero "$4" --steps 1000 --lr 1e-5 --batch-tokens "$6" --micro-tokens "$7" --max-length "$7" --val-share 0 \
        --val-every 1000 --save-every 1000 >"$log" 2>&1 &
    pid=$!
    trap 'kill -KILL -- -$pid 2>/dev/null; exit 1' TERM
    while kill -0 $pid 2>/dev/null && [ "$(cat "$run/metrics.jsonl" 2>/dev/null | wc -l)" -lt "$5" ] &&
        [ $((SECONDS - from)) -lt "$8" ]; do
        [ -z "$first" ] && [ -s "$run/metrics.jsonl" ] && first=$((SECONDS - from))
        sleep 0.3
    done
    used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | sort -n | tail -n 1)
    kill -KILL -- -$pid 2>/dev/null
    wait $pid 2>/dev/null
    [ -s "$run/metrics.jsonl" ] || { why "$log"; return 1; }
    python3 - "$run/metrics.jsonl" "$9" "$3" "${first:-$((SECONDS - from))}" "${used:-0}" <<'EOF'
import json, sys
path, billions, gpus, first, used = sys.argv[1:]
s = [json.loads(x) for x in open(path) if x.endswith("\n")]
h = s[(len(s) - 1) // 2:]
took = max(1e-9, h[-1]["time_s"] - h[0]["time_s"]) if len(h) > 1 else s[-1]["time_s"]
rate = (h[-1]["tokens"] - h[0]["tokens"]) / took if len(h) > 1 else s[-1]["tokens"] / took
losses = ", ".join(f"{x['loss']:.5f}" for x in s[:3]) + (f" .. {s[-1]['loss']:.5f}" if len(s) > 3 else "")
share = 100 * rate * 6e9 * float(billions) / (989e12 * int(gpus))
print(f"{len(s)} steps; {rate:,.0f} tokens/s, {took / max(1, len(h) - 1):.2f} s a step, {share:.0f} % of the peak; "
      f"losses {losses}; {float(used) * 1.048576e-3:.1f} GB used at most; "
      f"first step after {first} s")
EOF
}

part_2() {
    local n z config=$out/1700m.json steps=${FOUR_STEPS:-12} micro=16384 batch=262144
    cat >"$config" <<'EOF'
{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
 "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true,
 "rope_theta": 1000000}
EOF
    if [ -n "$tiny" ]; then
        sed -i 's/151936/1000/; s/2048/32/; s/6144/48/; s/: 28/: 1/; s/: 16,/: 2,/; s/: 8,/: 1,/; s/128/16/' "$config"
        steps=2; micro=512; batch=1024
    fi
    random_model "$config" "$scratch/1700m" 2 || { row 2 init "$(why "$out/init.log")"; return; }
    for n in $(counts); do
        for z in 0 1 2; do
            [ "$n$z" = 11 ] || [ "$n$z" = 12 ] || row 2 "1.7 B, SFT on $n, zero $z" \
                "$(sft "sft$n-$z" "$scratch/1700m" "$n" $z "$steps" $batch $micro "${tiny:+3}60" 1.72)"
        done
    done
}

# What the planner says of SFT at 4K with this part in parts: ZERO CONFIG; a line for each of its own.
plan() {
    "$bin" run "$here/recipes/musacoder-9b.yaml" --plan --set model="$2" \
        --set sft.gpus="$cards" --set sft.zero="$1" --set sft.micro-tokens=4096 --set sft.max-length=4096 \
        2>"$out/plan.log" | sed -n 's/^# sft: \(.*GB.*\)/\1/p'
}

# Samples of 64 prompts, a share on each device: MODEL NEW LIMIT
rollouts() {
    local i where from=$SECONDS pids=() each=$(($(nproc) / cards + 1))
    for i in $(seq 0 $((cards - 1))); do
        awk -v n="$cards" -v i="$i" 'NR <= 64 && NR % n == i' "$out/data/prompts.jsonl" >"$out/prompts$i.jsonl"
        where=cuda:$i
        [ -z "$tiny" ] || { sed -i 1q "$out/prompts$i.jsonl"; where=cpu; }
        rm -rf "$out/rollouts$i"
        OMP_NUM_THREADS=$each timeout -s KILL "$3" "$bin" rft --model "$1" --prompts "$out/prompts$i.jsonl" \
            --out "$out/rollouts$i" --device "$where" --steps 0 --samples 4 \
            --chunk 64 --max-new "$2" --temperature 1 --trials 1 --jobs "$each" >"$out/rollouts$i.log" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    python3 - "$out" "$cards" $((SECONDS - from)) <<'EOF'
import json, os, re, sys
out, n, took = sys.argv[1], int(sys.argv[2]), sys.argv[3]
stats, said = [], []
for i in range(n):
    log = open(f"{out}/rollouts{i}.log").read().strip()
    words = re.search(r"(\d+) tokens in ([\d.]+) s", log)
    if words and os.path.exists(f"{out}/rollouts{i}/rft_stats.json"):
        stats.append(json.load(open(f"{out}/rollouts{i}/rft_stats.json")))
        said.append((int(words[1]), float(words[2])))
    else:
        print(f"GPU {i}: " + log.split("\n")[-1] + "; ", end="")
tokens, longest = sum(t for t, _ in said), max([s for _, s in said] or [0])
asked, answers = (sum(s[k] for s in stats) for k in ("prompts", "samples"))
print(f"{asked:.0f} prompts, {answers:.0f} answers, {tokens:,} tokens "
      f"in {longest:.1f} s ({tokens / max(longest, 1e-9):,.0f} a second); {took} s with loading")
EOF
}

# The 9 B shape with as many layers as fit the cards with ZeRO-2: CONFIG; prints how many.
fitting() {
    local layers
    for layers in 32 28 24 20 16 12 8 4; do
        sed "s/\"num_hidden_layers\": 32/\"num_hidden_layers\": $layers/" "$here/recipes/qwen3.5-9b.json" >"$1"
        plan 2 "$1" | grep -q 'it fits' && break
    done
    echo $layers
}

part_3() {
    local config=$out/9b.json steps=10 micro=4096 batch=${FOUR_BATCH:-65536} new=512 zeros="1 2" z layers what
    for z in 1 2; do
        plan $z "$here/recipes/qwen3.5-9b.json" | while read -r line; do row 3 "planner, 9 B, zero $z" "$line"; done
    done
    layers=$(fitting "$config")
    what="9 B"
    [ "$layers" = 32 ] || what="9 B's shape with $layers of 32 layers"
    [ "$layers" = 32 ] || plan 2 "$config" | while read -r line; do row 3 "planner, $what, zero 2" "$line"; done
    plan 1 "$config" | grep -q 'it fits' || zeros=2
    if [ -n "$tiny" ]; then
        steps=2; micro=512; batch=1024; new=4
        sed 's/248320/1000/; s/: 4096/: 32/; s/12288/48/; s/"num_hidden_layers": 32/"num_hidden_layers": 4/
            s/heads": 16/heads": 2/; s/heads": 4/heads": 1/; s/heads": 32/heads": 2/; s/dim": 256/dim": 16/
            s/dim": 128/dim": 16/; s/248046/999/' "$here/recipes/qwen3.5-9b.json" >"$config"
    fi
    random_model "$config" "$scratch/9b" 3 || { row 3 init "$(why "$out/init.log")"; return; }
    for z in ${FOUR_ZERO:-$zeros}; do
        row 3 "$what, SFT on $cards at 4K, zero $z" "$(sft "sft9b-$z" "$scratch/9b" "$cards" "$z" "$steps" "$batch" \
            "$micro" "${tiny:+20}90" "$(awk -v n="$layers" 'BEGIN{print 7.93 - 0.216 * (32 - n)}')")"
        steps=$((steps < 3 ? steps : 3))
    done
    row 3 "$what, rollouts on $cards" "$(rollouts "$scratch/9b" $new "${tiny:+3}80")"
    rm -rf "$scratch/9b"
}

# The programs of the corpus through a queue with a worker for each of N devices.
part_4() {
    local n
    for n in $(counts); do
        row 4 "service, $n devices" "$("$here/lab/judge_devices.py" --records "$out/data/train.jsonl" --devices "$n" \
            --backend $device --seconds "${FOUR_SERVICE_S:-60}" ${tiny:+--at-once 2 --skip 1 --tasks 2} \
            --work "$out/service$n" --cache "$out/service.cache" 2>"$out/service$n.log" ||
            tail -n 1 "$out/service$n.log")"
    done
    rm -rf "$out/service.cache"
}

part_1() {
    local steps=${FOUR_RL_STEPS:-20} sets=(--set synth.tasks=12000 --set synth.heldout=20 --set synth.knowledge=3000
        --set sft.steps="${FOUR_SFT_STEPS:-400}")
    if [ -n "$tiny" ]; then
        steps=1
        sets=(--set synth.tasks=40 --set synth.heldout=1 --set synth.prompts=4 --set synth.repairs=0
            --set synth.harvest=0 --set synth.verify-share=0 --set synth.knowledge=20
            --set sft.harvest-tasks=0
            --set sft.steps=1 --set sft.mix=knowledge=0.1 --set sft.device=cpu --set sft.batch-tokens=2048
            --set sft.micro-tokens=4096 --set rl_single.device=cpu --set rl_single.batch-prompts=1
            --set rl_single.group=2 --set rl_single.max-new=8 --set rl_single.micro-tokens=8192
            --set bench.max-new=8 --set bench.device=cpu --set bench.limit=1
            --set bench.samples=1)
    fi
    timeout -s INT 375 "$bin" run "$here/recipes/smollm2.yaml" --out "$out/smollm2" --set model="$base" \
        --set "stages=synth sft rl_single" --set "bench-after=sft rl_single" --set rl_single.steps="$steps" \
        "${sets[@]}" >"$out/smollm2.log" 2>&1
    row 1 "SmolLM2, SFT and RL on one GPU, judge on $(nproc) cores" "$(python3 - "$out/smollm2" <<'EOF'
import json, os, statistics as st, sys
path = f"{sys.argv[1]}/metrics.jsonl"
lines = list(map(json.loads, open(path))) if os.path.exists(path) else []
s = [x for x in lines if x.get("stage") == "rl_single" and "reward" in x]
if s:
    rl = json.load(open(f"{sys.argv[1]}/recipe.yaml"))["rl_single"]  # JSON is YAML
    answers = rl["batch-prompts"] * rl["group"]
    mid = lambda k: st.median(x.get(k, 0) for x in s)
    wait = sum(x.get("judging_s", 0) + x.get("sampling_s", 0) for x in s)
    print(f"{len(s)} steps; medians: sampling {mid('sampling_s'):.2f} s, judging {mid('judging_s'):.2f}, learning "
          f"{mid('learning_s'):.2f}; {answers * len(s) / max(wait, 1e-9):.1f} answers a second; "
          f"pass rate {s[0].get('pass_rate', 0):.3f} to {s[-1].get('pass_rate', 0):.3f}", end="; ")
if os.path.exists(f"{sys.argv[1]}/summary.json"):
    for g in json.load(open(f"{sys.argv[1]}/summary.json"))["stages"]:
        print(f"{g['name']} Avg@{g.get('k', 8)} {100 * g['avg_at_8']:.1f} %", end="; ")
print("" if s else "no step of RL was made: " + open(f"{sys.argv[1]}.log").read().strip().split("\n")[-1])
EOF
)"
}

if [ -n "$only" ]; then
    "part_$only" && touch "$out/done.$only"
    exit
fi
corpus || { row 0 corpus "$(why "$out/synth.log")"; exit 1; }
limits=(0 400 400 270 $((${FOUR_SERVICE_S:-60} * $(counts | wc -l) + 300)))
for p in "${parts[@]}"; do
    [ -f "$out/done.$p" ] && { echo "part $p was done before"; continue; }
    timeout -k 5 "${limits[$p]}" "$0" "$out" "${given[@]}" --only "$p" || row "$p" limit "ended after ${limits[$p]} s"
done
cat "$table"
