"""test_attack.py - the server as a stranger, and as one tenant against another: what is not theirs is not there, and
what is odd is refused with one line while the server goes on. Limits of time, bytes and calls: test_http.c."""

import json
import os
import random
import re
import socket
import sqlite3
import threading
import time
import unittest

import test_kernelgym
import test_serve

with open(os.path.join(test_serve.ROOT, "docs/openapi.json")) as f:
    API = json.load(f)
KEYS = {who: {"Authorization": "Bearer " + who * 4} for who in ("alice", "bobby", "carol")}  # carol operates


class Guarded(test_serve.Serve):
    def extra(self):
        path = os.path.join(self.folder.name, "tokens")
        with open(path, "w") as f:
            f.writelines(f"{who * 4} {who}{' operator' if who == 'carol' else ''}\n" for who in KEYS)
        return ["--tokens", path, "--compat", "kernelgym"]

    def put(self, who, *programs, **more):
        v = self.ask("POST", "/v1/eval?wait=0", self.request(*programs, **more), KEYS[who])[1]
        return [j["id"] for j in v["jobs"]]

    def raw(self, data, wait_s=10):
        """What the server answers to these bytes, until it closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait_s) as s:
            got = b""
            try:
                s.sendall(data)
                while piece := s.recv(65536):
                    got += piece
            except OSError:
                pass
        return got

    def alive(self):
        self.assertEqual(self.ask("GET", "/healthz"), (200, {"status": "ok"}))


class Strangers(Guarded):
    def test_every_route_but_the_open_ones_asks_for_a_token(self):
        """Of the description's list, so that a new route cannot forget it."""
        opened = {"/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"}
        routes = [(m.upper(), p) for p, ms in API["paths"].items() for m in ms if "/models" not in p and
                  "completions" not in p and p not in opened]
        routes += [("POST", "/evaluate"), ("POST", "/workflow/submit"), ("GET", "/status/x"), ("GET", "/results/x"),
                   ("GET", "/workflow/results/x"), ("DELETE", "/tasks/x"), ("GET", "/queue/status"),
                   ("GET", "/workers/status")]
        self.assertGreater(len(routes), 15)
        token = "alice" * 4
        for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": token}, {"Authorization": "Basic " + token},
                        {"Authorization": "Bearer " + token[:-1]}, {"Authorization": f"Bearer {token} x"},
                        {"Authorization": "Bearer " + token.upper()}, {"Authorization": "Bearer " + "x" * 20000}):
            for method, path in routes:
                status, v = self.ask(method, re.sub(r"{\w+}", "1", path), None, headers)
                if status not in (413, 431):  # a header of 20 kB is refused before anybody looks
                    self.assertEqual((status, v["error"]["code"]), (401, "unauthorized"), f"{method} {path} {headers}")
        db = sqlite3.connect(self.queue)
        self.assertEqual(db.execute("SELECT count(*) FROM job").fetchone(), (0,))
        db.close()

    def test_paths_lead_nowhere(self):
        for path in ("/v1/jobs/../../etc/passwd", "//v1/eval", "/v1/eval/", "/v1/jobs/%00", "/v1/jobs/%2e%2e",
                     "/%2e%2e/etc/passwd", "/v1/jobs/1%2f2", "/v1/jobs/1;x", "/v1/jobs/99999999999999999999",
                     "/v1/jobs/-1",
                     "/v1/jobs/0x1",
                     "/v1/jobs/ 1".replace(" ", "%20"), "/v1/verdicts/%27%20OR%201=1--",
                     "/status/%27%3B%20DROP%20TABLE%20job",
                     "/v1/workers/%2e%2e%2f%2e%2e/drain", "/" + "a" * 3000, "/v1/verdicts/" + "%F0%9F%92%A9" * 50):
            status, v = self.ask("GET" if "drain" not in path else "POST", path, None, KEYS["carol"])
            self.assertEqual(status, 404, path)
            self.assertNotIn("\n", json.dumps(v))
        self.alive()

    def test_a_path_cannot_write_headers(self):
        got = self.raw(b"GET /status/a%0d%0aX-Evil:%201%0d%0a%0d%0a<b> HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                       b"Connection: close\r\nAuthorization: Bearer " + b"alice" * 4 + b"\r\n\r\n")
        head, body = got.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"X-Evil", head)
        self.assertIn(b"404", head.split(b"\r\n")[0])
        self.assertIn(b"Content-Type: application/json", head)
        self.assertIn(b"nosniff", head)
        json.loads(body)

    def test_json_that_is_meant_to_hurt(self):
        whole = json.dumps(self.request("a"))
        for body in (b"[" * 100000, b'{"a":' * 50000, b'{"task":' + b"[" * 3000 + b"]" * 3000 + b"}",
                     b"\xff\xfe" + whole.encode(),
                     whole.replace('"t"', '"\\u0000"').encode(), whole.replace('"t"', '"\\ud800"').encode(),
                     whole.replace('"t"', "1e999").encode(), whole.replace('"t"', "NaN").encode(), b"\x00" * 1000,
                     whole.replace("{", '{"task": 1, ', 1).encode(), whole.encode() + b"x", whole.encode("utf-16")):
            status, v = self.ask("POST", "/v1/eval?wait=0", body, KEYS["alice"])
            self.assertEqual((status, v["error"]["code"]), (400, "bad_request"), body[:60])
            self.assertLess(len(json.dumps(v)), 2000)
        self.alive()

    def test_what_names_a_place_elsewhere_is_refused(self):
        """No part of a request is an address: the server fetches nothing for anybody."""
        with socket.create_server(("127.0.0.1", 0)) as bait:
            url = f"http://127.0.0.1:{bait.getsockname()[1]}/x"
            one = self.request("a")
            for body in (dict(one, artefact=url), dict(one, task=dict(one["task"], url=url)),
                         dict(one, candidates=[{"code": "a", "url": url}]), dict(one, candidates=[{"artefact": url}]),
                         dict(one, options={"queue": url}), dict(one, options={"python": "/bin/sh"}),
                         dict(one, options={"capsule": "/tmp/x"}), dict(one, options={"backend": url}),
                         dict(one, sidecar={"file": url}), dict(one, callback=url)):
                self.assertEqual(self.ask("POST", "/v1/eval?wait=0", body, KEYS["alice"])[0], 400, body)
            for code in (url, "file:///etc/passwd"):  # as a program it is text, and a worker's jail has no network
                text = dict(one, candidates=[{"response": code}])
                self.assertEqual(self.ask("POST", "/v1/eval", text, KEYS["alice"])[0], 200)
            bait.settimeout(0.5)
            self.assertRaises(TimeoutError, bait.accept)

    def test_a_small_request_cannot_fill_the_disk(self):
        """Each candidate has the task with it in the queue."""
        big = dict(self.request(*[str(i) for i in range(256)]))
        big["task"] = {"name": "t", "code": test_serve.TASK + "#" * (1 << 20)}
        status, v = self.ask("POST", "/v1/eval?wait=0", big, KEYS["alice"])
        self.assertEqual((status, v["error"]["code"]), (413, "too_large"))
        self.assertLess(os.path.getsize(self.queue), 4 << 20)
        for size in (0, -1, 5000, 1.5, "2", 2**40):
            self.assertEqual(self.ask("POST", "/v1/eval?wait=0", self.request("a", group="g", group_size=size),
                                      KEYS["alice"])[0], 400, size)

    def test_a_crowd_of_silent_connections_keeps_nobody_out(self):
        crowd = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(600)]
        streams = []
        for _ in range(60):  # and readers that never read
            s = socket.create_connection(("127.0.0.1", self.port))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + b"carol" * 4 +
                      b"\r\n\r\n")
            streams.append(s)
        began = time.monotonic()
        for i in range(30):
            many = self.request(*[f"p{i} {k}" for k in range(20)])
            self.assertEqual(self.ask("POST", "/v1/eval", many, KEYS["alice"])[0], 200)
        self.assertLess(time.monotonic() - began, 60)
        with open(f"/proc/{self.server.pid}/status") as f:
            self.assertLess(int(re.search(r"VmRSS:\s*(\d+)", f.read())[1]), 400 << 10)
        for s in crowd + streams:
            s.close()
        self.alive()

    def test_bytes_at_random(self):
        """Requests with pieces cut out, doubled, changed: each is answered or closed, and the server goes on."""
        rng = random.Random(7)
        body = json.dumps(self.request("never")).encode()
        good = (b"POST /v1/eval?wait=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + b"alice" * 4 +
                b"\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) +
                body)
        seen = set()

        def some(n, seed):
            rng = random.Random(seed)
            for _ in range(n):
                t = bytearray(good)
                for _ in range(rng.randrange(1, 5)):
                    a = rng.randrange(len(t))
                    b = min(len(t), a + rng.randrange(1, 40))
                    kind = rng.randrange(5)
                    if kind == 0:
                        del t[a:b]
                    elif kind == 1:
                        t[a:a] = t[a:b] * rng.randrange(1, 4)
                    elif kind == 2:
                        t[a] = rng.randrange(256)
                    elif kind == 3:
                        t[a:a] = rng.choice([b"\r\n", b"\0", b"\r\n\r\n", b": ", b"%00", b"{", b'"',
                                             b"Transfer-Encoding: chunked\r\n"])
                    else:
                        t[a:b] = t[a:b][::-1]
                got = self.raw(bytes(t), 0.3)
                self.assertTrue(not got or got.startswith(b"HTTP/1."), got[:80])
                seen.add(got[9:12])
        crowd = [threading.Thread(target=some, args=(60, rng.random())) for _ in range(8)]
        for t in crowd:
            t.start()
        for t in crowd:
            t.join()
        self.assertTrue({b"202", b"400", b"401"} <= seen, seen)
        self.alive()


