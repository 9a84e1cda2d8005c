#!/bin/sh
# build_info.sh CC NVCC - prints the header that 'musacoder version' includes: commit, compiler, CUDA toolkit.
set -eu
cd "$(dirname "$0")/.."
commit=${MUSACODER_COMMIT:-$(git rev-parse --short=10 HEAD 2>/dev/null || echo unknown)}
# shellcheck disable=SC2086
compiler=$($1 --version 2>/dev/null | head -1 | tr -d '"\\')
cuda=
[ -z "$2" ] || cuda=$("$2" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
cat <<END
/* build_info.h - made by setup/build_info.sh, never by hand. */
#define BUILD_COMMIT "$commit"
#define BUILD_COMPILER "${compiler:-unknown}"
#define BUILD_CUDA "${cuda:-none}"
END
