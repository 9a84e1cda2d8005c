#!/bin/sh
# test_secret.sh - 'secret': two machines (cache folders) with one secret draw the same inputs, else others; hex text
# and file mean the same; a verdict that the cache holds under another secret is not given; run folders do not show it.
set -eu
exe=${MUSACODER_EXE:-build/musacoder}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MUSACODER_SECRET
module='(torch.nn.Module):\n    def forward(self, x):\n        return x * 2 + 1\n'
printf "import torch\nclass Model$module" > "$dir/t.py"
printf 'def get_inputs():\n    return [torch.randn(3, 5)]\ndef get_init_inputs():\n    return []\n' >> "$dir/t.py"
printf "import torch\nclass ModelNew$module" > "$dir/c.py"
echo 00ff00ff00ff00ff > "$dir/secret"

# seed CACHE [OPTION..]: the name of the draws' seed, as the record says it
seed() {
    cache=$1
    shift
    MUSACODER_CACHE_DIR="$dir/$cache" "$exe" eval --json --trials 1 --task "$dir/t.py" "$@" "$dir/c.py" \
        > "$dir/out" || true
    sed -n 's/.*"inputs_id":"\([0-9a-f]*\)".*/\1/p' "$dir/out"
}
fail() {
    echo "$1" >&2
    exit 1
}

own=$(seed a)
given=$(seed a --secret 00ff00ff00ff00ff)
[ -n "$own" ] && [ -n "$given" ] || fail "the record names no seed: $(cat "$dir/out")"
[ "$own" != "$given" ] || fail "the machine's own secret was used, or its cached verdict"
[ "$given" = "$(seed b --secret "$dir/secret")" ] || fail "another machine with the same secret draws other inputs"
"$exe" eval --task "$dir/t.py" --secret "$dir/absent" "$dir/c.py" 2> "$dir/err" && fail "an absent file is a secret"
grep -q "is no file" "$dir/err" || fail "no word of the absent file: $(cat "$dir/err")"

"$exe" run recipes/smoke.yaml --plan --secret 00ff00ff00ff00ff > "$dir/plan"
! grep -q 00ff "$dir/plan" || fail "the resolved recipe shows the secret"
"$exe" run recipes/smoke.yaml --set 'stages=synth init' --set synth.tasks=6 --set synth.heldout=1 \
    --set synth.prompts=4 --set synth.verify=false --out "$dir/start" > /dev/null 2>&1 ||
    fail "no small model to start from"
"$exe" rft --model "$dir/start/init" --prompts "$dir/start/data/prompts.jsonl" --out "$dir/run" --max-prompts 1 \
    --samples 1 --max-new 1 --steps 0 --secret 00ff00ff00ff00ff > "$dir/text" 2>&1 || fail "rft: $(cat "$dir/text")"
! grep -q 00ff "$dir/run/options.json" || fail "the run folder shows the secret"
grep -q 'sha256:' "$dir/run/options.json" || fail "the run folder does not know the secret's fingerprint"
