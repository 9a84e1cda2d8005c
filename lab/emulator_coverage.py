#!/usr/bin/env python3
"""How many public CUDA programs the emulator builds, by group, and why not the others.

    lab/emulator_coverage.py collect CLONES WORK [--each 200] [--seed 0]   sources of three groups -> WORK/requests.json
    lab/emulator_coverage.py build WORK [--jobs 2] [--build-dir build]      the compile stage's target sim on each
    lab/emulator_coverage.py table WORK                                     shares, and the other reasons, by class

CLONES holds technoabsurdist, leaderboard (anneouyang/KernelBenchLeaderboard), cuda-l1 (deepreinforce-ai/CUDA-L1) and
agentic (Infatoshi/kernelbench.com); nothing of them is kept here. `collect` imports each program with a stand-in for
load_inline that only writes down; where a program asks later, or for files, its strings that hold a kernel are taken
instead. `build` resumes. Compiling is not running: lab/public_candidates.py runs the groups that come with tasks.
"""
import argparse
import ast
import collections
import concurrent.futures
import hashlib
import json
import multiprocessing
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 20  # for the import of one program


def texts(value):
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def agentic(base):
    for path in sorted(base.rglob("*solution.py.txt")):
        code = path.read_text(errors="replace")
        if "__global__" in code and ("load_inline" in code or "cpp_extension" in code):
            yield path.name[:-len("_solution.py.txt")], code


def groups(clones):
    sys.path.insert(0, str(ROOT / "lab"))
    import public_candidates as public
    public.LEVELS = "123"
    one_shot = [(f"{a}-l{level}-{t}", code) for name in ("technoabsurdist", "leaderboard")
                for a, level, t, _, code, _ in public.SOURCES[name](clones / name)]
    evolved = [(f"{a}-l{level}-{t}", code) for a, level, t, _, code, _ in public.SOURCES["cuda-l1"](clones / "cuda-l1")]
    return {"one-shot": one_shot, "evolved": evolved, "agentic": list(agentic(clones / "agentic"))}


def asked(code, queue):
    import torch.utils.cpp_extension as extension
    got = []

    def write_down(name, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None, extra_cuda_cflags=None,
                   extra_ldflags=None, **rest):
        got.append({"kind": "load_inline", "name": name, "cpp_sources": texts(cpp_sources),
                    "cuda_sources": texts(cuda_sources), "functions": functions if isinstance(functions, dict)
                    else texts(functions) or None, "extra_cflags": texts(extra_cflags),
                    "extra_cuda_cflags": texts(extra_cuda_cflags), "extra_ldflags": texts(extra_ldflags)})
        return type(sys)(name)

    extension.load_inline = write_down
    sys.stdout = sys.stderr = open("/dev/null", "w")
    try:
        exec(compile(code, "program", "exec"), {"__name__": "program"})
    except BaseException:
        pass
    queue.put([r for r in got if r["cuda_sources"]][:1])


def strings_of(code):
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:
        return []
    found = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)
        and "__global__" in n.value
             and "{" in n.value]
    return [max(found, key=len)] if found else []


def request_of(code):
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=asked, args=(code, queue))
    child.start()
    try:
        got = queue.get(timeout=SECONDS)
    except Exception:
        got = []
    child.kill()
    child.join()
    if got:
        return got[0]
    sources = strings_of(code)
    return {"kind": "load_inline", "name": "taken", "cpp_sources": [""], "cuda_sources": sources, "functions": None,
            "extra_cflags": [], "extra_cuda_cflags": [], "extra_ldflags": []} if sources else None


def collect(args):
    import torch  # noqa: F401  (once, for all children)
    out, rng = {}, random.Random(args.seed)
    for group, rows in groups(pathlib.Path(args.clones)).items():
        seen, unique = set(), []
        for name, code in rows:
            digest = hashlib.sha256(re.sub(r"\s+", "", code).encode()).hexdigest()[:8]
            if digest not in seen:
                seen.add(digest)
                unique.append((f"{name}-{digest}", code))
        rng.shuffle(unique)
        taken = 0
        for name, code in unique:
            request = request_of(code) if taken < args.each else None
            if request:
                out[name] = {"group": group, "request": request}
                taken += 1
        print(f"{group}: {len(unique)} different programs, {taken} taken", flush=True)
    pathlib.Path(args.work).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(args.work) / "requests.json").write_text(json.dumps(out))


def build_one(build_dir, request):
    done = subprocess.run([str(pathlib.Path(build_dir) / "tests/litetorch/test_build"), "build", "--no-cache", "sim"],
                          input=json.dumps(request), capture_output=True, text=True)
    if done.returncode != 0:
        return {"ok": False, "infra": done.stderr.strip()[-300:]}
    reply = json.loads(done.stdout)
    first = (reply["diagnostics"] or [{}])[0]
    return {"ok": reply["ok"], "ms": reply["ms"], "findings": reply["findings"], "line": first.get("line"),
            "file": first.get("file"), "message": first.get("message"), "source": first.get("source")}


def build(args):
    work = pathlib.Path(args.work)
    wanted = json.loads((work / "requests.json").read_text())
    log = work / "built.jsonl"
    have = {json.loads(line)["name"] for line in log.read_text().splitlines()} if log.exists() else set()
    todo = [n for n in sorted(wanted) if n not in have]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool, log.open("a") as f:
        for name, row in zip(todo, pool.map(lambda n: build_one(args.build_dir, wanted[n]["request"]), todo)):
            f.write(json.dumps({"name": name, "group": wanted[name]["group"], **row}) + "\n")
            f.flush()


def reason(row):
    message = row.get("message") or row.get("infra") or "no message"
    return re.sub(r"‘[^’]{60,}’", "‘...’", re.sub(r"\s+", " ", message))[:110]


def table(args):
    rows = [json.loads(line) for line in (pathlib.Path(args.work) / "built.jsonl").read_text().splitlines()]
    print("| group | programs | build | convicted of a library | others |\n|---|---|---|---|---|")
    for group in ("one-shot", "evolved", "agentic"):
        mine = [r for r in rows if r["group"] == group]
        ok = sum(r["ok"] and not r["findings"] for r in mine)
        library = sum(bool(r.get("findings")) for r in mine)
        print(f"| {group} | {len(mine)} | {ok} | {library} | {len(mine) - ok - library} |")
    for group in ("one-shot", "evolved", "agentic"):
        why = collections.defaultdict(list)
        for r in rows:
            if r["group"] == group and not r["ok"] and not r.get("findings"):
                why[reason(r)].append(r["name"])
        for text, names in sorted(why.items(), key=lambda kv: -len(kv[1])):
            print(f"- {group}, {len(names)}: {text} ({names[0]})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    for name, f in (("collect", collect), ("build", build), ("table", table)):
        c = sub.add_parser(name)
        c.set_defaults(run=f)
        if name == "collect":
            c.add_argument("clones", help="folder of the clones")
        c.add_argument("work")
    sub.choices["collect"].add_argument("--each", type=int, default=200)
    sub.choices["collect"].add_argument("--seed", type=int, default=0)
    sub.choices["build"].add_argument("--jobs", type=int, default=2)
    sub.choices["build"].add_argument("--build-dir", default=str(ROOT / "build"))
    args = p.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
