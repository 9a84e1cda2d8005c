#!/bin/bash
# bare.sh [TARGET] - what a newcomer meets: a bare Debian 12 root (debootstrap), git and make, this clone, 'make TARGET'
# (default: test). Needs root, debootstrap, the network and about 12 GB under $TMPDIR. Not part of 'make test'.
# KEEP=1 keeps the root; PYTHON_FROM=DIR copies an existing data folder (venv) in, to skip the PyTorch download.
set -euo pipefail
target=${1:-test}
[ "$(id -u)" = 0 ] || { echo "bare.sh: run as root" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "bare.sh: install debootstrap" >&2; exit 3; }
clone=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
root=$(mktemp -d "${TMPDIR:-/tmp}/musacoder-bare.XXXXXX")
cleanup() {
    for m in dev/shm dev/pts dev sys/fs/cgroup sys proc; do mountpoint -q "$root/$m" && umount -l "$root/$m"; done
    [ -n "${KEEP:-}" ] && echo "kept $root" || rm -rf --one-file-system "$root"
}
trap cleanup EXIT
debootstrap --variant=minbase --include=ca-certificates,git,make bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ -d /etc/apt/apt.conf.d ] && cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" # proxies
for f in /etc/pip.conf; do [ -f "$f" ] && cp "$f" "$root$f"; done
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1 || true
git clone -q "$clone" "$root/root/musacoder"
if [ -n "${PYTHON_FROM:-}" ]; then
    mkdir -p "$root/root/.local/share"
    cp -r "$PYTHON_FROM" "$root/root/.local/share/musacoder"
fi
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
    PIP_INDEX_URL="${PIP_INDEX_URL:-}" PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    chroot "$root" sh -c "cd /root/musacoder && make $target"
