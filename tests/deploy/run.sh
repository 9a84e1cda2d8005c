#!/bin/sh
# run.sh - the tests of deploy/ with what PyPI has for them, a validator of Kubernetes manifests, in build/deploy.
# promtool is Debian's package prometheus, nginx its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
B=$(cd "${B:-build}" && pwd)
export B
packages="kubernetes-validate==1.37.0 PyYAML"
if [ "$(cat "$B/deploy/done" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$B/deploy"
    python3 -m venv "$B/deploy"
    "$B/deploy/bin/pip" install -q $packages
    echo "$packages" >"$B/deploy/done"
fi
exec "$B/deploy/bin/python" -B -m unittest discover -v -s "$here" -p test_deploy.py
