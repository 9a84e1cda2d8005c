#!/usr/bin/env python3
"""Ours beside KernelBench's own evaluation: public candidates, their real tasks and sizes, one GPU.

Here, with the clones that lab/public_runs.py names in CLONES and a clone of ScalingIntelligence/KernelBench (a
git directory will do); nothing of them is kept here:
    lab/judge_public.py collect --clones CLONES --kernelbench GITDIR --out WORK [--count 160] [--level2 50] [--level3
    30]
On the machine with the GPU (needs torch with CUDA, nvcc, ninja, make all build/lab/judge_feed), each command within
--seconds and to be repeated until it says "all":
    lab/judge_public.py ours WORK OUT --protocol strict --run 1          then --run 2, and --protocol kernelbench
    --run 1
    lab/judge_public.py theirs-build WORK OUT                            KernelBench's sample, load_inline 16 at a time
    lab/judge_public.py theirs-judge WORK OUT                            its eval_kernel_against_ref, one after the
    other
Anywhere:
    lab/judge_public.py table WORK OUT
    lab/judge_public.py layout WORK DIR        for 'musacoder bench --suite kernelbench:DIR/suite --samples DIR/samples'
On the emulator, at sizes that a CPU can do (lab/public_verdicts.jsonl is such a run, of collect --count 160
--per-task 6):
    lab/judge_public.py small WORK SMALL       the same programs with the tasks made small
    lab/judge_public.py ours SMALL SMALL --backend sim --no-times        repeated until it says "all"
    lab/judge_public.py rows SMALL ROWS.jsonl [--compare OLD.jsonl]      name, verdict, code of each; what became worse

`collect` prefers tasks for which there are many candidates (as a group of samples of one task); --sample 40 of them
are for KernelBench. `ours` sends everything through verdict workers; the verdict cache is not read, builds are cached
from run to run (run 1 wants an empty MUSACODER_CACHE_DIR). Beside it nvidia-smi says five times a second how busy the
GPU was and what it held, and the memory of each worker's processes is looked at every two seconds. KernelBench's
evaluation imports modules that need not be there (pydantic, requests, openai, litellm, dotenv): stubs are made when
it is imported.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEED = os.environ.get("JUDGE_FEED", str(ROOT / "build/lab/judge_feed"))
CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
MUSACODER = os.environ.get("MUSACODER_EXE", str(ROOT / "build/musacoder"))


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


# Collecting -----------------------------------------------------------------------------------------------------------


def elements(text):
    """Of the largest input of a task; nothing is computed, so it needs PyTorch alone."""
    import torch
    module = {"__name__": "task"}
    try:
        with torch.device("meta"):
            exec(compile(text, "task", "exec"), module)
            return max((x.numel() for x in module["get_inputs"]() if isinstance(x, torch.Tensor)), default=0)
    except Exception:  # some tasks need values: they are small enough, or fail where they are judged
        return 0


def collect(args):
    sys.path.insert(0, str(ROOT / "lab"))
    import public_runs as public
    groups, seen = {}, set()
    for name, reader in public.SOURCES.items():
        for author, level, task, text, code, fate in reader(pathlib.Path(args.clones) / name):
            digest = hashlib.sha256(re.sub(r"\s+", "", code).encode()).hexdigest()[:10]
            key = (level, re.match(r"\d+", task).group(), hashlib.sha256(text.encode()).hexdigest()[:8])
            if digest not in seen:
                seen.add(digest)
                groups.setdefault(key, []).append((author, level, task, text, code, fate, digest))
    rng, rows = random.Random(args.seed), []
    order = sorted(groups, key=lambda k: (-min(args.per_task, len(groups[k])), rng.random()))
    for level, want in ((3, args.level3), (2, args.level2), (1, args.count - args.level2 - args.level3)):
        had = len(rows)
        for key in order:
            if key[0] == level and len(rows) - had < want and \
                    (not args.at_most or elements(groups[key][0][3]) <= args.at_most):
                rows += [(key,) + row for row in rng.sample(groups[key], min(args.per_task, len(groups[key])))]
    out = pathlib.Path(args.out)
    for folder in ("tasks", "candidates"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    manifest = []
    for key, author, level, task, text, code, fate, digest in rows:
        author = re.sub(r"[^\w.-]", "-", author)
        where = f"l{level}_{key[1]}_{key[2]}"
        (out / "tasks" / (where + ".py")).write_text(text)
        name = f"{where}__{author}_{digest}"
        (out / "candidates" / (name + ".py")).write_text(code)
        manifest.append({"name": name, "level": level, "task": where, "title": task, "author": author,
                         "published": fate})
    for row in rng.sample(manifest, min(args.sample, len(manifest))):
        row["theirs"] = True
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    take_kernelbench(args.kernelbench, out / "kb" / "kernelbench")
    print(f"{len(manifest)} candidates, {len({r['task'] for r in manifest})} tasks, "
          f"{len({r['author'] for r in manifest})} authors, "
          f"levels {sorted({r['level'] for r in manifest})}, {sum(1 for r in manifest if r.get('theirs'))} for "
          f"KernelBench")


def layout(args):
    """The same programs as 'musacoder bench' wants them: a KernelBench checkout of their tasks, a folder of samples."""
    work, out = pathlib.Path(args.work), pathlib.Path(args.out)
    versions = {}
    for row in json.loads((work / "manifest.json").read_text()):
        number = re.match(r"\d+", row["title"]).group()
        versions.setdefault((row["level"], number), {}).setdefault(row["task"], []).append(row)
    (out / "samples").mkdir(parents=True, exist_ok=True)
    written = 0
    for (level, number), of_text in versions.items():
        task, rows = max(of_text.items(), key=lambda item: len(item[1]))
        folder = out / "suite" / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(work / "tasks" / (task + ".py"), folder / (rows[0]["title"] + ".py"))
        for i, row in enumerate(rows):
            shutil.copy(work / "candidates" / (row["name"] + ".py"),
                        out / "samples" / f"level_{level}_problem_{number}_sample_{i}_kernel.py")
        written += len(rows)
    print(f"{written} samples of {len(versions)} tasks")


def small(args):
    """The same programs beside tasks made small; those of a task that cannot be are left out, by name."""
    import public_runs
    work, out = pathlib.Path(args.work), pathlib.Path(args.out)
    (out / "tasks").mkdir(parents=True, exist_ok=True)
    for name in ("raw", "candidates"):
        if not (out / name).exists():
            (out / name).symlink_to((work / ("tasks" if name == "raw" else name)).resolve())
    public_runs.shrink(argparse.Namespace(work=out, jobs=2))
    rows = json.loads((work / "manifest.json").read_text())
    rows = [r for r in rows if (out / "tasks" / (r["task"] + ".py")).exists()]
    (out / "manifest.json").write_text(json.dumps(rows, indent=1))
    print(f"{len(rows)} programs of {len({r['task'] for r in rows})} tasks")


def take_kernelbench(git_dir, to):
    to.mkdir(parents=True, exist_ok=True)
    (to / "__init__.py").write_text("")
    for name in ("eval", "timing", "dataset", "utils"):
        done = subprocess.run(["git", f"--git-dir={git_dir}", "show", f"HEAD:src/kernelbench/{name}.py"],
                              capture_output=True)
        if done.returncode:
            sys.exit(f"'{git_dir}' has no src/kernelbench/{name}.py: {done.stderr.decode().strip()}")
        (to / (name + ".py")).write_bytes(done.stdout)


# Ours -----------------------------------------------------------------------------------------------------------------


def descendants(pid):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    children.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
            except OSError:
                pass
    found, todo = [], [pid]
    while todo:
        at = todo.pop()
        found.append(at)
        todo += children.get(at, [])
    return found[1:]


def resident(pids):
    """Bytes, shared pages counted once in proportion (PSS)."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                total += next(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024
        except (OSError, StopIteration):
            pass
    return total


