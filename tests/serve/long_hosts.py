"""long_hosts.py - three hosts, each a network namespace with a name and a cache of its own: PostgreSQL and the server
on the first, a worker that only builds on the second, one that only runs (sim) on the third. A benchmark on the first
goes through all of them. What is above 1 MiB travels through a folder that the second and the third share.

    python3 tests/serve/long_hosts.py       skipped by name where network namespaces cannot be made (it needs root)"""

import glob
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/serve"), os.path.join(ROOT, "tests/faults")]
import faults  # noqa: E402
import honest  # noqa: E402
from fleet import NO_COMPILER, NO_TORCH  # noqa: E402
from test_kinds import large  # noqa: E402

NET = "198.51.100"  # RFC 5737: for documentation, so nobody's


class Hosts:
    """Namespaces with addresses NET.1, NET.2, ...; the first has the switch."""

    def __init__(self, names):
        self.names = [f"{n}{os.getpid()}" for n in names]

    def ip(self, line):
        subprocess.run(["ip", *line.split()], check=True, capture_output=True)

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        first = self.names[0]
        for name in self.names:
            self.ip(f"netns add {name}")
            self.ip(f"-n {name} link set lo up")
        self.ip(f"-n {first} link add sw type bridge")
        self.ip(f"-n {first} addr add {NET}.1/24 dev sw")
        self.ip(f"-n {first} link set sw up")
        for i, name in enumerate(self.names[1:], 2):
            self.ip(f"-n {first} link add p{i} type veth peer name eth0 netns {name}")
            self.ip(f"-n {first} link set p{i} master sw up")
            self.ip(f"-n {name} addr add {NET}.{i}/24 dev eth0")
            self.ip(f"-n {name} link set eth0 up")

    def __exit__(self, *a):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def on(self, i):
        """What a command on this host begins with."""
        named = ["unshare", "--uts", "sh", "-c", f'hostname h{i + 1}; exec "$@"', "sh"]
        return ["ip", "netns", "exec", self.names[i], *named]


def possible():
    try:
        with Hosts("m"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


class Postgres(faults.Postgres):
    def __init__(self, folder, host):
        self.host = host
        super().__init__(folder, "*")

    def run(self, program, *argv):
        return subprocess.run([*self.host, "runuser", "-u", "postgres", "--", faults.PG[-1] + "/" + program, *argv],
                              cwd=self.folder, check=True, capture_output=True, text=True, timeout=120).stdout


def digests(folder):
    found = set()
    for path in glob.glob(folder + "/build/*/*.so"):
        with open(path, "rb") as f:
            found.add(hashlib.sha256(f.read()).hexdigest())
    return found


@unittest.skipUnless(faults.PG, "no PostgreSQL on this machine")
@unittest.skipUnless(possible(), "network namespaces cannot be made here")
class ThreeHosts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.made = []
        self.hosts = Hosts(["mch", "mcb", "mcr"])
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        os.chmod(self.folder.name, 0o755)  # PostgreSQL is another user
        os.makedirs(self.path("pg"))
        self.db = Postgres(self.path("pg"), self.hosts.on(0))
        self.url = f"postgres://postgres@{NET}.1/q"

    def tearDown(self):
        for p in reversed(self.made):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(60), 0)
            p.stderr.close()
        self.db.stop()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, host, env, *argv):
        p = subprocess.Popen([*self.hosts.on(host), faults.EXE, *argv, "--queue", self.url], stderr=subprocess.PIPE,
                             text=True, env=dict(os.environ, MUSACODER_CACHE_DIR=self.path(f"cache{host}"), **env))
        self.made.append(p)
        return p

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)

    def test_a_benchmark_runs_through_three_hosts(self):
        self.write("tokens", "s" * 32 + " bench\n")
        server = self.start(0, {}, "serve", "--workers", "0", "--port", "8642", "--address", f"{NET}.1", "--tokens",
                            self.path("tokens"))
        self.assertIn("serve: http://", server.stderr.readline())
        threading.Thread(target=server.stderr.read, daemon=True).start()
        shared = ["--artefacts", self.path("shared")]
        for host, kind, env in ((1, "build", NO_TORCH), (2, "run", NO_COMPILER)):
            p = self.start(host, env, "worker", "--kind", kind, "--jobs", "2", *shared)
            threading.Thread(target=p.stderr.read, daemon=True).start()
        self.write("tasks/relu.py", honest.RELU_TASK)
        for i, code in enumerate([honest.relu(64), honest.relu(128), large(256), honest.relu(32, value="x[i]"),
                                  honest.relu(32, value="nothing_like_it")]):
            self.write(f"samples/relu_{i}.py", code)
        env = dict(os.environ, MUSACODER_CACHE_DIR=self.path("cache0"), **NO_COMPILER, **NO_TORCH)
        env.pop("MUSACODER_SECRET", None)  # the workers' own
        said = subprocess.run([*self.hosts.on(0), faults.EXE, "bench", "--tasks", self.path("tasks"), "--samples",
                               self.path("samples"), "--out", self.path("run"), "--trials", "1", "--queue", self.url],
                              capture_output=True, text=True, timeout=900 * faults.SLOW, env=env)
        self.assertEqual(said.returncode, 0, said.stderr[-3000:])
        with open(self.path("run/verdicts.jsonl")) as f:
            records = [v.get("verdict", v) for v in map(json.loads, f)]
        got = sorted(v["category"] or "passed" for v in records)
        self.assertEqual(got, ["compile_error", "correctness_error", "passed", "passed", "passed"])
        self.check_who_did_what()

    def check_who_did_what(self):
        hosts = self.db.rows("SELECT DISTINCT split_part(worker, '-', 1) FROM job WHERE lane = 'run:sim'")
        self.assertEqual(hosts, [["h3"]])
        built, run = digests(self.path("cache1")), digests(self.path("cache2"))
        self.assertEqual(len(run), 8)  # a library and an image of each that compiles
        self.assertLessEqual(run, built)
        self.assertEqual(digests(self.path("cache0")), set())
        travelled = [os.path.getsize(p) for p in glob.glob(self.path("shared/*/*"))]
        self.assertEqual(len(travelled), 1)
        self.assertGreater(min(travelled), 1 << 20)
        counted = subprocess.run([*self.hosts.on(2), "python3", "-c", "import sys, urllib.request as u; "
                                  f"sys.stdout.write(u.urlopen('http://{NET}.1:8642/metrics').read().decode())"],
                                 capture_output=True, text=True, timeout=60).stdout
        self.assertIn('musacoder_verdicts_total{category="passed"} 3\n', counted)
        self.assertIn('musacoder_verdicts_total{category="other"} 0\n', counted)  # builds are no verdicts
        self.assertIn("musacoder_workers 2\n", counted)


if __name__ == "__main__":
    unittest.main()
