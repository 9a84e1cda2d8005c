"""ray_workers.py - a worker on each GPU of a Ray cluster.

    ray job submit -- python ray_workers.py postgres://USER@HOST/DATABASE

Ray places the workers and starts them again; jobs travel through the queue, so a worker that dies loses nothing.
"""

import subprocess
import sys

import ray


@ray.remote(num_gpus=1, max_restarts=-1, max_task_retries=-1)
class Worker:
    def run(self, queue, backend):
        return subprocess.run(["musacoder", "worker", "--queue", queue, "--backend", backend], check=False).returncode


def main(queue, backend="cuda"):
    ray.init(address="auto")
    workers = [Worker.remote() for _ in range(int(ray.cluster_resources().get("GPU", 0)))]
    if not workers:
        sys.exit("ray_workers: this cluster has no GPU")
    print(f"{len(workers)} workers end with", ray.get([w.run.remote(queue, backend) for w in workers]))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
