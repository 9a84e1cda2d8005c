#!/bin/sh
# run.sh - installs the trainers into build/adapters, an environment each, and runs each adapter in its trainer.
# Words name the adapters to run (default: all): run.sh trl verifiers
# SLIME_DIR, PRIME_RL_DIR, KERNELGYM_DIR and KERNELGYM_FORK_DIR name checkouts of what PyPI lacks.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-build}
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/musacoder}
base=${MUSACODER_PYTHON:-$(cat "$data/python" 2>/dev/null || echo "$data/venv/bin/python")}
limit=${ADAPTER_LIMIT:-600} # seconds for one adapter
failed=0

# environment NAME PACKAGES...: over the Python that has PyTorch, so that it is not downloaded again
environment() {
    env=$B/adapters/$1; shift
    [ "$(cat "$env/done" 2>/dev/null)" = "$*" ] && return 0
    rm -rf "$env"
    mkdir -p "$B/adapters" && "$base" -m venv "$env" &&
        "$base" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' >"$env/base.pth" &&
        mv "$env/base.pth" "$(echo "$env"/lib/python3*/site-packages)/" &&
        "$env/bin/pip" install -q --no-compile "$@" && echo "$*" >"$env/done"
}

# check NAME ENVIRONMENT PACKAGES...
check() {
    name=$1 into=$2; shift 2
    case " $words " in *" $name "*) ;; *) return ;; esac
    environment "$into" "$@" || { echo "FAILED  $name: its packages could not be installed"; failed=1; return; }
    # into a file: a process that an adapter left behind would keep a pipe open
    B=$B timeout -k 10 "$limit" "$B/adapters/$into/bin/python" -B "$here/run_$name.py" \
        >"$B/adapters/$name.out" 2>"$B/adapters/$name.log"
    rc=$?
    line=$(tail -1 "$B/adapters/$name.out")
    [ $rc != 124 ] && [ $rc != 137 ] || line="no answer within $limit s"
    case "$line" in
    "no answer"*) echo "FAILED  $name: $line; see $B/adapters/$name.log"; failed=1 ;;
    skipped*) echo "skipped $name: ${line#skipped: }" ;;
    "ok "*) echo "ok      $name: ${line#ok }" ;;
    *) echo "FAILED  $name: see $B/adapters/$name.log"; tail -5 "$B/adapters/$name.log"; failed=1 ;;
    esac
}

# of NAME CHECKOUT ENVIRONMENT PACKAGES...: one that needs a checkout; nothing is installed without it
of() {
    if [ -n "$2" ]; then
        where=$1; shift 2; check "$where" "$@"
    else
        case " $words " in *" $1 "*) echo "skipped $1: no variable names its checkout" ;; esac
    fi
}

words=${*:-mcp openai trl examples sft verifiers verl slime prime_rl kernelgym}
check mcp venv-mcp mcp==2.3.0
check openai venv trl==1.16.0 verifiers==0.4.0 uv
check trl venv trl==1.16.0 verifiers==0.4.0 uv
check examples venv trl==1.16.0 verifiers==0.4.0 uv
check sft venv trl==1.16.0 verifiers==0.4.0 uv
check verifiers venv trl==1.16.0 verifiers==0.4.0 uv
check verl venv-verl verl==0.9.1 ray==2.60.0 'transformers<5.11' cachetools uvicorn fastapi
of slime "${SLIME_DIR:-}" venv-slime pytest aiohttp httpx pybase64 transformers==5.17.0 pillow pylatexenc sympy \
    pyyaml requests
of prime_rl "${PRIME_RL_DIR:-}" venv-prime verifiers==0.4.0 uv transformers==5.17.0 datasets msgspec wandb tenacity \
    orjson uvloop setproctitle aiolimiter pyzmq loguru psutil
of kernelgym "${KERNELGYM_DIR:-}${KERNELGYM_FORK_DIR:-}" venv-verl verl==0.9.1 ray==2.60.0 'transformers<5.11' \
    cachetools uvicorn fastapi
exit $failed
