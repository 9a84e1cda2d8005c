"""judge.py - a real server over a SQLite queue, and a worker that answers at once: a verdict follows from the text."""

import contextlib
import hashlib
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
BUILD = os.path.abspath(os.environ.get("B", os.path.join(ROOT, "build")))
os.environ.setdefault("MUSACODER_LIB", os.path.join(BUILD, "lib/libmusacoder.so"))
sys.path.insert(0, os.path.join(ROOT, "python"))
NOW = "((julianday('now') - 2440587.5) * 86400.0)"
KINDS = ("passed", "infra", "correctness_error", "compile_error", "unsupported", "cheating")
TASK = ("import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n")
SKIP = 77


def verdict(payload):
    text = payload["candidate"]
    kind = next((k for k in KINDS if k in text), None)
    kind = kind or KINDS[hashlib.sha256(text.encode()).digest()[0] % len(KINDS)]
    v = {"schema": "musacoder.verdict/1", "task": payload["task_name"], "feedback": f"it is {kind}",
         "status": kind if kind in ("passed", "infra", "unsupported") else "failed",
         "category": None if kind == "passed" else kind}
    if kind == "correctness_error":
        v["correctness"] = {"q": 0.5}
    return kind, v


class Worker(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.stop, self.counts = path, False, dict.fromkeys(KINDS, 0)

    def run(self):
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        while not self.stop:
            for at, payload in db.execute("SELECT id, payload FROM job WHERE state = 0").fetchall():
                kind, v = verdict(json.loads(payload))
                self.counts[kind] += 1
                db.execute(f"UPDATE job SET state = 2, result = ?, ended = {NOW} WHERE id = ?",
                           (json.dumps(v, separators=(",", ":")), at))
            time.sleep(0.02)
        db.close()


@contextlib.contextmanager
def running(*more):
    """(url, counts by kind) of a server for this block."""
    with tempfile.TemporaryDirectory() as folder:
        queue = os.path.join(folder, "q.db")
        server = subprocess.Popen([os.path.join(BUILD, "musacoder"), "serve", "--queue", queue, "--port", "0",
                                   "--workers", "0", *more], stderr=subprocess.PIPE, text=True)
        line = server.stderr.readline()
        url = line.split(",")[0].split("serve: ")[1]
        os.environ["MUSACODER_URL"] = url
        worker = Worker(queue)
        worker.start()
        try:
            yield url, worker.counts
        finally:
            worker.stop = True
            worker.join()
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0
