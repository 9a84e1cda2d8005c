#!/usr/bin/env python3
"""musa_on_gpu.py - MUSA programs on an NVIDIA GPU through the alias headers, built on a machine without one.

    lab/musa_on_gpu.py build FOLDER [--device cuda|sim]     compile every program of tests/musa/run.py --all into FOLDER
    FOLDER/run.sh, or lab/musa_on_gpu.py run FOLDER         on the GPU: each program beside its task, three draws

Kernels are compiled as MUSA sources, behind litetorch/musa.h. Python's half is translated, as the judge does. This
measures whether the arithmetic is right; legality and speed are the judge's ('tests/musa/run.py --backend cuda').
"""
import concurrent.futures
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def record(paths):
    """Each program's build request, a line each: what its first load_inline asks for."""
    sys.path.insert(0, os.path.join(ROOT, "runner"))
    import torch  # noqa: F401  (once, for all children)
    from native import extension

    extension.put_in_place()
    for path in paths:
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        found = []

        def builder(request, found=found):
            found.append(request)
            return {"ok": False, "error": "recorded"}

        extension.set_builder(builder)
        m = types.ModuleType("candidate")
        m.__file__ = path
        out, sys.stdout = sys.stdout, open(os.devnull, "w")
        try:
            exec(compile(open(path, encoding="utf-8").read(), path, "exec"), m.__dict__)
        except BaseException:
            pass
        out.write(json.dumps([path, found[0] if found else None]) + "\n")
        out.flush()
        os._exit(0)


def build_one(path, head, folder, device, tool, exe, request):
    name = os.path.basename(path)[:-3]
    if not request or request.get("dialect") != "musa":
        return None
    p = subprocess.run([tool, "build", "--cache", device], input=json.dumps(request), capture_output=True, text=True,
                       check=False)
    said = p.stdout.strip().splitlines()
    reply = json.loads(said[-1]) if said else {"ok": False, "error": p.stderr[-500:]}
    so = reply.get("so")
    if not so:
        print(f"  {name}: {reply.get('error', '')[-400:]}")
        return None
    shutil.copy(so, os.path.join(folder, name + ".so"))
    with tempfile.TemporaryDirectory() as t:
        subprocess.run([exe, "translate", "--to", "cuda", "--out", t, path], check=True, capture_output=True)
        shutil.copy(os.path.join(t, name + ".py"), os.path.join(folder, name + ".py"))
    return name, head["task"]


def build(folder, device):
    sys.path.insert(0, os.path.join(ROOT, "tests", "musa"))
    import run as programs
    exe, tool = programs.EXE, os.path.join(ROOT, "build", "tests", "litetorch", "test_build")
    os.makedirs(folder, exist_ok=True)
    made = {}
    with tempfile.TemporaryDirectory() as t:
        todo = [(p, h) for p, h in programs.collect(True, "s5000", "cuda", t, "*") if "expect" not in h]
        p = subprocess.run([sys.executable, os.path.abspath(__file__), "record", *[p for p, _ in todo]], text=True,
                           stdout=subprocess.PIPE, check=False)
        requests = dict(json.loads(line) for line in p.stdout.splitlines())
        print(f"{len(requests)} requests", flush=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for r in pool.map(lambda x: build_one(x[0], x[1], folder, device, tool, exe, requests.get(x[0])), todo):
                if r:
                    made[r[0]] = r[1]
    for sub in ("runner", "tests/corpus/tasks"):
        shutil.copytree(os.path.join(ROOT, sub), os.path.join(folder, os.path.basename(sub)), dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    os.makedirs(os.path.join(folder, "lib"), exist_ok=True)
    lib = "libcudatorch.so" if device == "cuda" else "libfronttorch.so"
    for f in (lib, "libsimt.so"):
        shutil.copy(os.path.join(ROOT, "build", "lib", f), os.path.join(folder, "lib"))
    shutil.copy(os.path.abspath(__file__), os.path.join(folder, "musa_on_gpu.py"))
    with open(os.path.join(folder, "programs.json"), "w") as f:
        json.dump({"device": device, "programs": made}, f)
    print(f"{len(made)} of {len(todo)} programs built for {device} in {folder}")


def one_program(args):
    """In a process of its own, forked after torch was imported: (name, None or what is wrong)."""
    folder, name, task, package = args
    import torch
    try:
        sys.path.insert(0, os.path.join(folder, "runner"))
        os.environ["MUSACODER_LIB_DIR"] = os.path.join(folder, "lib")
        device = importlib.import_module(package)
        import native
        native.check_version = lambda name: None  # built elsewhere: what does not fit shows in the numbers
        device.preload()
        device.begin({"poison": False})
        device.install(lambda request: {"ok": True, "so": os.path.join(folder, name + ".so")})
        ref, cand = types.ModuleType("reference"), types.ModuleType("candidate")
        cand.__file__ = name + ".py"
        exec(compile(open(os.path.join(folder, "tasks", task + ".py")).read(), task, "exec"), ref.__dict__)
        sys.modules["candidate"] = cand
        exec(compile(open(os.path.join(folder, name + ".py")).read(), name, "exec"), cand.__dict__)
        init = ref.get_init_inputs()
        torch.manual_seed(1)
        model = ref.Model(*init).eval()
        torch.manual_seed(1)
        new = cand.ModelNew(*init).cuda().eval()
        mine = list(new.named_parameters()) + list(new.named_buffers())
        theirs = list(model.named_parameters()) + list(model.named_buffers())
        named = dict(theirs)
        with torch.no_grad():
            for i, (n, t) in enumerate(mine):
                source = named.get(n, theirs[i][1] if i < len(theirs) else None)
                if source is not None and source.shape == t.shape:
                    t.data.copy_(source.data)
            for draw in range(3):
                torch.manual_seed(100 + draw)
                x = ref.get_inputs()
                want, got = model(*x), new(*[v.cuda() if hasattr(v, "cuda") else v for v in x])
                want = want if isinstance(want, tuple) else (want,)
                got = got if isinstance(got, tuple) else (got,)
                for a, b in zip(want, got, strict=True):
                    tol = 2e-3 if a.dtype == torch.float16 else 1e-4
                    room = tol * max(1.0, a.float().abs().max().item() * 0.1)
                    if not torch.allclose(a.float(), b.cpu().float(), rtol=tol, atol=room):
                        return name, f"draw {draw} differs by {(a.float() - b.cpu().float()).abs().max().item():g}"
        return name, None
    except Exception as e:
        return name, f"{type(e).__name__}: {e}"[:400]


def run(folder):
    import multiprocessing

    import torch
    folder = os.path.abspath(folder)
    with open(os.path.join(folder, "programs.json")) as f:
        d = json.load(f)
    jobs = [(folder, n, t, d["device"]) for n, t in sorted(d["programs"].items())]
    with multiprocessing.get_context("fork").Pool(min(8, os.cpu_count() or 1), maxtasksperchild=1) as pool:
        results = pool.map(one_program, jobs, chunksize=1)
    bad = [(n, why) for n, why in results if why]
    for n, why in bad:
        print(f"  {n}: {why}")
    where = "the emulator"
    if d["device"] == "cuda":
        where = torch.cuda.get_device_name(0)
    print(f"{len(results) - len(bad)} of {len(results)} MUSA programs are right on {where}")
    return 1 if bad else 0


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("build", "record", "run"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "record":
        return record(sys.argv[2:])
    if sys.argv[1] == "build":
        return build(sys.argv[2], sys.argv[4] if "--device" in sys.argv else "cuda")
    return run(sys.argv[2])


if __name__ == "__main__":
    sys.exit(main() or 0)
