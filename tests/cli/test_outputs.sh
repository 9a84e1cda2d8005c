# test_outputs.sh - what cannot be written is said before work begins, with exit 3; lint goes on after a file that is
# no task.
exe=${MUSACODER_EXE:-build/musacoder}
dir=$(mktemp -d)
bad=0
fail() { echo "$*"; bad=1; }

# refused WORD COMMAND...: exit 3 and one line that names the path
refused() {
    word=$1; shift
    "$exe" "$@" >"$dir/text" 2>"$dir/err"
    rc=$?
    [ $rc = 3 ] || fail "$1 exits with $rc: $(cat "$dir/err")"
    grep -q "cannot create.*$word" "$dir/err" || fail "$1 says: $(cat "$dir/err")"
}

echo '__global__ void k() {}' >"$dir/k.cu"
refused none/x shrink docs/example/task.py --out "$dir/none/x"
refused /proc/x translate "$dir/k.cu" --out /proc/x
refused /proc/x synth --tasks 1 --heldout 1 --no-verify --out /proc/x
refused none/x agent --task docs/example/task.py --model http://127.0.0.1:1/v1 --out "$dir/none/x"
refused none/y agent --task docs/example/task.py --model http://127.0.0.1:1/v1 --out "$dir/x" --log "$dir/none/y"
refused none/x eval --capsule "$dir/none/x" --task docs/example/task.py docs/example/kernel.py
refused none/x eval --out "$dir/none/x" --task docs/example/task.py docs/example/kernel.py
refused none/x bench compare docs docs --html "$dir/none/x"
refused none/x synth --probe relu --out "$dir/p" --values "$dir/none/x"
[ ! -e "$dir/x" ] || fail "agent leaves an empty file"

mkdir "$dir/tasks"
echo 'x = 1' >"$dir/tasks/a.py"
cp docs/example/task.py "$dir/tasks/b.py"
"$exe" lint "$dir/tasks" >"$dir/text" 2>"$dir/err"; [ $? = 2 ] || fail "lint of a file that is no task must exit with 2"
grep -q "^b: clean" "$dir/text" || fail "lint stops at a file that is no task: $(cat "$dir/text" "$dir/err")"
grep -q "; 1 file is no task" "$dir/text" || fail "lint counts: $(cat "$dir/text")"
rm -rf "$dir"
exit $bad
