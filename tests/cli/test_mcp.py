"""test_mcp.py - 'musacoder mcp' spoken by hand: what a client may rely on, and what may not end the server."""

import glob
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/eval"))
import judges  # noqa: E402

EXE = os.path.abspath(os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")))
EXAMPLE = os.path.join(ROOT, "docs/example")
PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
LOOPS = "import torch\nwhile True:\n    pass\nclass Model(torch.nn.Module):\n    pass\ndef get_inputs():\n    pass\n" \
        "def get_init_inputs():\n    pass\n"
LOOPING = {"name": "eval", "arguments": {"task": LOOPS, "candidate": "class ModelNew:\n    pass\n"}}

judges.share_owner()


def text_of(name):
    with open(os.path.join(EXAMPLE, name), encoding="utf-8") as f:
        return f.read()


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().split(b"\0")


class Server:
    """One server on pipes. Its temporary folders are made in a folder of its own."""

    def __init__(self, case, *argv, cwd=None, **env):
        self.tmp = tempfile.TemporaryDirectory()
        case.addCleanup(self.tmp.cleanup)
        self.p = subprocess.Popen([EXE, "mcp", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                  env=dict(os.environ, TMPDIR=self.tmp.name, **env))
        case.addCleanup(self.end)
        self.n = 0

    def end(self):
        if not self.p.stdin.closed:
            self.p.stdin.close()
        code = self.p.wait()
        self.p.stdout.close()
        return code

    def write(self, data):
        self.p.stdin.write(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")
        self.p.stdin.flush()

    def read(self):
        return json.loads(self.p.stdout.readline())

    def post(self, method, params=None):
        self.n += 1
        self.write({"jsonrpc": "2.0", "id": self.n, "method": method, **({} if params is None else {"params": params})})
        return self.n

    def ask(self, method, params=None):
        n = self.post(method, params)
        answer = self.read()
        assert answer["id"] == n, answer
        return answer

    def call(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def child(self):
        """The process id of the one child, as soon as it is the tool 'eval'."""
        while True:
            for path in glob.glob(f"/proc/{self.p.pid}/task/*/children"):
                with open(path, encoding="ascii") as f:
                    found = f.read().split()
                if found and b"eval" in command_of(found[0]):
                    return int(found[0])
            assert self.p.poll() is None
            time.sleep(0.005)

    def left(self):
        return [n for n in os.listdir(self.tmp.name) if "mcp" in n]


class Messages(unittest.TestCase):
    def setUp(self):
        self.s = Server(self, "--root", EXAMPLE)

    def code(self, data):
        self.s.write(data)
        answer = self.s.read()
        return answer["error"]["code"], answer["id"]

    def test_start(self):
        for asked, got in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-06-18")):
            answer = self.s.ask("initialize", {"protocolVersion": asked, "capabilities": {},
                                               "clientInfo": {"name": "test", "version": "1"}})["result"]
            self.assertEqual(answer["protocolVersion"], got)
            self.assertEqual(answer["serverInfo"]["name"], "musacoder")
            self.assertIn("tools", answer["capabilities"])
        self.s.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.assertEqual(self.s.ask("ping")["result"], {})  # and the notification got no answer
        self.assertEqual(self.s.ask("initialize", {})["error"]["code"], PARAMS)
        self.assertEqual(self.s.end(), 0)

    def test_list(self):
        tools = {t["name"]: t for t in self.s.ask("tools/list")["result"]["tools"]}
        self.assertEqual(sorted(tools), ["eval", "explain", "lint", "replay", "translate"])
        for tool in tools.values():
            schema = tool["inputSchema"]
            self.assertTrue(tool["description"])
            self.assertEqual(schema["type"], "object")
            self.assertLessEqual(set(schema["required"]), set(schema["properties"]))

    def test_malformed(self):
        for bad in (b"{\n", b"nonsense\n", b'{"a": 1, "a": 2}\n', b'"\xff"\n', b'"\\u0000"\n', b"[" * 5000 + b"\n"):
            self.assertEqual(self.code(bad), (PARSE, None))
        for bad in (b"[]\n", b"1\n", b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n',
                    b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}\n', b'{"jsonrpc": "2.0"}\n'):
            self.assertEqual(self.code(bad), (REQUEST, None))
        self.assertEqual(self.code(b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}\n'), (REQUEST, "a"))
        self.assertEqual(self.code({"jsonrpc": "2.0", "id": 7, "method": "resources/list"}), (METHOD, 7))
        self.assertEqual(self.code({"jsonrpc": "2.0", "id": 8, "method": "ping", "params": [1]}), (PARAMS, 8))
        self.s.write(b"\r\n\n")  # empty lines are none
        self.s.write({"jsonrpc": "2.0", "id": 3, "result": {}})  # an answer to no question
        self.assertEqual(self.s.ask("ping")["result"], {})

    def test_too_large(self):
        self.assertEqual(self.code(b'"' + b"x" * ((16 << 20) + 1) + b'"\n'), (REQUEST, None))
        self.assertEqual(self.s.ask("ping")["result"], {})

    def test_arguments(self):
        task, kernel = "task.py", "kernel.py"
        for name, arguments in (("evil", {}), ("eval", {}), ("eval", {"task_path": task}),
                                ("eval", {"task": "x", "task_path": task, "candidate_path": kernel}),
                                ("eval", {"task_path": task, "candidate_path": kernel, "backend": "vulkan"}),
                                ("eval", {"task_path": task, "candidate_path": kernel, "jail": "none"}),
                                ("eval", {"task_path": task, "candidate_path": kernel, "trials": "5"}),
                                ("eval", {"task_path": task, "candidate_path": kernel, "sidecar": "a: 1"}),
                                ("explain", {"record": "passed"}), ("translate", {"source": "x"}), ("lint", [])):
            answer = self.s.ask("tools/call", {"name": name, "arguments": arguments})
            self.assertEqual(answer["error"]["code"], PARAMS, (name, answer))
        self.assertEqual(self.s.ask("tools/call", {})["error"]["code"], PARAMS)
        self.assertEqual(self.s.left(), [])

    def test_paths(self):
        with tempfile.TemporaryDirectory() as root:
            os.symlink(os.path.join(EXAMPLE, "task.py"), os.path.join(root, "out.py"))
            os.symlink("/nonexist", os.path.join(root, "link.capsule"))
            os.mkdir(os.path.join(root, "folder"))
            os.mkfifo(os.path.join(root, "pipe"))
            with open(os.path.join(root, "task.py"), "w", encoding="utf-8") as f:
                f.write(text_of("task.py"))
            s = Server(self, "--root", root)
            for path in ("out.py", "../task.py", "/etc/passwd", "folder", "pipe", "none", "", "-", "--json"):
                self.assertEqual(s.call("lint", task_path=path)["error"]["code"], PARAMS, path)
            for path in ("a.txt", ".capsule", "link.capsule", "../a.capsule", "none/a.capsule", "/a.capsule"):
                answer = s.call("eval", task_path="task.py", candidate="x", capsule_path=path)
                self.assertEqual(answer["error"]["code"], PARAMS, path)
            shut = Server(self, cwd="/").call("lint", task_path=os.path.join(root, "task.py"))
            self.assertIn("--root", shut["error"]["message"])
            self.assertEqual(sorted(os.listdir(root)), ["folder", "link.capsule", "out.py", "pipe", "task.py"])


class Tools(unittest.TestCase):
    def expect(self, answer, failed=False):
        self.assertIn("result", answer)
        result = answer["result"]
        self.assertEqual(result["isError"], failed, result)
        return result["content"][0]["text"], result.get("structuredContent")

    def test_judge(self):
        with tempfile.TemporaryDirectory() as root:
            s = Server(self, "--root", root)
            task, kernel = text_of("task.py"), text_of("kernel.py")
            words, record = self.expect(s.call("eval", task=task, candidate=kernel, capsule_path="a.capsule"))
            self.assertEqual(record["status"], "passed")
            self.assertTrue(words.startswith("passed, reward "), words)
            words, wrong = self.expect(s.call("eval", task=task, candidate=kernel.replace("0.5f", "0.25f")))
            self.assertEqual(wrong["status"], "failed")
            self.assertIn(wrong["feedback"], words)
            self.assertEqual(self.expect(s.call("explain", record=wrong))[0], wrong["feedback"])
            words, found = self.expect(s.call("replay", capsule_path="a.capsule", check=True))
            self.assertTrue(found["right"])
            self.assertTrue(words.startswith("right: 0 of "), words)
            self.assertEqual(s.left(), [])
            s.ask("initialize", {"protocolVersion": "2024-11-05"})
            again = s.call("explain", record=wrong)["result"]  # has no structured content then
            self.assertNotIn("structuredContent", again)
            self.assertEqual(json.loads(again["content"][1]["text"])["feedback"], wrong["feedback"])

    def test_lint(self):
        s = Server(self, "--root", EXAMPLE)
        words, report = self.expect(s.call("lint", task_path="task.py", trials=1))
        self.assertEqual(words == "clean", report["findings"] == [])
        words, none = self.expect(s.call("lint", task="print(1)"), failed=True)
        self.assertIsNone(none)
        self.assertIn("class Model", words)

    def test_translate(self):
        s = Server(self)
        source = "#include <cuda_runtime.h>\nvoid f() { cudaDeviceSynchronize(); }\n"
        words, record = self.expect(s.call("translate", source=source, to="musa"))
        self.assertIn("musaDeviceSynchronize", words)
        self.assertEqual(record["source"], words)
        self.assertEqual(self.expect(s.call("translate", source=words, to="cuda"))[0], source)
        words, record = self.expect(s.call("translate", source="\n\nCUtensorMap m;", to="musa"))
        self.assertTrue(words.startswith("refused:\nline 3:"), words)
        self.assertTrue(record["refused"])
        self.assertIn("h100", self.expect(s.call("translate", source=source, to="musa", profile="h100"),
                                          failed=True)[0])
        self.assertEqual(s.left(), [])

    def test_a_judge_that_is_killed(self):
        s = Server(self, MUSACODER_OWNER="none")
        call = s.post("tools/call", LOOPING)
        child = s.child()
        self.assertEqual(len(s.left()), 1)
        ping = s.post("ping")
        self.assertEqual(s.read(), {"jsonrpc": "2.0", "id": ping, "result": {}})  # while the call runs
        os.kill(child, signal.SIGKILL)
        answer = s.read()
        self.assertEqual(answer["id"], call)
        self.assertIn("signal 9", self.expect(answer, failed=True)[0])
        self.assertEqual(s.left(), [])
        self.assertEqual(s.ask("ping")["result"], {})

    def test_a_call_that_is_cancelled(self):
        s = Server(self, MUSACODER_OWNER="none")
        call = s.post("tools/call", LOOPING)
        s.child()
        s.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})
        self.assertEqual(s.ask("ping")["result"], {})  # the next answer: the call has none
        self.assertEqual(s.left(), [])

    def test_a_call_that_takes_too_long(self):
        s = Server(self, "--wait-max", "0.2", MUSACODER_OWNER="none")
        self.assertIn("stopped after", self.expect(s.ask("tools/call", LOOPING), failed=True)[0])
        self.assertEqual(s.left(), [])

    def test_the_end(self):
        """A closed input ends the server when what was asked is answered."""
        s = Server(self)
        call = s.post("tools/call", {"name": "translate", "arguments": {"source": "int a;", "to": "musa"}})
        s.p.stdin.close()
        self.assertEqual(s.read()["id"], call)
        self.assertEqual(s.end(), 0)

    def test_many_calls_and_a_signal(self):
        """Eight calls run, the ninth is told so; SIGTERM ends them all at once."""
        s = Server(self, MUSACODER_OWNER="none")
        for _ in range(9):
            last = s.post("tools/call", LOOPING)
        answer = s.read()
        self.assertEqual(answer["id"], last)
        self.assertIn("wait for one", self.expect(answer, failed=True)[0])
        self.assertEqual(len(s.left()), 8)
        s.p.terminate()
        self.assertEqual(s.p.wait(), 130)
        self.assertEqual(s.left(), [])


class Http(unittest.TestCase):
    """The same over HTTP: a message a request, a JSON answer; tokens, limits and errors as 'serve' has them."""

    def start(self, *argv):
        p = subprocess.Popen([EXE, "mcp", "--port", "0", *argv], stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.send_signal(signal.SIGINT), p.wait(), p.stderr.close()))
        self.port = int(p.stderr.readline().split(":")[-1].split("/")[0])
        return p

    def ask(self, message, method="POST", **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=200)
        c.request(method, "/mcp", message if isinstance(message, bytes) else json.dumps(message),
                  dict({"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
                       **{k.replace("_", "-"): v for k, v in headers.items()}))
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, json.loads(text) if text else None

    def call(self, method, params=None, **headers):
        return self.ask({"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}, **headers)

    def test_tools_answer(self):
        self.start()
        status, v = self.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        self.assertEqual((status, v["id"], v["result"]["serverInfo"]["name"]), (200, 7, "musacoder"))
        self.assertEqual(self.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}), (202, None))
        self.assertEqual(len(self.call("tools/list")[1]["result"]["tools"]), 5)
        judged = {"name": "eval", "arguments": {"task": text_of("task.py"), "candidate": text_of("kernel.py")}}
        status, v = self.call("tools/call", judged)
        self.assertEqual((status, v["result"]["structuredContent"]["status"]), (200, "passed"))
        status, v = self.call("tools/call", judged, MCP_Protocol_Version="2024-11-05")
        self.assertEqual((len(v["result"]["content"]), "structuredContent" in v["result"]), (2, False))
        named = {"name": "lint", "arguments": {"task_path": os.path.join(EXAMPLE, "task.py")}}
        self.assertEqual(self.call("tools/call", named)[1]["error"]["code"], PARAMS)  # no --root, no files

    def test_errors_are_the_protocols(self):
        self.start("--wait-max", "3")
        self.assertEqual(self.ask(b"{")[1]["error"]["code"], PARSE)
        self.assertEqual(self.ask([1])[1]["error"]["code"], REQUEST)
        self.assertEqual(self.call("no/method")[1]["error"]["code"], METHOD)
        self.assertEqual(self.call("tools/call", {"name": "eval", "arguments": {"x": 1}})[1]["error"]["code"], PARAMS)
        self.assertEqual(self.ask(b"", "GET")[0], 405)
        self.assertEqual(self.call("ping", Origin="http://elsewhere.example")[0], 403)
        self.assertEqual(self.call("ping", Origin=f"http://127.0.0.1:{self.port}")[0], 200)
        status, v = self.call("tools/call", LOOPING)  # its judge is ended, and that is the answer
        self.assertEqual((status, v["result"]["isError"]), (200, True))

    def test_tokens(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as f:
            f.write("0123456789abcdef0123456789abcdef alice\n")
            f.flush()
            self.start("--tokens", f.name)
            self.assertEqual(self.call("ping")[0], 401)
            self.assertEqual(self.call("ping", Authorization="Bearer 0123456789abcdef0123456789abcdef")[0], 200)
        p = subprocess.run([EXE, "mcp", "--port", "0", "--address", "0.0.0.0"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 2)
        self.assertIn("--tokens", p.stderr)


if __name__ == "__main__":
    unittest.main()
