#!/bin/bash
# fresh.sh [deb|wheel|home]... - the three installations on a bare Debian 12: the package by apt, the wheel by pip, and
# 'make install' by a user into a home folder; then README's first commands as they stand there. Each has a root of its
# own over one made by debootstrap. Needs root, the network and 3 GB under $TMPDIR. Not part of 'make test'.
#
#   'make deb' and 'make wheel' come first, or 'make test-fresh' does all. ROOT=DIR keeps the bare root for another run.
#   TORCH_FROM=SITE-PACKAGES lends a PyTorch (for Debian 12's Python 3.11) read-only: nothing large is downloaded.
#   KEEP=1 leaves each way's changes beside the bare root.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build} ways=${*:-deb wheel home}
[ "$(id -u)" = 0 ] || { echo "fresh.sh: run as root" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "fresh.sh: install debootstrap" >&2; exit 3; }
work=$(mktemp -d "${TMPDIR:-/tmp}/musacoder-fresh.XXXXXX")
base=${ROOT:-$work/base}

leave() {
    local status=$? m
    for m in $(awk -v w="$work/" 'index($2, w) == 1 { print $2 }' /proc/mounts | sort -r); do umount -l "$m"; done
    if [ -n "${KEEP:-}" ]; then echo "kept $work"; else rm -rf --one-file-system "$work"; fi
    exit "$status"
}
trap leave EXIT

[ -x "$base/bin/sh" ] || debootstrap --variant=minbase --include=ca-certificates bookworm "$base" ${MIRROR:+"$MIRROR"} \
    >"$work/debootstrap.log" || { tail -3 "$work/debootstrap.log"; exit 1; }

# A root over the bare one, with what the machine itself needs to reach the network.
open_root() {
    root=$work/$1
    mkdir -p "$work/$1.upper" "$work/$1.work" "$root"
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/$1.upper,workdir=$work/$1.work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    local ca=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
    cp -L "$ca" "$root/etc/ssl/host-ca.crt"
    if [ -n "${TORCH_FROM:-}" ]; then
        mkdir -p "$root/opt/torch"
        mount --bind "$TORCH_FROM" "$root/opt/torch" && mount -o remount,bind,ro "$root/opt/torch"
    fi
    cp tests/setup/fresh_steps.sh README.md "$root/opt/"
}

# pivot_root and no chroot: the kernel gives who is in a chroot no user namespaces, and candidates are jailed in them.
inside() { # WAY
    mkdir -p "$root/outside"
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" NVCC= \
        PIP_CERT=/etc/ssl/host-ca.crt SSL_CERT_FILE=/etc/ssl/host-ca.crt \
        ${PIP_INDEX_URL:+"PIP_INDEX_URL=$PIP_INDEX_URL"} \
        unshare -m --propagation private bash -c '
            cd "$1" && pivot_root . outside && cd / && umount -l /outside && exec bash /opt/fresh_steps.sh "$2"
        ' sh "$root" "$1"
}

newest() { ls -t $1 2>/dev/null | head -n 1 | grep . || { echo "fresh.sh: '$1' is missing: make $2" >&2; exit 3; }; }

for way in $ways; do
    open_root "$way"
    case $way in
    deb) cp "$(newest "$B/deb/musacoder_*.deb" deb)" "$root/opt/" ;;
    wheel) cp "$(newest "$B/wheel/musacoder-*.whl" wheel)" "$root/opt/" ;;
    home) git clone -q --depth 1 "file://$PWD" "$root/opt/source" ;;
    *) echo "fresh.sh: the ways are deb, wheel and home" >&2; exit 2 ;;
    esac
    start=$(date +%s)
    inside "$way" >"$work/$way.log" 2>&1 || { tail -30 "$work/$way.log"; echo "FAILED: $way"; exit 1; }
    tail -12 "$work/$way.log"
    echo "$way: README's commands do what they show ($(($(date +%s) - start)) s)"
done
