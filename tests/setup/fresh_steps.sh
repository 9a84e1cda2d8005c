#!/bin/bash
# fresh_steps.sh WAY - what a newcomer does inside the bare root that fresh.sh made. WAY is deb, wheel or home; each
# ends in 'readme', which runs as an ordinary user: README's first console block, its output compared.
set -euo pipefail
way=$1 home=$(printf "/%s" home newcomer)
fail() { echo "FAILED: $*"; exit 1; }
as_user() { setpriv --reuid=newcomer --regid=newcomer --init-groups env HOME=$home "$@"; }
apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >/dev/null || fail "apt-get $*"; }

# A Python with PyTorch for the user, where fresh.sh lends one: an environment whose .pth file names it.
lend_torch() {
    [ -d /opt/torch ] || return 0
    as_user python3 -m venv "$1"
    echo /opt/torch >"$(echo "$1"/lib/python3.*/site-packages)/lent.pth"
}

case $way in
deb)
    useradd -m newcomer
    apt_get update
    apt_get install -y --no-install-recommends /opt/musacoder_*.deb
    lend_torch $home/.local/share/musacoder/venv
    as_user musacoder setup
    as_user bash "$0" readme musacoder /usr/share/musacoder
    apt_get remove -y musacoder
    [ ! -e /usr/lib/musacoder ] || fail "the package leaves $(find /usr/lib/musacoder | head -n 3)"
    ;;
wheel)
    useradd -m newcomer
    apt_get update
    apt_get install -y --no-install-recommends python3-venv g++
    as_user python3 -m venv $home/venv
    if [ -d /opt/torch ]; then echo /opt/torch >"$(echo $home/venv/lib/python3.*/site-packages)/lent.pth"
    else as_user $home/venv/bin/pip install -q torch numpy; fi
    as_user $home/venv/bin/pip install -q --no-deps /opt/musacoder-*.whl
    as_user env PATH=$home/venv/bin:/usr/bin:/bin bash "$0" readme musacoder \
        "$(echo $home/venv/lib/python3.*/site-packages/musacoder/tree/share/musacoder)"
    ;;
home)
    useradd -m newcomer
    apt_get update
    apt_get install -y --no-install-recommends git make
    cp -r /opt/source $home/musacoder && chown -R newcomer: $home/musacoder
    cd $home/musacoder
    # A user without root is told which packages an administrator has to install.
    as_user make setup 2>said.txt && fail "make setup needs no packages"
    packages=$(sed -n 's/.*as root run: apt-get install //p' said.txt)
    [ -n "$packages" ] || fail "make setup does not say which packages are missing: $(cat said.txt)"
    # shellcheck disable=SC2086
    apt_get install -y --no-install-recommends $packages
    lend_torch $home/.local/share/musacoder/venv
    as_user make setup
    as_user make -s -j"$(nproc)"
    as_user make -s install PREFIX=$home/.local
    cd / && rm -rf $home/musacoder
    as_user bash "$0" readme $home/.local/bin/musacoder $home/.local/share/musacoder
    as_user test -s $home/.local/share/man/man1/musacoder-eval.1 || fail "no manual page"
    ;;
readme) # The program is $2; README's paths lie below $3.
    [ "$(id -u)" != 0 ] || fail "this is root"
    mkdir -p "$HOME/try" && cd "$HOME/try" && cp -r "$3/docs" .
    python3 - "$2" <<'PY'
import doctest, re, subprocess, sys
text = open("/opt/README.md", encoding="utf-8").read()
block = re.search(r"^```\n(\$ make setup.*?)^```$", text, re.M | re.S)[1]
steps = re.findall(r"^\$ (.*?)\n((?:(?!\$ ).*\n)*)", block, re.M)
steps = [(c, out) for c, out in steps if not c.startswith("make ")]
assert len(steps) == 2, steps
for command, want in steps:
    command = command.replace("build/musacoder", sys.argv[1])
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    print("$ " + command + "\n" + said.stdout + said.stderr, flush=True)
    if not doctest.OutputChecker().check_output(want, said.stdout, doctest.ELLIPSIS):
        sys.exit(f"FAILED: README shows\n{want}")
PY
    ;;
esac
