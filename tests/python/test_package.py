"""test_package.py - the Python package: its client against a server that misbehaves, its functions against known
values, its wheel in a folder of its own."""

import asyncio
import http.server
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

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

    def test_a_long_wait_is_spoken_of(self):
        """A server that takes the request and says nothing: one warning, with where to look."""
        with socket.create_server(("127.0.0.1", 0)) as mute, unittest.mock.patch("musacoder.client.WORD_S", 0.05):
            url = f"http://127.0.0.1:{mute.getsockname()[1]}"
            with self.assertLogs("musacoder", "WARNING") as said:
                records = musacoder.judge([{"task": TASK, "code": "x", "options": {"backend": "cuda"}}], url=url,
                                          patience_s=1)
        self.assertEqual(records[0]["status"], "infra")
        self.assertEqual(sum("(backend: cuda)" in m and "/readyz" in m for m in said.output), 1, said.output)

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

    def test_a_judge_that_does_not_answer_is_spoken_of(self):
        gone = musacoder.Client("http://127.0.0.1:1", patience_s=1)
        with unittest.mock.patch("musacoder.client.QUIET_S", 0), self.assertLogs("musacoder") as said:
            self.assertEqual(gone.judge([{"task": TASK, "code": "a"}])[0]["status"], "infra")
        self.assertIn("no answer from the judge at http://127.0.0.1:1 (ConnectionRefusedError", said.output[0])

    def test_a_body_that_is_too_large_is_said_at_once(self):
        """A server that closes before it has all of it has still answered: that is no reason to ask again."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            def refuse():
                c, _ = server.accept()
                c.recv(1000)
                c.sendall(b"HTTP/1.1 413 X\r\nContent-Length: 45\r\n\r\n"
                          b'{"error":{"code":"too_large","message":"no"}}')
                time.sleep(0.2)
                c.close()  # with most of the body unread: the client hears a reset
            threading.Thread(target=refuse, daemon=True).start()
            client = musacoder.Client(f"http://127.0.0.1:{server.getsockname()[1]}", patience_s=10)
            got = client.judge([{"task": TASK, "code": "x" * (30 << 20)}])[0]
        self.assertEqual((got["code"], got["at_fault"]), ("MC801", "request"))
        self.assertIn("(413): no", got["feedback"])

    def test_what_the_caller_did_wrong_is_said(self):
        self.server.script = [(401, {}, {"error": {"message": "a known token is needed"}})]
        with self.assertRaisesRegex(musacoder.JudgeError, "known token"):
            self.client.judge(self.items("a"))
        with self.assertRaisesRegex(ValueError, "http://HOST:PORT"):
            musacoder.Client("ftp://x")

    def test_a_wrong_item_costs_no_other_its_verdict(self):
        """What cannot be sent, or is refused for its options, its task or one candidate: records of one form."""
        wrong = [{}, None, {"task": "x", "code": "y"}, {"task": TASK}, {"task": TASK, "code": 3},
                 {"task": TASK, "code": "x", "options": {"a": {1}}}]
        with self.assertLogs("musacoder", "WARNING") as said:
            got = self.client.judge([*wrong, *self.items("fine")])
        self.assertEqual([r["status"] for r in got], ["infra"] * len(wrong) + ["passed"])
        self.assertIn(f"{len(wrong)} of {len(wrong) + 1} items cannot be judged", said.output[-1])
        self.client.parallel = 1
        for code, message in (("bad_task", "'code' has no class Model"), ("bad_request", "'options': 'trails' .."),
                              ("bad_request", "candidate 1: the answer is larger")):
            self.server.script = [(400, {}, {"error": {"code": code, "message": message}})]
            if message.startswith("candidate"):
                self.server.script += [None, self.server.script[0]]
            refused = self.client.judge(self.items("a", "b") + self.items("c", priority=1))
            self.assertEqual(refused[2]["status"], "passed")
            self.assertEqual(refused[0]["status"], "passed" if message.startswith("candidate") else "infra")
            got.append(refused[1])
        with open(os.path.join(ROOT, "docs/schema/verdict.json")) as f:
            must = json.load(f)["required"]
        for r in got[:len(wrong)] + got[len(wrong) + 1:]:
            self.assertLessEqual(set(must), set(r))
            self.assertEqual((r["schema"], r["code"], r["at_fault"], r["reward"]),
                             ("musacoder.verdict/2", "MC801", "request", None))
            self.assertEqual(r["reasons"], [{"category": "infra", "stage": "client", "message": r["feedback"]}])
            self.assertFalse(musacoder.is_scored(r))

    def test_what_a_model_writes_is_made_text(self):
        self.client.judge(self.items("a\0b", "\ud800"))
        self.assertEqual([c["code"] for c in self.server.asked[0]["candidates"]], ["a\ufffdb", "?"])

    def test_items_with_other_options_are_other_requests(self):
        self.client.judge(self.items("a", options={"trials": 2}) + self.items("b") + self.items("c", priority=3))
        self.assertEqual(sorted(str(a.get("options")) for a in self.server.asked), ["None", "None", "{'trials': 2}"])
        self.assertEqual(sorted(a.get("priority", 0) for a in self.server.asked), [0, 0, 3])


class Example(unittest.TestCase):
    def test_the_example_of_the_readme_runs(self):
        """As it stands there, against a server of the test's own."""
        with open(os.path.join(ROOT, "python/README.md")) as f:
            code = f.read().split("```python\n")[1].split("```")[0]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
        answer = [{"id": 1, "state": "done", "verdict": v} for v in (
            {"status": "passed", "category": None}, {"status": "failed", "category": "extraction_error"})]
        server.asked, server.script = [], [(200, {}, {"jobs": answer})]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = dict(os.environ, MUSACODER_URL=f"http://127.0.0.1:{server.server_port}",
                   PYTHONPATH=os.path.join(ROOT, "python"))
        r = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
        server.shutdown()
        server.server_close()
        self.assertEqual(r.stdout, "passed None 1.0\nfailed extraction_error -1.0\n", r.stderr)


