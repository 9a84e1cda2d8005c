"""test_remote.py - 'bench --model URL': what is asked for is what is judged."""

import http.server
import json
import os
import subprocess
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))


class Refuses(http.server.BaseHTTPRequestHandler):
    """Writes down what it is asked and answers 400, which is final."""

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_error(400)

    def log_message(self, *args):
        pass


class Remote(unittest.TestCase):
    def ask(self, *more):
        server = http.server.HTTPServer(("127.0.0.1", 0), Refuses)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as out:
            model = ("--model", f"http://127.0.0.1:{server.server_port}/v1", "--model-name", "m", "--samples", "1")
            tasks = ("--tasks", os.path.join(ROOT, "docs/example/task.py"))
            p = subprocess.run([EXE, "bench", *model, *tasks, "--out", out, *more], capture_output=True, text=True,
                               timeout=60 * SLOWDOWN)
        server.shutdown()
        server.server_close()
        self.assertNotEqual(p.returncode, 0, p.stdout)
        return "".join(m["content"] for m in server.asked[0]["messages"])

    def test_the_dialect_reaches_the_server(self):
        self.assertIn("native MUSA", self.ask("--dialect", "musa"))
        self.assertIn("native CUDA", self.ask())


if __name__ == "__main__":
    unittest.main()
