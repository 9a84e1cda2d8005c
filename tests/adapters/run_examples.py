"""run_examples.py - the programs of examples/ as a reader runs them: GRPO in TRL for two steps on prompts and on tasks,
the data set for verl."""

import os
import subprocess
import sys
import tempfile

import judge

try:
    import datasets  # noqa: F401
    import trl
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)

EXAMPLES = os.path.join(judge.ROOT, "examples")


def run(*words):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", PATH=judge.BUILD + ":" + os.environ["PATH"])
    p = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stderr[-2000:]
    return p.stdout.splitlines()[-1]


def main():
    with judge.running(), tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "made")
        line = run(os.path.join(EXAMPLES, "trl_grpo.py"), "--steps", "2", "--max-new", "16", "--out", out)
        assert line.startswith("2 steps, reward "), line
        assert os.path.exists(os.path.join(out, "model", "config.json"))
        tasks = os.path.join(folder, "tasks")
        os.makedirs(tasks)
        for i in range(12):
            with open(os.path.join(tasks, f"t{i}.py"), "w", encoding="utf-8") as f:
                f.write(judge.TASK)
        line = run(os.path.join(EXAMPLES, "trl_grpo.py"), "--steps", "1", "--max-new", "8", "--tasks", tasks, "--out",
                   os.path.join(folder, "again"), "--model", os.path.join(out, "model"))
        assert line.startswith("1 steps, reward "), line
        said = run(os.path.join(EXAMPLES, "verl/prepare.py"), os.path.join(out, "data", "prompts.jsonl"), folder)
        rows = datasets.Dataset.from_parquet(os.path.join(folder, "train.parquet"))
        assert "class Model" in rows[0]["reward_model"]["ground_truth"] and said.startswith(f"{len(rows)} rows"), said
        print(f"ok TRL {trl.__version__}: two runs of trl_grpo.py; {len(rows)} rows for verl")


if __name__ == "__main__":
    main()
