"""test_chat.py - 'musacoder serve --model DIR' as OpenAI's clients see it: a small model with random weights."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/serve"))
import test_openapi  # noqa: E402

EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
TOKENIZER = os.path.join(ROOT, "tests/nn/data/tok_qwen3.json")
HI = [{"role": "user", "content": "hi"}]


def make_model(folder):
    with open(TOKENIZER) as f:
        tok = json.load(f)
    rows = max(list(tok["model"]["vocab"].values()) + [t["id"] for t in tok["added_tokens"]]) + 1
    end = next(t["id"] for t in tok["added_tokens"] if t["content"] == "<|im_end|>")
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": rows, "hidden_size": 64,
              "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
              "head_dim": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000,
              "initializer_range": 0.3, "tie_word_embeddings": True, "eos_token_id": end}
    path = os.path.join(folder, "config.json")
    with open(path, "w") as f:
        json.dump(config, f)
    model = os.path.join(folder, "tiny")
    subprocess.run([EXE, "init", "--config", path, "--out", model], check=True, capture_output=True)
    with open(os.path.join(model, "tokenizer.json"), "w") as f:
        json.dump(tok, f)
    return model, end


class Chat(unittest.TestCase):
    more = []

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model, cls.end = make_model(cls.folder.name)
        cls.server = subprocess.Popen([EXE, "serve", "--queue", os.path.join(cls.folder.name, "q.db"), "--port", "0",
                                       "--workers", "0", "--model", cls.model, "--max-batch", "4"] + cls.more,
                                      stderr=subprocess.PIPE, text=True)
        assert "model 'tiny'" in cls.server.stderr.readline()
        cls.port = int(cls.server.stderr.readline().split(",")[0].rsplit(":", 1)[1])

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        rc = cls.server.wait(20)
        cls.server.stderr.close()
        cls.folder.cleanup()
        assert rc == 0, rc

    def ask(self, path, body=None, method=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method or ("POST" if body is not None else "GET"), path,
                  json.dumps(body) if body is not None else None)
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, json.loads(text) if r.getheader("Content-Type") == "application/json" else text

    def chat(self, **more):
        status, v = self.ask("/v1/chat/completions", dict({"model": "tiny", "messages": HI, "max_tokens": 12}, **more))
        self.assertEqual(status, 200, v)
        return v

    def stream(self, path="/v1/chat/completions", **more):
        status, text = self.ask(path, dict({"max_tokens": 12, "stream": True}, **more))
        self.assertEqual(status, 200, text)
        events = [e[len("data: "):] for e in text.split("\n\n") if e]
        self.assertEqual(events[-1], "[DONE]")
        return [json.loads(e) for e in events[:-1]]

    def test_models(self):
        status, v = self.ask("/v1/models")
        self.assertEqual((status, v["data"][0]["id"], v["data"][0]["max_model_len"]), (200, "tiny", 2048))
        self.assertEqual(self.ask("/v1/models/tiny")[0], 200)
        self.assertEqual(self.ask("/v1/models/other")[0], 404)

    def test_answers_are_as_described(self):
        many = {"messages": HI, "max_tokens": 4, "n": 2, "logprobs": True, "return_token_ids": True}
        for want, path, shown, body in (
                (200, "/v1/models", "/v1/models", None), (200, "/v1/models/tiny", "/v1/models/{id}", None),
                (404, "/v1/models/other", "/v1/models/{id}", None),
                (200, "/v1/chat/completions", "/v1/chat/completions", many),
                (400, "/v1/chat/completions", "/v1/chat/completions", {"messages": HI, "tools": [1]}),
                (404, "/v1/chat/completions", "/v1/chat/completions", {"messages": HI, "model": "other"}),
                (200, "/v1/completions", "/v1/completions", {"prompt": "hi", "max_tokens": 4, "logprobs": 1}),
                (400, "/v1/completions", "/v1/completions", {"prompt": []})):
            status, v = self.ask(path, body)
            self.assertEqual(status, want, v)
            said = test_openapi.API["paths"][shown]["post" if body else "get"]["responses"][str(status)]
            schema = said["content"]["application/json"]["schema"]
            self.assertIsNone(test_openapi.wrong(v, schema), f"{path}: {v}")

    def test_top_p_0_is_the_likeliest(self):
        greedy = self.chat(temperature=0)["choices"][0]["message"]
        for seed in range(3):
            self.assertEqual(self.chat(top_p=0, seed=seed)["choices"][0]["message"], greedy)
        p = subprocess.run([EXE, "generate", "--model", self.model, "--top-p", "0", "--prompt", "hi"], text=True,
                           capture_output=True)
        self.assertEqual(p.returncode, 2, p.stdout + p.stderr)
        self.assertIn("--temperature 0", p.stderr)

    def test_the_same_seed_is_the_same_answer(self):
        a, b = self.chat(seed=7), self.chat(seed=7)
        self.assertEqual(a["choices"], b["choices"])
        self.assertNotEqual(a["choices"][0]["message"]["content"],
                            self.chat(seed=8)["choices"][0]["message"]["content"])
        self.assertEqual(a["object"], "chat.completion")
        self.assertEqual(a["choices"][0]["message"]["role"], "assistant")
        self.assertIn(a["choices"][0]["finish_reason"], ("length", "stop"))
        u = a["usage"]
        self.assertEqual(u["total_tokens"], u["prompt_tokens"] + u["completion_tokens"])

    def test_a_sample_is_the_same_beside_others(self):
        alone = self.chat(seed=7, return_token_ids=True)["choices"][0]
        got = {}

        def one(i):
            got[i] = self.chat(seed=7 if i == 3 else i, temperature=1 if i == 3 else 0.1 * i, return_token_ids=True)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(9)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got[3]["choices"][0]["token_ids"], alone["token_ids"])

    def test_many_samples(self):
        v = self.chat(n=6, seed=1, temperature=1.5)
        self.assertEqual([c["index"] for c in v["choices"]], list(range(6)))
        self.assertGreater(len({c["message"]["content"] for c in v["choices"]}), 3)

    def test_greedy_needs_no_seed(self):
        self.assertEqual(self.chat(temperature=0)["choices"], self.chat(temperature=0)["choices"])

    def test_a_stream_says_what_the_whole_says(self):
        for path, key in (("/v1/chat/completions", {"messages": HI}), ("/v1/completions", {"prompt": "hi"})):
            status, whole = self.ask(path, dict(key, seed=5, n=2, max_tokens=12, return_token_ids=True, logprobs=0))
            self.assertEqual(status, 200, whole)
            parts = self.stream(path, seed=5, n=2, return_token_ids=True, logprobs=0,
                                stream_options={"include_usage": True}, **key)
            self.assertEqual(parts[-1]["choices"], [])
            self.assertEqual(parts[-1]["usage"], whole["usage"])
            for i in range(2):
                mine = [c for p in parts for c in p["choices"] if c["index"] == i]
                text = "".join(c["delta"].get("content", "") if "delta" in c else c["text"] for c in mine)
                want = whole["choices"][i]
                self.assertEqual(text, want["message"]["content"] if "message" in want else want["text"])
                self.assertEqual([t for c in mine for t in c["token_ids"]], want["token_ids"])
                self.assertEqual(mine[-1]["finish_reason"], want["finish_reason"])
                self.assertTrue(all(c["finish_reason"] is None for c in mine[:-1]))
        self.assertNotIn("usage", self.stream(messages=HI, seed=5)[-1])

    def test_log_probabilities(self):
        c = self.chat(seed=3, logprobs=True, return_token_ids=True)
        words = c["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(words), len(c["choices"][0]["token_ids"]))
        self.assertTrue(all(w["logprob"] <= 0 and w["top_logprobs"] == [] for w in words))
        self.assertEqual(len(c["prompt_token_ids"]), c["usage"]["prompt_tokens"])
        status, v = self.ask("/v1/completions", {"prompt": [1, 2, 3], "logprobs": 1, "seed": 3, "max_tokens": 4})
        self.assertEqual((status, len(v["choices"][0]["logprobs"]["token_logprobs"])), (200, 4))

    def test_ids_given_back_go_on_where_they_ended(self):
        """What was drawn, given as a prompt of ids, continues greedily as one longer answer does."""
        long = self.ask("/v1/completions", {"prompt": [5, 6, 7], "temperature": 0, "max_tokens": 10,
                                            "return_token_ids": True})[1]["choices"][0]["token_ids"]
        rest = self.ask("/v1/completions", {"prompt": [5, 6, 7] + long[:4], "temperature": 0, "max_tokens": 6,
                                            "return_token_ids": True})[1]["choices"][0]["token_ids"]
        self.assertEqual(long[4:], rest)

    def test_stop_strings(self):
        text = self.chat(seed=11, max_tokens=40)["choices"][0]["message"]["content"]
        stop = text[len(text) // 2:len(text) // 2 + 3]
        for v in (self.chat(seed=11, max_tokens=40, stop=["@@never@@", stop])["choices"][0],):
            self.assertEqual((v["message"]["content"], v["finish_reason"]), (text[:text.index(stop)], "stop"))
        parts = self.stream(messages=HI, seed=11, max_tokens=40, stop=stop)
        self.assertEqual("".join(p["choices"][0]["delta"].get("content", "") for p in parts), text[:text.index(stop)])

    def test_several_prompts(self):
        status, v = self.ask("/v1/completions", {"prompt": ["a", "b"], "n": 2, "max_tokens": 3, "seed": 1})
        self.assertEqual((status, len(v["choices"])), (200, 4))

    def test_what_is_refused(self):
        for more, param in (({"messages": []}, "messages"), ({"temperature": -1}, "temperature"), ({"n": 0}, "n"),
                            ({"tools": [{}]}, "tools"), ({"top_p": 2}, "top_p"),
                            ({"presence_penalty": 1}, "presence_penalty"),
                            ({"messages": [{"role": "tool", "content": "x"}]}, "messages"), ({"stop": [""]}, "stop"),
                            ({"messages": [{"role": "user", "content": "x " * 2100}]}, "messages"),
                            ({"max_tokens": 0}, "max_tokens"), ({"stream_options": {}}, "stream_options"),
                            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
                            ({"response_format": {"type": "json_object"}}, "response_format"), ({"seed": "x"}, "seed"),
                            ({"n": 1000}, "n"), ({"n": True}, "n"), ({"max_tokens": 10**18}, "max_tokens"),
                            ({"temperature": 1e-7}, "temperature"), ({"best_of": 4}, "best_of"),
                            ({"n": 2, "best_of": 3}, "best_of"), ({"stop": ["a"] * 17}, "stop"),
                            ({"stop": [["a"]]}, "stop"), ({"stop_token_ids": ["a"]}, "stop_token_ids"),
                            ({"stop_token_ids": [2**40]}, "stop_token_ids"), ({"stop_token_ids": 3}, "stop_token_ids"),
                            ({"stream": "no"}, "stream"), ({"logprobs": "x"}, "logprobs"), ({"model": {}}, "model"),
                            ({"return_token_ids": 1}, "return_token_ids"),
                            ({"chat_template_kwargs": [1]}, "chat_template_kwargs")):
            status, v = self.ask("/v1/chat/completions", dict({"messages": HI, "max_tokens": 4}, **more))
            got = (status, v["error"]["type"], v["error"]["param"])
            self.assertEqual(got, (400, "invalid_request_error", param), more)
        self.assertEqual(self.ask("/v1/chat/completions", {"model": "gpt", "messages": HI})[0], 404)
        self.assertEqual(self.ask("/v1/completions", {"prompt": [1 << 20]})[0], 400)
        self.assertEqual(self.ask("/v1/completions", {"prompt": [[1], [-1]]})[0], 400)
        self.assertEqual(self.ask("/v1/completions", {})[0], 400)
        self.assertEqual(self.ask("/v1/chat/completions", [1])[0], 400)
        self.assertEqual(self.ask("/v1/chat/completions", None, "POST")[0], 400)

    def test_bodies_that_are_no_text(self):
        for body in (b'{"messages":[{"role":"user","content":"\xff\xfe"}]}', b"[" * 100000,
                     b'{"messages":[{"role":"user","content":"\\ud800"}]}',
                     b'{"messages":[{"role":"user","content":"\\u0000"}]}',
                     b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN}', b'{"n":1,"n":2}', b"",
                     b'{"messages":' + b"[" * 2000 + b"]" * 2000 + b"}"):
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            c.request("POST", "/v1/chat/completions", body)
            r = c.getresponse()
            v = json.loads(r.read())
            c.close()
            self.assertEqual((r.status, v["error"]["type"]), (400, "invalid_request_error"), body[:80])
            self.assertNotIn("\n", v["error"]["message"])

    def test_log_probabilities_are_none_above_zero(self):
        for temperature in (0, 0.01, 1, 100):
            v = self.chat(temperature=temperature, logprobs=True, max_tokens=20, seed=4)
            self.assertTrue(all(t["logprob"] <= 0 for t in v["choices"][0]["logprobs"]["content"]), temperature)

    def test_a_client_that_leaves_ends_its_samples(self):
        """Also one that waits for the whole: without this its samples would be drawn to their end."""
        for stream in (True, False):
            s = socket.create_connection(("127.0.0.1", self.port))
            body = json.dumps({"messages": HI, "stream": stream, "max_tokens": 2000, "n": 64,
                               "temperature": 2}).encode()
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body)
            if stream:
                s.recv(100)
            until = time.time() + 20
            while 'state="running"} 0' in self.ask("/metrics")[1]:
                self.assertLess(time.time(), until)
                time.sleep(0.01)
            s.close()
            until = time.time() + 8
            while 'state="running"} 0' not in self.ask("/metrics")[1]:
                self.assertLess(time.time(), until)
                time.sleep(0.05)

    def test_our_own_agent_talks_to_it(self):
        """Random weights write no kernel: the agent hears that, twice, and says so."""
        out = subprocess.run([EXE, "agent", "--model", f"http://127.0.0.1:{self.port}/v1", "--max-new", "16", "--turns",
                              "2", "--style", "plain", "--task", os.path.join(ROOT, "docs/example/task.py")],
                             capture_output=True, text=True, timeout=200)
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn("turn 2: failed, extraction_error", out.stderr)

    def test_metrics_count(self):
        self.chat(seed=1)
        lines = dict(line.rsplit(" ", 1) for line in self.ask("/metrics")[1].split("\n") if line and line[0] != "#")
        self.assertGreater(float(lines['musacoder_model_tokens_total{kind="drawn"}']), 0)
        self.assertGreater(float(lines["musacoder_model_requests_total"]), 0)

    def test_the_judge_is_there_too(self):
        self.assertEqual(self.ask("/healthz")[0], 200)


class ChatOnADevice(unittest.TestCase):
    """The engine of GPUs, on the emulator: requests of two temperatures, which wait for each other."""

    def test_samples_do_not_depend_on_what_else_is_asked(self):
        Chat.more = ["--device", "sim", "--dtype", "fp32", "--max-len", "32"]
        Chat.setUpClass()
        try:
            ask = {"prompt": [1, 2, 3], "max_tokens": 4, "seed": 5, "return_token_ids": True}
            kinds = [dict(ask), dict(ask, temperature=0), dict(ask, n=2)]
            talk = Chat()
            want = [talk.ask("/v1/completions", k)[1]["choices"] for k in kinds]
            got = {}
            threads = [threading.Thread(target=lambda i=i: got.update({i: talk.ask("/v1/completions", kinds[i % 3])}))
                       for i in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            for i in range(6):
                self.assertEqual(got[i][1]["choices"], want[i % 3])
            self.assertEqual(want[0][0]["token_ids"], want[2][0]["token_ids"])
            self.assertEqual(talk.ask("/v1/completions", dict(ask, top_k=3))[0], 400)
        finally:
            Chat.tearDownClass()
            Chat.more = []


if __name__ == "__main__":
    unittest.main()