class Adapters(unittest.TestCase):
    """What is not scored is never a number, in each trainer's own way; scored ones beside it are."""

    KINDS = ("passed", "infra", "unsupported")

    class Judge:
        async def ajudge(self, items):
            return [{"status": i["response"], "category": None if i["response"] == "passed" else i["response"]}
                    for i in items]

        def judge(self, items):
            return asyncio.run(self.ajudge(items))

    def test_trl(self):
        with unittest.mock.patch.dict(sys.modules, {"torch": unittest.mock.MagicMock()}):
            from musacoder.adapters import trl
        reward = trl.make_reward(self.Judge())
        got = asyncio.run(reward(prompts=[""] * 3, completions=list(self.KINDS), task_code=[""] * 3))
        self.assertEqual(got, [1.0, None, None])

    def test_verl(self):
        from musacoder.adapters import verl
        with unittest.mock.patch.object(verl.common, "client_of", lambda c: self.Judge()):
            self.assertEqual(asyncio.run(verl.compute_score("", "passed", "x"))["score"], 1.0)
            for kind in self.KINDS[1:]:
                with self.assertRaises(verl.NotScored):
                    asyncio.run(verl.compute_score("", kind, "x"))

    def test_slime(self):
        from musacoder.adapters import slime
        samples = [types.SimpleNamespace(label="x", metadata={}, response=k, remove_sample=False) for k in self.KINDS]
        with unittest.mock.patch.object(slime.common, "client_of", lambda c: self.Judge()):
            for s in samples:
                s.reward = asyncio.run(slime.rm(None, s))
        self.assertEqual([s.remove_sample for s in samples], [False, True, True])
        raw, advantages = slime.reward_post_process(types.SimpleNamespace(n_samples_per_prompt=3), samples)
        self.assertEqual(advantages, [0, 0, 0])  # one is left, and a group of one has no advantage

    def test_a_trajectory_with_a_gap_has_no_reward(self):
        from musacoder.adapters import common
        failed = {"status": "failed", "category": "compile_error"}
        for kind in self.KINDS[1:]:
            self.assertIsNone(common.trajectory_reward([failed, {"status": kind, "category": kind}]))
        self.assertIsNone(common.trajectory_reward([]))

    def test_an_adapter_asks_the_server_that_is_named_now(self):
        """A client that was kept would ask a server that is gone, for an hour."""
        from musacoder.adapters import slime, verl
        for _ in range(2):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
            server.asked, server.script = [], []
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with unittest.mock.patch.dict(os.environ, {"MUSACODER_URL": f"http://127.0.0.1:{server.server_port}"}):
                self.assertEqual(asyncio.run(verl.compute_score("", "a", TASK["code"]))["score"], 1.0)
                sample = types.SimpleNamespace(label=TASK["code"], metadata={}, response="a")
                self.assertEqual(asyncio.run(slime.rm(None, sample)), 1.0)
            self.assertEqual(len(server.asked), 2)
            server.shutdown()
            server.server_close()


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


class Data(unittest.TestCase):
    def test_rows_of_prompts_and_of_tasks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prompts.jsonl")
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps({"prompt": [{"role": "user", "content": "q"}],
                                    "extra_info": {"name": "p", "task_code": "class Model: .."}}) + "\n")
            self.assertEqual(musacoder.data.prompts(path), [{"prompt": [{"role": "user", "content": "q"}],
                                                             "task_code": "class Model: ..", "task_name": "p"}])
            with open(os.path.join(folder, "a.py"), "w", encoding="utf-8") as f:
                f.write("class Model: pass\ndef get_inputs(): return []\n")
            with open(os.path.join(folder, "no.py"), "w", encoding="utf-8") as f:
                f.write("x = 1\n")
            rows = musacoder.data.tasks(folder)
            self.assertEqual([r["task_name"] for r in rows], ["a"])
            self.assertIn("class Model: pass", rows[0]["prompt"][0]["content"])
            os.remove(os.path.join(folder, "a.py"))
            with self.assertRaisesRegex(ValueError, "holds no tasks"):
                musacoder.data.tasks(folder)

    def test_a_training_without_rewards_is_not_silent(self):
        from musacoder.adapters.common import Silence
        down = {"status": "infra", "stage": "client", "feedback": "no answer in time"}
        named = {"status": "infra", "at_fault": "request", "feedback": "the judge refused (400): no class Model"}
        right = {"status": "passed", "category": None}
        silence = Silence(batches=2)
        silence.heard([down, right])
        silence.heard([down])
        silence.heard([right])
        silence.heard([down])
        with self.assertRaisesRegex(RuntimeError, "no answer in time"):
            silence.heard([down, down])
        silence.heard([named, right])  # a row among good ones
        with self.assertRaisesRegex(ValueError, "task_code"):
            silence.heard([named, named])


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
