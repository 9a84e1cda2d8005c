#!/bin/sh
# setup.sh - installs what musacoder needs and this machine lacks; says what it does; fast when there is nothing to do.
#
# 1. Debian packages: compiler and libraries (root or sudo). An installed tree, which has no Makefile, builds nothing
#    and needs the compiler alone.
# 2. A Python with PyTorch: $MUSACODER_PYTHON, else one set up earlier, else one found with PyTorch >= 2.6 and numpy,
#    else a virtual environment in the user's data folder with pinned versions from PyPI. Its path goes to DATA/python.
set -eu
TORCH=2.11.0
NEED_GB=7
PACKAGES="gcc g++ libc6-dev make pkg-config python3 python3-venv libjansson-dev libyaml-dev libsqlite3-dev
libseccomp-dev libutf8proc-dev libpcre2-dev libssl-dev zlib1g-dev libcmocka-dev libpq-dev libmicrohttpd-dev
libcurl4-openssl-dev"
MODULES="jansson yaml-0.1 sqlite3 libseccomp libutf8proc libpcre2-8 libcrypto zlib cmocka libpq libmicrohttpd libcurl"
BUILDS=1 AGAIN="make setup"
[ -f "$(dirname "$0")/../Makefile" ] ||
    BUILDS= AGAIN="musacoder setup" MODULES= PACKAGES="g++ libc6-dev python3 python3-venv"
DATA=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/musacoder}
STAMP=$DATA/setup.stamp

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 3; }

have_packages() {
    command -v g++ >/dev/null && command -v python3 >/dev/null || return 1
    [ -n "$BUILDS" ] || return 0
    command -v make >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists $MODULES
}

have_python() {
    [ -z "${MUSACODER_PYTHON:-}" ] && [ -f "$STAMP" ] && read -r py <"$DATA/python" 2>/dev/null && [ -x "$py" ]
}

# What the tests alone need: a server to start for the queue's second half. Tests without it are skipped by name.
if [ "${1:-}" = --tests ] && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    TEST_PACKAGES=postgresql
fi
# And a browser that looks at the dashboard.
if [ "${1:-}" = --tests ] && ! command -v chromium >/dev/null; then
    TEST_PACKAGES="${TEST_PACKAGES:-} chromium"
fi

# And a judge of JSON Schemas.
if [ "${1:-}" = --tests ] && ! /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
    TEST_PACKAGES="${TEST_PACKAGES:-} python3-jsonschema"
fi

# And the converter of GGUF files; its tests are skipped by name where PyPI cannot be reached. A python3 without venv
# leaves a folder without pip.
want_converter() { [ "${1:-}" = --tests ] && [ ! -x "$DATA/import/bin/pip" ]; }

# Nothing to do: no Python is started, nothing is asked of apt.
if have_packages && have_python && [ -z "${TEST_PACKAGES:-}" ] && ! want_converter "$@"; then
    exit 0
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "Debian packages are missing and there is neither root nor sudo;" \
        "as root run: apt-get install $(echo $PACKAGES)"
    fi
}

install_packages() {
    command -v apt-get >/dev/null || die "no apt-get here; install the equivalents of: $(echo $PACKAGES)"
    missing=
    for p in $PACKAGES ${TEST_PACKAGES:-}; do
        [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | cut -c 1-2)" = ii ] || missing="$missing $p"
    done
    [ -n "$missing" ] || die "all Debian packages are installed, yet pkg-config does not find:" \
        "${MODULES:-g++ and python3}; check PKG_CONFIG_PATH and PATH"
    say "installing Debian packages:$missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update ||
        die "'apt-get update' failed; check the network and /etc/apt/sources.list, then run '$AGAIN' again"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing ||
        die "apt-get could not install:$missing; fix what it says above, then run '$AGAIN' again"
    have_packages || die "Debian packages were installed, but one of these is still missing: ${MODULES:-$PACKAGES}"
}

# Prints "VERSION" if this Python can serve, else fails. einops is optional: some public tasks import it.
python_serves() {
    "$1" - 2>/dev/null <<'PY'
import sys
import numpy, torch
major, minor = (int(x) for x in torch.__version__.split("+")[0].split(".")[:2])
if sys.version_info < (3, 9) or (major, minor) < (2, 6):
    sys.exit(1)
print(torch.__version__)
PY
}

choose() {
    mkdir -p "$DATA"
    [ -n "${MUSACODER_PYTHON:-}" ] || printf '%s\n' "$1" >"$DATA/python"
    printf 'torch %s\n' "$2" >"$STAMP"
    say "Python: $1 (PyTorch $2)"
}

find_python() {
    if [ -n "${MUSACODER_PYTHON:-}" ]; then
        v=$(python_serves "$MUSACODER_PYTHON") ||
            die "MUSACODER_PYTHON names '$MUSACODER_PYTHON', which has no PyTorch >= 2.6 with numpy;" \
                "unset it or install them"
        return 0
    fi
    for py in "$DATA/venv/bin/python" "${VIRTUAL_ENV:-/nonexistent}/bin/python" \
        "${CONDA_PREFIX:-/nonexistent}/bin/python" "$(command -v python3 || true)" "$(command -v python || true)"; do
        [ -x "$py" ] || continue
        if v=$(python_serves "$py"); then
            choose "$py" "$v"
            return 0
        fi
    done
    return 1
}

free_gb() { df -Pk "$1" | awk 'NR == 2 { print int($4 / 1048576) }'; }

make_venv() {
    mkdir -p "$DATA" || die "cannot create '$DATA'; set MUSACODER_DATA_DIR to a folder that you can write"
    gb=$(free_gb "$DATA")
    [ "$gb" -ge "$NEED_GB" ] || die "PyTorch needs about $NEED_GB GB while it is installed (5 GB after)" \
        "and '$DATA' has $gb GB free; free some, or set MUSACODER_DATA_DIR"
    say "no Python with PyTorch >= 2.6 found: making one in $DATA/venv"
    say "downloading PyTorch $TORCH, numpy and einops from PyPI: about 3 GB, then about 5 GB on disk ($gb GB free)"
    say "interrupt when you like: finished downloads are kept, '$AGAIN' continues"
    [ -x "$DATA/venv/bin/python" ] || python3 -m venv "$DATA/venv" ||
        die "python3 cannot make a virtual environment; install python3-venv"
    mkdir -p "$DATA/tmp"
    TMPDIR="$DATA/tmp" "$DATA/venv/bin/python" -m pip install --disable-pip-version-check --retries 10 --timeout 60 \
        --progress-bar on "torch==$TORCH" numpy einops ||
        die "pip failed; check the network and the disk, then run '$AGAIN' again"
    rm -rf "$DATA/tmp"
    v=$(python_serves "$DATA/venv/bin/python") ||
        die "PyTorch was installed but does not import: run '$DATA/venv/bin/python -c \"import torch\"';" \
            "remove '$DATA/venv' and run '$AGAIN' again"
    choose "$DATA/venv/bin/python" "$v"
}

# One set-up at a time: clones share the data folder.
mkdir -p "$DATA" || die "cannot create '$DATA'; set MUSACODER_DATA_DIR to a folder that you can write"
if [ -z "${MUSACODER_SETUP_LOCKED:-}" ] && command -v flock >/dev/null; then
    export MUSACODER_SETUP_LOCKED=1
    exec flock "$DATA/setup.lock" "$0" "$@"
fi
have_packages && [ -z "${TEST_PACKAGES:-}" ] || install_packages
if want_converter "$@"; then
    "$(dirname "$0")/import.sh" --venv || say "no converter of GGUF files; its tests are skipped"
fi
find_python || make_venv
say "done"
