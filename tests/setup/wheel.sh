#!/bin/bash
# wheel.sh - the wheel in a virtual environment of its own that sees a PyTorch: 'pip install', then eval, bench, the
# package, and 'pip uninstall' leaves nothing. The program must find its libraries inside the wheel, and the checkout is
# not used. Not part of 'make test'; 'make test-wheel' calls it. PYTHON=... is a Python with PyTorch.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/musacoder}
python=${PYTHON:-$(head -n 1 "$data/python")}
wheel=$(ls -t "$PWD/$B"/wheel/musacoder-*.whl | head -n 1)
work=$(mktemp -d "${WORK:-/var/tmp}/musacoder-wheel.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
cp docs/example/task.py docs/example/kernel.py "$work/"
sed 's/i < n/i <= n/' docs/example/kernel.py >"$work/wrong.py"
"$python" -m venv "$work/venv"
site=$(echo "$work"/venv/lib/python3.*/site-packages)
"$python" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/torch_of_another.pth"
"$work/venv/bin/pip" install -q --no-index --disable-pip-version-check "$wheel"
cd "$work"
export MUSACODER_DATA_DIR=$work/data MUSACODER_CACHE_DIR=$work/cache HOME=$work PATH=$work/venv/bin:/usr/bin:/bin
export MUSACODER_OWNER_IDLE=5 # it leaves by itself
unset MUSACODER_PYTHON MUSACODER_SHARE MUSACODER_LIB_DIR
tree=$site/musacoder/tree
for f in "$tree/bin/musacoder" "$tree/lib/musacoder/mcexec" "$tree/lib/musacoder/mcjail"; do
    ldd "$f" | grep -E 'jansson|yaml|sqlite|seccomp|utf8proc|pcre2|crypto' | grep -v "$work" &&
        fail "$f takes libraries from outside"
done
musacoder version | grep -q "$work/venv/bin/python" || fail "it does not use this environment: $(musacoder version)"
musacoder eval --task task.py kernel.py || fail "eval of a right kernel"
musacoder eval --task task.py wrong.py >wrong.txt && fail "eval of a wrong kernel"
grep -q '^FAIL wrong.py:11 out-of-bounds' wrong.txt || fail "words of a wrong kernel: $(cat wrong.txt)"
python -m musacoder schema verdict | grep -q '"title"' || fail "schema"
python -c 'import musacoder; assert musacoder.primeecho([1], 1) == 1.15' || fail "the package"
pip uninstall -q -y musacoder
[ ! -e "$tree" ] || fail "uninstall leaves $(find "$tree" | head -n 3)"
echo "wheel: all steps passed"
