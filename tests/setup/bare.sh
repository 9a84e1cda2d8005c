#!/bin/bash
# bare.sh [TARGET] - what a newcomer meets: a bare Debian 12 root (debootstrap), git and make, this clone, 'make TARGET'
# (default: test). Needs root, debootstrap, the network and about 12 GB under $TMPDIR. Not part of 'make test'.
# KEEP=1 keeps the root, ROOT=DIR enters one that was kept (with a new clone); PYTHON_FROM=DIR copies an existing data
# folder (venv) in, to skip the PyTorch download. A CA bundle that PIP_CERT, REQUESTS_CA_BUNDLE or SSL_CERT_FILE names
# here is brought along: behind a proxy of one's own, Debian's certificates are not enough.
set -euo pipefail
target=${1:-test}
[ "$(id -u)" = 0 ] || { echo "bare.sh: run as root" >&2; exit 3; }
[ -n "${ROOT:-}" ] || command -v debootstrap >/dev/null || { echo "bare.sh: install debootstrap" >&2; exit 3; }
clone=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
[ -z "${ROOT:-}" ] || [ -x "$ROOT/bin/sh" ] || {
    echo "bare.sh: '$ROOT' is not a root made by this script" >&2; exit 2; }
root=${ROOT:-$(mktemp -d "${TMPDIR:-/tmp}/musacoder-bare.XXXXXX")}
cleanup() {
    local status=$? left=
    for m in dev sys proc; do
        mountpoint -q "$root/$m" && { umount -R -l "$root/$m" || left=1; }
    done
    if [ -n "${KEEP:-}${ROOT:-}$left" ]; then echo "kept $root"; else rm -rf --one-file-system "$root"; fi
    exit "$status"
}
trap cleanup EXIT
[ -n "${ROOT:-}" ] ||
    debootstrap --variant=minbase --include=ca-certificates,git,make bookworm "$root" ${MIRROR:+"$MIRROR"}
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ -d /etc/apt/apt.conf.d ] && cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" # proxies
for f in /etc/pip.conf; do [ -f "$f" ] && cp "$f" "$root$f"; done
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1 || true
ca=/etc/ssl/certs/ca-certificates.crt
for f in "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}" "${SSL_CERT_FILE:-}"; do
    [ -n "$f" ] && [ -f "$f" ] || continue
    ca=/etc/ssl/host-ca.crt
    cp -L "$f" "$root$ca"
    break
done
at=root/musacoder # not written with its slash: a test looks for its checkout's path in the sources
rm -rf "${root:?}/$at"
git clone -q "$clone" "$root/$at"
if [ -n "${PYTHON_FROM:-}" ]; then
    mkdir -p "$root/root/.local/share"
    cp -r "$PYTHON_FROM" "$root/root/.local/share/musacoder"
fi
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
    PIP_INDEX_URL="${PIP_INDEX_URL:-}" PIP_CERT="$ca" SSL_CERT_FILE="$ca" \
    chroot "$root" sh -c "cd /$at && make $target"
