"""test_openapi.py - docs/openapi.json and the server say the same: routes, methods, statuses, shapes; and what a
hostile client sends is refused with one line while the server goes on."""

import json
import os
import random
import re
import socket
import subprocess
import time
import unittest

import test_serve

with open(os.path.join(test_serve.ROOT, "docs/openapi.json")) as f:
    API = json.load(f)


def wrong(v, schema, at="answer"):
    """What of a value does not fit a schema (the words of JSON Schema that the description uses); None: all fits."""
    if "$ref" in schema:
        return wrong(v, API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], at)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(v, kinds[t]) and not isinstance(v, bool) for t in types):
        return f"{at} is no {types}"
    if "enum" in schema and v not in schema["enum"]:
        return f"{at} is {v!r}"
    if isinstance(v, dict):
        for k in schema.get("required", []):
            if k not in v:
                return f"{at} lacks {k}"
        if schema.get("additionalProperties") is False and set(v) - set(schema["properties"]):
            return f"{at} has {set(v) - set(schema['properties'])}"
        pairs = [(v[k], s, f"{at}.{k}") for k, s in schema.get("properties", {}).items() if k in v]
    else:
        pairs = [(x, schema.get("items", {}), f"{at}[]") for x in v] if isinstance(v, list) else []
    return next((w for w in (wrong(*p) for p in pairs) if w), None)


class Described(test_serve.Serve):
    def check(self, method, path, shown, body=None):
        """The answer's status and shape are among those described under 'shown'."""
        status, v = self.ask(method, path, body)
        said = API["paths"][shown][method.lower()]["responses"]
        self.assertIn(str(status), said, f"{method} {path}")
        for kind, content in said[str(status)].get("content", {}).items():
            if kind == "application/json":
                self.assertIsNone(wrong(v, content["schema"]), f"{method} {path}: {v}")
        return status

    def test_every_route_is_described_and_there(self):
        rows = []
        for name in ("src/serve/serve.c", "src/chat/endpoint.c"):
            with open(os.path.join(test_serve.ROOT, name)) as f:
                rows += re.findall(r'\{"(GET|POST|DELETE)", "(/[^"]*)", (?:endpoint_|serve_)?route_', f.read())
        described = {(m.upper(), p) for p, ms in API["paths"].items() for m in ms}
        rows = [(m, p.replace('+}', '}')) for m, p in rows]  # '+': a name that may hold slashes
        self.assertEqual(set(rows), described)
        help_text = subprocess.run([test_serve.EXE, "serve", "-h"], capture_output=True, text=True).stdout
        for path in API["paths"]:
            named = re.sub(r"\{(\w+)\}", lambda m: m[1].upper(), path)
            self.assertRegex(help_text, r"(?<![\w/])" + re.escape(named) + r"(?![\w/])", "serve -h")

    def test_answers_are_as_described(self):
        one = self.request("a")
        job = self.ask("POST", "/v1/eval", one)[1]["jobs"][0]["id"]
        for want, method, path, shown, body in (
                (200, "POST", "/v1/eval", "/v1/eval", one), (202, "POST", "/v1/eval?wait=0", "/v1/eval", one),
                (400, "POST", "/v1/eval", "/v1/eval", {}), (200, "GET", f"/v1/jobs/{job}", "/v1/jobs/{id}", None),
                (404, "GET", "/v1/jobs/77777", "/v1/jobs/{id}", None),
                (200, "DELETE", f"/v1/jobs/{job}", "/v1/jobs/{id}", None), (200, "GET", "/v1/jobs", "/v1/jobs", None),
                (400, "GET", "/v1/jobs?state=x", "/v1/jobs", None), (200, "GET", "/v1/stats", "/v1/stats", None),
                (200, "GET", "/v1/runs", "/v1/runs", None),
                (404, "GET", "/v1/verdicts/00", "/v1/verdicts/{sha}", None),
                (404, "POST", "/v1/workers/x/drain", "/v1/workers/{name}/drain", None),
                (200, "POST", "/v1/retry/draw", "/v1/retry/draw", {}),
                (400, "POST", "/v1/retry/draw", "/v1/retry/draw", {"probability": -1}),
                (200, "GET", "/healthz", "/healthz", None), (200, "GET", "/readyz?queue=1", "/readyz", None),
                (503, "GET", "/readyz", "/readyz", None), (200, "GET", "/docs", "/docs", None),
                (200, "GET", "/openapi.json", "/openapi.json", None),
                (400, "POST", "/v1/eval?wait=soon", "/v1/eval", one),
                (200, "GET", "/metrics", "/metrics", None), (200, "GET", "/", "/", None)):
            self.assertEqual(self.check(method, path, shown, body), want, f"{method} {path}")

    def mutant(self, rng):
        """A request with one thing wrong, or several."""
        odd = [None, True, -1, 1e308, 2**63, "", "\x00", "é\u2028", [], {}, [[]], {"code": 1}, "x" * 5000]
        body = dict(self.request("m"), options={"trials": 1}, priority=1, group="g", group_size=2)
        for _ in range(rng.randrange(1, 4)):
            where = rng.choice([body, body.get("task"), body.get("options")])
            if isinstance(where, dict):
                where[rng.choice(list(where) or ["x"])] = rng.choice(odd)
        text = bytearray(json.dumps(body).encode())
        for _ in range(rng.choice([0, 0, 1, 5])):
            text[rng.randrange(len(text))] = rng.randrange(256)
        return bytes(text[:rng.choice([len(text), rng.randrange(len(text))])])

    def test_odd_requests_are_answered_as_described(self):
        rng, seen = random.Random(5), {}
        for _ in range(400):
            body = self.mutant(rng)
            status = self.check("POST", "/v1/eval?wait=0", "/v1/eval", body)
            seen[status] = seen.get(status, 0) + 1
        self.assertGreater(seen.get(400, 0), 100)
        self.assertEqual(set(seen) - {202, 400}, set())
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)

    def test_hostile_connections(self):
        for raw in (b"\x16\x03\x01" * 50, b"GET " + b"/" * 60000 + b" HTTP/1.1\r\n\r\n",
                    b"POST /v1/eval HTTP/9.9\r\n\r\n",
                    b"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                    b"GET /%2e%2e/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                    b"POST /v1/eval HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n"):
            s = socket.create_connection(("127.0.0.1", self.port), timeout=3)
            try:
                s.sendall(raw)
                s.shutdown(socket.SHUT_WR)
                answer = s.recv(400)
            except OSError:  # hung up, or no word: it ends with the idle time
                answer = b""
            s.close()
            self.assertNotRegex(answer, rb"^HTTP/1.1 2")
            self.assertNotIn(b"root:", answer)
        slow = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(200)]
        for s in slow:
            s.sendall(b"POST /v1/eval HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        self.assertEqual(self.ask("POST", "/v1/eval", self.request("beside the slow"))[0], 200)
        self.assertLess(time.monotonic() - began, 10)
        for s in slow:
            s.close()


del test_serve.Calls, test_serve.Tokens, test_serve.Refusals  # they run in their own file

if __name__ == "__main__":
    unittest.main()
