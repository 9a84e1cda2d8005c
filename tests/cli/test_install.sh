# test_install.sh - manual pages and completion follow the option rows; an installed tree can be moved, finds its own
# files although a checkout is near, and is taken away whole. What it judges is tried by 'make test-install'.
exe=${MUSACODER_EXE:-build/musacoder}
B=$(dirname "$exe")
unset MUSACODER_LIB_DIR # tests/run.py names the build's; the program must find its own
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "$*"; bad=1; }

"$exe" help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 25 ] || fail "'musacoder help' lists $(wc -l <"$work/commands") commands"
while read -r c; do
    "$exe" man $c >"$work/page" || fail "'man $c' fails"
    "$exe" help $c | sed -n 's/^  \(-[a-z], \)\{0,1\}--\([a-z0-9-]*\).*/\2/p' | sort >"$work/help"
    sed -n 's/\\-/-/g; s/^.B --\([a-z0-9-]*\).*/\1/p' "$work/page" | sort >"$work/man"
    cmp -s "$work/help" "$work/man" ||
        fail "options of '$c': -h and the manual page differ: $(diff "$work/help" "$work/man" | head -3)"
done <"$work/commands"
"$exe" man evla >/dev/null 2>"$work/words"; [ $? = 2 ] || fail "'man evla' must exit with 2"
for s in bash zsh fish; do "$exe" completion $s | grep -q -- shrink || fail "completion of $s lacks a command"; done
"$exe" completion csh 2>/dev/null; [ $? = 2 ] || fail "'completion csh' must exit with 2"
"$exe" completion bash >"$work/bash"
cat >"$work/complete" <<'END'
. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _musacoder; echo "${COMPREPLY[*]}"
END
complete_words() { bash "$work/complete" "$work/bash" "$@"; }
[ "$(complete_words musacoder doct)" = doctor ] || fail "completion of a command: $(complete_words musacoder doct)"
[ "$(complete_words musacoder eval --protocol ker)" = kernelbench ] || fail "completion of a choice"
complete_words musacoder rl --temp | grep -qw -- --temperature || fail "completion of an option"
complete_words musacoder synth mine --hi | grep -qw -- --hints || fail "completion of an option of two words' command"
# The file that zsh loads at the first Tab completes there, too.
"$exe" completion zsh >"$work/_musacoder"
tail -n 1 "$work/_musacoder" | grep -q '!= _musacoder ] || _bash_complete ' || fail "zsh's first completion is empty"
if command -v zsh >/dev/null; then zsh -n "$work/_musacoder" || fail "zsh cannot read its completion"; fi
if command -v fish >/dev/null; then
    "$exe" completion fish >"$work/fish"
    fish_words() { fish --no-config -c "source $work/fish; complete -C '$1'" | cut -f 1; }
    [ "$(fish_words 'musacoder doct')" = doctor ] || fail "fish: completion of a command"
    [ "$(fish_words 'musacoder eval --protocol ker')" = kernelbench ] || fail "fish: completion of a choice"
    [ "$(fish_words 'musacoder synth mine --hi')" = --hints ] || fail "fish: an option of two words' command"
fi

setup/install.sh "$B" "$work/stage" /opt/mc >/dev/null || fail "install fails"
mv "$work/stage/opt/mc" "$work/moved"
cp VERSION "$work/version"
"$work/moved/bin/musacoder" version >"$work/said" || fail "version of the installed program fails"
grep -q "$(cat VERSION)" "$work/said" || fail "version: $(cat "$work/said")"
grep -q "$work/moved/share/musacoder, $work/moved/lib/musacoder" "$work/said" ||
    fail "where its files are: $(cat "$work/said")"
touch "$work/moved/share/musacoder/own.txt"
setup/install.sh --remove "$work" /moved >/dev/null || fail "uninstall fails"
[ "$(find "$work/moved" -type f)" = "$work/moved/share/musacoder/own.txt" ] ||
    fail "uninstall left or took: $(find "$work/moved" -type f | head)"
setup/install.sh --remove "$work" /moved >/dev/null 2>&1 && fail "uninstall of nothing must fail"
exit $bad
