"""trl.py - rewards, PrimeEcho rollouts and the MirrorPop mask for TRL's GRPOTrainer (1.16). See trl.md."""

import torch

from .. import objective
from . import common


def make_reward(client=None, **reward):
    """An async reward function. Columns: task_code, and if there are, task_name, options, sidecar (or their JSON text).

    reward: speed_weight, speed_max of objective.reward. A completion that is not scored gets None: TRL leaves it out;
    a batch without any reward raises where the data set is at fault, or for the third time in a row.
    """
    judge, silence = common.client_of(client), common.Silence()

    async def musacoder_reward(prompts, completions, task_code, task_name=None, options=None, sidecar=None,
                               log_metric=None, **ignored):
        column = lambda values, i: values[i] if values else None  # noqa: E731
        records = await judge.ajudge([
            common.item(task_code[i], common.text_of(c), column(task_name, i), column(options, i), column(sidecar, i))
            for i, c in enumerate(completions)])
        silence.heard(records)
        if log_metric:
            for name, value in common.metrics_of(records).items():
                log_metric("judge/" + name, value)
        return [objective.reward(r, **reward) for r in records]

    return musacoder_reward


def primeecho_reward(prompts, completions, primeecho, **ignored):
    """The reward function that belongs to make_rollout: what the rollout found."""
    return primeecho


class _Trajectory:
    def __init__(self, prompt, task):
        self.messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        self.task, self.records, self.first = task, [], None

    def goes_on(self):
        return not self.records or (self.records[-1].get("status") != "passed" and
                                    objective.reward(self.records[-1]) is not None)

    def take(self, response, record):
        self.records.append(record)
        self.messages += [{"role": "assistant", "content": response},
                          {"role": "user", "content": common.repair_message(record)}]


def make_rollout(task_of, client=None, turns=3, reward=None, **primeecho):
    """A rollout_func: up to 'turns' turns of program and feedback; the loss sees the first response alone.

    task_of(prompt) -> {"task_code", "task_name", ...} (arguments of common.item). primeecho: alpha, bonus_first,
    bonus_second. The reward is the extra field 'primeecho': give the trainer primeecho_reward as its reward function.
    """
    judge = common.client_of(client)

    def generate(trainer, prompt_ids, n):
        got = trainer._generate_single_turn(prompt_ids, None, {}, n)
        return got[0], got[1]

    def tokens(trainer, trajectory):
        ids = trainer.processing_class.apply_chat_template(trajectory.messages, add_generation_prompt=True,
                                                           tokenize=True, return_dict=True)["input_ids"]
        return ids[0] if ids and isinstance(ids[0], list) else ids

    def turn(trainer, live, n):
        prompt_ids = [tokens(trainer, t) for t in live]
        ids, logps = generate(trainer, prompt_ids, n)
        texts = trainer.processing_class.batch_decode(ids, skip_special_tokens=True)
        for i, t in enumerate(live):
            if t.first is None:
                t.first = (prompt_ids[i], ids[i], logps[i] if logps is not None else None)
        return texts

    def rollout(prompts, trainer):
        all_of = [_Trajectory(p, task_of(p)) for p in prompts]
        for k in range(turns):
            live = [t for t in all_of if t.goes_on()]
            if not live and trainer.accelerator.num_processes == 1:
                break
            texts = turn(trainer, live or all_of[:1], trainer.num_generations if k == 0 else 1)
            if live:  # else: another process generates, and sharded weights are gathered by all at once
                records = judge.judge([common.item(response=x, turn=k + 1, **t.task) for t, x in zip(live, texts)])
                for t, x, r in zip(live, texts, records):
                    t.take(x, r)
        logps = [t.first[2] for t in all_of]
        return {"prompt_ids": [t.first[0] for t in all_of], "completion_ids": [t.first[1] for t in all_of],
                "logprobs": None if None in logps else logps,
                "primeecho": [common.trajectory_reward(t.records, **primeecho, **(reward or {})) for t in all_of]}

    return rollout


def mirrorpop(trainer_class):
    """A GRPOTrainer whose off-policy mask is MirrorPop's: set off_policy_mask_threshold to delta (0.02)."""

    class MirrorPopTrainer(trainer_class):
        @staticmethod
        @torch.no_grad()
        def get_off_policy_mask(advantages, per_token_logps, sampling_per_token_logps, mask, off_policy_threshold):
            keep = []
            policy, rollout = per_token_logps.float().cpu(), sampling_per_token_logps.float().cpu()
            for logp, behav, m in zip(policy, rollout, mask.cpu()):
                here = m.bool() & ~behav.isnan()  # a token that the sampler could not score is no evidence
                n = int(here.sum())
                keep.append(n == 0 or objective.mirrorpop(logp[here].tolist(), behav[here].tolist(),
                                                          off_policy_threshold).keep)
            return torch.tensor(keep, dtype=mask.dtype, device=mask.device).unsqueeze(1)

    return MirrorPopTrainer
