#!/usr/bin/env python3
"""What a real GPU says of the same candidates: torch's own load_inline, KernelBench's published comparison.

    lab/gpu_truth.py WORK OUT.json [--jobs 16] [--tasks shrunk]

WORK is the folder made by lab/public_candidates.py (with WORK/shrunk filled by its `run`). Every candidate is built and
run in a process of its own, on WORK/shrunk/NAME.py, five draws of get_inputs() with both models built from one seed,
allclose at 1e-4, once with cuDNN's TF32 as PyTorch sets it and once without. OUT.json maps NAME to
{"verdict": passed|passed_without_tf32|mismatch|compile_error|runtime_error|timeout, "detail", "build_s", "run_s"}.
Needs a GPU, nvcc and ninja; nothing of musacoder.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TOLERANCE = 1e-4


def load(path, name):
    source = pathlib.Path(path).read_text()
    module = type(sys)(name)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def to_device(values):
    import torch
    return [v.cuda() if isinstance(v, torch.Tensor) else v for v in values]


def compare(task, new_class, tf32):
    """None if five draws agree, else a text."""
    import torch
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(42)
    init = to_device(task.get_init_inputs())
    torch.manual_seed(42)
    reference = task.Model(*init).cuda()
    torch.manual_seed(42)
    candidate = new_class(*init).cuda()
    for trial in range(5):
        torch.manual_seed(1000 + trial)
        inputs = to_device(task.get_inputs())
        with torch.no_grad():
            torch.manual_seed(7)
            want = reference(*[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
            torch.manual_seed(7)
            got = candidate(*inputs)
        torch.cuda.synchronize()
        if not isinstance(got, torch.Tensor) or got.shape != want.shape:
            return f"shape {getattr(got, 'shape', type(got))} instead of {tuple(want.shape)}"
        if not torch.allclose(want, got, atol=TOLERANCE, rtol=TOLERANCE):
            return f"max difference {(want.double() - got.double()).abs().max().item():.3g} in draw {trial}"
    return None


def one(work, tasks, name):
    """Runs in a process of its own; prints one JSON line."""
    out = {"verdict": "runtime_error", "detail": ""}
    started = time.monotonic()
    try:
        module = load(work / "candidates" / (name + ".py"), "candidate")
        out["build_s"] = round(time.monotonic() - started, 1)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        broken = any(k in text for k in ("Error building extension", "Ninja", "SyntaxError"))
        first = next((line for line in text.splitlines() if " error" in line), text[:300])
        return {"verdict": "compile_error" if broken else "runtime_error", "detail": first[:300],
                "build_s": round(time.monotonic() - started, 1)}
    try:
        task = load(work / tasks / (name + ".py"), "task")
        started = time.monotonic()
        with_tf32 = compare(task, module.ModelNew, True)
        without = compare(task, module.ModelNew, False)
        out["run_s"] = round(time.monotonic() - started, 1)
        out["verdict"] = "mismatch" if without else ("passed_without_tf32" if with_tf32 else "passed")
        out["detail"] = without or with_tf32 or ""
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        if "Error building extension" in text:
            out["verdict"] = "compile_error"
        out["detail"] = next((line for line in text.splitlines() if " error" in line), text)[:300]
    return out


def spawn(work, tasks, name):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TORCH_EXTENSIONS_DIR=folder, TORCH_CUDA_ARCH_LIST="9.0", MAX_JOBS="2")
        try:
            done = subprocess.run([sys.executable, __file__, "--one", name, "--tasks", tasks, str(work), "-"], env=env,
                                  capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return name, {"verdict": "timeout", "detail": "300 s"}
    try:
        return name, json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return name, {"verdict": "runtime_error", "detail": f"exit {done.returncode}: {done.stderr.strip()[-200:]}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--tasks", default="shrunk")
    parser.add_argument("--one")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.work, args.tasks, args.one)))
        return
    names = [r["name"] for r in json.loads((args.work / "manifest.json").read_text())]
    names = [n for n in names if (args.work / args.tasks / (n + ".py")).exists()]
    results = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(spawn, args.work, args.tasks, n) for n in names]
        for job in concurrent.futures.as_completed(jobs):
            name, result = job.result()
            results[name] = result
            print(f"[{len(results)}/{len(names)}] {name[:70]:70} {result['verdict']} {result['detail'][:80]}",
                  flush=True)
            pathlib.Path(args.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
