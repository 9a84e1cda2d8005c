"""slime.py - the judge in slime: a reward, group advantages, MirrorPop as a TIS function. See slime.md."""

from .. import objective
from . import common

_client = None


def _judge():
    global _client
    _client = _client or common.client_of(None)
    return _client


def _item(sample, response):
    meta = sample.metadata or {}
    return common.item(sample.label or meta["task_code"], response, meta.get("task_name"), meta.get("options"),
                       meta.get("sidecar"))


async def rm(args, sample, **kw):
    """--custom-rm-path musacoder.adapters.slime.rm. A sample that is not scored is marked: see reward_post_process."""
    record = (await _judge().ajudge([_item(sample, sample.response)]))[0]
    score = objective.reward(record)
    sample.metadata = dict(sample.metadata or {}, verdict=record.get("category") or record.get("status"))
    sample.remove_sample = score is None
    return 0.0 if score is None else score


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
