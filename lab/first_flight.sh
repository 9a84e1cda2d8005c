#!/bin/bash
# first_flight.sh - recipes/first-flight.yaml with the time of each phase: a model from nothing, its data, its judge and
# its RL on one host. Prints a table; OUT/report.html has the curves, OUT/weights the final model in bf16 (with
# PyTorch). usage: lab/first_flight.sh OUT [full|short|tiny] [--set KEY=VALUE...]
#   full: all GPUs, under ten minutes    short: 1 GPU, about 100 s    tiny: no GPU, the emulator, minutes on two cores
# 'full' asks for as many verdicts as the host's cores give in that time; made for 16 cores an H100.
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: $0 OUT [full|short|tiny] [--set KEY=VALUE...]" >&2; exit 2; }
out=$1; shift
size=full
case ${1:-} in full|short|tiny) size=$1; shift ;; esac
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${MUSACODER:-$here/build/musacoder}
sets=()
set_all() { local s w; s=$1; shift; for w in "$@"; do sets+=(--set "$s.$w"); done; }
cores=$(nproc)
gpus=$(nvidia-smi -L 2>/dev/null | grep -c .)
[ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
if [ "$size" = full ]; then
    [ "$gpus" -gt 0 ] || { echo "$0: no GPU here; 'tiny' runs without one" >&2; exit 2; }
    set_all synth tasks=$((1200 + 75 * cores)) prompts=$((600 + 35 * cores))
    set_all sft gpus="$gpus"
    set_all rft max-prompts=$((3 * cores))
    set_all rl_single batch-prompts="$cores"
    set_all rl_multi batch-prompts=$((cores / 2))
elif [ "$size" = short ]; then
    set_all synth tasks=160 prompts=100 knowledge=400 heldout=5
    set_all sft gpus=1 steps=150 batch-tokens=65536 save-every=200 val-every=30
    set_all rft max-prompts=16 chunk=16 samples=4 steps=10 batch-tokens=32768
    set_all rl_single steps=2 batch-prompts=16 group=4
    set_all rl_multi steps=1 batch-prompts=8 group=4
    set_all bench samples=2 limit=10
elif [ "$size" = tiny ]; then
    set_all synth tasks=12 prompts=4 knowledge=40 heldout=1
    set_all init vocab=512 hidden=64 intermediate=128 layers=1 heads=2 kv-heads=1 head-dim=32
    set_all sft device=sim gpus=1 steps=3 batch-tokens=1024 micro-tokens=1024 val-max=2 val-every=3
    set_all rft device=sim max-prompts=2 chunk=2 samples=2 max-new=12 steps=1 batch-tokens=1024 micro-tokens=1024
    set_all rl_single device=sim steps=1 batch-prompts=2 group=2 max-new=12 micro-tokens=2048
    set_all rl_multi device=sim steps=1 batch-prompts=2 group=2 max-new=12 micro-tokens=2048
    set_all bench device=sim samples=1 limit=2 max-new=12
fi
start=$(date +%s.%N)
"$bin" run "$here/recipes/first-flight.yaml" --out "$out" "${sets[@]}" "$@"
rc=$?
end=$(date +%s.%N)

python3 - "$out" "$start" "$end" <<'EOF'
import json, os, statistics as st, sys
out, start, end = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
lines = [json.loads(x) for x in open(f"{out}/metrics.jsonl")] if os.path.exists(f"{out}/metrics.jsonl") else []
print(f"\nfirst flight: {end - start:.0f} s on {os.cpu_count()} cores\n| phase | seconds |\n|---|---|")
for f in sorted(os.scandir(f"{out}/stages"), key=lambda f: f.stat().st_mtime):
    m = json.load(open(f))
    print(f"| {f.name[:-5]} | {m['seconds']:.1f}{'' if m['done'] else ' (not done)'} |")
for stage in ("sft", "rft"):
    s = [x for x in lines if x["stage"] == stage and "loss" in x]
    if len(s) > 2:
        v = [x["val_loss"] for x in s if "val_loss" in x]
        rate = (s[-1]["tokens"] - s[0]["tokens"]) / (s[-1]["time_s"] - s[0]["time_s"])
        v = v or [float("nan")]
        print(f"{stage}: {s[-1]['step']} steps, loss {s[0]['loss']:.2f} to {s[-1]['loss']:.3f}, validation "
              f"{v[0]:.2f}, best {min(v):.3f}, last {v[-1]:.3f}, {rate:,.0f} tokens/s")
for stage in ("rl_single", "rl_multi"):
    s = [x for x in lines if x["stage"] == stage and "reward" in x]
    if s:
        mean = lambda k: st.mean(x[k] for x in s)
        print(f"{stage}: {len(s)} steps; seconds a step: sampling {mean('sampling_s'):.2f}, then waiting for verdicts "
              f"{mean('judging_s'):.2f}, learning {mean('learning_s'):.2f}")
        for k in ("reward", "pass_rate", "best_pass_rate", "infra", "unsupported", "off_policy_mirror", "masked_share"):
            print(f"  {k}: " + " ".join(f"{x[k]:.3g}" for x in s))
if os.path.exists(f"{out}/summary.json"):
    for g in json.load(open(f"{out}/summary.json"))["stages"]:
        print(f"{g['name']}: Pass@8 {100 * g['pass_at_8']:.1f} %, Avg@8 {100 * g['avg_at_8']:.1f} %")
EOF

python3 - "$out" <<'EOF' 2>/dev/null || echo "weights stay in fp32: no PyTorch or no model"
import glob, json, os, shutil, sys, torch
from safetensors.torch import load_file, save_file
out = sys.argv[1]
last = [s for s in ("rl_multi", "rl_single", "rft", "sft") if os.path.exists(f"{out}/{s}/model/model.safetensors")][0]
shutil.copytree(f"{out}/{last}/model", f"{out}/weights", dirs_exist_ok=True)
w = {k: v.to(torch.bfloat16) for k, v in load_file(f"{out}/weights/model.safetensors").items()}
save_file(w, f"{out}/weights/model.safetensors", metadata={"format": "pt"})
c = json.load(open(f"{out}/weights/config.json"))
c["dtype"] = "bfloat16"
json.dump(c, open(f"{out}/weights/config.json", "w"), indent=2)
print(f"{out}/weights: {last} in bf16, {os.path.getsize(f'{out}/weights/model.safetensors') / 1e6:.1f} MB")
EOF
exit $rc
