"""same_bits.py - original and translation give the same bits on the emulator.

    same_bits.py [--limit N] [FILE|FOLDER]...     CUDA programs (default: tests/corpus/passed); TASK from their head, or
                                                  FILE.task beside them

Builds each program twice, as it is and translated to MUSA, runs both on the task's inputs (two draws, the model's own
parameters from one seed) in the simulated device's process, and compares outputs byte by byte. The emulator
divides exactly, as no MUSA card below mp_31 does, so nothing but the translation can make a difference. Needs the project's Python.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(BUILD, "musacoder"))
TOOL = os.path.join(BUILD, "tests", "litetorch", "test_build")
TASKS = os.path.join(ROOT, "tests", "corpus", "tasks")


def head_task(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# task: "):
                return os.path.join(TASKS, line[8:].strip() + ".py")
            if not line.startswith("#"):
                break
    return path[:-3] + ".task" if os.path.exists(path[:-3] + ".task") else None


def builder(request):
    p = subprocess.run([TOOL, "build", "--cache", "sim"], input=json.dumps(request), capture_output=True, text=True,
                       check=False)
    lines = [line for line in p.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"ok": False, "error": p.stderr[-300:]}


def program(path, text):
    m = types.ModuleType("candidate")
    m.__file__ = path
    sys.modules["candidate"] = m
    exec(compile(text, path, "exec"), m.__dict__)
    return m


def outputs(path, text, task, device):
    """Bytes of every output of two calls."""
    import torch
    ref = types.ModuleType("reference")
    with open(task, encoding="utf-8") as f:
        exec(compile(f.read(), task, "exec"), ref.__dict__)
    torch.manual_seed(7)
    model = program(path, text).ModelNew(*ref.get_init_inputs()).cuda().eval()
    out = []
    for draw in range(2):
        torch.manual_seed(100 + draw)
        given = [device.to_device(x) if isinstance(x, torch.Tensor) else x for x in ref.get_inputs()]
        with torch.no_grad():
            got = model(*given)
        out += [bytes(device.raw_bytes(t)) for t in (got if isinstance(got, (tuple, list)) else [got])]
    return out


def compare(path, task, device):
    """'same', 'different', or why there is nothing to compare."""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run([EXE, "translate", "--profile", "any", "--out", folder, path], capture_output=True,
                           check=False)
        made = os.path.join(folder, os.path.basename(path))
        if p.returncode:
            return "refused"
        p = subprocess.run([EXE, "translate", "--to", "cuda", "--devices", made], capture_output=True, text=True,
                           check=False)
        musa = p.stdout
    with open(path, encoding="utf-8") as f:
        cuda = f.read()
    if "torch_musa" not in musa:
        return "builds nothing"
    device.install(builder)
    try:
        want = outputs(path, cuda, task, device)
    except BaseException as e:
        return f"the original does not run: {type(e).__name__}"
    try:
        got = outputs(path, musa, task, device)
    except BaseException as e:
        return f"the translation does not run: {type(e).__name__}: {e}"[:300]
    return "same" if want == got else "different"


def in_child(path, task, device):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.write(write, compare(path, task, device).encode()[:600])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        said = f.read().decode(errors="replace")
    os.waitpid(child, 0)
    return said or "the process died"


def main():
    a = argparse.ArgumentParser(description="Original and translation, byte by byte, on the emulator.")
    a.add_argument("paths", nargs="*", default=[os.path.join(ROOT, "tests", "corpus", "passed")])
    a.add_argument("--limit", type=int, default=0)
    a = a.parse_args()
    files = []
    for p in a.paths:
        files += sorted(glob.glob(os.path.join(p, "*.py"))) if os.path.isdir(p) else [p]
    files = [(f, head_task(f)) for f in files if head_task(f)]
    sys.path.insert(0, os.path.join(ROOT, "runner"))
    os.environ.setdefault("MUSACODER_LIB_DIR", os.path.join(BUILD, "lib"))
    import sim as device
    device.preload()
    counts = {}
    for i, (path, task) in enumerate(files[:a.limit or None]):
        said = in_child(path, task, device)
        print(f"{i + 1} {os.path.basename(path)}: {said}", file=sys.stderr, flush=True)
        kind = said if said in ("same", "different", "refused") else said.split(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
        if said not in ("same", "refused"):
            print(f"  {os.path.basename(path)}: {said}")
        sys.stdout.flush()
    print(", ".join(f"{k} {v}" for k, v in sorted(counts.items(), key=lambda x: -x[1])))
    return 1 if counts.get("different") or counts.get("the translation does not run") else 0


if __name__ == "__main__":
    sys.exit(main())
