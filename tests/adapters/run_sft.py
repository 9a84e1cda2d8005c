"""run_sft.py - a folder of 'musacoder synth --records' as a data set: load_dataset reads it, every column has the type
that the card says, and a step of TRL's SFTTrainer on it moves a two-layer Qwen3 on a CPU."""

import os
import subprocess
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1")
import judge  # noqa: E402

try:
    import datasets
    import trl
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)
import run_trl  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")


def check_rows(d):
    assert set(d) == {"train", "heldout"}, d
    assert d["train"].num_rows > 150 and d["heldout"].num_rows > 5, d
    kinds = set(d["train"]["kind"])
    assert {"generate", "reason", "shape"} <= kinds, kinds
    assert d["train"].features["verdict"]["status"].dtype == "string", d["train"].features
    held = {t["graph_hash"] for t in d["heldout"]["task"]}
    assert not held & {t["graph_hash"] for t in d["train"]["task"]}
    assert all(m[-1]["role"] == "assistant" and m[-1]["content"] for m in d["train"]["messages"])


def train(folder, rows):
    tok = run_trl.tokenizer()
    rows = rows.filter(lambda r: r["kind"] == "shape").select_columns(["messages"])
    args = trl.SFTConfig(output_dir=folder, per_device_train_batch_size=2, max_steps=1, logging_steps=1, report_to=[],
                         save_strategy="no", use_cpu=True, bf16=False, learning_rate=1e-3, max_length=512,
                         disable_tqdm=True, gradient_checkpointing=False)
    t = trl.SFTTrainer(model=run_trl.model(tok), processing_class=tok, args=args, train_dataset=rows)
    before = [p.detach().clone() for p in t.model.parameters()]
    t.train()
    moved = sum(float((a - b.detach().cpu()).abs().sum()) for a, b in zip(before, t.model.parameters()))
    assert t.state.global_step == 1 and moved > 0 and moved == moved, moved
    return t.state.log_history[0]["loss"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "records")
        subprocess.run([BINARY, "synth", "--records", "240", "--shard-size", "60", "--out", out, "--verify-share", "0",
                        "--max-elements", "256", "--max-ops", "3"], check=True, stdout=subprocess.DEVNULL)
        d = datasets.load_dataset(out, cache_dir=os.path.join(folder, "cache"))
        check_rows(d)
        loss = train(folder, d["train"])
        print(f"ok {d['train'].num_rows} + {d['heldout'].num_rows} rows, loss {loss:.2f}")


if __name__ == "__main__":
    main()
