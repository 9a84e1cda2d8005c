"""wheel.py - builds the package's wheel with libmusacoder.so inside. Same inputs, same bytes; standard library only.

    wheel.py LIBMUSACODER.SO FOLDER      prints the wheel's path
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


def main(library, folder):
    tag = f"py3-none-linux_{platform.machine()}"
    info, record = f"{NAME}-{version()}.dist-info", []
    path = os.path.join(folder, f"{NAME}-{version()}-{tag}.whl")
    head = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nRequires-Python: >=3.9\n" \
           "Summary: Rewards for GPU kernels from a running judge, and adapters for trainers\n"
    meta = [(info + "/METADATA", head),
            (info + "/WHEEL", f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tag}\n")]
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        def add(name, data):
            z.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        for name, data in list(members(library)) + [(n, t.encode()) for n, t in meta]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data)
        add(info + "/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
