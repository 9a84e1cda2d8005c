#!/bin/bash
# four_gpus.sh - what a host with four or eight GPUs has to show, in two calls of at most ten minutes; prints one table.
#   1. RL of recipes/smollm2.yaml: one GPU trains, all cores judge; seconds a step by phase, answers judged a second,
#      the benchmark before and after
#   2. SFT of a 1.7 B shape on 1, 2, 4 (8) GPUs: tokens a second, the same loss; ZeRO-1 on and off
#   3. the 9 B shape of recipes/musacoder-9b.yaml, random weights: what the planner says, then ten SFT steps at 4K and
#      rollouts of 64 prompts
#   4. the service with one worker a device: the same programs judged on 1, 2, 4 devices
# usage: lab/four_gpus.sh OUT [PART...] [--base FOLDER] [--tiny]
# Parts 2 3 4 make the first call, 1 the second; a part that was done is not done again. --tiny: two ranks of the
# emulator and small shapes, to try the script on CPU. FOUR_STEPS: steps of part 2 (12). Multicast stays off in all
# that is started.
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: $0 OUT [PART...] [--base FOLDER] [--tiny]" >&2; exit 2; }
out=$1; shift
parts=(); base=base:SmolLM2-135M-Instruct; tiny=
while [ $# -gt 0 ]; do
    case $1 in
    --base) base=$2; shift ;;
    --tiny) tiny=1 ;;
    *) parts+=("$1") ;;
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
table=$out/table.md
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null)
[ -f "$table" ] || printf '%s, %s x %s, %s cores, commit %s\n\n| part | what | result |\n|---|---|---|\n' \
    "$(date -u +%F)" "$cards" "${card:-emulator}" "$(nproc)" "${commit:-unknown}" >"$table"

row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3" | tee -a "$table"; }
done_before() { [ -f "$out/done.$1" ]; }
counts() { local n; for n in 1 2 4 8; do [ "$n" -le "$cards" ] && echo "$n"; done; }
why() { grep -E 'error' "$1" | tail -n 1 || tail -n 1 "$1"; }

# A corpus, and a folder of random weights with a tokenizer: CONFIG OUT
corpus() {
    local n=${tiny:+20}
    [ -f "$out/data/train.jsonl" ] || "$bin" synth --tasks "${n:-3000}" --per-task 1 --heldout 0 --prompts 64 \
        --knowledge 40 --repairs 0 --verify-share 0 --style full --out "$out/data" >"$out/synth.log" 2>&1
}
random_model() {
    [ -f "$2/tokenizer.json" ] || { "$bin" init --config "$1" --out "$2" >"$out/init.log" 2>&1 &&
        cp "$here/tests/nn/data/tok_qwen3.json" "$2/tokenizer.json"; }
}

# SFT on so many GPUs: NAME MODEL GPUS ZERO STEPS MICRO; prints tokens a second of the second half, and losses.
sft() {
    local batch=$6
    [ -n "$tiny" ] || batch=262144
    rm -rf "$out/$1"
    "$bin" sft --model "$2" --data "$out/data/train.jsonl" --out "$out/$1" --device $device --gpus "$3" --zero "$4" \
        --steps "$5" --lr 1e-5 --batch-tokens $batch --micro-tokens "$6" --max-length "$6" --val-max 1 \
        --val-every "$5" --save-every 100000 >"$out/$1.log" 2>&1 || { why "$out/$1.log"; return 1; }
    python3 - "$out/$1/metrics.jsonl" <<'EOF'
import json, sys
s = [x for x in map(json.loads, open(sys.argv[1])) if "loss" in x]
h = s[len(s) // 2:] if len(s) > 3 else s
rate = (h[-1]["tokens"] - h[0]["tokens"]) / max(1e-9, h[-1]["time_s"] - h[0]["time_s"]) if len(h) > 1 else 0
print(f"{rate:,.0f} tokens/s, loss {s[0]['loss']:.4f} to {s[-1]['loss']:.4f}")
EOF
}

part_2() {
    local n z config=$out/1700m.json steps=${FOUR_STEPS:-12} micro=16384
    cat >"$config" <<'EOF'
{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
 "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true,
 "rope_theta": 1000000}
EOF
    if [ -n "$tiny" ]; then
        sed -i 's/151936/1000/; s/2048/32/; s/6144/48/; s/: 28/: 1/; s/: 16,/: 2,/; s/: 8,/: 1,/; s/128/16/' "$config"
        steps=1; micro=2048
    fi
    random_model "$config" "$out/1700m" || { row 2 init "$(why "$out/init.log")"; return; }
    for n in $(counts); do
        for z in 0 1; do
            [ "$n$z" = 11 ] || row 2 "1.7 B, SFT on $n, zero $z" "$(sft sft$n-$z "$out/1700m" $n $z $steps $micro)"
        done
    done
}

part_3() {
    local config=$here/recipes/qwen3.5-9b.json steps=10 micro=4096 new=512
    [ -n "$tiny" ] && { config=$out/1700m.json; steps=1; new=4; }
    [ -f "$config" ] || { row 3 "9 B" "part 2 comes before it where it is tiny"; return; }
    "$bin" run "$here/recipes/musacoder-9b.yaml" --plan --set model="$config" --set sft.gpus="$cards" \
        --set sft.micro-tokens=$micro --set sft.max-length=$micro 2>"$out/plan.log" | grep '^# sft' |
        while read -r line; do row 3 planner "$line"; done
    random_model "$config" "$out/9b" || { row 3 init "$(why "$out/init.log")"; return; }
    row 3 "9 B, SFT on $cards at 4K, zero 1" "$(sft sft9b "$out/9b" "$cards" 1 $steps $micro)"
    rm -rf "$out/rl9b"
    "$bin" rl --model "$out/9b" --prompts "$out/data/prompts.jsonl" --out "$out/rl9b" --device $device --steps 1 \
        --batch-prompts "$([ -n "$tiny" ] && echo 2 || echo 64)" --group 2 --max-new $new --micro-tokens $micro \
        --trials 1 \
        >"$out/rl9b.log" 2>&1
    row 3 "9 B, rollouts and a step on one" "$([ -f "$out/rl9b/metrics.jsonl" ] && python3 -c '
import json, sys
x = [json.loads(l) for l in open(sys.argv[1])][-1]
print(", ".join(f"{k} {x[k]:.4g}" for k in ("sampling_s", "judging_s", "learning_s") if k in x))' \
        "$out/rl9b/metrics.jsonl" || why "$out/rl9b.log")"
}

# The programs of the corpus through a queue with a worker for each of N devices.
part_4() {
    local n i backend=$device
    for n in $(counts); do
        row 4 "service, $n devices" "$("$here/lab/judge_devices.py" --records "$out/data/train.jsonl" --devices "$n" \
            --backend $backend --seconds "${tiny:+20}${tiny:-60}" --work "$out/service$n" 2>"$out/service$n.log" ||
            tail -n 1 "$out/service$n.log")"
    done
}

