# test_help.sh - every command explains itself with -h, 'help NAME' says the same, and wrong usage is one line, exit 2.
exe=${MUSACODER_EXE:-build/musacoder}
bad=0
fail() { echo "$*"; bad=1; }

commands=$("$exe" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
for want in doctor eval lint shrink bench synth init sft rft rl run card watch export generate logits tokenize \
    version help; do
    echo "$commands" | grep -qx "$want" || fail "'$want' is not in 'musacoder help'"
done
for c in $commands; do
    text=$("$exe" "$c" -h 2>/dev/null) || fail "'$c -h' does not exit with 0"
    echo "$text" | grep -q "^usage: musacoder $c" || fail "'$c -h' has no usage line"
    [ "$text" = "$("$exe" help "$c")" ] || fail "'help $c' differs from '$c -h'"
    "$exe" "$c" --no-such-option-here >/dev/null 2>/tmp/mc-help.$$ && fail "'$c' accepts an unknown option"
    [ "$(wc -l </tmp/mc-help.$$)" = 1 ] || fail "'$c --no-such-option-here': $(cat /tmp/mc-help.$$)"
done
# Each command stands in one group, and its page of the site names its options.
[ -z "$("$exe" help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' | sort | uniq -d)" ] ||
    fail "a command stands in two groups of 'musacoder help'"
"$exe" help | sed -n '/^this program:/,$p' | tail -n +2 | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >/tmp/mc-help.$$
[ "$(tail -n 1 /tmp/mc-help.$$)" = help ] || fail "no group names '$(tail -n 1 /tmp/mc-help.$$)'"
"$exe" man --markdown eval | grep -q '^| `-o`, `--out FILE` |' || fail "'man --markdown eval' lacks an option"
"$exe" evla >/dev/null 2>/tmp/mc-help.$$; [ $? = 2 ] || fail "an unknown command must exit with 2"
grep -q "did you mean 'eval'" /tmp/mc-help.$$ || fail "no suggestion for 'evla'"
"$exe" help evla >/dev/null 2>/tmp/mc-help.$$; [ $? = 2 ] || fail "help of an unknown command must exit with 2"
grep -q "did you mean 'eval'" /tmp/mc-help.$$ || fail "no suggestion for 'help evla'"
rm -f /tmp/mc-help.$$
exit $bad
