"""slime.py - the judge in slime: a reward, group advantages, MirrorPop as a TIS function. See slime.md."""

from .. import objective
from . import common

def _item(sample, response):
    meta = sample.metadata or {}
    return common.item(sample.label or meta["task_code"], response, meta.get("task_name"), meta.get("options"),
                       meta.get("sidecar"))


async def rm(args, sample, **kw):
    """--custom-rm-path musacoder.adapters.slime.rm. A sample that is not scored is marked: see reward_post_process."""
    record = (await common.client_of(None).ajudge([_item(sample, sample.response)]))[0]
    score = objective.reward(record)
    sample.metadata = dict(sample.metadata or {}, verdict=record.get("category") or record.get("status"))
    sample.remove_sample = score is None
    return 0.0 if score is None else score


async def generate(args, sample, sampling_params):
    """--custom-generate-function-path musacoder.adapters.slime.generate: up to args.musacoder_turns (3) turns of
    program and feedback. The sample is the first turn, as slime's own generate leaves it; its reward is PrimeEcho of
    all."""
    from slime.rollout import sglang_rollout

    prompt = sample.prompt
    turns, records = getattr(args, "musacoder_turns", 3), []
    now = sample = await sglang_rollout.generate(args, sample, dict(sampling_params))
    while len(records) < turns:
        if now.status == type(now).Status.ABORTED:
            break
        records += await common.client_of(None).ajudge([dict(_item(sample, now.response),
                                                                turn=len(records) + 1)])
        if records[-1].get("status") == "passed" or objective.reward(records[-1]) is None or len(records) == turns:
            break
        now = type(sample)(index=sample.index, prompt=_dialogue(prompt, now.response, records[-1]))
        prompt = now.prompt
        now = await sglang_rollout.generate(args, now, dict(sampling_params))
    score = common.trajectory_reward(records)
    sample.remove_sample = score is None
    if sample.status != type(sample).Status.ABORTED:
        sample.reward = 0.0 if score is None else score
    sample.metadata = dict(sample.metadata or {}, turns=len(records))
    return sample


def _dialogue(prompt, response, record):
    """The next turn's prompt. Text goes on in ChatML, as Qwen's template writes it; messages go on as messages."""
    said = common.repair_message(record)
    if isinstance(prompt, list):
        return prompt + [{"role": "assistant", "content": response}, {"role": "user", "content": said}]
    return f"{prompt}{response}<|im_end|>\n<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"


def reward_post_process(args, samples):
    """--custom-reward-post-process-path: group advantages by our formula; removed samples leave their group."""
    raw = [s.reward for s in samples]
    n, out = args.n_samples_per_prompt, []
    for k in range(0, len(samples), n):
        out += objective.advantage([None if s.remove_sample else float(s.reward) for s in samples[k:k + n]],
                                   getattr(args, "musacoder_advantage", "grpo"))
    return raw, out


def mirrorpop_tis(args, *, pg_loss, train_log_probs, rollout_log_probs, loss_masks, **kw):
    """--use-tis --custom-tis-function-path: sequences beyond delta leave the loss; nothing is reweighted."""
    delta, kept, masks = getattr(args, "musacoder_delta", 0.02), [], []
    for logp, behav, mask in zip(train_log_probs, rollout_log_probs, loss_masks):
        here = mask.bool()
        a, b = logp.detach()[here].float().tolist(), behav.detach()[here].float().tolist()
        kept.append(not a or objective.mirrorpop(a, b, delta).keep)
        masks.append(mask * float(kept[-1]))
    share = pg_loss.new_tensor([1.0 - float(k) for k in kept])
    return pg_loss, masks, {"mirrorpop_masked": share}
