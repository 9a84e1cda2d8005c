#!/usr/bin/env python3
"""Run public LLM-written load_inline candidates through `musacoder eval` on the emulator.

The programs are other people's: clone the repositories yourself, nothing of them is kept here.

    git clone https://github.com/ScalingIntelligence/KernelBench          DIR/KernelBench
    git clone https://github.com/technoabsurdist/KernelBench              DIR/technoabsurdist
    git clone https://github.com/anneouyang/KernelBenchLeaderboard        DIR/leaderboard
    git clone https://github.com/deepreinforce-ai/CUDA-L1                 DIR/cuda-l1
    lab/public_candidates.py collect --clones DIR --out WORK [--per-source 15] [--seed 0]
    lab/public_candidates.py run WORK [--max-elements 65536] [--only SUBSTRING]
    lab/public_candidates.py table WORK [--truth FILE.json]

`collect` draws the same number at random from every source (levels 1-2, a __global__ kernel, load_inline), whatever
their fate was elsewhere. `run` shrinks each task with `musacoder shrink`, judges, and appends to WORK/verdicts.jsonl;
it continues where it stopped. A candidate that carries a size of its task as a literal inside its code cannot be right
on other sizes: `run` marks those (hard_coded) and `table` counts them apart. `table` prints Markdown; --truth names
the output of lab/gpu_truth.py, whose agreement is then a column.
"""
import argparse
import ast
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUSACODER = ROOT / "build" / "musacoder"
LEVELS = "12"


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


def collect(args):
    rng = random.Random(args.seed)
    out = pathlib.Path(args.out)
    (out / "tasks").mkdir(parents=True, exist_ok=True)
    (out / "candidates").mkdir(exist_ok=True)
    by_author, seen = {}, set()
    for name, reader in SOURCES.items():
        base = pathlib.Path(args.clones) / name
        if not base.is_dir():
            sys.exit(f"'{base}' is missing; clone it as this script's head says")
        for row in reader(base):
            digest = hashlib.sha256(re.sub(r"\s+", "", row[4]).encode()).hexdigest()[:12]
            if digest not in seen:
                seen.add(digest)
                by_author.setdefault(name if name != "technoabsurdist" else row[0], []).append(row + (digest,))
    manifest = []
    for group, rows in sorted(by_author.items()):
        for author, level, task, task_code, code, fate, digest in rng.sample(rows, min(args.per_source, len(rows))):
            stem = f"l{level}_{task}__{author}_{digest}".replace(" ", "-").replace("/", "-")
            (out / "tasks" / (stem + ".py")).write_text(task_code)
            (out / "candidates" / (stem + ".py")).write_text(code)
            manifest.append({"name": stem, "level": level, "task": task, "group": group, "author": author,
                "published": fate})
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    print(f"{len(manifest)} candidates from {len(by_author)} sources of {sum(map(len, by_author.values()))} distinct "
          f"ones in {out}")


def module_sizes(code):
    """Integers that the task states at module level: the sizes that shrink changes."""
    sizes = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign):
            sizes |= {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and type(n.value) is int}
    return {s for s in sizes if s >= 16}


def hard_coded(task_code, shrunk_code, code):
    """Sizes that shrinking changed and that the candidate nevertheless carries as literals."""
    changed = module_sizes(task_code) - module_sizes(shrunk_code)
    return sorted(s for s in changed if re.search(rf"(?<![\w.]){s}(?![\w.])", code))


def run_one(work, row, max_elements):
    name = row["name"]
    task, small = work / "tasks" / (name + ".py"), work / "shrunk" / (name + ".py")
    started = time.monotonic()
    if not small.exists():
        done = subprocess.run([MUSACODER, "shrink", task, "--max-elements", str(max_elements)], capture_output=True,
            text=True)
        if done.returncode != 0:
            return {"name": name, "skipped": "shrink: " + done.stderr.strip().splitlines()[-1]}
        small.write_text(done.stdout)
    done = subprocess.run([MUSACODER, "eval", "--task", small, "--json", work / "candidates" / (name + ".py")],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        return {"name": name, "skipped": "eval: " + (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return {"name": name, "wall_s": round(time.monotonic() - started, 2), "verdict": json.loads(done.stdout),
            "hard_coded": hard_coded(task.read_text(), small.read_text(), (work / "candidates" / (name +
                ".py")).read_text())}


def run(args):
    work = pathlib.Path(args.work)
    (work / "shrunk").mkdir(exist_ok=True)
    log = work / "verdicts.jsonl"
    have = {json.loads(line)["name"] for line in log.read_text().splitlines()} if log.exists() else set()
    todo = [r for r in json.loads((work / "manifest.json").read_text()) if r["name"] not in have and args.only in
        r["name"]]
    for i, row in enumerate(todo):
        result = run_one(work, row, args.max_elements)
        verdict = result.get("verdict", {})
        print(f"[{i + 1}/{len(todo)}] {row['name'][:70]:70} "
              f"{result.get('skipped') or verdict['status'] + ' ' + (verdict['category'] or '')}", flush=True)
        with log.open("a") as f:
            f.write(json.dumps(result) + "\n")


def table(args):
    work = pathlib.Path(args.work)
    rows = {r["name"]: r for r in json.loads((work / "manifest.json").read_text())}
    truth = json.loads(pathlib.Path(args.truth).read_text()) if args.truth else {}
    print("| candidate | verdict | stage | build ms | run ms | hard-coded sizes |" + (" GPU |" if truth else ""))
    print("|---|---|---|---|---|---|" + ("---|" if truth else ""))
    counts, builds = {}, []
    for line in (work / "verdicts.jsonl").read_text().splitlines():
        result = json.loads(line)
        name = result["name"]
        verdict = result.get("verdict")
        if not verdict:
            label, stage, build, ran = "skipped", result["skipped"][:60], "", ""
        else:
            label = verdict["category"] or "passed"
            stage, build = verdict["stage"], verdict["compile"].get("ms", "")
            ran = round(sum(v for k, v in verdict["stage_ms"].items() if k != "compile" and isinstance(v, (int,
                float))))
            if isinstance(build, (int, float)) and verdict["compile"].get("cache") == "miss":
                builds.append(build)
        apart = "hard-coded" if result.get("hard_coded") else rows[name]["group"]
        counts.setdefault(apart, {}).setdefault(label, 0)
        counts[apart][label] += 1
        gpu = truth.get(name, {})
        cell = f" {gpu.get('verdict', '')} |" if truth else ""
        print(f"| {name} | {label} | {stage} | {build if build == '' else round(build)} | {ran} | "
              f"{' '.join(map(str, result.get('hard_coded', [])))} |{cell}")
    print()
    for group, by in sorted(counts.items()):
        print(f"- {group}: " + ", ".join(f"{n} {label}" for label, n in sorted(by.items())))
    if builds:
        builds.sort()
        print(f"- build on a cache miss: median {builds[len(builds) // 2]:.0f} ms, "
              f"90th percentile {builds[int(len(builds) * .9)]:.0f} ms, n = {len(builds)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    p = verbs.add_parser("collect")
    p.add_argument("--clones", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--per-source", type=int, default=15)
    p.add_argument("--seed", type=int, default=0)
    p.set_defaults(call=collect)
    p = verbs.add_parser("run")
    p.add_argument("work")
    p.add_argument("--max-elements", type=int, default=65536)
    p.add_argument("--only", default="")
    p.set_defaults(call=run)
    p = verbs.add_parser("table")
    p.add_argument("work")
    p.add_argument("--truth")
    p.set_defaults(call=table)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
