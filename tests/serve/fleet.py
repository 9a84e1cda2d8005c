"""fleet.py - for tests: a server over a SQLite queue of its own, workers of any kind, and clients."""

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.abspath(os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder"))
SLOW = float(os.environ.get("TEST_SLOWDOWN", "1"))
HANGS_S = 480 * SLOW  # a wait for what is certain to come: nothing is said about how soon
sys.path[:0] = [os.path.join(ROOT, "tests/faults"), os.path.join(ROOT, "python")]
import honest  # noqa: E402
import musacoder  # noqa: E402

NO_COMPILER = {"MUSACODER_CXX": "/no/such/compiler", "MUSACODER_NVCC": "/no/such/compiler"}
NO_TORCH = {"MUSACODER_PYTHON": "/no/such/python"}
QUIET = {"trials": 1, "perf": False}
NOW = "((julianday('now') - 2440587.5) * 86400.0)"


class Fleet:
    """caches: {NAME: FOLDER} of processes that share one over several fleets."""

    def __init__(self, caches=None):
        self.folder, self.caches, self.made = tempfile.TemporaryDirectory(), caches or {}, []
        self.queue = self.path("q.db")
        server = self.start("serve", {}, "serve", "--port", "0", "--workers", "0")
        line = server.stderr.readline()
        if "serve: http://" not in line:
            raise RuntimeError("the server did not start: " + line)
        self.listen(server)
        self.port = int(line.split(",")[0].rsplit(":", 1)[1])
        self.client = musacoder.Client(f"http://127.0.0.1:{self.port}", patience_s=200 * SLOW)

    def close(self):
        for p in reversed(self.made):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            p.wait(HANGS_S)
            p.stderr.close()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def cache(self, name):
        return self.caches.get(name) or self.path("cache-" + name)

    def start(self, name, env, *argv):
        p = subprocess.Popen([EXE, *argv, "--queue", self.queue], stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, MUSACODER_CACHE_DIR=self.cache(name), **env))
        self.made.append(p)
        return p

    @staticmethod
    def listen(p):
        threading.Thread(target=p.stderr.read, daemon=True).start()

    def worker(self, kind, env, *argv, name=None):
        p = self.start(name or kind, env, "worker", "--kind", kind, "--name", name or kind, *argv)
        self.listen(p)
        return p

    def rows(self, query):
        db = sqlite3.connect(self.queue, timeout=60)
        try:
            found = db.execute(query).fetchall()
            db.commit()
            return found
        finally:
            db.close()

    def judge(self, *codes):
        return self.client.judge([{"task": {"name": "relu", "code": honest.RELU_TASK}, "code": c, "options": QUIET}
                                  for c in codes])

    def http(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None)
            r = c.getresponse()
            return r.status, json.loads(r.read())
        finally:
            c.close()

    def ticket(self, code, timeout=60):
        """The id of a job that nobody waits for."""
        body = {"task": {"name": "relu", "code": honest.RELU_TASK}, "candidates": [{"code": code}],
                "options": dict(QUIET, timeout=timeout)}
        return self.http("POST", "/v1/eval?wait=0", body)[1]["jobs"][0]["id"]

    def await_state(self, job, state):
        """Seconds until the job is in it."""
        began = time.time()
        while True:
            now = self.http("GET", f"/v1/jobs/{job}")[1]["state"]
            if now == state:
                return time.time() - began
            if time.time() - began > HANGS_S:
                raise AssertionError(f"job {job} is '{now}' and not '{state}' after {HANGS_S:g} s")
            time.sleep(0.05)
