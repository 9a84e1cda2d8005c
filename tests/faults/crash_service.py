"""crash_service.py - a server, or a worker, over one queue file is ended in its n-th call that changes that file
(crash.c), and another one takes its place: every client gets its verdict, and the queue holds every job once, ended.
Standard library only."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import crash

sys.path.insert(0, os.path.join(crash.ROOT, "python"))
import musacoder  # noqa: E402

JOBS, PATIENCE_S = 3, 120 * crash.SLOWDOWN
TASK = {"name": "t", "code": "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                             "        return torch.relu(x)\ndef get_inputs():\n    return [torch.randn(8, 16)]\n"
                             "def get_init_inputs():\n    return []\n"}


class Scene:
    """One server, one worker, one client at a time; 'who' of them is ended, in call n."""

    def __init__(self, folder, library, who, n=0):
        os.makedirs(folder)
        self.folder, self.library, self.who, self.n = folder, library, who, n
        self.queue, self.calls = os.path.join(folder, "q.db"), os.path.join(folder, "calls")
        self.port, self.made, self.struck, self.over = 0, [], False, threading.Event()

    def launch(self, who, *argv):
        env = dict(os.environ, **crash.SETTING)
        if who == self.who and not self.struck:
            env.update(LD_PRELOAD=self.library, CRASH_UNDER=self.queue, CRASH_AT=str(self.n), CRASH_LIST=self.calls)
        p = subprocess.Popen([crash.EXE, *argv, "--queue", self.queue], env=env, stderr=subprocess.PIPE, text=True)
        self.made.append(p)
        return p

    def server(self):
        p = self.launch("server", "serve", "--port", str(self.port), "--workers", "0")
        line = next((x for x in p.stderr if "serve: http://" in x), "")
        if line:
            self.port = int(line.split(",")[0].rsplit(":", 1)[1])
        self.drain(p)
        return p

    def worker(self):
        p = self.launch("worker", "worker", "--jobs", "1")
        self.drain(p)
        return p

    @staticmethod
    def drain(p):
        def read():
            with p.stderr:
                p.stderr.read()
        threading.Thread(target=read, daemon=True).start()

    def keep(self, p, start):
        """Whoever is ended has a successor, as a service manager gives one."""
        def look(p=p):
            while p.wait() == -signal.SIGKILL and not self.over.is_set():
                self.struck = True
                p = start()
        threading.Thread(target=look, daemon=True).start()

    def ask(self):
        client = musacoder.Client(f"http://127.0.0.1:{self.port}", patience_s=PATIENCE_S, parallel=1, batch=1)
        return [client.judge([{"task": TASK, "code": f"x = {i}\n"}])[0] for i in range(JOBS)]

    def play(self):
        """What went wrong, as lines."""
        try:
            server = self.server()
            if not self.port:  # it was ended before it listened
                self.struck = server.wait() == -signal.SIGKILL
                server = self.server()
            self.keep(server, self.server)
            self.keep(self.worker(), self.worker)
            said = {(r["status"], r.get("category")) for r in self.ask()}
            lines = [] if said == {("failed", "extraction_error")} else [f"clients were told {said}"]
            with contextlib.closing(sqlite3.connect(self.queue, timeout=60)) as db:
                rows = db.execute("SELECT state, count(*), count(DISTINCT key) FROM job GROUP BY state").fetchall()
            return lines + ([] if rows == [(2, JOBS, JOBS)] else [f"the queue holds {rows}"])
        finally:
            self.close()

    def close(self):
        self.over.set()
        for p in list(self.made):
            with contextlib.suppress(ProcessLookupError):
                p.kill()
            p.wait()


def calls_of(folder, library, who):
    """How many calls there are while nothing ends."""
    scene = Scene(os.path.join(folder, f"{who}-straight"), library, who)
    lines = scene.play()
    assert not lines, lines
    with open(scene.calls) as f:
        return f.read().splitlines()


def wrong(folder, library, who, n):
    """Was it ended at all, and what went wrong then."""
    scene = Scene(os.path.join(folder, f"{who}-at{n}"), library, who, n)
    try:
        lines = scene.play()
    except Exception as e:  # noqa: BLE001 - whatever it is, the client got no verdict
        lines = [f"{type(e).__name__}: {e}"]
    return scene.struck, [f"{who} ended in call {n}: {line}" for line in lines]
