"""run_gpu.py [--part device|slow|sim|synth|faults] [--out FILE] - the tests of this folder; exit code 1 if one
verdict is not as expected.

$MUSACODER_EXE names the binary (default build/musacoder). $SYNTH names a folder made by 'musacoder synth', for the part
'synth': its tasks and candidates must have the same verdict on cuda as on sim."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
import candidates  # noqa: E402  (tests/eval)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build", "musacoder"))


class Report:
    def __init__(self, out):
        self.n = self.wrong = 0
        self.out = open(out, "w") if out else None

    def row(self, part, name, want, v, words=()):
        got, feedback = v.get("category"), v.get("feedback", "")
        want = want if isinstance(want, tuple) else (want,)
        bad = [] if got in want else [f"{got} instead of {' or '.join(map(str, want))}"]
        bad += [f"no '{w}' in the feedback" for w in words if w not in feedback]
        self.n += 1
        self.wrong += bool(bad)
        ms = {k: round(x) for k, x in v.get("stage_ms", {}).items() if isinstance(x, (int, float)) and x >= 1}
        print(f"{'WRONG' if bad else 'ok   '} {part:7} {name:40} {got}  {ms}", flush=True)
        if bad:
            print("      " + "; ".join(bad) + " | " + feedback.replace("\n", " / ")[:700], flush=True)
        if self.out:
            self.out.write(json.dumps({"part": part, "name": name, "verdict": v}) + "\n")
            self.out.flush()


def judge(folder, task, rows, backend, *options):
    path = os.path.join(folder, "task.py")
    with open(path, "w") as f:
        f.write(task)
    files = []
    for i, source in enumerate(rows):
        response = "```" in source or not any(w in source for w in ("class", "import", "="))
        files.append(os.path.join(folder, f"{i}.txt" if response else f"{i}.py"))
        with open(files[-1], "w") as f:
            f.write(source)
    p = subprocess.run([EXE, "eval", "--task", path, "--backend", backend, "--json", "--no-cache", *options, *files],
                       capture_output=True, text=True)
    verdicts = [json.loads(line) for line in p.stdout.splitlines()]
    if len(verdicts) != len(rows):
        print(f"{EXE} exit {p.returncode}: {p.stderr[-1500:]}", flush=True)
        sys.exit(1)
    return verdicts


def run_rows(report, part, task, rows, *options):
    with tempfile.TemporaryDirectory() as folder:
        t0 = time.monotonic()
        verdicts = judge(folder, task, [r[3] for r in rows], "cuda", *options)
        for (name, want, words, _), v in zip(rows, verdicts):
            report.row(part, name, want, v, words)
        print(f"      {part}: {len(rows)} candidates in {time.monotonic() - t0:.1f} s", flush=True)


def device(report):
    quick = ("--trials", "1", "--no-perf")
    run_rows(report, "device", cases.RELU_TASK, cases.DEVICE, *quick)
    run_rows(report, "device", cases.MATMUL_TASK, [cases.CUBLAS], *quick)
    run_rows(report, "device", cases.CONV_TASK, [cases.CONV], *quick)


def slow(report):
    run_rows(report, "slow", cases.RELU_TASK, cases.SLOW, "--trials", "1", "--no-perf", "--timeout", "5")


def sim(report):
    """The candidates of tests/eval: the category is a property of the program, not of the backend; but reads and writes
    past an array are seen on sim alone (docs/threat-model.md)."""
    past = {"out of bounds": None, "a weight whose elements share memory": ("runtime_error", "correctness_error")}
    for task, found in ((candidates.RELU_TASK, candidates.RELU), (candidates.LINEAR_TASK, candidates.LINEAR)):
        rows = [(name, past.get(name, want), [], source) for name, want, _, source in found
                if not (want and "timeout" in want)]
        run_rows(report, "sim", task, rows, "--trials", "1", "--no-perf")


def synth(report):
    """What 'musacoder synth' kept has a verdict of sim in its record; repair dialogues hold a broken kernel and its
    verdict."""
    folder, tasks = os.environ.get("SYNTH"), {}
    if not folder:
        print("      synth: skipped, $SYNTH names no folder", flush=True)
        return
    with open(os.path.join(folder, "train.jsonl")) as f:
        for r in map(json.loads, f):
            if not isinstance(r.get("task"), dict) or not isinstance(r.get("kernel"), dict):
                continue
            rows = tasks.setdefault(r["task"]["code"], {})
            rows[r["kernel"]["code"]] = (r["id"], r["verdict"]["category"])
            if r["kind"] == "repair":
                broken = next(m["content"] for m in r["messages"] if m["role"] == "assistant")
                found = r["broken_verdict"]["category"]
                # a race, or a read past the end, is found on sim as such; a GPU shows at most what it does to the
                # result
                rows[broken] = (r["id"] + " broken", ("runtime_error", "correctness_error") if found == "runtime_error"
                                else found)
    for task, rows in tasks.items():
        run_rows(report, "synth", task, [(name, want, [], source) for source, (name, want) in rows.items()],
                 "--trials", "1",
                 "--no-perf")


def faults(report):
    """200 hostile and 200 honest candidates mixed, workers killed: tests/faults. $FAULTS: its options."""
    script = os.path.join(ROOT, "tests", "faults", "faults.py")
    p = subprocess.run([sys.executable, script, "--backend", "cuda", "--workers", "3", "--jobs", "4", "--table",
                        *os.environ.get("FAULTS", "").split()])
    report.n += 1
    report.wrong += p.returncode != 0


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--part", action="append", choices=["device", "slow", "sim", "synth", "faults"])
    a.add_argument("--out")
    a = a.parse_args()
    report = Report(a.out)
    for part in a.part or ["device", "slow", "sim", "synth", "faults"]:
        globals()[part](report)
    print(f"{report.n - report.wrong} of {report.n} as expected")
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
