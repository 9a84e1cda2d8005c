"""test_serve.py - the server as its clients see it, over a SQLite queue; a worker of the test answers at once."""

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
TASK = "class Model: pass\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n"
NOW = "((julianday('now') - 2440587.5) * 86400.0)"


class Worker(threading.Thread):
    """Passes every candidate, but leaves those that say 'never'; those that say 'twice' are infra the first time."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.stop, self.seen = path, False, set()

    def status(self, payload):
        first = payload not in self.seen and "twice" in payload
        self.seen.add(payload)
        if first:
            return {"status": "infra", "category": "infra", "reward": None}
        return {"status": "passed", "category": None, "reward": 1}

    def run(self):
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        while not self.stop:
            rows = db.execute("SELECT id, payload FROM job WHERE state = 0 AND payload NOT LIKE '%never%'").fetchall()
            for at, payload in rows:
                verdict = {"task": json.loads(payload)["task_name"], "backend": "sim", "stage_ms": {"compile": 400}}
                verdict.update(self.status(payload))
                db.execute(f"UPDATE job SET state = 2, result = ?, ended = {NOW} WHERE id = ?",
                           (json.dumps(verdict, separators=(",", ":")), at))
            time.sleep(0.01)
        db.close()


class Serve(unittest.TestCase):
    stopped = False

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.queue = os.path.join(self.folder.name, "q.db")
        self.server = subprocess.Popen([EXE, "serve", "--queue", self.queue, "--port", "0", "--workers", "0",
                                        "--wait-max", "30"] + self.extra(), stderr=subprocess.PIPE, text=True)
        line = self.server.stderr.readline()
        self.assertIn("serve: http://", line)
        self.port = int(line.split(",")[0].rsplit(":", 1)[1])
        self.worker = Worker(self.queue)
        self.worker.start()

    def extra(self):
        return []

    def tearDown(self):
        self.worker.stop = True
        self.worker.join()
        if not self.stopped:
            self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(20), 0)
        self.server.stderr.close()
        self.folder.cleanup()

    def ask(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body), headers or {})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, json.loads(text) if r.getheader("Content-Type") == "application/json" else text

    def announce(self, size):
        """The answer to a request that says how large it will be, and sends nothing."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        c.putrequest("POST", "/v1/eval")
        c.putheader("Content-Length", str(size))
        c.endheaders()
        status = c.getresponse().status
        c.close()
        return status

    def request(self, *programs, **more):
        return dict({"task": {"name": "t", "code": TASK},
                     "candidates": [{"code": p} for p in programs]}, **more)