class Watch:
    """How busy the GPU is, what it holds, what the processes below pid hold on the host."""

    def __init__(self, pid):
        self.pid, self.stop, self.host, self.gpu = pid, threading.Event(), 0, []
        self.smi = None
        if shutil.which("nvidia-smi"):
            self.smi = subprocess.Popen(["nvidia-smi", "--query-gpu=utilization.gpu,memory.used",
                                         "--format=csv,noheader,nounits",
                                         "-lms", "200", "-i", CARD], stdout=subprocess.PIPE, text=True)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.look_at_host, self.look_at_gpu)]
        for t in self.threads:
            t.start()

    def look_at_host(self):
        while not self.stop.wait(2):
            self.host = max(self.host, resident(descendants(self.pid)))

    def look_at_gpu(self):
        for line in self.smi.stdout if self.smi else ():
            parts = line.split(",")
            if len(parts) == 2 and parts[0].strip().isdigit():
                self.gpu.append((int(parts[0]), int(parts[1])))

    def end(self):
        self.stop.set()
        if self.smi:
            self.smi.send_signal(signal.SIGTERM)
            self.smi.wait()
        busy = [u for u, _ in self.gpu]
        return {"host_peak_bytes": self.host, "gpu_busy": statistics.mean(busy) / 100 if busy else None,
                "gpu_idle_samples": sum(u == 0 for u in busy), "gpu_samples": len(busy),
                "device_peak_mib": max((m for _, m in self.gpu), default=None)}


