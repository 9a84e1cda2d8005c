# test_capsule.sh - a candidate that passes leaves a capsule; the capsule runs without Python; wrong usage is said.
exe=${MUSACODER_EXE:-build/musacoder}
dir=$(mktemp -d)
bad=0
fail() { echo "$*"; bad=1; }

"$exe" eval --task docs/example/task.py docs/example/kernel.py --capsule "$dir/k.caps" >"$dir/out" 2>&1 ||
    fail "eval: $(cat "$dir/out")"
[ -s "$dir/k.caps" ] || fail "no capsule was written"
env -i PATH=/usr/bin:/bin "$exe" replay "$dir/k.caps" >"$dir/out" 2>&1 || fail "replay: $(cat "$dir/out")"
grep -q "right, 0 of " "$dir/out" || fail "replay says: $(cat "$dir/out")"
"$exe" replay "$dir/k.caps" --check --json 2>/dev/null | grep -q '"right":true' || fail "--check --json"
"$exe" replay "$dir/k.caps" --profile "$dir/x.csv" 2>"$dir/out"; [ $? = 2 ] || fail "--profile on sim must exit with 2"
head -c 1000 "$dir/k.caps" >"$dir/cut.caps"
"$exe" replay "$dir/cut.caps" >/dev/null 2>"$dir/out"; [ $? = 2 ] || fail "a capsule that is cut off must exit with 2"
grep -q "damaged or cut off" "$dir/out" || fail "a cut capsule: $(cat "$dir/out")"
{ head -c 2000 "$dir/k.caps"; printf '!?!?'; tail -c +2005 "$dir/k.caps"; } >"$dir/hurt.caps"
"$exe" replay "$dir/hurt.caps" >/dev/null 2>"$dir/out"; [ $? = 2 ] || fail "a damaged capsule must exit with 2"
grep -q "damaged" "$dir/out" || fail "a damaged capsule: $(cat "$dir/out")"
{ printf 'MCCAPS1\n'; tail -c +9 "$dir/k.caps"; } >"$dir/old.caps"
"$exe" replay "$dir/old.caps" 2>&1 | grep -q "version 1" || fail "an old capsule"
"$exe" replay "$dir/none.caps" >/dev/null 2>&1 && fail "a capsule that is not there"
"$exe" eval --task docs/example/task.py a.py b.py --capsule "$dir/x" 2>"$dir/out"; [ $? = 2 ] || fail "two candidates"
rm -rf "$dir"
exit $bad
