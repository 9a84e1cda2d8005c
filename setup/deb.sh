#!/bin/sh
# deb.sh OUT - builds the Debian package of the current commit with dpkg-buildpackage, in a copy of the tree under OUT.
# Files that are not committed are not in it. Needs dpkg-dev, debhelper and the build's own packages.
set -eu
die() { printf 'deb: %s\n' "$*" >&2; exit 3; }
cd "$(dirname "$0")/.."
for p in dpkg-buildpackage dh; do
    command -v $p >/dev/null || die "'$p' is missing: apt-get install dpkg-dev debhelper"
done
version=$(cat VERSION)
mkdir -p "$1"
out=$(cd "$1" && pwd)
rm -rf "$out/musacoder-$version"
mkdir -p "$out/musacoder-$version"
git archive HEAD | tar -x -C "$out/musacoder-$version"
cp -r deploy/debian "$out/musacoder-$version/debian"
date=$(git log -1 --format=%cD)
cat >"$out/musacoder-$version/debian/changelog" <<END
musacoder ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- musacoder maintainers <maintainers@users.noreply.github.com>  $date
END
cd "$out/musacoder-$version"
MUSACODER_COMMIT=$(git -C "$OLDPWD" rev-parse --short=10 HEAD) DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
    dpkg-buildpackage -us -uc -b >"$out/build.log" 2>&1 || { tail -20 "$out/build.log"; die "see '$out/build.log'"; }
rm -rf "$out/musacoder-$version"
ls "$out"/musacoder_"$version"_*.deb
