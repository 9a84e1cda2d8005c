"""verifiers.py - the judge as a verifiers (0.4) taskset, and so in prime-rl. See verifiers.md.

A verdict that is not scored raises: verifiers records the error on the trace, and prime-rl leaves such traces out.
"""

import json

import verifiers.v1 as vf

from .. import objective
from . import common


class NotScored(RuntimeError):
    """The judge could not say anything about this program."""


class KernelData(vf.TaskData):
    task_code: str = ""
    task_name: str = "task"
    options: str = ""


class KernelTask(vf.Task[KernelData]):
    """A prompt that asks for ModelNew, judged by a running server ($MUSACODER_URL)."""

    @vf.reward(weight=1.0)
    async def judge(self, trace: vf.Trace) -> float:
        said = [str(m.content or "") for m in trace.assistant_messages]
        it = common.item(self.data.task_code, said[-1] if said else "", self.data.task_name, self.data.options)
        record = (await common.client_of(None).ajudge([it]))[0]
        score = objective.reward(record)
        if score is None:
            raise NotScored(f"{record.get('status')}: {record.get('feedback', '')}"[:500])
        return score


class KernelConfig(vf.TasksetConfig):
    path: str = "tasks.jsonl"
    """JSON Lines with "prompt" and "task_code", and if you like "task_name" and "options"."""


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    def load(self) -> list[KernelTask]:
        with open(self.config.path, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f if line.strip()]
        return [KernelTask(KernelData(idx=i, prompt=r["prompt"], task_code=r["task_code"],
                                      task_name=r.get("task_name", f"task{i}"),
                                      options=json.dumps(r["options"]) if r.get("options") else ""),
                           self.config.task) for i, r in enumerate(rows)]


__all__ = ["KernelTaskset"]
