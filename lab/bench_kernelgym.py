"""bench_kernelgym.py - KernelGYM's API with its Redis under the load that bench_serve puts on ours: clients that post
unique jobs and wait for their answers, a worker that answers at once (through KernelGYM's own task manager).

    KERNELGYM_DIR=CHECKOUT python3 lab/bench_kernelgym.py JOBS CLIENTS [wrong]

needs redis-server (Debian), and from PyPI fastapi, uvicorn, redis, pydantic-settings, httpx, psutil, and torch.
Kernels are right, so each job is two tasks of theirs; with the word 'wrong' behind CLIENTS, one."""

import asyncio
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

HUB = os.environ.get("KERNELGYM_DIR", "")
RESULT = {"compiled": True, "correctness": "wrong" not in sys.argv, "decoy_kernel": False, "kernel_runtime": 1.0,
          "reference_runtime": 2.0, "status": "completed", "metadata": {}}


async def work():
    import redis.asyncio
    from kernelgym.config import settings
    from kernelgym.server.task_manager import TaskManager
    manager = TaskManager(redis.asyncio.Redis(host=settings.redis_host, port=settings.redis_port))
    open("ready", "w").close()
    while True:
        task = await manager.get_next_task("bench")
        if task:
            name = task["task_id"]
            await manager.complete_task(name, dict(RESULT, task_id=name, base_task_id=name.rsplit("_", 1)[0]))
        else:
            await asyncio.sleep(0.005)


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def client(port, numbers, took, failed):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    for i in numbers:
        body = {"task_id": f"bench-{os.getpid()}-{i}", "reference_code": "class Model: pass",
                "kernel_code": f"class ModelNew: pass  # {i} " + "x" * 4000, "timeout": 300}
        began = time.monotonic()
        try:
            c.request("POST", "/evaluate", json.dumps(body), {"Content-Type": "application/json"})
            r = c.getresponse()
            answer = json.loads(r.read())
            failed.append(i) if r.status != 200 or answer.get("compiled") is not True else None
        except (OSError, http.client.HTTPException, ValueError):
            failed.append(i)
            c.close()
        took.append(time.monotonic() - began)


def wait_for(port, path, log):
    for _ in range(900):
        with contextlib.suppress(OSError):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            c.request("GET", path)
            if c.getresponse().status == 200:
                return
        time.sleep(0.2)
    with open(log) as f:
        sys.exit("bench_kernelgym: the API did not start\n" + f.read()[-2000:])


def main(jobs, clients):
    redis_port, port = free_port(), free_port()
    env = dict(os.environ, REDIS_PORT=str(redis_port), API_PORT=str(port), API_HOST="127.0.0.1", LOG_LEVEL="WARNING",
               PYTHONPATH=HUB + os.pathsep + os.environ.get("PYTHONPATH", ""))
    with tempfile.TemporaryDirectory() as folder, open(folder + "/log", "w") as log:
        redis = ["redis-server", "--port", str(redis_port), "--save", "", "--dir", folder]
        ours = [sys.executable, os.path.abspath(__file__), "--work", *sys.argv[3:]]
        made = [subprocess.Popen(redis, stdout=log)]
        try:
            made.append(subprocess.Popen([sys.executable, "-m", "kernelgym.server.api.server"], env=env, cwd=folder,
                                         stdout=log, stderr=log))
            wait_for(port, "/health", log.name)
            made.append(subprocess.Popen(ours, env=env, cwd=folder, stdout=log, stderr=log))
            while not os.path.exists(folder + "/ready"):
                time.sleep(0.2)
            took, failed = [], []
            threads = [threading.Thread(target=client, args=(port, range(k, jobs, clients), took, failed))
                       for k in range(clients)]
            began = time.monotonic()
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            wall = time.monotonic() - began
        finally:
            for p in reversed(made):
                p.terminate()
                p.wait()
    took.sort()
    kind = "right" if RESULT["correctness"] else "wrong"
    print(f"KernelGYM and Redis, {kind} kernels: {jobs} jobs, {clients} clients: {jobs / wall:.0f} requests/s, p50 "
          f"{1e3 * took[len(took) // 2]:.0f} ms, p99 {1e3 * took[-1 - len(took) // 100]:.0f} ms, {len(failed)} failed")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        asyncio.run(work())
    elif len(sys.argv) not in (3, 4) or not HUB:
        sys.exit(__doc__)
    else:
        main(int(sys.argv[1]), int(sys.argv[2]))
