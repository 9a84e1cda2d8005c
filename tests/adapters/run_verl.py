"""run_verl.py - verl's own RewardLoopManager on a local Ray with our compute_score, our agent loop with a server of
recorded answers, and MirrorPop inside verl's own rejection."""

import asyncio
import os
import sys
import tempfile

import judge

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", RAY_USAGE_STATS_ENABLED="0",
                  RAY_AUTH_MODE="disabled", RAY_raylet_start_wait_time_s="240", RAY_agent_register_timeout_ms="240000",
                  RAY_num_prestart_python_workers="0",
                  PYTHONPATH=os.path.join(judge.ROOT, "python"))
try:
    import ray
    import verl
    from verl.trainer.ppo import rollout_corr_helper as helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)
import hydra  # noqa: E402
import torch  # noqa: E402
from musacoder.adapters import verl as ours  # noqa: E402
from tiny import save_config, tokenizer  # noqa: E402
from tensordict import TensorDict  # noqa: E402

WIDTH = 24


def config_for(folder):
    tok = tokenizer()
    save_config(tok, folder)
    with hydra.initialize_config_dir(os.path.join(os.path.dirname(verl.__file__), "trainer/config"), version_base=None):
        c = hydra.compose("ppo_trainer", overrides=[
            f"actor_rollout_ref.model.path={folder}", "reward.num_workers=2",
            "reward.custom_reward_function.path=pkg://musacoder.adapters.verl",
            "reward.custom_reward_function.name=compute_score"])
    return c, tok


def batch_of(tok, responses):
    """A DataProto as rollouts leave it: prompts, responses padded on the right."""
    import numpy as np
    from verl import DataProto
    ids = [tok.encode(r) for r in responses]
    rows = torch.tensor([i + [tok.pad_token_id] * (WIDTH - len(i)) for i in ids])
    prompts = torch.ones(len(ids), 4, dtype=torch.long)
    mask = torch.cat([prompts, torch.tensor([[1] * len(i) + [0] * (WIDTH - len(i)) for i in ids])], 1)
    batch = TensorDict({"prompts": prompts, "responses": rows, "attention_mask": mask}, batch_size=len(ids))
    n = len(ids)
    return DataProto(batch=batch, non_tensor_batch={
        "data_source": np.array(["kernels"] * n, dtype=object),
        "reward_model": np.array([{"ground_truth": judge.TASK} for _ in range(n)], dtype=object),
        "extra_info": np.array([{"task_name": f"t{i}"} for i in range(n)], dtype=object)})


def check_reward_loop(folder):
    """Scores at the last token of each response, the same keys for all; one unscored sample is an error, not a zero."""
    from verl.experimental.reward_loop import RewardLoopManager
    c, tok = config_for(folder)
    manager = RewardLoopManager(c)
    got = manager.compute_rm_score(batch_of(tok, ["passed", "correctness_error", "compile_error", "cheating"]))
    scores = got.batch["rm_scores"].sum(1).tolist()
    assert scores == [1.0, -0.25, -1.0, -1.0], scores
    assert got.batch["rm_scores"][0].nonzero().tolist() == [[len(tok.encode("passed")) - 1]]
    assert got.non_tensor_batch["cheating"].tolist() == [0, 0, 0, 1] and set(ours.KEYS) <= set(got.non_tensor_batch)
    for kind in ("infra", "unsupported"):
        try:
            manager.compute_rm_score(batch_of(tok, ["passed", kind]))
            raise AssertionError(f"{kind} was scored")
        except ray.exceptions.RayTaskError as e:
            assert "NotScored" in str(e), e
    return len(scores)


def check_agent_loop(folder):
    """Two turns: the first fails, the second passes. The loss sees the first; the reward is PrimeEcho of both."""
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.workers.rollout.replica import TokenOutput
    c, tok = config_for(folder)
    asked = []

    class Server:
        async def generate(self, request_id, prompt_ids, sampling_params, **kw):
            asked.append(tok.decode(prompt_ids))
            ids = tok.encode("compile_error" if len(asked) == 1 else "passed")
            return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids))

    async def play():
        loop = ours.agent_loop()(trainer_config=DictConfigWrap(c), server_manager=Server(), tokenizer=tok,
                                 processor=None,
                                 dataset_cls=None, data_config=DictConfigWrap(c.data))
        return await loop.run({}, raw_prompt=[{"role": "user", "content": "write"}],
                              reward_model={"ground_truth": judge.TASK}, extra_info={"task_name": "t"})
    out = asyncio.run(play())
    assert len(asked) == 2 and "The judge did not accept" in asked[1], asked
    assert tok.decode(out.response_ids) == "compile_error" and out.response_mask == [1] * len(out.response_ids)
    want = ours.objective.primeecho([-1.0, 1.0], 2)
    assert abs(out.reward_score - want) < 1e-6 and out.num_turns == 4, (out, want)


def check_mirrorpop():
    ratio, mask = torch.tensor([[0.2, -0.2], [0.001, -0.001]]), torch.ones(2, 2)
    before = helper.compute_rollout_rejection_mask(ratio, mask, rollout_rs="seq_mean_k1",
                                                   rollout_rs_threshold="0.98_1.02")
    ours.install_mirrorpop(0.02)
    after, metrics = helper.compute_rollout_rejection_mask(ratio, mask, rollout_rs="seq_mean_abs",
                                                           rollout_rs_threshold=1.0)
    assert before[0].tolist() == [[1, 1], [1, 1]], before  # the signed mean lets them cancel
    assert after.tolist() == [[0, 0], [1, 1]] and metrics, (after, metrics)


def start_ray():
    """Ray gives its first process 30 s, which no option changes: on a busy machine it is asked again."""
    env = {k: os.environ[k] for k in ("MUSACODER_URL", "MUSACODER_LIB", "PYTHONPATH")}
    for left in (4, 3, 2, 1, 0):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20,
                     runtime_env={"env_vars": env})
            return
        except Exception as e:  # ray raises the bare class
            if "timed out during startup" not in str(e) or not left:
                raise
            ray.shutdown()


def main():
    with judge.running(), tempfile.TemporaryDirectory() as folder:
        check_mirrorpop()
        check_agent_loop(folder)
        start_ray()
        try:
            n = check_reward_loop(folder)
        finally:
            ray.shutdown()
    print(f"ok verl {verl.__version__}: {n} scores by RewardLoopManager on Ray {ray.__version__}, an error for what is "
          f"not "
          "scored; two turns by the agent loop; MirrorPop")


if __name__ == "__main__":
    main()
