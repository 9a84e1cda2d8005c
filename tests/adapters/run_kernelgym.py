"""run_kernelgym.py - KernelGYM's own reward client, unmodified from the checkout that KERNELGYM_DIR names, and the
scripts test_reward.py and test_cancel.py of its fork (KERNELGYM_FORK_DIR), against 'serve --compat kernelgym'."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import types

import judge

HUB, FORK = os.environ.get("KERNELGYM_DIR"), os.environ.get("KERNELGYM_FORK_DIR")
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", RAY_raylet_start_wait_time_s="240",
                  RAY_agent_register_timeout_ms="240000", RAY_num_prestart_python_workers="0")
# kind of verdict: reward, compiled, correctness as their client concludes
WANT = {"passed": (-0.1, True, True), "correctness_error": (-0.3, True, False), "compile_error": (-1.0, False, False),
        "cheating": (-1.0, None, None), "infra": (-1.0, False, False)}


class Config(dict):
    """Their configuration objects: members and keys."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


def config(url):
    return Config(server_url=url, timeout=20, task_timeout_in_client=40, max_retries=1, rate_limit=8, max_concurrent=8,
                  acquire_timeout=60, reward_func_name="calculate_reward_like_kernel", init_correct_weight=1,
                  init_performance_weight=1, speedup_eps=0.1, speedup_reward_upper_bound=3,
                  speedup_reward_lower_bound=0,
                  reward_policy=Config(penalties=Config(penalty_score=-1.0)))


def load_client():
    """The file as it is. It takes its rate limiter from verl, whose newer versions lack it: one is put there."""
    import ray

    @ray.remote
    class TokenBucketWorker:
        def __init__(self, limit):
            self.used = 0

        def acquire(self):
            self.used += 1

        def release(self):
            self.used -= 1

        def get_current_count(self):
            return self.used

    for name in ("verl", "verl.tools", "verl.tools.sandbox_fusion_tools"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["verl.tools.sandbox_fusion_tools"].TokenBucketWorker = TokenBucketWorker
    path = os.path.join(HUB, "drkernel/kernel/rewards/reward_client.py")
    spec = importlib.util.spec_from_file_location("reward_client", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["reward_client"] = module
    spec.loader.exec_module(module)
    ray.cloudpickle.register_pickle_by_value(module)
    return module.KernelRewardClient


def check_client():
    import ray

    with judge.running("--compat", "kernelgym") as (url, _):
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
        try:
            client = load_client()(reward_config=config(url))
            tasks = [{"reference_code": judge.TASK, "kernel_code": f"class ModelNew: pass # {k}",
                      "entry_point": "Model"}
                     for k in WANT]
            got = asyncio.run(client.compute_batch_rewards(tasks))
        finally:
            ray.shutdown()
    for (kind, want), r in zip(WANT.items(), got):
        said = (r["reward"], r.get("compiled"), r.get("correctness"))
        assert said[0] == want[0] and (want[1] is None or said[1:] == want[1:]), (kind, r)


def check_script(name, *more):
    """A script of the fork's, unmodified; on the emulator, judged in earnest."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([os.path.join(judge.BUILD, "musacoder"), "serve", "--queue", folder + "/q.db",
                                   "--port",
                                   "0", "--compat", "kernelgym"], stderr=subprocess.PIPE, text=True)
        port = server.stderr.readline().split(",")[0].rsplit(":", 1)[1]
        try:
            script = os.path.join(FORK, "scripts", name)
            out = subprocess.run([sys.executable, script, "--port", port, "--timeout", "300", *more],
                                 capture_output=True, text=True, timeout=400)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    print(out.stdout, out.stderr, file=sys.stderr)
    assert out.returncode == 0, out.stdout
    return out.stdout


def main():
    if not HUB and not FORK:
        print("skipped: KERNELGYM_DIR and KERNELGYM_FORK_DIR name no checkouts")
        sys.exit(judge.SKIP)
    done = []
    if FORK:
        lacks = [n for n in ("test_reward.py", "test_cancel.py")
                 if not os.path.exists(os.path.join(FORK, "scripts", n))]
        assert not lacks, f"KERNELGYM_FORK_DIR has no scripts/{lacks[0]}: some of its branches lack it"
        assert "correctness: True" in check_script("test_reward.py")
        said = check_script("test_cancel.py", "--mode", "both")
        assert "inflight: PASS" in said and "pending: PASS" in said, said
        done.append("the fork's test_reward.py and test_cancel.py")
    if HUB:
        check_client()
        done.append(f"KernelGYM's reward client, {len(WANT)} categories")
    print("ok kernelgym: " + "; ".join(done))


if __name__ == "__main__":
    main()
