"""run_slime.py - the functions of the adapter with slime's own Sample, from the checkout that SLIME_DIR names."""

import asyncio
import os
import sys
import types

import judge

if not os.environ.get("SLIME_DIR"):
    print("skipped: SLIME_DIR names no checkout of slime")
    sys.exit(judge.SKIP)
sys.path.insert(0, os.environ["SLIME_DIR"])
import torch  # noqa: E402
from musacoder.adapters import slime as ours  # noqa: E402
from slime.utils.types import Sample  # noqa: E402


def main():
    args = types.SimpleNamespace(n_samples_per_prompt=3)
    with judge.running():
        kinds = ("passed", "correctness_error", "infra")
        samples = [Sample(prompt="p", response=r, label=judge.TASK) for r in kinds]
        for s in samples:
            s.reward = asyncio.run(ours.rm(args, s))
    assert [s.reward for s in samples[:2]] == [1.0, -0.25] and [s.remove_sample for s in samples] == [False, False, True]
    raw, advantages = ours.reward_post_process(args, samples)
    assert advantages[2] == 0 and advantages[0] > 0 > advantages[1], advantages
    one = torch.full((2,), -1.0)
    loss, masks, metrics = ours.mirrorpop_tis(args, pg_loss=torch.zeros(4), train_log_probs=[one, one],
                                              rollout_log_probs=[one, one + torch.tensor([0.2, -0.2])],
                                              loss_masks=[torch.ones(2)] * 2)
    assert masks[0].sum() == 2 and masks[1].sum() == 0 and metrics["mirrorpop_masked"].tolist() == [0, 1]
    print("ok slime: rewards, removed samples, MirrorPop")


if __name__ == "__main__":
    main()
