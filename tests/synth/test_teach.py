#!/usr/bin/env python3
"""'musacoder synth teach' against a server of the test's own with recorded answers: verdicts decide what
becomes a record, failures become reviews, the budget holds, a stopped run goes on, a whole one is replayed.

Ends with 'N passed, M failed'."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests/agent"), os.path.join(ROOT, "tests/lib")]
from fake_openai import Server, fenced  # noqa: E402
from test_agent import RIGHT, TASK, WRONG, read  # noqa: E402

BINARY = os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
COST = 49  # tokens of one answer, as the server counts them
passed, failed = 0, 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED:", what)


def teach(folder, url, *more):
    argv = [BINARY, "synth", "teach", "--tasks", folder + "/tasks", "--out", folder + "/out", "--trials", "1",
            "--max-new", "100", "--parallel", "1", *(["--teacher", url] if url else []), *more]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=240)


def records(folder):
    with open(folder + "/out/data/train-00000.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def check_answers(folder):
    plan = [(fenced(RIGHT), True), 503, (fenced(WRONG), True), (fenced(RIGHT), True), ("I cannot.", True)]
    server = Server(plan)
    done = teach(folder, server.url(), "--samples", "4")
    check(done.returncode == 0 and "1 programs pass, 1 fail" in done.stdout, done.stdout + done.stderr)
    check("1 without a program, 1 repeated" in done.stdout and f"{4 * COST} tokens" in done.stdout, done.stdout)
    check(len(server.asked) == 5, f"{len(server.asked)} requests: a busy server is asked once more")
    rows = {r["kind"]: r for r in records(folder)}
    check(set(rows) == {"generate", "review"}, f"kinds {set(rows)}")
    good, bad = rows["generate"], rows["review"]
    check(good["verdict"]["status"] == "passed" and RIGHT.strip() in good["messages"][-1]["content"], good)
    check("<think>" not in good["messages"][-1]["content"] and "Hm." in good["provenance"]["reasoning"], good)
    check(bad["verdict"]["category"] == "correctness_error" and WRONG.strip() in bad["messages"][0]["content"], bad)
    check("The judge says: Wrong result" in bad["messages"][1]["content"], bad["messages"])
    before = open(folder + "/out/data/train-00000.jsonl", "rb").read()
    again = teach(folder, server.url(), "--samples", "4")
    check(len(server.asked) == 5 and "(4 were known)" in again.stdout, "answers are asked for again")
    with open(folder + "/out/report.json", "a", encoding="utf-8") as f:
        f.write("\n")
    teach(folder, server.url(), "--samples", "4")
    check(os.path.exists(folder + "/out/report.json.edited"), "an edited report is written over")
    server.shutdown()
    server.server_close()
    replay = teach(folder, None, "--samples", "4")
    check(replay.returncode == 0 and open(folder + "/out/data/train-00000.jsonl", "rb").read() == before,
          f"a replay gives other records: {replay.stdout + replay.stderr}")


def check_budget(folder):
    """A question is 100 tokens of answer and its own text at worst, so the first budget holds one of them."""
    server = Server([(fenced(RIGHT), True)] * 3)
    one = len(json.dumps(read(folder + "/tasks/tanh.py"))) // 3 + 100 + 400
    done = teach(folder, server.url(), "--samples", "3", "--budget", str(one))
    check(len(server.asked) == 1 and "2 answers were not asked for" in done.stdout, done.stdout + done.stderr)
    report = json.load(open(folder + "/out/report.json"))
    check(report["tokens"] == COST and report["unasked"] == 2, report)
    more = teach(folder, server.url(), "--samples", "3")
    check(len(server.asked) == 3 and "(1 were known)" in more.stdout, more.stdout + more.stderr)
    server.shutdown()
    server.server_close()


def check_sidecar(folder):
    """A program for float32 alone does not answer a task whose sidecar asks for half precision too."""
    with open(folder + "/tasks/tanh.yaml", "w", encoding="utf-8") as f:
        f.write("variants: [{name: half, dtype: float16}]\n")
    server = Server([(fenced(RIGHT), True)])
    done = teach(folder, server.url(), "--samples", "1")
    check("0 programs pass, 1 fail" in done.stdout, done.stdout + done.stderr)
    server.shutdown()
    server.server_close()


def check_weights(folder):
    """A folder with other weights is another teacher: what the former one answered is asked anew."""
    recipe = """{"name": "t", "stages": "synth init", "synth": {"ops": "activation", "max-ops": 1, "tasks": 8,
        "heldout": 1, "prompts": 3, "per-task": 1, "knowledge": 5, "verify": false, "repairs": 0},
        "init": {"vocab": 400, "hidden": 32, "intermediate": 64, "layers": 1, "heads": 1, "kv-heads": 1,
                 "head-dim": 32, "seed": %d}}"""
    for seed in 1, 2:
        with open(folder + "/r.yaml", "w", encoding="utf-8") as f:
            f.write(recipe % seed)
        made = subprocess.run([BINARY, "run", folder + "/r.yaml", "--out", f"{folder}/r{seed}"], capture_output=True,
                              text=True, check=False, timeout=240)
        check(made.returncode == 0, made.stderr)
    known = []
    for change in None, None, "other":
        if change:
            shutil.copy(folder + "/r2/init/model.safetensors", folder + "/r1/init/model.safetensors")
        done = teach(folder, folder + "/r1/init", "--samples", "1", "--max-new", "4")
        known.append("(1 were known)" in done.stdout)
        check(done.returncode == 0, done.stdout + done.stderr)
    check(known == [False, True, False], known)


def check_usage(folder):
    for args, word in ((("--teacher", "ftp://x"), "no http://"), (("--samples", "0"), "--samples is 0"),
                       ((), "--teacher URL")):
        done = teach(folder, None, *args)
        check(done.returncode == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)


def main():
    for part in (check_answers, check_budget, check_sidecar, check_weights, check_usage):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/tasks")
            with open(folder + "/tasks/tanh.py", "w", encoding="utf-8") as f:
                f.write(read(TASK))
            part(folder)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
