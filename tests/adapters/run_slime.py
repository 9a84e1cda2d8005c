"""run_slime.py - the functions of the adapter with slime's own Sample, from the checkout that SLIME_DIR names."""

import asyncio
import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import types

import judge

if not os.environ.get("SLIME_DIR"):
    print("skipped: SLIME_DIR names no checkout of slime")
    sys.exit(judge.SKIP)
LIMIT = int(os.environ.get("SLIME_LIMIT", "300"))  # seconds for all of it; slime's engine waits without end


def too_long(signum, frame):
    faulthandler.dump_traceback()
    raise SystemExit(f"no answer within {LIMIT} s: {frame.f_code.co_filename}:{frame.f_lineno} waits")


signal.signal(signal.SIGALRM, too_long)
signal.alarm(LIMIT)
faulthandler.dump_traceback_later(LIMIT + 30, exit=True)  # for a wait that no signal interrupts
sys.path.insert(0, os.environ["SLIME_DIR"])
sys.path.insert(0, os.path.join(os.environ["SLIME_DIR"], "tests"))
from plugin_contracts._shared import install_stubs  # noqa: E402

install_stubs(with_sglang_router=True)
import torch  # noqa: E402
from musacoder.adapters import slime as ours  # noqa: E402
from slime.utils.types import Sample  # noqa: E402


def check_generate():
    """Two turns through slime's own generate_and_rm, with an engine of recorded answers."""
    from slime.rollout import sglang_rollout

    asked = []

    async def engine(args, sample, sampling_params):
        asked.append(sample.prompt)
        sample.response = "compile_error" if len(asked) == 1 else "passed"
        sample.tokens, sample.response_length, sample.status = [1, 2], 2, Sample.Status.COMPLETED
        return sample

    class State:
        def __init__(self, args):
            self.args, self.semaphore, self.aborted = args, asyncio.Semaphore(1), False
            self.dp_rank_context = contextlib.nullcontext
    sglang_rollout.generate, sglang_rollout.GenerateState = engine, State
    args = types.SimpleNamespace(custom_generate_function_path="musacoder.adapters.slime.generate", group_rm=False,
                                 partial_rollout=False, mask_offpolicy_in_partial_rollout=False, rollout_seed=7,
                                 sglang_enable_deterministic_inference=False, n_samples_per_prompt=1)
    with judge.running():
        got = asyncio.run(sglang_rollout.generate_and_rm(args, Sample(index=0, prompt="write", label=judge.TASK),
                                                         sampling_params={}, evaluation=False))
    want = ours.objective.primeecho([-1.0, 1.0], 2)
    assert got.response == "compile_error" and abs(got.reward - want) < 1e-6, got
    assert len(asked) == 2 and "The judge did not accept" in asked[1], asked
    return "two turns"


def check_contract():
    """slime's own test of what a reward function must be, with ours."""
    path = os.path.join(os.environ["SLIME_DIR"], "tests/plugin_contracts/test_plugin_path_loading_contracts.py")
    with judge.running():
        out = subprocess.run([sys.executable, path, "--custom-rm-path", "musacoder.adapters.slime.rm", "-q"],
                             cwd=os.environ["SLIME_DIR"], capture_output=True, text=True, timeout=LIMIT,
                             env=dict(os.environ, PYTHONPATH=os.path.join(judge.ROOT, "python")))
    print(out.stdout[-3000:], out.stderr[-2000:], file=sys.stderr)
    assert out.returncode == 0, out.stdout[-500:]
    return "its plugin contract: " + out.stdout.strip().split("\n")[-1]


def main():
    args = types.SimpleNamespace(n_samples_per_prompt=4)
    with judge.running():
        kinds = ("passed", "correctness_error", "infra", "unsupported")
        samples = [Sample(prompt="p", response=r, label=judge.TASK) for r in kinds]
        for s in samples:
            s.reward = asyncio.run(ours.rm(args, s))
    assert [s.reward for s in samples[:2]] == [1.0, -0.25] and [s.remove_sample for s in samples] == [
        False, False, True, True]
    raw, advantages = ours.reward_post_process(args, samples)
    assert advantages[2] == advantages[3] == 0 and advantages[0] > 0 > advantages[1], advantages
    one = torch.full((2,), -1.0)
    loss, masks, metrics = ours.mirrorpop_tis(args, pg_loss=torch.zeros(4), train_log_probs=[one, one],
                                              rollout_log_probs=[one, one + torch.tensor([0.2, -0.2])],
                                              loss_masks=[torch.ones(2)] * 2)
    assert masks[0].sum() == 2 and masks[1].sum() == 0 and metrics["mirrorpop_masked"].tolist() == [0, 1]
    print(f"ok slime: rewards, removed samples, MirrorPop, {check_generate()}; {check_contract()}")


if __name__ == "__main__":
    main()
