"""run_prime_rl.py - prime-rl finds the taskset (PRIME_RL_DIR names its checkout). The taskset itself: run_verifiers.py."""

import os
import subprocess
import sys

import judge

if not os.environ.get("PRIME_RL_DIR"):
    print("skipped: PRIME_RL_DIR names no checkout of prime-rl")
    sys.exit(judge.SKIP)

code = ("import verifiers.v1.utils.loaders as l, musacoder_verifiers as m; "
        "assert m.KernelTaskset.__name__ in m.__all__; import prime_rl; print('found')")
env = dict(os.environ, PYTHONPATH=os.path.join(judge.ROOT, "python"))
out = subprocess.run(["uv", "run", "python", "-c", code], cwd=os.environ["PRIME_RL_DIR"], env=env, capture_output=True,
                     text=True, timeout=600)
print(out.stderr[-2000:], file=sys.stderr)
print("ok prime-rl: the taskset is found" if out.stdout.strip() == "found" else "no")