part_1() {
    local steps=100 sets=()
    if [ -n "$tiny" ]; then
        steps=1
        sets=(--set synth.tasks=40 --set synth.heldout=1 --set synth.prompts=4 --set synth.repairs=0
            --set synth.harvest=0 --set synth.verify-share=0
            --set sft.harvest-tasks=0
            --set sft.steps=1 --set sft.mix=knowledge=0.1 --set sft.device=cpu --set sft.batch-tokens=2048
            --set sft.micro-tokens=4096 --set rl_single.device=cpu --set rl_single.batch-prompts=1
            --set rl_single.group=2 --set rl_single.micro-tokens=8192 --set bench.device=cpu --set bench.limit=1
            --set bench.samples=1)
    fi
    timeout -s INT 570 "$bin" run "$here/recipes/smollm2.yaml" --out "$out/smollm2" --set model="$base" \
        --set "stages=synth sft rl_single" --set "bench-after=sft rl_single" --set rl_single.steps=$steps \
        "${sets[@]}" >"$out/smollm2.log" 2>&1
    row 1 "SmolLM2, SFT and RL on one GPU, judge on $(nproc) cores" "$(python3 - "$out/smollm2" <<'EOF'
import json, os, statistics as st, sys
path = f"{sys.argv[1]}/metrics.jsonl"
lines = list(map(json.loads, open(path))) if os.path.exists(path) else []
s = [x for x in lines if x.get("stage") == "rl_single" and "reward" in x]
if s:
    rl = json.load(open(f"{sys.argv[1]}/recipe.yaml"))["rl_single"]  # JSON is YAML
    answers = rl["batch-prompts"] * rl["group"]
    mean = lambda k: st.mean(x.get(k, 0) for x in s)
    wait = sum(x.get("judging_s", 0) + x.get("sampling_s", 0) for x in s)
    print(f"{len(s)} steps; sampling {mean('sampling_s'):.2f} s, judging {mean('judging_s'):.2f}, learning "
          f"{mean('learning_s'):.2f}; {answers * len(s) / max(wait, 1e-9):.1f} answers a second; "
          f"pass rate {s[0].get('pass_rate', 0):.3f} to {s[-1].get('pass_rate', 0):.3f}", end="; ")
if os.path.exists(f"{sys.argv[1]}/summary.json"):
    for g in json.load(open(f"{sys.argv[1]}/summary.json"))["stages"]:
        print(f"{g['name']} Avg@{g.get('k', 8)} {100 * g['avg_at_8']:.1f} %", end="; ")
print("" if s else "no step of RL was made: " + open(f"{sys.argv[1]}.log").read().strip().split("\n")[-1])
EOF
)"
}

corpus || { row 0 corpus "$(why "$out/synth.log")"; exit 1; }
for p in "${parts[@]}"; do
    done_before "$p" && { echo "part $p was done before"; continue; }
    case $p in 1|2|3|4) "part_$p"; touch "$out/done.$p" ;; *) echo "$0: no part '$p'" >&2; exit 2 ;; esac
done
cat "$table"
