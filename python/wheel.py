"""wheel.py - builds the package's wheel with libmusacoder.so inside, and the program where an installed tree is given.
Same inputs, same bytes; standard library only.

    wheel.py LIBMUSACODER.SO FOLDER [TREE]      prints the wheel's path

TREE: what setup/install.sh wrote. Its bin, lib and share become musacoder/tree, and the wheel has the command
'musacoder' (python/musacoder/__main__.py), which runs the program inside.
"""

import base64
import hashlib
import os
import platform
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "musacoder"


def version():
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return re.search(r'^version = "([^"]+)"', f.read(), re.M).group(1)


def members(library):
    """(name in the wheel, bytes) of everything but the record."""
    for folder, dirs, files in sorted(os.walk(os.path.join(HERE, NAME))):
        for name in sorted(f for f in files if f.endswith((".py", ".md"))):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                yield os.path.relpath(path, HERE), f.read()
    with open(os.path.join(HERE, "musacoder_verifiers.py"), "rb") as f:
        yield "musacoder_verifiers.py", f.read()
    with open(library, "rb") as f:
        yield NAME + "/libmusacoder.so", f.read()


def tree_members(tree):
    """(name in the wheel, bytes, may it be executed) of an installed tree, but for what only a system reads."""
    for folder, dirs, files in os.walk(tree or os.devnull):
        dirs.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, tree)
            if inside.startswith(("bin/", "lib/", "share/musacoder/")) and not inside.endswith("installed.txt"):
                with open(path, "rb") as f:
                    yield f"{NAME}/tree/{inside}", f.read(), os.access(path, os.X_OK)


def main(library, folder, tree=None):
    tag = f"py3-none-linux_{platform.machine()}"
    info, record = f"{NAME}-{version()}.dist-info", []
    path = os.path.join(folder, f"{NAME}-{version()}-{tag}.whl")
    head = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nRequires-Python: >=3.9\n" \
           "Summary: Rewards for GPU kernels from a running judge, and adapters for trainers\n"
    meta = [(info + "/METADATA", head),
            (info + "/WHEEL", f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tag}\n")]
    if tree:
        meta.append((info + "/entry_points.txt", f"[console_scripts]\n{NAME} = {NAME}.__main__:main\n"))
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        def add(name, data, runs=False):
            member = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            member.external_attr = (0o100755 if runs else 0o100644) << 16
            z.writestr(member, data, zipfile.ZIP_DEFLATED)
        plain = [(name, data, False) for name, data in [*members(library), *((n, t.encode()) for n, t in meta)]]
        for name, data, runs in plain + list(tree_members(tree)):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, runs)
        add(info + "/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    print(path)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
