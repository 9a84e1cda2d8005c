"""verl.py - the judge in verl (0.9): compute_score, and MirrorPop as a rejection. See verl.md.

verl has no way to say "no reward" in compute_score: a verdict that is not scored raises NotScored, and the trainer's V1
sampler marks the group as failed and draws another. Keys of the answer are always the same, because verl needs that.
"""

import contextvars
import uuid

from .. import objective
from . import common

KEYS = ("score", "passed", "compiled", "cheating")


class NotScored(RuntimeError):
    """The judge could not say anything about this program; it is no failure of the program."""


def answer_of(record, **reward):
    """What verl is given for a record; raises NotScored for 'infra' and 'unsupported'."""
    score = objective.reward(record, **reward)
    if score is None:
        raise NotScored(f"{record.get('status')}: {record.get('feedback', '')}"[:500])
    category = record.get("category")
    return dict(zip(KEYS, (score, float(record.get("status") == "passed"),
                           float(category not in ("compile_error", "extraction_error")),
                           float(category == "cheating"))))


async def compute_score(data_source, solution_str, ground_truth, extra_info=None, **ignored):
    """reward.custom_reward_function: ground_truth is the task's code; extra_info may have task_name, options,
    sidecar."""
    info = extra_info or {}
    it = common.item(ground_truth, solution_str, info.get("task_name"), info.get("options"), info.get("sidecar"))
    return answer_of((await common.client_of(None).ajudge([it]))[0])


# ---- several turns ----


def agent_loop(turns=3, **primeecho):
    """An AgentLoopBase class: up to 'turns' turns of program and feedback, PrimeEcho as the reward, the first
    response in the loss. A trajectory with a verdict that is not scored raises NotScored. See verl.md for how verl
    finds it."""
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

    class KernelAgentLoop(AgentLoopBase):
        async def run(self, sampling_params, **row):
            info, messages = row.get("extra_info") or {}, list(row["raw_prompt"])
            records, first = [], None
            while len(records) < turns and not (records and records[-1].get("status") == "passed"):
                ids = await self.loop.run_in_executor(None, lambda: self.tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, tokenize=True, return_dict=True)["input_ids"])
                got = await self.server_manager.generate(request_id=uuid.uuid4().hex, prompt_ids=ids,
                                                         sampling_params=sampling_params)
                text = self.tokenizer.decode(got.token_ids, skip_special_tokens=True)
                it = common.item(row["reward_model"]["ground_truth"], text, info.get("task_name"), info.get("options"),
                                 info.get("sidecar"), len(records) + 1)
                records += await common.client_of(None).ajudge([it])
                first = first or (ids, got)
                if objective.reward(records[-1]) is None:
                    raise NotScored(f"{records[-1].get('status')}: {records[-1].get('feedback', '')}"[:500])
                messages += [{"role": "assistant", "content": text},
                             {"role": "user", "content": common.repair_message(records[-1])}]
            ids, got = first
            n = self.rollout_config.response_length
            return AgentLoopOutput(prompt_ids=ids, response_ids=got.token_ids[:n],
                                   response_mask=[1] * len(got.token_ids[:n]),
                                   response_logprobs=got.log_probs[:n] if got.log_probs else None,
                                   reward_score=common.trajectory_reward(records, **primeecho),
                                   num_turns=2 * len(records), metrics=AgentLoopMetrics(),
                                   extra_fields={"turn_scores": [objective.reward(r) for r in records],
                                                 "tool_rewards": []})

    return KernelAgentLoop


# ---- MirrorPop ----

_delta = contextvars.ContextVar("musacoder_delta", default=0.02)


def mirrorpop_mask(log_ratio, response_mask, delta):
    """(B, T) response mask without the sequences whose mean |log-ratio| is above delta."""
    keep = []
    for ratio, m in zip(log_ratio.detach().float().cpu(), response_mask.cpu()):
        here = ratio[m.bool()].tolist()
        low = [min(-1.0 + r, -1.0) for r in here]  # any pair of log-probs with this ratio
        keep.append(not here or objective.mirrorpop(low, [x - r for x, r in zip(low, here)], delta).keep)
    return response_mask * response_mask.new_tensor(keep).unsqueeze(1)


def install_mirrorpop(delta=0.02, option="seq_mean_abs"):
    """Wraps verl's rejection: rollout_correction.rollout_rs=seq_mean_abs then means MirrorPop with this delta.

    Import this module by VERL_USE_EXTERNAL_MODULES=musacoder.adapters.verl_mirrorpop in every worker.
    """
    from verl.trainer.ppo import rollout_corr_helper as helper

    inner = helper.compute_rollout_rejection_mask
    if getattr(inner, "musacoder", False):
        return

    def compute_rollout_rejection_mask(log_ratio, response_mask, *args, **kw):
        asked = kw.get("rollout_rs", args[0] if args else None)
        if asked != option:
            return inner(log_ratio, response_mask, *args, **kw)
        mask = mirrorpop_mask(log_ratio, response_mask, delta)
        lost = 1 - mask.any(1).float().mean().item()
        return mask, {"rollout_rs_mirrorpop_masked_fraction": lost}

    compute_rollout_rejection_mask.musacoder = True
    helper.compute_rollout_rejection_mask = compute_rollout_rejection_mask
