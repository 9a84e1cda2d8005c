"""run_verl.py - compute_score as verl loads it, and MirrorPop inside verl's own rejection."""

import asyncio
import sys

import judge

try:
    import verl
    from verl.trainer.ppo import rollout_corr_helper as helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)
import torch  # noqa: E402
from musacoder.adapters import verl as ours  # noqa: E402


def main():
    from verl.utils.import_utils import load_extern_object

    assert callable(load_extern_object("pkg://musacoder.adapters.verl", "compute_score"))
    with judge.running():
        one = asyncio.run(ours.compute_score("d", "passed", judge.TASK))
        two = asyncio.run(ours.compute_score("d", "correctness_error", judge.TASK, {"task_name": "t"}))
        assert one["score"] == 1.0 and two["score"] == -0.25 and set(one) == set(two), (one, two)
        try:
            asyncio.run(ours.compute_score("d", "infra", judge.TASK))
            raise AssertionError("an infra verdict was scored")
        except ours.NotScored:
            pass
    ratio = torch.tensor([[0.2, -0.2], [0.001, -0.001]])
    mask = torch.ones(2, 2)
    before = helper.compute_rollout_rejection_mask(ratio, mask, rollout_rs="seq_mean_k1",
                                                   rollout_rs_threshold="0.98_1.02")
    ours.install_mirrorpop(0.02)
    after, metrics = helper.compute_rollout_rejection_mask(ratio, mask, rollout_rs="seq_mean_abs",
                                                           rollout_rs_threshold=1.0)
    assert before[0].tolist() == [[1, 1], [1, 1]], before  # the signed mean lets them cancel
    assert after.tolist() == [[0, 0], [1, 1]] and metrics, (after, metrics)
    print(f"ok verl {verl.__version__}: equal keys, an exception for what is not scored, MirrorPop")


if __name__ == "__main__":
    main()
