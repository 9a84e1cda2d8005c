#!/usr/bin/env python3
"""Do public candidates build and run on the emulator, and does it agree with a GPU, at the same reduced sizes?

    lab/public_runs.py collect CLONES WORK [--each 200] [--seed 0]      three groups of programs, and their tasks
    lab/public_runs.py shrink WORK [--jobs 2]                           'musacoder shrink' on each task; resumes
    lab/public_runs.py run WORK [--backend sim] [--seconds 600]         'musacoder eval --worker' on each; resumes
    lab/public_runs.py table WORK                                       shares, reasons, agreement, in Markdown

Groups: one-shot (technoabsurdist/KernelBench, anneouyang/KernelBenchLeaderboard), evolved (deepreinforce-ai/CUDA-L1,
its five GPUs) and agentic (Infatoshi/kernelbench.com, whose tasks get the sizes of AGENTIC below and whose class Model
gets a subclass ModelNew). The programs are other people's, and nothing of them is kept here; clone them yourself:
    git clone https://github.com/technoabsurdist/KernelBench         CLONES/technoabsurdist
    git clone https://github.com/anneouyang/KernelBenchLeaderboard   CLONES/leaderboard
    git clone https://github.com/deepreinforce-ai/CUDA-L1            CLONES/cuda-l1
    git clone https://github.com/Infatoshi/kernelbench.com           CLONES/agentic
A program "runs" if its values were compared on every draw, whatever they were; `table` tells the rest by reason.
`run` appends to WORK/BACKEND.jsonl and needs build/lab/judge_feed; MUSACODER_EXE and JUDGE_FEED name other binaries.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEED = os.environ.get("JUDGE_FEED", str(ROOT / "build/lab/judge_feed"))
MUSACODER = os.environ.get("MUSACODER_EXE", str(ROOT / "build/musacoder"))
ELEMENTS = 16384  # of the largest tensor of a shrunk task
GROUPS = ("one-shot", "evolved", "agentic")
GPUS = ("h100", "a100", "3090", "l40", "h20")
# Sizes that keep what the programs rely on (multiples of tiles, head size, group size) and that a CPU can do.
AGENTIC = {
    "01_fp8_gemm": "M, N, K = 128, 128, 512",
    "03_paged_attention": "BATCH, NUM_HEADS, NUM_KV_HEADS, HEAD_DIM, SEQ_LEN, PAGE_SIZE = 2, 32, 8, 128, 200, 16",
    "05_topk_bitonic": "batch, n, k = 2, 8192, 8",
    "06_sonic_moe_swiglu": "T_total, H, I, E, K = 64, 256, 128, 4, 2",
    "07_w4a16_gemm": "M, N, K = 1, 256, 4096",
    "01_glm52_fused_moe": "T, E, top_k, n_shared, H, I = 8, 8, 2, 1, 256, 128",
    "02_deepseek_nsa": "B, H, S, D = 1, 2, 192, 64",
}
PUBLISHED = "01_fp8_gemm"  # strict refuses it: its inputs are so coarse that their rounding hides a right answer


def sha(text, n=8):
    return hashlib.sha256(re.sub(r"\s+", "", text).encode()).hexdigest()[:n]


# Collecting -----------------------------------------------------------------------------------------------------------


LEVELS = "123"


def is_candidate(code):
    return "load_inline" in code and "__global__" in code and "class ModelNew" in code


def technoabsurdist(base):
    """Sample files beside the evaluation that their author ran on a data-centre GPU."""
    for run in sorted((base / "runs").iterdir()):
        level = re.search(rf"level([{LEVELS}])", run.name)
        if not level:
            continue
        results = run / "eval_results.json"
        fate = json.loads(results.read_text()) if results.exists() else {}
        for path in sorted(run.glob("*.py")):
            found = re.search(r"problem_(\d+)", path.name)
            code = path.read_text(errors="replace")
            if found and is_candidate(code):
                author = run.name.split("_")[0]
                known = fate.get(found.group(1), {})
                task = next((base / "KernelBench" / f"level{level.group(1)}").glob(found.group(1) + "_*.py"), None)
                if task:
                    yield author, int(level.group(1)), task.stem, task.read_text(), code, {
                        "compiled": known.get("compiled"), "correct": known.get("correctness")}


def leaderboard(base):
    tasks = {}
    for path in (base / "docs" / "assets" / "problems").glob(f"l[{LEVELS}]_p*.py"):
        level, number = re.match(r"l(\d)_p(\d+)", path.stem).groups()
        tasks[int(level), int(number)] = path.read_text()
    listing = json.loads((base / "docs" / "assets" / "data.json").read_text())
    for title, entries in sorted(listing.items()):
        level, name = re.match(r"Level (\d): (.*)", title).groups()
        number = int(name.split("_")[0])
        for entry in entries:
            path = base / "docs" / "assets" / "solutions" / (entry["file"] + ".py")
            if level not in LEVELS or not path.exists() or (int(level), number) not in tasks:
                continue
            code = path.read_text(errors="replace")
            if is_candidate(code):
                yield "leaderboard-" + entry["display_name"], int(level), name.strip("_"), tasks[int(level),
                    number], code, {
                    "compiled": True, "correct": True}


def cuda_l1(base):
    for line in (base / "optimized_cuda_code" / "h100.json").read_text().splitlines():
        record = json.loads(line)
        code = record.get("custom_code") or ""
        if str(record["level_id"]) in LEVELS and is_candidate(code):
            yield "cuda-l1", record["level_id"], f"{record['task_id']}_task", record["ref_code"], code, {
                "compiled": True, "correct": True}


SOURCES = {"technoabsurdist": technoabsurdist, "leaderboard": leaderboard, "cuda-l1": cuda_l1}


def one_shot(clones):
    for source in ("technoabsurdist", "leaderboard"):
        for author, level, task, text, code, _ in SOURCES[source](clones / source):
            yield author, f"l{level}_{re.match(r'[0-9]+', task).group()}", text, code


def evolved(clones):
    for gpu in GPUS:
        for line in (clones / "cuda-l1" / "optimized_cuda_code" / (gpu + ".json")).read_text().splitlines():
            record = json.loads(line)
            code = record.get("custom_code") or ""
            if "load_inline" in code and "__global__" in code and "class ModelNew" in code:
                yield "cuda-l1-" + gpu, f"l{record['level_id']}_{record['task_id']}", record["ref_code"], code


def agentic(clones):
    base = clones / "agentic"
    for path in sorted(base.rglob("*solution.py.txt")):
        code, problem = path.read_text(errors="replace"), re.search(r"_(\d\d_[a-z0-9_]+?)[._]solution\.py",
            path.name).group(1)
        if problem not in AGENTIC or "__global__" not in code or "cpp_extension" not in code:
            continue
        task = next(base.glob(f"benchmarks/*/problems-h100/{problem}/reference.py")).read_text()
        author = re.sub(r"^\d+_\d+_", "", path.name)[:40]
        small = f"{task}\n\n{AGENTIC[problem]}  # made small\n"
        yield author, problem, small, code + "\n\nclass ModelNew(Model):\n    pass\n"


def collect(args):
    clones, work, rng = pathlib.Path(args.clones), pathlib.Path(args.work), random.Random(args.seed)
    chosen = []
    for group, reader in zip(GROUPS, (one_shot, evolved, agentic)):
        seen, rows = set(), []
        for author, problem, text, code in reader(clones):
            if sha(code) not in seen:
                seen.add(sha(code))
                rows.append((group, re.sub(r"[^\w.-]", "-", author), f"{problem}_{sha(text, 6)}", text, code))
        rng.shuffle(rows)
        chosen += rows[:args.each]
        print(f"{group}: {len(rows)} different programs, {len(rows[:args.each])} taken", flush=True)
    for folder in ("raw", "tasks", "candidates"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    manifest = []
    for group, author, where, text, code in chosen:
        name = f"{where}__{author}_{sha(code)}"
        (work / "candidates" / (name + ".py")).write_text(code)
        (work / ("tasks" if group == "agentic" else "raw") / (where + ".py")).write_text(text)
        manifest.append({"name": name, "group": group, "task": where})
    (work / "manifest.json").write_text(json.dumps(manifest, indent=0))
    print(f"{len(manifest)} programs of {len({r['task'] for r in manifest})} tasks")


def shrink_one(work, name):
    done = subprocess.run([MUSACODER, "shrink", str(work / "raw" / name), "--max-elements", str(ELEMENTS), "--out",
                           str(work / "tasks" / name)], capture_output=True, text=True)
    return name, "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no output"])[-1]


def shrink(args):
    work = pathlib.Path(args.work)
    todo = [p.name for p in sorted((work / "raw").glob("*.py")) if not (work / "tasks" / p.name).exists()]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        failed = [(n, why) for n, why in pool.map(lambda n: shrink_one(work, n), todo) if why]
    for name, why in failed:
        print(f"{name}: {why}")
    print(f"{len(todo) - len(failed)} of {len(todo)} tasks made small")


# Running --------------------------------------------------------------------------------------------------------------


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def rows_of(work, only=None):
    rows = [r for r in json.loads((work / "manifest.json").read_text()) if (work / "tasks" / (r["task"] +
        ".py")).exists()]
    wanted = set((work / only).read_text().split()) if only else None
    by = {g: [r for r in rows if r["group"] == g and (wanted is None or r["name"] in wanted)] for g in GROUPS}
    return [by[g][i] for i in range(max(map(len, by.values()))) for g in GROUPS if i < len(by[g])]  # by turns of group


def run(args):
    work = pathlib.Path(args.work)
    rows, log = rows_of(work, args.only), work / (args.backend + ".jsonl")
    options = {"backend": args.backend, "timeout": args.timeout, "build-timeout": 120.0, "trials": args.trials,
        "perf": False}
    published = dict(options, protocol="kernelbench")
    have = {r["id"] for r in read_lines(log)}
    todo = [r for r in rows if r["name"] not in have]
    print(f"{len(rows)} programs, {len(todo)} to do", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as requests:
        for r in todo:
            requests.write(json.dumps({"id": r["name"], "task_name": r["task"],
                                       "options": published if r["task"].startswith(PUBLISHED) else options,
                                       "task_code": (work / "tasks" / (r["task"] + ".py")).read_text(),
                                       "candidate": (work / "candidates" / (r["name"] + ".py")).read_text()}) + "\n")
        requests.flush()
        code = subprocess.run([FEED, requests.name, str(log), str(args.seconds), str(args.workers), MUSACODER,
            "--backend",
                               args.backend, "--no-cache"] + (["--jobs",
                                   str(args.jobs)] if args.jobs else [])).returncode
    print(f"{len(read_lines(log))} of {len(rows)} judged")
    sys.exit(code)


# Telling --------------------------------------------------------------------------------------------------------------


def kind_of(v):
    """(kind, why). right and wrong: it ran and values were compared; a conviction for what it ran comes after the
    first draw."""
    category, correct = v["category"] or "passed", v.get("correctness") or {}
    why = re.sub(r"\s+", " ", v.get("feedback") or "")[:200]
    done, right = correct.get("trials") or 0, correct.get("passed")
    if category == "passed":
        return "right", ""
    if category == "correctness_error":
        return "wrong", why
    if category == "cheating" and done:
        return ("right" if right == done else "wrong"), why
    names = {"cheating": "rule", "compile_error": "build", "extraction_error": "build", "runtime_error": "error",
             "timeout": "slow"}
    return names.get(category, category), why


RUNS = ("right", "wrong")


def finding_rule(v):
    found = [f.get("rule") or f.get("kind") for f in (v.get("findings") or [])]
    return ",".join(sorted({str(f) for f in found if f}))


def share(n, of):
    return f"{n} of {of} ({100 * n / of:.1f} %)" if of else "none"


def table_of_runs(rows, sim, gpu):
    print("| group | programs | right | wrong values | rule | unsupported | do not build | error at run | slow | infra "
          "| builds and "
          "runs, of those that do on the GPU |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for group in GROUPS:
        mine = [r["name"] for r in rows if r["group"] == group and r["name"] in sim]
        count = collections.Counter(sim[n][0] for n in mine)
        both = [n for n in mine if gpu.get(n, ("",))[0] in RUNS]
        print(f"| {group} | {len(mine)} | " + " | ".join(str(count[k]) for k in ("right", "wrong", "rule",
            "unsupported", "build",
              "error", "slow", "infra")) + f" | {share(sum(sim[n][0] in RUNS for n in both), len(both))} |")


def table_of_agreement(sim, gpu):
    both = [n for n in sim if n in gpu and sim[n][0] in RUNS and gpu[n][0] in RUNS]
    same = [n for n in both if sim[n][0] == gpu[n][0]]
    print(f"\nValues compared on both: {share(len(same), len(both))} agree")
    for n in sorted(both):
        if n not in same:
            print(f"- {n}: sim {sim[n][0]}, GPU {gpu[n][0]}: {(sim[n][1] or gpu[n][1])[:160]}")


def table(args):
    work = pathlib.Path(args.work)
    rows = json.loads((work / "manifest.json").read_text())
    sim, gpu = ({r["id"]: kind_of(r["verdict"]) for r in read_lines(work / (b + ".jsonl"))} for b in ("sim", "cuda"))
    print(f"{len(rows) - len(rows_of(work))} of {len(rows)} programs have a task that cannot be made small\n")
    table_of_runs(rows, sim, gpu)
    table_of_agreement(sim, gpu)
    for group in GROUPS:
        why = collections.defaultdict(list)
        for r in rows:
            kind, text = sim.get(r["name"], ("", ""))
            if r["group"] == group and kind and kind not in RUNS:
                why[kind, re.sub(r"[0-9]+", "N", text)[:110]].append(r["name"])
        print(f"\n{group}, by reason:")
        for (kind, text), names in sorted(why.items(), key=lambda kv: -len(kv[1])):
            on_gpu = collections.Counter(gpu.get(n, ("-",))[0] for n in names)
            print(f"- {len(names)} {kind} (GPU: {dict(on_gpu)}): {text} ({names[0]})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    c = sub.add_parser("collect")
    c.add_argument("clones")
    c.add_argument("work")
    c.add_argument("--each", type=int, default=200)
    c.add_argument("--seed", type=int, default=0)
    c.set_defaults(call=collect)
    c = sub.add_parser("shrink")
    c.add_argument("work")
    c.add_argument("--jobs", type=int, default=2)
    c.set_defaults(call=shrink)
    c = sub.add_parser("run")
    c.add_argument("work")
    c.add_argument("--backend", default="sim")
    c.add_argument("--seconds", type=float, default=600)
    c.add_argument("--workers", type=int, default=1)
    c.add_argument("--jobs", type=int, default=0)
    c.add_argument("--trials", type=int, default=1)
    c.add_argument("--timeout", type=float, default=30)
    c.add_argument("--only", help="file in WORK with the names to run")
    c.set_defaults(call=run)
    c = sub.add_parser("table")
    c.add_argument("work")
    c.set_defaults(call=table)
    args = p.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