def ours(args):
    work, out = pathlib.Path(args.work), pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    stem = f"ours-{args.protocol}-{args.run}"
    options = {"backend": args.backend, "protocol": args.protocol, "timeout": args.timeout, "build-timeout": 120.0,
               "max-elements": args.max_elements, "perf": not args.no_times}
    rows = [r for r in json.loads((work / "manifest.json").read_text()) if args.only in r["name"]][:args.limit or None]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as requests:
        for r in rows:
            requests.write(json.dumps({"id": r["name"], "task_name": r["task"], "options": options,
                                       "task_code": (work / "tasks" / (r["task"] + ".py")).read_text(),
                                       "candidate": (work / "candidates" / (r["name"] + ".py")).read_text()}) + "\n")
        requests.flush()
        had, started = len(read_lines(out / (stem + ".jsonl"))), time.monotonic()
        command = [FEED, requests.name, str(out / (stem + ".jsonl")), str(args.seconds), str(args.workers), MUSACODER,
                   "--backend",
                   args.backend, "--no-cache"] + (["--jobs", str(args.jobs)] if args.jobs else [])
        feed = subprocess.Popen(command)
        watch = Watch(feed.pid)
        _, status, used = os.wait4(feed.pid, 0)
        code = os.waitstatus_to_exitcode(status)
    usage = dict(watch.end(), wall_s=time.monotonic() - started, workers=args.workers)
    usage["cpu_s"] = used.ru_utime + used.ru_stime
    results = read_lines(out / (stem + ".jsonl"))
    usage["judged"] = len(results) - had
    usage["last_done_s"] = max((r["done_s"] for r in results[had:]), default=0.0)
    with open(out / (stem + ".usage.jsonl"), "a") as f:
        f.write(json.dumps(usage) + "\n")
    counts = {}
    for r in results:
        c = r["verdict"]["category"] or "passed"
        counts[c] = counts.get(c, 0) + 1
    print(f"{stem}: {len(results)} of {len(rows)} judged{', all' if len(results) == len(rows) else ''}; {counts}; "
          f"{json.dumps(usage)}")
    sys.exit(code if code in (0, 3) else 1)


# Theirs ---------------------------------------------------------------------------------------------------------------


def stub_modules():
    """What KernelBench's evaluation imports and does not need for evaluating."""
    import importlib.util
    import types

    class BaseModel:
        def __init__(self, **values):
            for name in getattr(type(self), "__annotations__", {}):
                default = getattr(type(self), name, None)
                setattr(self, name, values.get(name, dict(default) if isinstance(default, dict) else default))

    def nothing(*a, **k):
        return None

    wanted = {"pydantic": {"BaseModel": BaseModel}, "requests": {}, "dotenv": {"load_dotenv": nothing},
              "openai": {"OpenAI": object}, "litellm": {"completion": nothing}, "tqdm": {"tqdm": lambda x, *a, **k: x}}
    for name, names in wanted.items():
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(names)


def kernelbench(work):
    stub_modules()
    sys.path.insert(0, str(work / "kb"))
    import kernelbench.eval as evaluation
    return evaluation