class Tenants(Guarded):
    def test_a_job_is_its_owners(self):
        job, = self.put("alice", "never")
        for method in ("GET", "DELETE"):
            status, v = self.ask(method, f"/v1/jobs/{job}", None, KEYS["bobby"])
            there = self.ask(method, f"/v1/jobs/{job + 999}", None, KEYS["bobby"])
            self.assertEqual((status, v["error"]["code"]), (404, "not_found"))
            self.assertEqual(str(there).replace(str(job + 999), str(job)), str((status, v)))  # no more than of none
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}", None, KEYS["alice"])[1]["state"], "waiting")
        self.assertEqual(self.ask("GET", "/v1/jobs", None, KEYS["bobby"])[1], {"jobs": []})
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}", None, KEYS["carol"])[1]["state"], "waiting")
        self.assertEqual(self.ask("DELETE", f"/v1/jobs/{job}", None, KEYS["carol"])[1]["state"], "cancelled")

    def test_the_same_content_of_two_owners_is_two_jobs(self):
        """Else one could cancel the other's, or learn from an answer that it was asked before."""
        mine, yours = self.put("alice", "never"), self.put("bobby", "never")
        self.assertNotEqual(mine, yours)
        self.assertEqual(self.put("alice", "never"), mine)
        self.assertEqual(self.ask("DELETE", f"/v1/jobs/{yours[0]}", None, KEYS["bobby"])[1]["state"], "cancelled")
        self.assertEqual(self.ask("GET", f"/v1/jobs/{mine[0]}", None, KEYS["alice"])[1]["state"], "waiting")
        db = sqlite3.connect(self.queue)
        key, = db.execute("SELECT key FROM job WHERE id = ?", mine).fetchone()
        db.close()
        self.assertEqual([self.ask("GET", "/v1/verdicts/" + key, None, KEYS[k])[0] for k in KEYS], [200, 404, 200])
        self.assertEqual(*(self.ask("GET", "/v1/verdicts/" + k, None, KEYS["bobby"])[1] for k in (key, "0" * 64)))

    def test_streams_tell_each_its_own(self):
        heard = {who: [] for who in KEYS}
        begun = {who: threading.Event() for who in KEYS}

        def listen(who):
            with socket.create_connection(("127.0.0.1", self.port), timeout=4) as s:
                s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                          f"Authorization: {KEYS[who]['Authorization']}\r\n\r\n".encode())
                until = time.monotonic() + 3
                while time.monotonic() < until:
                    heard[who].append(s.recv(65536).decode())
                    begun[who].set()
        crowd = [threading.Thread(target=listen, args=(who,)) for who in KEYS]
        for t in crowd:
            t.start()
        for who in KEYS:
            self.assertTrue(begun[who].wait(3))
        for who in ("alice", "bobby"):
            one = self.request(who)
            one["task"]["name"] = "of-" + who
            self.ask("POST", "/v1/eval", one, KEYS[who])
        for t in crowd:
            t.join()
        tasks = {who: set(re.findall(r"of-\w+", "".join(text))) for who, text in heard.items()}
        self.assertEqual(tasks, {"alice": {"of-alice"}, "bobby": {"of-bobby"}, "carol": {"of-alice", "of-bobby"}})
        self.assertIn("event: stats", "".join(heard["bobby"]))

    def test_runs_are_each_owners(self):
        for who in ("alice", "bobby"):
            self.ask("POST", "/v1/eval", self.request("a", run="of-" + who), KEYS[who])
        seen = {who: {r["run"] for r in self.ask("GET", "/v1/runs", None, KEYS[who])[1]["runs"]} for who in KEYS}
        self.assertEqual(seen, {"alice": {"of-alice"}, "bobby": {"of-bobby"}, "carol": {"of-alice", "of-bobby"}})

    def test_only_operators_drain_workers(self):
        for who, status in (("alice", 403), ("bobby", 403), ("carol", 404)):
            self.assertEqual(self.ask("POST", "/v1/workers/none/drain", None, KEYS[who])[0], status)

    def test_task_ids_of_kernelgym_are_each_owners(self):
        asked = {"task_id": "one", "reference_code": test_kernelgym.REFERENCE,
                 "kernel_code": "class ModelNew: pass # {}"}
        for who, program in (("alice", "a"), ("bobby", "b")):
            mine = dict(asked, kernel_code=asked["kernel_code"].format(program))
            self.assertEqual(self.ask("POST", "/evaluate", mine, KEYS[who])[1]["status"], "completed")
        self.assertEqual(self.ask("GET", "/status/one", None, KEYS["carol"])[0], 404)
        self.assertEqual(self.ask("DELETE", "/tasks/one", None, KEYS["carol"])[0], 404)

    def test_retries_are_drawn_by_who_left_them(self):
        self.worker.stop = True
        self.worker.join()
        self.worker = test_kernelgym.Judge(self.queue)
        self.worker.start()
        for who in ("alice", "bobby"):  # one name for two groups
            self.ask("POST", "/v1/eval", self.request(f"timeout {who} 1", group="g", group_size=2), KEYS[who])
        draw = lambda who: self.ask("POST", "/v1/retry/draw", {"probability": 1}, KEYS[who])[1]["retry"]  # noqa: E731
        time.sleep(0.5)
        self.assertEqual([draw(who) for who in KEYS], [None] * 3)
        self.ask("POST", "/v1/eval", self.request("timeout alice 2", group="g", group_size=2), KEYS["alice"])
        time.sleep(0.5)
        self.assertEqual([draw("bobby"), draw("carol")], [None, None])
        self.assertEqual(draw("alice")["response"], "timeout alice 1")


class Words(unittest.TestCase):
    def test_a_role_that_is_none_is_refused(self):
        import subprocess
        import tempfile
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as f:
            f.write("0123456789abcdef alice admin\n")
            f.flush()
            r = subprocess.run([test_serve.EXE, "serve", "--port", "0", "--tokens", f.name], capture_output=True,
                               text=True, timeout=20)
        self.assertEqual(r.returncode, 2)
        self.assertIn("line 1: 'admin' is no role", r.stderr)


if __name__ == "__main__":
    unittest.main()
