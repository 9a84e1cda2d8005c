#!/bin/sh
# install.sh BUILD DESTDIR PREFIX      copies a finished build: program, libraries, files, manual pages, completion
# install.sh --remove DESTDIR PREFIX   takes away what the first form put there, and nothing else (by its list)
#
# The tree can be moved: the program finds lib/musacoder and share/musacoder above itself. WITH_TORCH=0 leaves out the
# library that was compiled for this machine's PyTorch (a package must); it is then made at the first run. WITH_PYTHON=
# leaves out the Python package (a wheel is that package).
set -eu
die() { printf 'install: %s\n' "$*" >&2; exit 3; }
cd "$(dirname "$0")/.."
list=share/musacoder/installed.txt

if [ "$1" = --remove ]; then
    root=$2$3
    [ -f "$root/$list" ] || die "'$root/$list' is missing: nothing of ours is installed in '$root'"
    while IFS= read -r f; do
        case $f in /*|*..*) die "'$root/$list' names '$f', which install never writes" ;; esac
        rm -f -- "$root/$f"
    done <"$root/$list"
    rm -f -- "$root/$list"
    for d in share/musacoder lib/musacoder; do
        [ -d "$root/$d" ] && find "$root/$d" -depth -type d -empty -delete
    done
    echo "removed from $root"
    exit 0
fi

B=$1 root=$2$3
[ -x "$B/musacoder" ] || die "'$B/musacoder' is missing; run 'make'"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
put() { # MODE FROM TO
    install -D -m "$1" -- "$2" "$root/$3" || die "cannot write '$root/$3'; choose PREFIX=DIR, or run as root"
    printf '%s\n' "$3" >>"$work/list"
}
mkdir -p "$root" 2>/dev/null || die "cannot make '$root'; choose another one with PREFIX=DIR, or run as root"
put 755 "$B/musacoder" bin/musacoder
for f in "$B"/lib/mcexec "$B"/lib/mcjail "$B"/lib/mcnvrtc; do put 755 "$f" "lib/musacoder/${f##*/}"; done
for f in "$B"/lib/lib*.so "$B"/lib/*.fatbin "$B"/lib/*.mubin; do
    case $f in *\**|*/libfake*) continue ;; */libfronttorch.so) [ "${WITH_TORCH:-1}" = 1 ] || continue ;; esac
    put 644 "$f" "lib/musacoder/${f##*/}"
done
for d in runner simt/include litetorch suites recipes docs/example docs/probe docs/schema setup deploy examples \
    ${WITH_PYTHON-python/musacoder}; do
    [ -d "$d" ] || continue
    find "$d" -type f ! -name '*.pyc' ! -path '*/__pycache__/*' ! -path 'deploy/debian/*' | sort >"$work/files"
    while IFS= read -r f; do
        mode=644; [ -x "$f" ] && mode=755
        put $mode "$f" "share/musacoder/$f"
    done <"$work/files"
done
# The two headers are those that litetorch/front includes.
for f in src/exec/client.h src/exec/wire.h VERSION LICENSE; do put 644 "$f" "share/musacoder/$f"; done
put 644 src/objective/musacoder.h include/musacoder.h

"$B/musacoder" man >"$work/musacoder.1"
put 644 "$work/musacoder.1" share/man/man1/musacoder.1
"$B/musacoder" help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' >"$work/commands"
while IFS= read -r c; do
    page=musacoder-$(printf %s "$c" | tr ' ' -).1
    # shellcheck disable=SC2086
    "$B/musacoder" man $c >"$work/$page"
    put 644 "$work/$page" "share/man/man1/$page"
done <"$work/commands"
"$B/musacoder" completion bash >"$work/bash" && put 644 "$work/bash" share/bash-completion/completions/musacoder
"$B/musacoder" completion zsh >"$work/zsh" && put 644 "$work/zsh" share/zsh/vendor-completions/_musacoder
"$B/musacoder" completion fish >"$work/fish" && put 644 "$work/fish" share/fish/vendor_completions.d/musacoder.fish
install -D -m 644 "$work/list" "$root/$list"
[ -n "$2" ] || cat <<END
installed $root/bin/musacoder
next: $root/bin/musacoder setup     # Python with PyTorch, if this machine has none
      cd $root/share/musacoder/docs/example && $root/bin/musacoder eval --task task.py kernel.py
END
