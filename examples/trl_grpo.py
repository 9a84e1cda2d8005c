"""trl_grpo.py - GRPO with the judge's rewards, in TRL, on a CPU: a data set, a model, some steps.

    pip install trl datasets          # beside PyTorch
    python examples/trl_grpo.py       # makes tasks with 'musacoder synth', starts a judge, trains a tiny random model

    --model FOLDER     a model of yours: Hugging Face's layout, or that of 'musacoder sft'
    --prompts FILE     a prompts.jsonl; or --tasks FOLDER: tasks, such as KernelBench/KernelBench/level1
    --steps N --group N --max-new N --out FOLDER

MUSACODER_URL names a judge that runs already. A random model writes no program, so its only reward is the second one,
for the form of an answer; with a model that knows some CUDA the judge's reward takes over."""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
BINARY = shutil.which("musacoder") or os.path.join(HERE, "..", "build", "musacoder")

try:
    import datasets  # noqa: E402
    import tokenizers  # noqa: E402
    import torch  # noqa: E402
    import transformers  # noqa: E402
    import trl  # noqa: E402
except ModuleNotFoundError as lack:
    sys.exit(f"{lack.name} is not installed for {sys.executable}: pip install trl datasets")

import musacoder  # noqa: E402
from musacoder.adapters.trl import make_reward  # noqa: E402


def tiny_model():
    """A random two-layer Qwen3 whose tokens are bytes: nothing is downloaded, and it knows nothing."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={c: i for i, c in enumerate([*letters, "<pad>", "<eos>"])},
                                                   merges=[]))
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", eos_token="<eos>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
    torch.manual_seed(1)
    config = transformers.Qwen3Config(vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128,
                                      num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
                                      max_position_embeddings=4096, eos_token_id=tokenizer.eos_token_id,
                                      pad_token_id=tokenizer.pad_token_id)
    return transformers.Qwen3ForCausalLM(config), tokenizer


def load_model(folder):
    return (transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            transformers.AutoTokenizer.from_pretrained(folder))


@contextlib.contextmanager
def judge():
    """$MUSACODER_URL's, else one that is started here and ends with this program."""
    if os.environ.get("MUSACODER_URL"):
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([BINARY, "serve", "--port", "0", "--queue", os.path.join(folder, "queue.db")],
                                  stderr=subprocess.PIPE, text=True)
        line = server.stderr.readline()  # "serve: http://127.0.0.1:PORT, queue ..."
        os.environ["MUSACODER_URL"] = line.split(",")[0].split("serve: ")[1]
        try:
            yield
        finally:
            server.terminate()
            server.wait(30)


def rows_of(args):
    if args.tasks:
        return musacoder.data.tasks(args.tasks)
    if args.prompts:
        return musacoder.data.prompts(args.prompts)
    data = os.path.join(args.out, "data")
    subprocess.run([BINARY, "synth", "--out", data, "--tasks", "4", "--heldout", "1", "--prompts", "16", "--ops",
                    "activation,math", "--max-ops", "2", "--knowledge", "1", "--repairs", "0", "--no-verify"],
                   check=True, stdout=subprocess.DEVNULL)
    return musacoder.data.prompts(os.path.join(data, "prompts.jsonl"))


def looks_like_an_answer(completions, **ignored):
    """A little for the form, so that a model that never passes has something to learn: a fence, and a kernel in it."""
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    return [0.05 * ("```" in t) + 0.05 * ("__global__" in t) + 0.001 * len(set(t)) for t in texts]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model")
    p.add_argument("--prompts")
    p.add_argument("--tasks")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--group", type=int, default=4)
    p.add_argument("--max-new", type=int, default=64)
    p.add_argument("--out", default="runs/trl_grpo")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    model, tokenizer = load_model(args.model) if args.model else tiny_model()
    config = trl.GRPOConfig(output_dir=args.out, max_steps=args.steps, per_device_train_batch_size=2 * args.group,
                            num_generations=args.group, max_completion_length=args.max_new, learning_rate=1e-3,
                            logging_steps=1, report_to=[], save_strategy="no", use_cpu=not torch.cuda.is_available(),
                            bf16=False, gradient_checkpointing=False, seed=1)
    with judge():
        trainer = trl.GRPOTrainer(model=model, processing_class=tokenizer, args=config,
                                  train_dataset=datasets.Dataset.from_list(rows_of(args)),
                                  reward_funcs=[make_reward(), looks_like_an_answer])
        trainer.train()
    trainer.save_model(os.path.join(args.out, "model"))
    rewards = [x["reward"] for x in trainer.state.log_history if "reward" in x]
    print(f"{trainer.state.global_step} steps, reward {rewards[0]:.3f} at first and {rewards[-1]:.3f} at last; "
          f"the model is in {args.out}/model")


if __name__ == "__main__":
    main()
