#!/usr/bin/env python3
"""Does the judge take KernelBench's tasks? Each one, made small, goes through the judge's seam on the emulator.

    lab/kernelbench_tasks.py KERNELBENCH OUT [--max-elements 16384] [--trials 1] [--levels 1 2 3] [--every 1]
        [--compare OLD.jsonl]

KERNELBENCH: the folder with level1 to level4. Needs the setup's Python (setup/, with PyTorch) and
'make build/lab/judge_tasks'. OUT/tasks holds the small tasks, OUT/seam.jsonl a line for each (lab/judge_tasks.c): of
each draw the reference's own output must pass, and must fail with its last element off. The command goes on where it
was stopped. It prints how many tasks are judged, and the reasons of the others; --compare names each task that another
run judged otherwise. lab/kernelbench_tasks.jsonl is such a run of all levels; level 4 needs models
(lab/level4_models.py). Exit code 1: some task was judged there and is not here.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "runner"))


SHRINK_S = 300  # of CPU time, for one task: a recurrent one has no shapes on the meta device
SIM_ELEMENTS = 1 << 22  # what the emulator takes of one tensor (src/eval/build/judge_backend_sim.c)


class TooLong(BaseException):
    """No Exception: the shrinker takes those for a task that refuses its sizes."""


def too_long(*_):
    raise TooLong(f"not within {SHRINK_S} s of CPU time")


def nearest(shrinker, most):
    """The task as small as its sizes allow: where its weights are no sizes, all else is small."""
    if shrinker.descend() or shrinker.descend_by_inputs() or max(shrinker.now) <= most:
        import sizes
        return sizes.rewrite(shrinker.source, shrinker.knobs)
    raise ValueError(f"the task cannot be made smaller than {max(shrinker.now)} elements; sim takes {most}")


def shrunk(path, out, elements):
    """Writes the task made small; None, or why it cannot be."""
    import shrink
    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SHRINK_S)
    try:
        out.write_text(nearest(shrink.Shrinker(path.read_text(), elements), SIM_ELEMENTS))
    except (Exception, TooLong) as e:
        return f"not made small: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def tasks_of(folder, levels, every):
    found = [p for level in levels for p in sorted(
        (folder / f"level{level}").glob("*.py"), key=lambda p: int(p.name.split("_")[0]))]
    return found[::every]


def made_small(args):
    """{name: why not} of those that cannot be; the others lie in OUT/tasks."""
    known = args.out / "shrunk.json"
    why = json.loads(known.read_text()) if known.exists() else {}
    (args.out / "tasks").mkdir(parents=True, exist_ok=True)
    for path in tasks_of(args.kernelbench, args.levels, args.every):
        name = f"{path.parent.name}_{path.stem}"
        out = args.out / "tasks" / f"{name}.py"
        if name not in why and not out.exists():
            reason = shrunk(path, out, args.max_elements)
            if reason:
                why[name] = reason
                known.write_text(json.dumps(why, indent=1))
    return why


def kind_of(reason):
    """A reason without the numbers and names of its task, so that alike ones are counted together."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"task '[^']*'|'[^']*\.py'", "the task", reason))[:160]


def reason_of(row):
    return row.get("why") or ("wrong or missed" if row.get("deciding", 1) else "no draw decides")


def summary(rows, why):
    judged = [r for r in rows if r["ok"]]
    reasons = collections.Counter(kind_of(reason_of(r)) for r in rows if not r["ok"])
    reasons.update(kind_of(r) for r in why.values())
    return {"tasks": len(rows) + len(why), "judged": len(judged), "reasons": dict(reasons.most_common())}


def differences(rows, why, old):
    """[(task, what it was, what it is)] of tasks that both runs hold."""
    now = {r["task"]: "judged" if r["ok"] else kind_of(reason_of(r)) for r in rows}
    now.update({name: kind_of(r) for name, r in why.items()})
    for line in old.read_text().splitlines():
        r = json.loads(line)
        was = "judged" if r["ok"] else kind_of(reason_of(r))
        if now.get(r["task"], was) != was:
            yield r["task"], was, now[r["task"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelbench", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--max-elements", type=int, default=16384)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--compare", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    why = made_small(args)
    results = args.out / "seam.jsonl"
    subprocess.run([ROOT / "build/lab/judge_tasks", "--backend", "sim", "--trials", str(args.trials), "--out", results,
                    args.out / "tasks"], env=dict(os.environ, MUSACODER_VALUES="host"), stdout=subprocess.DEVNULL,
                   check=False)
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    own, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime
    print(json.dumps(dict(summary(rows, why), cpu_s=round(cpu)), indent=1))
    worse = [d for d in differences(rows, why, args.compare)] if args.compare else []
    for task, was, now in worse:
        print(f"{task}: was {was}; is {now}")
    sys.exit(any(was == "judged" for _, was, _ in worse))


if __name__ == "__main__":
    main()