class Calls(Serve):
    def test_what_is_no_task_is_refused_with_its_reason(self):
        for code, word in (("class Model: pass\n", "get_inputs"), ("x = 1\n", "class Model")):
            status, v = self.ask("POST", "/v1/eval?wait=0", {"task": {"name": "t", "code": code},
                                                             "candidates": [{"code": "a"}]})
            self.assertEqual((status, v["error"]["code"]), (400, "bad_task"))
            self.assertIn(word, v["error"]["message"])
        status, v = self.ask("POST", "/v1/eval?wait=0", dict(self.request("a"), sidecar={"no_such_key": 1}))
        self.assertEqual((status, v["error"]["code"]), (400, "bad_task"))

    def test_verdicts_come_to_who_waits(self):
        status, v = self.ask("POST", "/v1/eval", self.request("a", "b"))
        self.assertEqual(status, 200)
        self.assertEqual([j["state"] for j in v["jobs"]], ["done", "done"])
        self.assertEqual(v["jobs"][0]["verdict"]["status"], "passed")
        again, w = self.ask("POST", "/v1/eval", self.request("a"))  # the same content is the same job
        self.assertEqual((again, w["jobs"][0]["id"]), (200, v["jobs"][0]["id"]))

    def announce_worker(self, **info):
        """A row as a worker writes it, and the server's next look at it."""
        db = sqlite3.connect(self.queue, timeout=30, isolation_level=None)
        db.execute(f"INSERT OR REPLACE INTO worker(name, info, expires, drain) VALUES('w', ?, {NOW} + 600, 0)",
                   (json.dumps(dict({"backend": "sim", "kind": "both"}, **info)),))
        db.close()
        before = time.monotonic()
        while self.ask("GET", "/v1/stats")[1]["worker"] == [] and time.monotonic() < before + 30:
            time.sleep(0.05)

    def test_ready_when_a_worker_is_there(self):
        status, v = self.ask("GET", "/readyz")
        self.assertEqual((status, v["error"]["code"]), (503, "no_worker"))
        self.assertIn("musacoder worker", v["error"]["message"])
        self.assertEqual(self.ask("GET", "/readyz?queue=1"), (200, {"status": "ready"}))
        for info in ({"kind": "build"}, {"backend": "cuda"}):
            self.announce_worker(**info)
            self.assertEqual(self.ask("GET", "/readyz")[0], 503, info)
        self.announce_worker()
        until = time.monotonic() + 60
        while self.ask("GET", "/readyz")[0] != 200 and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual(self.ask("GET", "/readyz"), (200, {"status": "ready"}))
        self.assertNotIn("warning", self.ask("POST", "/v1/eval?wait=0", self.request("never"))[1])

    def test_wait_is_seconds(self):
        started = time.monotonic()
        status, v = self.ask("POST", "/v1/eval?wait=0.5", self.request("never"))
        self.assertEqual((status, v["jobs"][0]["state"]), (202, "waiting"))
        self.assertLess(time.monotonic() - started, 20)  # the server would allow 30
        self.assertIn("no worker gives verdicts for backend 'sim'", v["warning"])
        for odd in ("soon", "-1", "1s", "nan", ""):
            self.assertEqual(self.ask("POST", "/v1/eval?wait=" + odd, self.request("a"))[0], 400, odd)

    def test_it_describes_itself(self):
        status, page = self.ask("GET", "/docs")
        self.assertEqual(status, 200)
        self.assertIn("/openapi.json", page)
        with open(os.path.join(ROOT, "docs/openapi.json"), encoding="utf-8") as f:
            self.assertEqual(self.ask("GET", "/openapi.json"), (200, json.load(f)))

    def test_an_answer_of_several_files_is_one_text(self):
        main, more = "class ModelNew: pass\n", {"src/a.cu": "one\ntwo\n"}
        asked = dict(self.request(), candidates=[{"files": {"main.py": main, **more}},
                                                 {"code": main + "#@file: src/a.cu\n#|one\n#|two\n"}])
        status, v = self.ask("POST", "/v1/eval", asked)
        self.assertEqual((status, v["jobs"][0]["id"]), (200, v["jobs"][1]["id"]))
        for files, word in (({"main.py": main, "../a.cu": "x"}, "no path"), ({"a.txt": "x"}, "neither"), (3, "object"),
                            ({"main.py": 3}, "no text")):
            status, v = self.ask("POST", "/v1/eval", dict(asked, candidates=[{"files": files}]))
            self.assertEqual((status, v["error"]["code"]), (400, "bad_request"))
            self.assertIn(word, v["error"]["message"])

    def test_tickets_results_and_cancel(self):
        status, v = self.ask("POST", "/v1/eval?wait=0", self.request("never"))
        self.assertEqual(status, 202)
        job = v["jobs"][0]["id"]
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}"), (200, {"id": job, "state": "waiting"}))
        self.assertEqual(self.ask("DELETE", f"/v1/jobs/{job}"), (200, {"id": job, "state": "cancelled"}))
        self.assertEqual(self.ask("GET", "/v1/jobs/999")[0], 404)
        self.assertEqual(self.ask("GET", "/v1/jobs/x")[0], 404)

    def test_what_is_wrong_is_said_in_one_line(self):
        for body, says in ((b"{", "the request"), (b"[]", "code"), (json.dumps(self.request()), "candidates"),
                           (json.dumps(self.request("a", options=3)), "options"), (b'{"a":1,"a":2}', "duplicate"),
                           (json.dumps({"task": {"code": "x"}, "candidates": [{"x": 1}]}), "candidate 0")):
            status, v = self.ask("POST", "/v1/eval", body)
            self.assertEqual((status, v["error"]["code"]), (400, "bad_request"))
            self.assertIn(says, v["error"]["message"])
            self.assertNotIn("\n", v["error"]["message"])
        self.assertEqual(self.ask("GET", "/v1/eval")[0], 405)
        self.assertEqual(self.ask("GET", "/../etc/passwd")[0], 404)
        self.assertEqual(self.announce(17 << 20), 413)

    def test_a_crowd_of_waiting_clients(self):
        seen = []
        def one(i):
            seen.append(self.ask("POST", "/v1/eval", self.request(f"program {i}"))[0])
        crowd = [threading.Thread(target=one, args=(i,)) for i in range(40)]
        for t in crowd:
            t.start()
        for t in crowd:
            t.join()
        self.assertEqual(seen, [200] * 40)
        text = self.ask("GET", "/metrics")[1]
        self.assertRegex(text, r'musacoder_verdicts_total\{category="passed"\} 40\n')

    def test_a_crowd_that_ends_at_one_moment(self):
        """More than one look of the server's takes."""
        self.worker.stop = True
        self.worker.join()
        got = []
        ids = []
        for i in range(12):
            many = self.request(*[f"never {i} {k}" for k in range(250)])
            ids += [j["id"] for j in self.ask("POST", "/v1/eval?wait=0", many)[1]["jobs"]]
        last = self.request("never 11 249")
        t = threading.Thread(target=lambda: got.append(self.ask("POST", "/v1/eval", last)[0]))
        t.start()
        time.sleep(0.5)
        db = sqlite3.connect(self.queue, timeout=30, isolation_level=None)
        began = time.time()
        db.execute(f"UPDATE job SET state = 2, result = '{{}}', ended = {NOW}")
        db.close()
        t.join(20)
        self.assertEqual(got, [200])
        self.assertLess(time.time() - began, 4)
        status = self.ask("GET", "/metrics")[1]
        self.assertRegex(status, r'musacoder_verdicts_total\{category="infra"\} 3000\n')

    def test_events_say_what_ended(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request("GET", "/v1/events")
        r = c.getresponse()
        self.ask("POST", "/v1/eval", self.request("<script>"))
        for _ in range(400):
            line = r.readline().decode()
            if line == "event: verdict\n":
                break
        said = json.loads(r.readline().decode()[len("data: "):])
        c.close()
        self.assertEqual((said["task"], said["status"]), ("t", "passed"))

    def test_runs_are_counted_by_turn(self):
        for run, turn, programs in (("one", 1, "ab"), ("one", 1, "bc"), ("one", 2, "a"), ("two", 1, "a")):
            self.assertEqual(self.ask("POST", "/v1/eval", self.request(*programs, run=run, turn=turn))[0], 200)
        self.ask("POST", "/v1/eval?wait=0", self.request("never", run="two"))
        for bad in ({"run": ""}, {"run": 1}, {"run": "x" * 81}, {"turn": 1}, {"run": "x", "turn": 0},
                    {"run": "x", "turn": 65}, {"run": "x", "turn": "1"}):
            status, v = self.ask("POST", "/v1/eval", self.request("a", **bad))
            self.assertEqual((status, v["error"]["code"]), (400, "bad_request"), bad)
        time.sleep(0.5)
        rows = self.ask("GET", "/v1/runs")[1]["runs"]
        seen = {(r["run"], r["turn"]): (r["asked"], r["judged"], r["passed"], r["unscored"]) for r in rows}
        self.assertEqual(seen, {("one", 1): (3, 3, 3, 0), ("one", 2): (1, 1, 1, 0), ("two", 1): (2, 1, 1, 0)})
        self.assertEqual(rows[0]["run"], "two")
        self.assertGreater(rows[0]["reward"], 0)

    def test_what_is_asked_again_after_infra_counts_once(self):
        for status in ("infra", "passed", "passed"):
            body = self.request("twice", "plain", run="one")
            jobs = self.ask("POST", "/v1/eval", body)[1]["jobs"]
            self.assertEqual([j["verdict"]["status"] for j in jobs], [status, "passed"])
            row, = self.ask("GET", "/v1/runs")[1]["runs"]
            scored = 1 + (status == "passed")
            self.assertEqual((row["asked"], row["judged"], row["unscored"]), (2, scored, 2 - scored))

    def test_a_stopped_server_answers_who_waits_and_loses_nothing(self):
        got = []
        t = threading.Thread(target=lambda: got.append(self.ask("POST", "/v1/eval", self.request("never"))))
        db = sqlite3.connect(self.queue)
        t.start()
        until = time.monotonic() + 10
        while not db.execute("SELECT count(*) FROM job").fetchone()[0]:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        self.server.send_signal(signal.SIGTERM)
        self.stopped = True
        t.join(20)
        self.assertEqual(got[0][0], 503)
        self.assertEqual(db.execute("SELECT count(*) FROM job WHERE state = 0").fetchone()[0], 1)
        db.close()


class Tokens(Serve):
    def extra(self):
        path = os.path.join(self.folder.name, "tokens")
        with open(path, "w") as f:
            f.write("# ours\n0123456789abcdef alice\nfedcba9876543210 bob\n")
        return ["--tokens", path, "--owner-max", "2"]

    def test_only_who_is_known_may_call(self):
        key = {"Authorization": "Bearer 0123456789abcdef"}
        self.assertEqual(self.ask("POST", "/v1/eval", self.request("a"))[0], 401)
        near = {"Authorization": "Bearer 0123456789abcdeF"}
        self.assertEqual(self.ask("POST", "/v1/eval", self.request("a"), near)[0], 401)
        self.assertEqual(self.ask("POST", "/v1/eval", self.request("a"), key)[0], 200)
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.ask("POST", "/v1/eval?wait=0", self.request("never 1", "never 2"), key)[0], 202)
        self.assertEqual(self.ask("POST", "/v1/eval?wait=0", self.request("never 3"), key)[0], 429)
        bob = {"Authorization": "Bearer fedcba9876543210"}
        self.assertEqual(self.ask("POST", "/v1/eval", self.request("b"), bob)[0], 200)


class Refusals(unittest.TestCase):
    def test_other_machines_need_tokens(self):
        r = subprocess.run([EXE, "serve", "--address", "0.0.0.0", "--port", "0"], capture_output=True, text=True,
                           timeout=20)
        self.assertEqual(r.returncode, 2)
        self.assertIn("--tokens", r.stderr)


if __name__ == "__main__":
    unittest.main()
