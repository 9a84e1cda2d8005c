#!/bin/sh
# look.sh - 'make look': every kind of page, made and looked at by look.py: the site's, dashboard, API,
# and the reports of a benchmark, a comparison, a run and a watched run. Needs chromium and the network (axe-core from
# PyPI). Not part of 'make test'. Pictures lie in BUILD/docs/look; exit code 1: axe-core found something serious.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build} root=$PWD
m=$root/$B/musacoder out=$root/$B/docs/look site=$root/$B/docs/site
"$B/docs/venv/bin/pip" install -q --disable-pip-version-check axe-core-python==0.1.0
AXE=$(echo "$root/$B"/docs/venv/lib/python3.*/site-packages/axe_core_python/axe.min.js)
export AXE
work=$(mktemp -d)
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
server=
cd "$work"
mkdir -p tasks a/task b/task
cp "$root/docs/example/task.py" tasks/
for f in a/task/0 a/task/1 b/task/0; do cp "$root/docs/example/kernel.py" $f.py; done
sed 's/i < n/i <= n/' "$root/docs/example/kernel.py" >a/task/2.py
sed 's/0.5f/0.6f/' "$root/docs/example/kernel.py" >b/task/1.py
sed 's/return module.forward(x)/return (x * 0.5).tanh()/' "$root/docs/example/kernel.py" >b/task/2.py
for s in a b; do "$m" bench --tasks tasks --samples "$s" --out "run_$s" >/dev/null 2>&1; done
"$m" bench compare run_a run_b --html compare.html >/dev/null
"$m" run smoke --out smoke >smoke.log 2>&1 || { tail -3 smoke.log; exit 1; }
"$m" watch smoke --once --html watch.html >/dev/null
"$m" serve --port 0 --queue q.db 2>serve.log &
server=$!
until url=$(grep -om1 'http://[0-9.:]*[0-9]' serve.log); do sleep 0.1; done
MUSACODER_URL=$url PYTHONPATH=$root/python python3 - <<'END'
import glob
import musacoder

task = {"name": "tanh", "code": open("tasks/task.py").read()}
musacoder.judge([{"task": task, "code": open(f).read()} for f in sorted(glob.glob("[ab]/task/*.py"))])
END
python3 "$root/tests/docs/look.py" "$out" "$url/" "$url/docs" run_b/report.html compare.html smoke/report.html \
    watch.html "$site//index.html" "$site//tutorial-kernel.html" "$site//commands/eval.html" "$site//gallery.html" \
    "$site//api.html" "$site//results.html" "$site//reward.html"