def theirs_one(args):
    """In a process of its own: builds or judges one candidate; prints one line of JSON."""
    work, started = pathlib.Path(args.work), time.monotonic()
    row = next(r for r in json.loads((work / "manifest.json").read_text()) if r["name"] == args.one)
    code = (work / "candidates" / (args.one + ".py")).read_text()
    build = str(pathlib.Path(args.build_dir) / args.one)
    evaluation = kernelbench(work)
    imported = time.monotonic()
    if args.command == "theirs-build":
        ok, _, error = evaluation.build_compile_cache(code, build_dir=build)
        answer = {"ok": ok, "error": (error or "")[-600:], "build_s": time.monotonic() - imported}
    else:
        import torch
        r = evaluation.eval_kernel_against_ref((work / "tasks" / (row["task"] + ".py")).read_text(), code,
                                               num_correct_trials=5,
                                               num_perf_trials=100,
                                               measure_performance=not args.no_times, build_dir=build,
                                               device=torch.device("cuda:0"))
        answer = {"none": True} if r is None else {
            "compiled": bool(r.compiled), "correct": bool(r.correctness), "runtime": r.runtime,
            "ref_runtime": r.ref_runtime,
            "metadata": {str(k): str(v)[-400:] for k, v in r.metadata.items()}, "judge_s": time.monotonic() - imported,
            "device_peak_bytes": torch.cuda.max_memory_allocated()}
    import resource
    answer.update(process_s=time.monotonic() - started,
                  host_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print("\nANSWER " + json.dumps(answer), flush=True)
    os._exit(0)


def theirs_spawn(args, name, limit):
    command = [sys.executable, os.path.abspath(__file__), args.command, args.work, args.out, "--build-dir",
               args.build_dir, "--one", name] + (["--no-times"] if args.no_times else [])
    env = dict(os.environ, TORCH_CUDA_ARCH_LIST=args.arch, MAX_JOBS="2", PYTHONUNBUFFERED="1")
    started = time.monotonic()
    p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace",
                         start_new_session=True)
    try:
        text, _ = p.communicate(timeout=limit)
        lines = [line for line in text.splitlines() if line.startswith("ANSWER ")]
        answer = json.loads(lines[-1][7:]) if lines else {"died": p.returncode, "tail": text[-400:]}
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        answer = {"timeout": limit}
    return dict(answer, name=name, wall_s=time.monotonic() - started)


