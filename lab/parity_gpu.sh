#!/bin/bash
# parity_gpu.sh - what a GPU has to show for the families llama and qwen2, on one card and in a few minutes:
#   1. every operator against the CPU, the golden folders of Transformers, the fused decoding step
#   2. tokens a second: training and sampling of SmolLM2-135M's and Qwen2.5-0.5B's shapes, bf16
#   3. with BASE, a model folder: its logits on the card against the CPU's (fp32 and bf16), SFT of 60 steps, how far the
#      sampler's bf16 log-probs are from training's (the mean times five is a good MirrorPop delta)
# Prints one table. usage: lab/parity_gpu.sh OUT [BASE] [DEVICE]
# DEVICE: cuda, or sim to try the script (part 2 is left out, part 3 is small). Part 1 takes two minutes, part 2 one,
# part 3 two. Build before: make -j all build/tests/ops/test_dev_ops build/tests/nn/test_model_dev
# build/tests/nn/test_step build/lab/bench_nn_gpu
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: $0 OUT [BASE] [DEVICE]" >&2; exit 2; }
out=$1; base=${2:-}; device=${3:-cuda}
here=$(cd "$(dirname "$0")/.." && pwd)
build=${B:-$here/build}
bin=${MUSACODER:-$build/musacoder}
failed=0
mkdir -p "$out"
export NN_TEST_DEVICE=$device

row() { printf '| %-34s | %s |\n' "$1" "$2" | tee -a "$out/table.md"; }
# NAME PROGRAM ARGS: a row with its last line.
run() {
    local name=$1; shift
    if "$@" >"$out/$name.log" 2>&1; then row "$name" "ok: $(tail -n 1 "$out/$name.log")"
    else failed=1; row "$name" "FAILED, $out/$name.log: $(grep -m 1 -E 'BAD|FAIL' "$out/$name.log")"; fi
}

card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null)
printf '%s, %s, commit %s\n' "$(date -u +%F)" "${card:-no card}" "${commit:-unknown}" | tee "$out/table.md"
row "what" "result"
cd "$here" || exit 1
if [ "$device" != sim ]; then
    run operators "$build/tests/ops/test_dev_ops"
    for f in llama qwen2 tied; do
        run "golden_$f" "$build/tests/nn/test_model_dev" "tests/nn/fixtures/model/$f"
    done
    run fused_step "$build/tests/nn/test_step"
    if BENCH_STEPS=10 "$build/lab/bench_nn_gpu" 135m 500m >"$out/speed.log" 2>&1; then
        while read -r line; do row speed "$line"; done < <(grep -E '^(135m|500m)' "$out/speed.log")
    else
        failed=1; row speed "FAILED, $out/speed.log: $(tail -n 1 "$out/speed.log")"
    fi
fi
[ -n "$base" ] || exit $failed

steps=60; batch=65536; tasks=1500; new=512; prompts=32; val=64
if [ "$device" = sim ]; then steps=1; batch=256; tasks=40; new=4; prompts=1; val=1; fi
python3 -c 'import json; json.dump([(i * 7919 + 13) % 900 for i in range(40)], open("'"$out"'/ids.json", "w"))'
for kind in "cpu fp32" "$device fp32" "$device bf16"; do
    set -- $kind
    "$bin" logits --model "$base" --tokens "$out/ids.json" --device "$1" --dtype "$2" --out "$out/$1-$2.safetensors" \
        2>"$out/logits.log" || { failed=1; row logits "FAILED: $(tail -n 1 "$out/logits.log")"; }
done
row logits "$(python3 - "$out" "$device" <<'EOF'
import json, struct, sys
def read(name):
    raw = open(f"{sys.argv[1]}/{name}.safetensors", "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    a, b = json.loads(raw[8:8 + n])["logits"]["data_offsets"]
    return struct.unpack(f"<{(b - a) // 4}f", raw[8 + n + a:8 + n + b])
cpu = read("cpu-fp32")
top = max(map(abs, cpu))
for kind in ("fp32", "bf16"):
    worst = max(abs(x - y) for x, y in zip(cpu, read(sys.argv[2] + "-" + kind)))
    print(kind, f"{worst / top:.1e} of the largest,", end=" ")
EOF
)"
small=(--tasks $tasks --per-task 1 --heldout 0 --prompts $((prompts * 2)) --knowledge 100 --repairs 0 --style full
    --verify-share 0)
[ -f "$out/data/train.jsonl" ] || "$bin" synth "${small[@]}" --max-ops 2 --out "$out/data" >"$out/synth.log" 2>&1 ||
    { failed=1; row synth "FAILED: $(tail -n 1 "$out/synth.log")"; }
rm -rf "$out/sft" "$out/rl"
"$bin" sft --model "$base" --data "$out/data/train.jsonl" --out "$out/sft" --device "$device" --steps $steps --lr 3e-4 \
    --batch-tokens $batch --micro-tokens $((batch < 2048 ? 2048 : batch)) --max-length 2048 --val-every $steps \
    --val-max $val \
    >"$out/sft.log" 2>&1 || { failed=1; row sft "FAILED: $(tail -n 1 "$out/sft.log")"; }
"$bin" rl --model "$out/sft/model" --prompts "$out/data/prompts.jsonl" --out "$out/rl" --device "$device" --steps 1 \
    --batch-prompts $prompts --group $((val > 1 ? 4 : 2)) --max-new $new --micro-tokens 8192 --logprobs strict \
    --temperature 0.9 --top-p 0.95 --trials 1 --style full >"$out/rl.log" 2>&1 ||
    { failed=1; row rl "FAILED: $(tail -n 1 "$out/rl.log")"; }
python3 - "$out" <<'EOF' | tee -a "$out/table.md"
import json, os, sys
def lines(stage):
    path = f"{sys.argv[1]}/{stage}/metrics.jsonl"
    return [json.loads(x) for x in open(path)] if os.path.exists(path) else []
s = [x for x in lines("sft") if "loss" in x and "tokens" in x]
if s:
    half = s[len(s) // 2:] if len(s) > 3 else s
    rate = (half[-1]["tokens"] - half[0]["tokens"]) / max(1e-9, half[-1]["time_s"] - half[0]["time_s"])
    loss = f"{s[0]['loss']:.3f} to {s[-1]['loss']:.3f}"
    print(f"| {'sft':34} | {s[-1]['step']} steps, loss {loss}, {rate:,.0f} tokens/s |")
for x in lines("rl")[-1:]:
    print(f"| {'rl, bf16 log-probs':34} | sampling {x.get('sampling_s', 0):.2f} s, "
          f"learning {x.get('learning_s', 0):.2f} s; sampler against training: "
          f"mean {x.get('logprob_mismatch_mean', float('nan')):.2e}, "
          f"worst {x.get('logprob_mismatch_worst', float('nan')):.2e} |")
EOF
exit $failed
