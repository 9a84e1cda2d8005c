"""common.py - what the adapters share: items, text of completions, a trajectory's reward. No trainer is imported."""

import json

from .. import objective
from ..client import Client, is_scored


def client_of(client):
    """A Client, a server's address, or None: $MUSACODER_URL."""
    return client if isinstance(client, Client) or hasattr(client, "ajudge") else Client(client)


def text_of(completion):
    """A completion's text: it is a string, or a list of messages whose last one counts."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def item(task_code, response, task_name=None, options=None, sidecar=None, turn=1):
    """One item of judge(). options and sidecar may be JSON text: some data sets hold no nested columns. turn: counted
    on the server's page where $MUSACODER_RUN names a run."""
    made = {"task": {"name": task_name or "task", "code": task_code}, "response": response, "turn": turn}
    for key, value in (("options", options), ("sidecar", sidecar)):
        value = json.loads(value) if isinstance(value, str) and value else value
        if value:
            made[key] = value
    return made


def metrics_of(records):
    """Shares for a trainer's log."""
    n = max(len(records), 1)
    return {"passed": sum(r.get("status") == "passed" for r in records) / n,
            "cheating": sum(r.get("category") == "cheating" for r in records) / n,
            "unscored": sum(not is_scored(r) for r in records) / n}


class Silence:
    """Whole batches without a reward: a trainer that goes on would learn nothing and say nothing."""

    def __init__(self, batches=3):
        self.batches, self.silent = batches, 0

    def heard(self, records):
        """Raises when no record of a batch is scored, for the third time, or at once where the rows are at fault."""
        bad = next((r for r in records if r.get("at_fault") == "request"), None)
        if any(is_scored(r) for r in records) or not records:
            self.silent = 0
            return
        self.silent += 1
        if bad:
            raise ValueError("no completion of this batch can be judged: " + bad["feedback"] + "; does the column "
                             "task_code hold the text of tasks, and not their names?")
        if self.silent >= self.batches:
            raise RuntimeError(f"{self.silent} batches in a row got no reward; the last one: " +
                               (records[-1].get("feedback") or records[-1].get("status", "")))


def trajectory_reward(records, alpha=0.75, bonus_first=0.15, bonus_second=0.08, **reward):
    """PrimeEcho of a trajectory's records, or None if one of them is not scored: half a trajectory is no evidence."""
    scores = [objective.reward(r, **reward) for r in records]
    if not scores or None in scores:
        return None
    passed = next((t for t, r in enumerate(records, 1) if r.get("status") == "passed"), 0)
    return objective.primeecho(scores, passed, alpha, bonus_first, bonus_second)


def repair_message(record):
    """What a model is told after a turn that did not pass."""
    return ("The judge did not accept this program.\n" + (record.get("feedback") or record.get("status", "")) +
            "\nAnswer with the whole corrected program.")