def theirs(args):
    if args.one:
        return theirs_one(args)
    work, out, started = pathlib.Path(args.work), pathlib.Path(args.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    path = out / (args.command + ".jsonl")
    have = {r["name"] for r in read_lines(path)}
    names = [r["name"] for r in json.loads((work / "manifest.json").read_text()) if r.get("theirs")]
    random.Random(0).shuffle(names)  # what is done when time is up is a random part of them
    names = names[:args.limit or None]
    todo = [n for n in names if n not in have]
    jobs = args.jobs or (16 if args.command == "theirs-build" or args.no_times else 1)
    limit = args.each
    watch, lock, seconds = Watch(os.getpid()), threading.Lock(), args.seconds

    def work_off():
        while True:
            with lock:  # what could not end in time is not begun
                if not todo or time.monotonic() - started > seconds - args.reserve:
                    return
                name = todo.pop(0)
            row = theirs_spawn(args, name, min(limit, seconds - (time.monotonic() - started)))
            if "timeout" in row and row["timeout"] < limit:
                return
            with lock, open(path, "a") as f:
                f.write(json.dumps(row) + "\n")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for job in [pool.submit(work_off) for _ in range(jobs)]:
            job.result()
    usage = dict(watch.end(), wall_s=time.monotonic() - started, jobs=jobs)
    with open(out / (args.command + ".usage.jsonl"), "a") as f:
        f.write(json.dumps(usage) + "\n")
    done = len(read_lines(path))
    print(f"{args.command}: {done} of {len(names)}{', all' if done >= len(names) else ''}; {json.dumps(usage)}")
    sys.exit(0 if done >= len(names) else 3)


# The table ------------------------------------------------------------------------------------------------------------


def median(xs):
    return statistics.median(xs) if xs else float("nan")


def category(v):
    return v["category"] or "passed"


def built(v):
    return [v["compile"]["ms"]] if isinstance(v.get("compile"), dict) and v["compile"].get("cache") == "miss" else []


def needed_s(v):
    """Device seconds that the verdict cannot do without: its timed calls, both sides, and its correctness calls."""
    p = v.get("performance") or {}
    c = p.get("calls") or {}
    number = lambda key: p.get(key) if isinstance(p.get(key), (int, float)) else 0  # noqa: E731
    trials = (v.get("correctness") or {}).get("trials") or 0
    ms = c.get("cold", 0) * number("candidate_ms")
    ms += c.get("eager", 0) * number("eager_ms")
    return (ms + trials * (number("candidate_ms") + number("eager_ms"))) / 1e3


def ours_summary(out, stem):
    rows, usage = read_lines(out / (stem + ".jsonl")), read_lines(out / (stem + ".usage.jsonl"))
    if not rows:
        return None
    verdicts = {r["id"]: r["verdict"] for r in rows}
    stages, wall = {}, sum(u["wall_s"] for u in usage)
    for v in verdicts.values():
        for k, ms in (v.get("stage_ms") or {}).items():
            if isinstance(ms, (int, float)):
                stages[k] = stages.get(k, 0) + ms / 1e3
    busy = [u["gpu_busy"] * u["wall_s"] for u in usage if u["gpu_busy"] is not None]
    return {"verdicts": verdicts, "wall_s": wall, "stages": stages, "busy_s": sum(busy) if busy else float("nan"),
            "builds": [ms for v in verdicts.values() for ms in built(v)],
            "needed_s": sum(map(needed_s, verdicts.values())),
            "host_peak": max(u["host_peak_bytes"] for u in usage) / max(u["workers"] for u in usage),
            "device_peak": max((u["device_peak_mib"] or 0 for u in usage))}


def values_right(v):
    """Were the values of all calls right, whoever computed them? None: a convicted program was not run to its end."""
    c = v.get("correctness") or {}
    if category(v) == "passed":
        return True
    if category(v) == "cheating":
        return None if c.get("stopped") or not c.get("trials") else c["passed"] == c["trials"]
    return False


def agreement(ours_v, theirs_v):
    """None when KernelBench said nothing; else ("same" | "refused" | "differ", ours, theirs). refused: right by
    KernelBench, and by us not wrong but not the candidate's own work."""
    if theirs_v is None or theirs_v.get("none") or "timeout" in theirs_v or "died" in theirs_v:
        return None
    said = "passed" if theirs_v["correct"] else "compile_error" if not theirs_v["compiled"] else "wrong"
    mine, right = category(ours_v), values_right(ours_v)
    if said == "passed" and mine == "cheating" and right is not False:
        return "refused", mine, said
    return "same" if (right is True) == (said == "passed") else "differ", mine, said


def repeat_table(a, b):
    both = [n for n in a if n in b]
    same = [n for n in both if category(a[n]) == category(b[n])]
    counts = {"speedup_eager": [0, 0], "speedup_compile": [0, 0]}  # inside, all; the latter shares what a cache keeps
    for n in both:
        for key, count in counts.items():
            x, y = ((v.get("performance") or {}) for v in (a[n], b[n]))
            if not (x.get("trusted") and y.get("trusted")):
                continue
            for one, other in ((x, y), (y, x)):
                ci = other.get(key + "_ci")
                if isinstance(one.get(key), (int, float)) and ci:
                    count[0] += ci[0] <= one[key] <= ci[1]
                    count[1] += 1
    print(f"\nTwo runs: {len(same)} of {len(both)} verdicts the same; inside the other run's 95 % interval: " +
          "; ".join(f"{inside} of {total} {key}" + (f" ({inside / total:.1%})" if total else "")
                    for key, (inside, total) in counts.items()))
    for n in both:
        if n not in same:
            print(f"- {n}: {category(a[n])}, then {category(b[n])}")


def table(args):
    work, out = pathlib.Path(args.work), pathlib.Path(args.out)
    manifest = {r["name"]: r for r in json.loads((work / "manifest.json").read_text())}
    builds = {r["name"]: r for r in read_lines(out / "theirs-build.jsonl")}
    judged = {r["name"]: r for r in read_lines(out / "theirs-judge.jsonl")}
    build_wall = sum(u["wall_s"] for u in read_lines(out / "theirs-build.usage.jsonl"))
    judge_usage = read_lines(out / "theirs-judge.usage.jsonl")
    judge_wall = sum(u["wall_s"] for u in judge_usage)
    theirs_median = median([r["build_s"] for r in builds.values() if "build_s" in r])
    theirs_hour = len(judged) / (build_wall + judge_wall) * 3600 if judged and build_wall + judge_wall else float("nan")
    print("| | candidates | passed | wall s | median build s | candidates/hour | GPU busy | needed/busy | host peak "
          "MiB | device peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for protocol in ("strict", "kernelbench"):
        for run in ("1", "2"):
            s = ours_summary(out, f"ours-{protocol}-{run}")
            if not s:
                continue
            n, hour = len(s["verdicts"]), len(s["verdicts"]) / s["wall_s"] * 3600
            print(f"| ours, {protocol}, run {run} | {n} | "
                  f"{sum(category(v) == 'passed' for v in s['verdicts'].values())} | {s['wall_s']:.0f} "
                  f"| {median(s['builds']) / 1e3:.2f} (x{theirs_median * 1e3 / median(s['builds']):.0f}) | {hour:.0f} "
                  f"(x{hour / theirs_hour:.1f}) "
                  f"| {s['busy_s'] / s['wall_s']:.0%} | {s['needed_s'] / s['busy_s']:.2f} | "
                  f"{s['host_peak'] / 2**20:.0f} per worker | {s['device_peak']} |")
    if judged:
        passed = sum(bool(r.get("correct")) for r in judged.values())
        host = max((r.get("host_peak_bytes", 0) for r in judged.values()), default=0)
        device = max((u["device_peak_mib"] or 0 for u in judge_usage), default=0)
        busy = sum((u["gpu_busy"] or 0) * u["wall_s"] for u in judge_usage) / max(build_wall + judge_wall, 1e-9)
        print(f"| KernelBench | {len(judged)} | {passed} | {build_wall + judge_wall:.0f} ({build_wall:.0f} building) | "
              f"{theirs_median:.1f} | "
              f"{theirs_hour:.0f} | {busy:.0%} | | {host / 2**20:.0f} | {device} |")
    sizes = {}
    for r in manifest.values():
        sizes[r["task"]] = sizes.get(r["task"], 0) + 1
    print(f"\n{len(sizes)} tasks, {statistics.mean(sizes.values()):.1f} samples each (up to {max(sizes.values())}); "
          f"{len({r['author'] for r in manifest.values()})} authors; levels " +
          ", ".join(f"{k}: {sum(r['level'] == k for r in manifest.values())}" for k in (1, 2, 3)))
    for protocol in ("strict", "kernelbench"):
        s = ours_summary(out, f"ours-{protocol}-1")
        if not s:
            continue
        total = sum(s["stages"].values()) or 1
        print(f"\nStages, {protocol}, seconds of all candidates together: " +
              ", ".join(f"{k} {x:.1f} ({x / total:.0%})" for k, x in sorted(s["stages"].items(), key=lambda r: -r[1])))
        for title, of in (("Of waiting", lambda v: v.get("waiting_ms")),
                          ("Of performance", lambda v: (v.get("performance") or {}).get("took_ms"))):
            parts = {}
            for v in s["verdicts"].values():
                for k, ms in (of(v) or {}).items():
                    parts[k] = parts.get(k, 0) + ms / 1e3
            if parts:
                print(f"{title}: " + ", ".join(f"{k} {x:.1f}" for k, x in sorted(parts.items(), key=lambda r: -r[1])))
        counts = {}
        for v in s["verdicts"].values():
            counts[category(v)] = counts.get(category(v), 0) + 1
        print("Verdicts: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
        rows = [(n, agreement(v, judged.get(n)), v) for n, v in s["verdicts"].items() if n in judged]
        rows = [r for r in rows if r[1]]
        if rows:
            kinds = [r[1][0] for r in rows]
            print(f"Beside KernelBench, {len(rows)} candidates: {kinds.count('same')} the same, "
                  f"{kinds.count('refused')} right there and "
                  f"refused here because PyTorch or a library does the work, {kinds.count('differ')} differ")
            for n, (same, mine, said), v in sorted(rows):
                if same == "differ":
                    why = (v.get("feedback") or "").replace("\n", " ")[:220]
                    print(f"- {n}: ours {mine}, theirs {said} | {why} | {str(judged[n].get('metadata', ''))[:160]}")
        other = ours_summary(out, f"ours-{protocol}-2")
        if other:
            repeat_table(s["verdicts"], other["verdicts"])


def worse(old, new):
    """A verdict got worse where a program that was not blamed is blamed, or one that passed does not."""
    blamed = lambda row: row["verdict"] not in ("passed", "unsupported", "infra")  # noqa: E731
    return (blamed(new) and not blamed(old)) or (old["verdict"] == "passed" and new["verdict"] != "passed")


def rows(args):
    """Writes a line for each program; exit code 1 where one is judged worse than in --compare."""
    found = read_lines(pathlib.Path(args.work) / "ours-strict-1.jsonl")
    lines = [{"name": r["id"], "verdict": category(r["verdict"]), "code": r["verdict"].get("code")} for r in found]
    lines.sort(key=lambda r: r["name"])
    pathlib.Path(args.out).write_text("".join(json.dumps(r) + "\n" for r in lines))
    counts = {}
    for r in lines:
        counts[r["verdict"]] = counts.get(r["verdict"], 0) + 1
    print(f"{len(lines)} programs: {counts}")
    old = {r["name"]: r for r in read_lines(pathlib.Path(args.compare))} if args.compare else {}
    bad = [(old[r["name"]], r) for r in lines if r["name"] in old and worse(old[r["name"]], r)]
    for was, now in bad:
        print(f"{now['name']}: was {was['verdict']} {was['code']}; is {now['verdict']} {now['code']}")
    sys.exit(bool(bad))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="command", required=True)
    p = verbs.add_parser("collect")
    p.add_argument("--clones", required=True)
    p.add_argument("--kernelbench", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--count", type=int, default=160)
    p.add_argument("--level2", type=int, default=50)
    p.add_argument("--level3", type=int, default=30)
    p.add_argument("--sample", type=int, default=40)
    p.add_argument("--at-most", type=int, default=0, help="elements of a task's largest input (needs PyTorch)")
    p.add_argument("--per-task", type=int, default=8, help="candidates of one task, at most")
    p.add_argument("--seed", type=int, default=0)
    p.set_defaults(call=collect)
    p = verbs.add_parser("ours")
    p.add_argument("--protocol", default="strict", choices=["strict", "kernelbench"])
    p.add_argument("--run", default="1")
    p.add_argument("--backend", default="cuda")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--jobs", type=int, default=0)
    p.add_argument("--timeout", type=float, default=60.0)
    p.add_argument("--max-elements", type=int, default=1 << 40)
    p.add_argument("--only", default="")
    p.add_argument("--no-times", action="store_true", help="verdicts alone")
    p.set_defaults(call=ours)
    for name in ("theirs-build", "theirs-judge"):
        p = verbs.add_parser(name)
        p.add_argument("--build-dir", default="/tmp/kernelbench-builds")
        p.add_argument("--arch", default="9.0")
        p.add_argument("--jobs", type=int, default=0)
        p.add_argument("--reserve", type=float, default=100 if name == "theirs-build" else 60)
        p.add_argument("--each", type=float, default=300 if name == "theirs-build" else 180,
                       help="seconds for one candidate")
        p.add_argument("--no-times", action="store_true",
                       help="theirs-judge: verdicts alone, built where they are needed, side by side")
        p.add_argument("--one")
        p.set_defaults(call=theirs)
    verbs.add_parser("table").set_defaults(call=table)
    verbs.add_parser("layout").set_defaults(call=layout)
    verbs.add_parser("small").set_defaults(call=small)
    p = verbs.add_parser("rows")
    p.add_argument("--compare")
    p.set_defaults(call=rows)
    for name in ("ours", "theirs-build", "theirs-judge", "table", "layout", "small", "rows"):
        q = verbs.choices[name]
        q.add_argument("work")
        q.add_argument("out")
        if name in ("ours", "theirs-build", "theirs-judge"):
            q.add_argument("--seconds", type=float, default=520)
            q.add_argument("--limit", type=int, default=0)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
