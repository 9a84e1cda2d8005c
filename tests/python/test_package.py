"""test_package.py - the Python package: its client against a server that misbehaves, its functions against known
values, its wheel in a folder of its own."""

import http.server
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
LIBRARY = os.path.join(BUILD if os.path.isabs(BUILD) else os.path.join(ROOT, BUILD), "lib/libmusacoder.so")
os.environ["MUSACODER_LIB"] = LIBRARY
sys.path.insert(0, os.path.join(ROOT, "python"))

import musacoder  # noqa: E402

TASK = {"name": "t", "code": "class Model: pass\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n"}


class Judge(http.server.BaseHTTPRequestHandler):
    """Answers from server.script, a list of (status, headers, body); then passes whatever comes."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        step = self.server.script.pop(0) if self.server.script else None
        if step == "hang up":
            self.connection.close()
            return
        status, headers, answer = step or (200, {}, {"jobs": [self.one(c) for c in body["candidates"]]})
        text = json.dumps(answer).encode()
        self.send_response(status)
        for k, v in dict(headers, **{"Content-Length": str(len(text))}).items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(text)

    def one(self, candidate):
        text = candidate.get("code", candidate.get("response"))
        if text == "dies":
            return {"id": 1, "state": "failed", "error": "the worker died"}
        if text in ("infra", "unsupported"):
            return {"id": 2, "state": "done", "verdict": {"status": text, "category": text}}
        return {"id": 3, "state": "done", "verdict": {"status": "passed", "task": text}}

    def log_message(self, *a):
        pass


class Client(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
        self.server.asked, self.server.script = [], []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = musacoder.Client(f"http://127.0.0.1:{self.server.server_port}", patience_s=20)

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def items(self, *programs, **more):
        return [dict({"task": TASK, "code": p}, **more) for p in programs]

    def test_records_come_in_the_order_of_the_items(self):
        names = [f"p{i}" for i in range(70)]
        seen = []
        got = self.client.judge(self.items(*names), on_progress=lambda done, n: seen.append((done, n)))
        self.assertEqual([r["task"] for r in got], names)
        self.assertEqual(seen[-1], (70, 70))
        self.assertEqual(len(self.server.asked), 5)  # 16 in one request

    def test_what_breaks_is_asked_again(self):
        self.server.script = ["hang up", (503, {"Retry-After": "0"}, {}), (429, {}, {}), (500, {}, {"error": {}}),
                              (202, {}, {"jobs": [{"id": 1, "state": "waiting"}]})]
        self.assertEqual(self.client.judge(self.items("a"))[0]["status"], "passed")
        self.assertEqual(len(self.server.asked), 6)
        self.assertEqual(self.server.asked[0], self.server.asked[-1])

    def test_what_has_no_verdict_is_never_a_zero(self):
        got = self.client.judge(self.items("infra", "unsupported", "dies", "fine"))
        self.assertEqual([musacoder.is_scored(r) for r in got], [False, False, False, True])
        self.assertEqual([musacoder.reward(r) for r in got], [None, None, None, 1.0])
        self.assertIn("died", got[2]["feedback"])

    def test_patience_ends_in_a_record(self):
        self.server.script = [(503, {}, {})] * 50
        self.client.patience_s = 0.6
        got = self.client.judge(self.items("a"))[0]
        self.assertEqual((got["status"], musacoder.reward(got)), ("infra", None))

    def test_what_the_caller_did_wrong_is_said(self):
        self.server.script = [(401, {}, {"error": {"message": "a known token is needed"}})]
        with self.assertRaisesRegex(musacoder.JudgeError, "known token"):
            self.client.judge(self.items("a"))
        for bad in ({}, {"task": "x", "code": "y"}, {"task": TASK}, {"task": TASK, "code": 3}):
            with self.assertRaisesRegex(ValueError, "an item needs"):
                self.client.judge([bad])
        with self.assertRaisesRegex(ValueError, "http://HOST:PORT"):
            musacoder.Client("ftp://x")

    def test_what_a_model_writes_is_made_text(self):
        self.client.judge(self.items("a\0b", "\ud800"))
        self.assertEqual([c["code"] for c in self.server.asked[0]["candidates"]], ["a\ufffdb", "?"])

    def test_items_with_other_options_are_other_requests(self):
        self.client.judge(self.items("a", options={"trials": 2}) + self.items("b") + self.items("c", priority=3))
        self.assertEqual(sorted(str(a.get("options")) for a in self.server.asked), ["None", "None", "{'trials': 2}"])
        self.assertEqual(sorted(a.get("priority", 0) for a in self.server.asked), [0, 0, 3])


class Objective(unittest.TestCase):
    def test_reward(self):
        wrong = {"status": "failed", "category": "correctness_error", "correctness": {"q": 0.5}}
        self.assertEqual(musacoder.reward(wrong), -0.25)
        fast = {"status": "passed", "performance": {"trusted": True, "speedup_eager": 3.0}}
        self.assertEqual(musacoder.reward(fast), 2.0)
        self.assertEqual(musacoder.reward(fast, speed_weight=0.25), 1.5)
        with self.assertRaisesRegex(ValueError, "no verdict record"):
            musacoder.reward({})

    def test_advantage_leaves_out_what_has_no_reward(self):
        self.assertEqual(musacoder.advantage([1, None, 0], "dr_grpo"), [0.5, 0.0, -0.5])
        with self.assertRaises(ValueError):
            musacoder.advantage([1.0], "nonsense")

    def test_primeecho(self):
        self.assertAlmostEqual(musacoder.primeecho([-1, 1], 2), 0.75 * -1 + 0.25 * 1 + 0.08)
        self.assertAlmostEqual(musacoder.primeecho([1], 1), 1.15)

    def test_mirrorpop_sees_what_cancels(self):
        m = musacoder.mirrorpop([-1.0, -1.4], [-1.2, -1.2], 0.02)
        self.assertFalse(m.keep)
        self.assertAlmostEqual(m.signed, 0, places=6)
        self.assertAlmostEqual(m.mirror, 0.2, places=6)
        with self.assertRaisesRegex(ValueError, "2 of the rollout"):
            musacoder.mirrorpop([0.0], [0.0, 0.0], 1)
        self.assertFalse(math.isnan(musacoder.mirrorpop([-1.0], [-1.0], 0.1).mirror))

    def test_retry_buffer(self):
        a, b = musacoder.RetryBuffer(2, 7), musacoder.RetryBuffer(2, 8)
        for p in ("one", "two", "three"):
            a.push(p, "répons", "why")
        self.assertEqual(len(a), 2)
        b.load(a.save())
        self.assertEqual(b.draw(1.0), ("two", "répons", "why"))
        self.assertEqual((len(a), len(b)), (2, 1))
        self.assertIsNone(b.draw(0.0))


class Wheel(unittest.TestCase):
    def test_a_wheel_works_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, os.path.join(ROOT, "python/wheel.py"), LIBRARY, folder],
                                  capture_output=True, text=True, check=True, timeout=60).stdout.strip()
            self.assertRegex(os.path.basename(made), r"^musacoder-[0-9.]+-py3-none-linux_\w+\.whl$")
            into = os.path.join(folder, "site")
            code = f"import zipfile; zipfile.ZipFile({made!r}).extractall({into!r})"
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
            env = {k: v for k, v in os.environ.items() if k != "MUSACODER_LIB"}
            out = subprocess.run([sys.executable, "-c", "import musacoder; print(musacoder.primeecho([1], 1))"],
                                 cwd=into, env=env, capture_output=True, text=True, check=True, timeout=60).stdout
            self.assertEqual(out, "1.15\n")


if __name__ == "__main__":
    unittest.main()
