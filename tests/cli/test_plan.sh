# test_plan.sh - which records SFT reads, by the stages that a recipe plans: public records, a corpus, or both.
exe=$(realpath "${MUSACODER_EXE:-build/musacoder}")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
bad=0
data_of() { # STAGES -> the value of sft's 'data', without the run folder
    "$exe" run recipes/kernelbench.yaml --set model= --set stages="$1" --out "$work/run" --plan 2>"$work/err" |
        sed -n "s:$work/run/::g; s/^# sft: reads //p"
}
check() {
    [ "$(data_of "$1")" = "$2" ] && return
    echo "stages '$1': SFT reads '$(data_of "$1")', not '$2'; $(cat "$work/err")"
    bad=1
}
check "public sft" "public/data"
check "synth public sft" "public/data,data/train.jsonl"
check "synth sft" "data/train.jsonl"
grep -q "\"$(cat VERSION)\"" python/pyproject.toml && grep -q "\"$(cat VERSION)\"" python/musacoder/__init__.py ||
    { echo "VERSION, python/pyproject.toml and python/musacoder/__init__.py differ"; bad=1; }
# A recipe that comes with the program is found by its name, from any folder.
name=$(cd "$work" && "$exe" run smoke --plan 2>&1 | sed -n 's/^  "name": "\(.*\)",$/\1/p')
[ "$name" = smoke ] || { echo "'run smoke' finds '$name'"; bad=1; }
# What a stage would refuse is said before the first one runs: nothing is made, neither with --plan nor without.
refuses() { # SETTING WORDS
    for plan in --plan ""; do
        "$exe" run recipes/smoke.yaml --set "$1" --out "$work/none" $plan >"$work/said" 2>&1
        code=$?
        [ $code = 2 ] && grep -q "$2" "$work/said" && [ ! -e "$work/none" ] && continue
        echo "'$1' $plan: code $code, says '$(head -c 300 "$work/said")', not '$2'"
        bad=1
    done
}
refuses synth.ops=nosuch nosuch
refuses synth.dtypes=float31 float31
refuses sft.zero=7 "zero wants 0, 1 or 2"
refuses sft.gpus=99 "gpus wants 1 to"
refuses sft.micro-tokens=9 "must hold a sequence"
refuses rft.samples=-1 "want"
refuses rl_multi.loss-terms=nosuch nosuch
refuses rl_multi.turns=99 "turns wants 1 to"
refuses rl_multi.negative-weight=7 "negative-weight wants"
refuses bench.faster-than=0 "faster-than 0 is not possible"
# A plan is a recipe itself, needs no base to be there, and knows the shape of those that recipes name.
for recipe in smollm2 musacoder-9b; do
    MUSACODER_DATA_DIR=$work/data "$exe" run $recipe --out "$work/none" --plan >"$work/plan.yaml" 2>"$work/said" &&
        grep -q "^# '.*' is not there yet; its shape is that of recipes/" "$work/plan.yaml" &&
        grep -q "^# sft: .* GB" "$work/plan.yaml" &&
        MUSACODER_DATA_DIR=$work/data "$exe" run "$work/plan.yaml" --out "$work/none" --plan >"$work/again.yaml" &&
        cmp -s "$work/plan.yaml" "$work/again.yaml" && continue
    echo "the plan of $recipe without its base: $(cat "$work/said")"
    diff "$work/plan.yaml" "$work/again.yaml" | head -5
    bad=1
done
MUSACODER_DATA_DIR=$work/data "$exe" run smollm2 --out "$work/none" >/dev/null 2>"$work/said"
[ $? = 2 ] && grep -q "'make base' fetches it" "$work/said" || { echo "without a base: $(cat "$work/said")"; bad=1; }
"$exe" run smok 2>"$work/said"
[ $? = 2 ] && grep -q "no recipe 'smok'; did you mean 'smoke'?; name a file, or one of .*quickstart" "$work/said" ||
    { echo "'run smok' says '$(cat "$work/said")'"; bad=1; }
# What the machine lacks is no matter of a plan.
"$exe" run recipes/smoke.yaml --set bench.device=cuda:77 --out "$work/none" --plan >/dev/null 2>"$work/said" ||
    { echo "a plan asks for the device: $(cat "$work/said")"; bad=1; }
"$exe" run recipes/smoke.yaml --set bench.device=cuda:77 --out "$work/none" >/dev/null 2>"$work/said"
[ $? = 3 ] && grep -q "stage 'bench_[a-z_]*'" "$work/said" && [ ! -e "$work/none" ] ||
    { echo "a device that is not there is found late: $(cat "$work/said")"; bad=1; }
exit $bad
