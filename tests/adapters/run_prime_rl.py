"""run_prime_rl.py - prime-rl's own environment server, TrainEnv and GRPO over our taskset, from the checkout that
PRIME_RL_DIR names: a group of three of which one verdict is 'infra'. Its inference and its trainer need a GPU: left
out."""

import asyncio
import http.server
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

import judge

if not os.environ.get("PRIME_RL_DIR"):
    print("skipped: PRIME_RL_DIR names no checkout of prime-rl")
    sys.exit(judge.SKIP)
PLACES = [os.path.join(os.environ["PRIME_RL_DIR"], p) for p in ("src", "packages/prime-rl-configs/src")]
sys.path[:0] = PLACES
import run_verifiers  # noqa: E402
import verifiers.v1 as vf  # noqa: E402
from prime_rl.configs.orchestrator import TrainConfig  # noqa: E402
from prime_rl.orchestrator.algo import build_algorithm  # noqa: E402
from prime_rl.orchestrator.envs import TrainEnv  # noqa: E402
from prime_rl.orchestrator.generation_source import GenerationSource  # noqa: E402

KINDS = ("passed", "correctness_error", "infra")


class Chat(run_verifiers.Chat):
    """Each request of a group is answered with the next kind."""
    turn = itertools.count()

    def says(self, content):
        return KINDS[next(self.turn) % len(KINDS)]


def source_of(tasks):
    env = {"taskset": {"id": "musacoder_verifiers", "path": tasks},
           "agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}}
    return TrainConfig.model_validate({"source": [{"env": env, "group_size": 3, "algo": {
        "type": "grpo", "sampling": {"source": "policy"}}}]}).source[0]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


async def play(source, address, chat):
    env = TrainEnv(source, address, GenerationSource(source.algo.sampling, None), build_algorithm(source.algo, None))
    await env.start()
    task, client = next(env.tasks), vf.EvalClientConfig(base_url=chat, api_key_var="OPENAI_API_KEY")
    group = [await env.run(client, "m", None, task.data.model_dump(mode="json")) for _ in KINDS]
    for trace in (t for e in group for t in e.traces):
        for node in trace.nodes:  # the test's chat server has no tokens; prime-rl's sink asks for some
            node.mask, node.token_ids = [node.sampled], [0]
    await env.algorithm.finalize_group(group)
    return group


async def while_it_lives(server, work):
    task = asyncio.ensure_future(work)
    while not task.done():
        if server.poll() is not None:
            raise RuntimeError(f"the environment server ended with {server.returncode}")
        await asyncio.wait([task], timeout=0.5)
    return task.result()


def advantages_of(trace):
    return [a for node in trace.nodes if node.sampled for a in (node.advantages or [])]


def main():
    chat = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=chat.serve_forever, daemon=True).start()
    address = f"tcp://127.0.0.1:{free_port()}"
    with judge.running(), tempfile.TemporaryDirectory() as folder:
        tasks = os.path.join(folder, "tasks.jsonl")
        with open(tasks, "w") as f:
            f.write(json.dumps({"prompt": "write", "task_code": judge.TASK}) + "\n")
        os.environ["OPENAI_API_KEY"] = "none"
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(judge.ROOT, "python"), *PLACES]))
        server = subprocess.Popen([sys.executable, "-m", "prime_rl.entrypoints.env_server",
                                   "--env.taskset.id", "musacoder_verifiers", "--env.taskset.path", tasks,
                                   "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess",
                                   "--serve.address", address, "--serve.pool.type", "static",
                                   "--serve.pool.num-workers", "1"],
                                  cwd=folder, env=env, stdout=sys.stderr)
        try:
            work = play(source_of(tasks), address, f"http://127.0.0.1:{chat.server_port}/v1")
            group = asyncio.run(while_it_lives(server, asyncio.wait_for(work, 300)))
        finally:
            server.terminate()
            server.wait(30)
    got = [(t.reward, t.has_error, advantages_of(t)) for e in group for t in e.traces]
    print(got, file=sys.stderr)
    assert [g[:2] for g in got[:2]] == [(1.0, False), (-0.25, False)] and got[2][1], got
    assert abs(got[0][2][0] - 0.625) < 1e-6 and abs(got[1][2][0] + 0.625) < 1e-6 and not got[2][2], got
    print("ok prime-rl: its environment server, 3 rollouts of a group, GRPO over the 2 that are scored")


if __name__ == "__main__":
    main()
