#!/usr/bin/env python3
"""How many public candidates build for a real GPU, in what time, and what torch's own load_inline says of the same.

    lab/build_coverage.py requests WORK                      what each candidate asks load_inline for ->
    WORK/requests.json
    lab/build_coverage.py build WORK --out OUT.json [--jobs 16] [--idle 20] [--build-dir build]
    lab/build_coverage.py torch WORK --ours OUT.json --out T.json [--jobs 16] [--sample 16] [--deadline 120]
    lab/build_coverage.py table OUT.json [T.json]

WORK is the folder made by lab/public_candidates.py collect. `requests` imports each program with a stand-in for
load_inline that only writes down (needs torch, no GPU); one that asks elsewhere than at import is counted apart.
`build` runs the compile stage's target cuda on each request, without its cache: first --idle of them alone, then all
of them
--jobs at a time (needs nvcc, no GPU). `torch` builds with PyTorch: every request that failed here, filled up to
--sample with others drawn at
random, all started together; those not done at the deadline have no verdict.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def texts(value):
    return [] if value is None else [value] if isinstance(value, str) else list(value)


class Enough(Exception):
    pass


def requests(args):
    import torch.utils.cpp_extension as extension
    work, found, none = pathlib.Path(args.work), {}, []

    for path in sorted((work / "candidates").glob("*.py")):
        got = []

        def write_down(name, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None, extra_cuda_cflags=None,
                       extra_ldflags=None, **rest):
            got.append({"kind": "load_inline", "name": name, "cpp_sources": texts(cpp_sources),
                        "cuda_sources": texts(cuda_sources), "functions": functions if isinstance(functions, dict)
                        else texts(functions) or None, "extra_cflags": texts(extra_cflags),
                        "extra_cuda_cflags": texts(extra_cuda_cflags), "extra_ldflags": texts(extra_ldflags)})
            return type(sys)(name)

        extension.load_inline = write_down
        try:
            exec(compile(path.read_text(), str(path), "exec"), {"__name__": path.stem})
        except BaseException:
            pass
        if got and got[0]["cuda_sources"]:
            found[path.stem] = got[0]
        else:
            none.append(path.stem)
    (work / "requests.json").write_text(json.dumps(found))
    print(f"{len(found)} requests, {len(none)} programs ask later or not at all")


def build_one(build_dir, request):
    started = time.monotonic()
    done = subprocess.run([str(pathlib.Path(build_dir) / "tests/litetorch/test_build"), "build", "--no-cache", "cuda"],
                          input=json.dumps(request), capture_output=True, text=True)
    wall = (time.monotonic() - started) * 1e3
    if done.returncode != 0:
        return {"ok": False, "infra": done.stderr.strip()[-300:], "wall_ms": wall}
    reply = json.loads(done.stdout)
    first = (reply["diagnostics"] or [{}])[0]
    return {"ok": reply["ok"], "ms": reply["ms"], "wall_ms": wall, "route": reply["route"], "split": reply["split"],
            "findings": reply["findings"],
            "dropped": reply["dropped"], "where": first.get("file"), "line": first.get("line"),
            "message": first.get("message"), "source": first.get("source")}


def build(args):
    wanted = json.loads((pathlib.Path(args.work) / "requests.json").read_text())
    names = sorted(wanted)
    build_one(args.build_dir, wanted[names[0]])  # the precompiled header
    alone = {n: build_one(args.build_dir, wanted[n]) for n in random.Random(0).sample(names,
                                                                                      min(args.idle, len(names)))}
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        loaded = dict(zip(names, pool.map(lambda n: build_one(args.build_dir, wanted[n]), names)))
    pathlib.Path(args.out).write_text(json.dumps({"idle": alone, "loaded": loaded, "jobs": args.jobs,
                                                  "total_s": time.monotonic() - started}, indent=1))


TORCH = r"""
import json, os, sys, time
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
request = json.load(open(sys.argv[1]))
request.pop("kind")
from torch.utils.cpp_extension import load_inline
started = time.monotonic()
try:
    load_inline(build_directory=sys.argv[2], with_cuda=True, **request)
    print(json.dumps({"ok": True, "s": time.monotonic() - started}))
except BaseException as e:
    lines = [l for l in str(e).splitlines() if "error" in l.lower()]
    print(json.dumps({"ok": False, "s": time.monotonic() - started, "message": "\n".join(lines[:4])[:1500]}))
