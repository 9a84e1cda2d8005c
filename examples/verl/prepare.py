"""prepare.py - the data set that verl reads, of prompts or tasks.

    prepare.py PROMPTS.jsonl|FOLDER OUT      writes OUT/train.parquet and OUT/val.parquet (one row in ten)

reward_model.ground_truth is the task's text: that is what musacoder/adapters/verl.py hands to the judge."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import pandas  # noqa: E402

import musacoder.data  # noqa: E402


def main(source, out):
    rows = musacoder.data.tasks(source) if os.path.isdir(source) else musacoder.data.prompts(source)
    table = [{"data_source": "musacoder", "prompt": r["prompt"], "ability": "cuda-kernel",
              "reward_model": {"style": "rule", "ground_truth": r["task_code"]},
              "extra_info": {"task_name": r["task_name"], "index": i}} for i, r in enumerate(rows)]
    os.makedirs(out, exist_ok=True)
    held = table[::10]
    train = [r for i, r in enumerate(table) if i % 10] or table
    for name, part in (("train", train), ("val", held)):
        pandas.DataFrame(part).to_parquet(os.path.join(out, name + ".parquet"))
    print(f"{len(train)} rows to train on and {len(held)} to validate, in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
