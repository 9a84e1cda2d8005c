#!/bin/bash
# installed.sh - an installed tree at work: 'make install' into a folder, the checkout hidden behind an empty file
# system, a user who is not root. version, eval, bench, serve, completion, manual pages, uninstall. Needs root (for
# the hiding). Not part of 'make test'; 'make test-install' calls it. WORK=FOLDER on a disk with 1 GB.
set -eu
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "installed.sh: run as root: it hides the checkout from an ordinary user" >&2; exit 3; }
B=${B:-build} checkout=$PWD
work=$(mktemp -d "${WORK:-/var/tmp}/musacoder-installed.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/musacoder}
python=${MUSACODER_PYTHON:-$(head -n 1 "$data/python")}
venv=$(dirname "$(dirname "$python")")
chmod 755 "$work"
prefix=$work/opt
# As from a package: the device inside PyTorch is compiled at the first run.
WITH_TORCH=0 setup/install.sh "$B" "" "$prefix" >/dev/null
mkdir "$work/user"
cp docs/example/kernel.py "$work/user/kernel.py"
sed 's/i < n/i <= n/' docs/example/kernel.py >"$work/user/wrong.py"
mkdir -p "$work/user/samples/task" "$work/user/tasks"
cp docs/example/task.py "$work/user/tasks/task.py"
cp docs/example/kernel.py "$work/user/samples/task/0.py"
chown -R 65534:65534 "$work/user"
cat >"$work/user.sh" <<'END'
set -eu
cd "$HOME"
m=$PREFIX/bin/musacoder share=$PREFIX/share/musacoder
fail() { echo "FAILED: $*"; exit 1; }
! ls "$CHECKOUT"/src >/dev/null 2>&1 || fail "the checkout is still there"
[ "$(id -u)" != 0 ] || fail "this is root"
"$m" version | grep -q "$(cat "$share/VERSION")" || fail "version"
"$m" eval --task "$share/docs/example/task.py" kernel.py || fail "eval of a right kernel"
"$m" eval --task "$share/docs/example/task.py" wrong.py >wrong.txt && fail "eval of a wrong kernel"
grep -q "right behind the end" wrong.txt || fail "words of a wrong kernel: $(cat wrong.txt)"
"$m" bench --tasks tasks --samples samples --out run >bench.txt 2>&1 || fail "bench: $(cat bench.txt)"
grep -q "100.0" bench.txt || fail "bench: $(cat bench.txt)"
"$m" serve --port 0 >serve.txt 2>&1 &
for _ in $(seq 300); do grep -qo 'http://[0-9.:]*' serve.txt && break; sleep 0.1; done
url=$(grep -om1 'http://[0-9.:]*' serve.txt) || fail "serve: $(cat serve.txt)"
"$PY" - "$url" tasks/task.py kernel.py <<'PY' || fail "serve: $(cat serve.txt)"
import json, sys, urllib.request
url, task, kernel = sys.argv[1:]
body = {"task": {"name": "example", "code": open(task).read()}, "candidates": [{"code": open(kernel).read()}]}
request = urllib.request.Request(url + "/v1/eval", json.dumps(body).encode(),
                                 {"Content-Type": "application/json"})
assert '"passed"' in urllib.request.urlopen(request, timeout=300).read().decode()
PY
kill %1
[ -s "$PREFIX/share/man/man1/musacoder-eval.1" ] || fail "no manual page of eval"
. "$PREFIX/share/bash-completion/completions/musacoder"
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _musacoder; echo "${COMPREPLY[*]}"
}
[ "$(complete_words musacoder ev)" = eval ] || fail "completion of a command: $(complete_words musacoder ev)"
[ "$(complete_words musacoder eval --backend si)" = sim ] || fail "completion of a choice"
complete_words musacoder synth mine --hi | grep -qx -- --hints || fail "completion of an option"
echo "installed tree: all steps passed"
END
# In a mount namespace of its own: the checkout is empty, and of root's home only the two folders of Python are left.
base=$(dirname "$(dirname "$(readlink -f "$python")")")
unshare -m bash -eu -c '
    mount --make-rprivate /
    mkdir -p "$2/keep/venv" "$2/keep/base"
    mount --bind "$1" "$2/keep/venv"
    mount --bind "$4" "$2/keep/base"
    mount -t tmpfs -o mode=755 none "$3"
    mount -t tmpfs -o mode=755 none "$HOME"
    for d in "$1:venv" "$4:base"; do
        mkdir -p "${d%:*}"
        mount --bind "$2/keep/${d##*:}" "${d%:*}"
    done
    exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
        HOME="$2/user" \
        PREFIX="$2/opt" CHECKOUT="$3" MUSACODER_PYTHON="$1/bin/python" PY="$1/bin/python" bash "$2/user.sh"
' sh "$venv" "$work" "$checkout" "$base"
setup/install.sh --remove "" "$prefix"
left=$(find "$prefix" -type f | head -3)
[ -z "$left" ] || { echo "FAILED: uninstall left $left"; exit 1; }
echo "1 passed, 0 failed"