"""


def torch_one(request, folder, name, deadline):
    path = folder / (name + ".json")
    path.write_text(json.dumps(request))
    (folder / name).mkdir()
    p = subprocess.Popen([sys.executable, "-c", TORCH, str(path), str(folder / name)], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                         env=dict(os.environ, MAX_JOBS="2"))
    try:
        out = p.communicate(timeout=max(1, deadline - time.monotonic()))[0]
        return json.loads(out.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        return {"ok": None}


def torch_own(args):
    wanted = json.loads((pathlib.Path(args.work) / "requests.json").read_text())
    ours = json.loads(pathlib.Path(args.ours).read_text())["loaded"]
    failed = [n for n in sorted(ours) if not ours[n]["ok"]]
    rng = random.Random(0)
    rng.shuffle(failed)
    rest = [n for n in sorted(ours) if ours[n]["ok"]]
    chosen = failed[:args.sample // 2]
    chosen += rng.sample(rest, min(len(rest), args.sample - len(chosen)))
    deadline = time.monotonic() + args.deadline
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        out = dict(zip(chosen, pool.map(lambda n: torch_one(wanted[n], pathlib.Path(folder), n, deadline), chosen)))
    pathlib.Path(args.out).write_text(json.dumps(out, indent=1))


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def table(args):
    data = json.loads(pathlib.Path(args.files[0]).read_text())
    loaded = data["loaded"]
    good = {n: r for n, r in loaded.items() if r["ok"]}
    print(f"{len(good)} of {len(loaded)} build, {sum(bool(r.get('split')) for r in good.values())} of them in two "
          f"halves; {sum('infra' in r for r in loaded.values())} infra; {data['jobs']} at a time: "
          f"{data['total_s']:.1f} s for all")
    for title, rows in (("alone", data["idle"]), ("all at once", loaded)):
        ms = [r["ms"] for r in rows.values() if r["ok"]]
        bad = [r["ms"] for r in rows.values() if not r["ok"] and "ms" in r]
        print(f"{title}: median {statistics.median(ms):.0f} ms, p95 {quantile(ms, 0.95):.0f} ms ({len(ms)} good)" +
              (f"; failures median {statistics.median(bad):.0f} ms ({len(bad)})" if bad else ""))
    theirs = json.loads(pathlib.Path(args.files[1]).read_text()) if len(args.files) > 1 else {}
    took = [r["s"] for r in theirs.values() if r["ok"]]
    if took:
        print(f"load_inline, {len(theirs)} at once: median {statistics.median(took):.1f} s of {len(took)} good")
        print(f"ratio of the medians at equal load: "
              f"{statistics.median(took) * 1e3 / statistics.median(r['ms'] for r in good.values()):.0f}")
    for n, r in theirs.items():
        if r["ok"] is not None and r["ok"] != loaded[n]["ok"]:
            print(f"differs: {n}: here {loaded[n]['ok']}, torch {r['ok']} "
                  f"({r.get('message') or loaded[n].get('message')})")
    for n, r in sorted(loaded.items()):
        if not r["ok"]:
            own = theirs.get(n, {}).get("ok")
            print(f"- {n} | torch {own} | {r.get('where')}:{r.get('line')} "
                  f"{str(r.get('message') or r.get('infra'))[:160]}")
    for n, r in sorted(loaded.items()):
        for f in r.get("findings") or []:
            print(f"finding {f['kind']} {f['name']} in {n}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    for name, f in (("requests", requests), ("build", build), ("torch", torch_own)):
        c = sub.add_parser(name)
        c.set_defaults(run=f)
        c.add_argument("work")
        if name != "requests":
            c.add_argument("--out", required=True)
            c.add_argument("--jobs", type=int, default=16)
    sub.choices["build"].add_argument("--idle", type=int, default=20)
    sub.choices["build"].add_argument("--build-dir", default=str(ROOT / "build"))
    sub.choices["torch"].add_argument("--ours", required=True)
    sub.choices["torch"].add_argument("--sample", type=int, default=16)
    sub.choices["torch"].add_argument("--deadline", type=float, default=120)
    t = sub.add_parser("table")
    t.set_defaults(run=table)
    t.add_argument("files", nargs="+")
    args = p.parse_args()
    args.run(args)


main()
