"""run_trl.py - TRL's GRPOTrainer with a two-layer Qwen3 (or ADAPTER_MODEL) on a CPU: three steps with some rewards
missing; three steps of PrimeEcho rollouts with the MirrorPop mask."""

import os
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1")
import judge  # noqa: E402

try:
    import datasets
    import transformers
    import trl
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)
import torch  # noqa: E402
from musacoder.adapters import trl as ours  # noqa: E402
from tiny import FOLDER, model, tokenizer  # noqa: E402


def train(folder, kind, **more):
    tok = tokenizer()
    args = trl.GRPOConfig(output_dir=folder, per_device_train_batch_size=8, num_generations=4, max_completion_length=8,
                          max_steps=3, logging_steps=1, report_to=[], save_strategy="no", use_cpu=True, bf16=False,
                          learning_rate=1e-3, disable_tqdm=True, seed=3, gradient_checkpointing=False,
                          **more.pop("config", {}))
    rows = [{"prompt": f"kernel {i}", "task_code": judge.TASK, "task_name": f"t{i}"} for i in range(12)]
    t = kind(model=model(tok), processing_class=tok, args=args, train_dataset=datasets.Dataset.from_list(rows), **more)
    before = [p.detach().clone() for p in t.model.parameters()]
    t.train()
    moved = sum(float((a - b.cpu()).abs().sum()) for a, b in zip(before, t.model.parameters()))
    assert t.state.global_step == 3 and moved > 0 and moved == moved, (t.state.global_step, moved)
    return t.state.log_history


def main():
    with judge.running() as (url, counts), tempfile.TemporaryDirectory() as folder:
        seen = []
        inner = ours.make_reward()

        async def reward(**kw):
            got = await inner(**kw)
            seen.extend(got)
            return got
        train(folder, trl.GRPOTrainer, reward_funcs=reward)
        assert len(seen) == 24 and None in seen and any(r is not None for r in seen), seen
        assert 0 not in seen and counts["infra"] > 0, (seen, counts)
        rollout = ours.make_rollout(lambda p: {"task_code": judge.TASK, "task_name": "t"}, turns=2)
        echoes, masks = [], []

        def echo(prompts, completions, primeecho, **kw):
            echoes.extend(primeecho)
            return ours.primeecho_reward(prompts, completions, primeecho)

        class Watched(ours.mirrorpop(trl.GRPOTrainer)):
            @staticmethod
            def get_off_policy_mask(**kw):
                masks.append(ours.mirrorpop(trl.GRPOTrainer).get_off_policy_mask(**kw))
                return masks[-1]
        train(folder, Watched, reward_funcs=echo, rollout_func=rollout, config={"off_policy_mask_threshold": 0.02})
        assert len(echoes) == 24 and any(r is not None for r in echoes) and masks and masks[0].shape[1] == 1
        one = torch.tensor([[0.2, -0.2], [0.001, -0.001]])
        mask = Watched.get_off_policy_mask(advantages=None, per_token_logps=one - 1,
                                           sampling_per_token_logps=one * 0 - 1,
                                           mask=torch.ones(2, 2), off_policy_threshold=0.02)
        assert mask.tolist() == [[0.0], [1.0]], mask
        lost = [sum(r is None for r in rewards) for rewards in (seen, echoes)]
        print(f"ok TRL {trl.__version__}, {os.path.basename(FOLDER or 'a tiny model')}: 3 steps, {lost[0]} of "
              f"{len(seen)} rewards missing; 3 steps with PrimeEcho and MirrorPop, {lost[1]} of {len(echoes)} missing")


if __name__ == "__main__":
    main()
