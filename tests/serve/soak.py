"""soak.py - a server under a steady load: clients that ask, leave, stream and send nonsense, a worker that answers at
once. Its memory, descriptors and threads must stay where they are after the first fifth of the time.

    make build/lab/bench_serve && python3 tests/serve/soak.py --minutes 30 [--queue postgres]"""

import argparse
import http.client
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time

import faults

GROWTH, SPARE_KB, SPARE_FDS = 1.10, 4096, 8


def seen(pid):
    with open(f"/proc/{pid}/status") as f:
        v = dict(line.split(":", 1) for line in f)
    return {"kb": int(v["VmRSS"].split()[0]), "threads": int(v["Threads"]), "fds": len(os.listdir(f"/proc/{pid}/fd"))}


class Client(threading.Thread):
    def __init__(self, port, k, until):
        super().__init__(daemon=True)
        self.port, self.until, self.rng, self.done, self.bad, self.k = port, until, random.Random(k), 0, 0, k

    def body(self):
        return json.dumps({"task": {"name": "t", "code": faults.TASK},
                           "candidates": [{"code": f"x = {self.k} + {self.rng.random()}\n"}]})

    def ask(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        c.request("POST", "/v1/eval", self.body())
        self.bad += json.loads(c.getresponse().read())["jobs"][0]["state"] != "done"
        c.close()

    def leave(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        body = self.body().encode()
        s.sendall(b"POST /v1/eval HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.close()

    def stream(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        s.recv(1000)
        s.close()

    def nonsense(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.sendall(self.rng.randbytes(300) + b"\r\n\r\n")
        s.close()

    def run(self):
        while time.time() < self.until:
            self.rng.choices([self.ask, self.leave, self.stream, self.nonsense], [94, 2, 2, 2])[0]()
            self.done += 1
            time.sleep(self.rng.uniform(0, 0.2))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--queue", choices=["sqlite", "postgres"], default="sqlite")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as folder:
        broker = {"sqlite": faults.Sqlite, "postgres": faults.Postgres}[a.queue](place)
        scene = faults.Scene(broker, folder, None)
        try:
            return watch(scene, a)
        finally:
            scene.close()
            broker.stop()


def watch(scene, a):
    server = scene.server()
    scene.worker()
    began = time.time()
    clients = [Client(scene.port, k, began + 60 * a.minutes) for k in range(16)]
    for c in clients:
        c.start()
    rows = []
    while any(c.is_alive() for c in clients):
        time.sleep(5)
        rows.append((time.time() - began, seen(server.pid)))
    time.sleep(2)
    done, bad = sum(c.done for c in clients), sum(c.bad for c in clients)
    early = [v for t, v in rows if t < 60 * a.minutes / 5 or t == rows[0][0]][-1]
    peak = {k: max(v[k] for t, v in rows if t > 0.8 * 60 * a.minutes) for k in early}
    flat = (peak["kb"] <= early["kb"] * GROWTH + SPARE_KB and peak["threads"] <= early["threads"] and
            peak["fds"] <= early["fds"] + SPARE_FDS + len(clients))
    print(f"soak, {scene.broker.name}: {a.minutes:g} min, {done} requests, {bad} without a verdict; memory "
          f"{early['kb'] / 1024:.1f} MiB after a fifth, {peak['kb'] / 1024:.1f} MiB at most in the last fifth; threads "
          f"{early['threads']}, {peak['threads']}; descriptors {early['fds']}, {peak['fds']}: "
          f"{'flat' if flat and not bad else 'NOT flat'}")
    return 0 if flat and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
