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
exit $bad
