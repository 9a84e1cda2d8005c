"""test_dashboard.py - the page in headless Chromium: live numbers, foreign text as text, light and dark, nothing from
elsewhere. Chromium looks at a page once it is loaded: the test's proxy adds a picture that takes six seconds."""

import http.client
import http.server
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

import test_serve

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from slow import slow  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


LOOK_S = 6


class Proxy(http.server.BaseHTTPRequestHandler):
    """The server's page and calls; streams go on as they come."""

    def do_GET(self):
        if self.path == "/slow":
            time.sleep(LOOK_S)
            self.send_response(204)
            self.end_headers()
            return
        c = http.client.HTTPConnection("127.0.0.1", self.server.behind)
        c.request(self.command, self.path)
        r = c.getresponse()
        self.send_response(r.status)
        self.send_header("Content-Type", r.getheader("Content-Type"))
        self.end_headers()
        try:
            while data := r.read1(65536):
                self.wfile.write(data.replace(b"</body>", b"<input type=image src=/slow></body>"))
        except (BrokenPipeError, ConnectionResetError):
            pass
        c.close()

    def log_message(self, *a):
        pass


class Page(test_serve.Serve):
    def setUp(self):
        super().setUp()
        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        self.proxy.daemon_threads = True
        self.proxy.behind = self.port
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()

    def tearDown(self):
        self.proxy.shutdown()
        self.proxy.server_close()
        super().tearDown()

    def browse(self, *more, at=""):
        home = os.path.join(self.folder.name, "home")
        os.makedirs(home, exist_ok=True)
        argv = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run",
                f"--user-data-dir={home}", *more, f"http://127.0.0.1:{self.proxy.server_port}/{at}"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME=home)).stdout

    def test_the_page_needs_nothing_from_elsewhere(self):
        status, page = self.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertEqual(re.findall(r"(?:src|href)\s*=|@import|url\(|innerHTML|document\.write|eval\(", page), [])
        self.assertEqual([u for u in re.findall(r"https?://[^\"'\s]+", page) if "w3.org/2000/svg" not in u], [])

    @unittest.skipUnless(CHROMIUM, "no chromium")
    @slow
    def test_a_job_has_a_second_level(self):
        """The program as it was sent, the marked line, the judge's words; and the page knows what ended before it."""
        program = "import torch\nsecond line <b>\nthird line\n"
        job = self.ask("POST", "/v1/eval", self.request(program))[1]["jobs"][0]["id"]
        db = sqlite3.connect(self.queue, timeout=30, isolation_level=None)
        verdict = {"task": "t", "status": "failed", "category": "runtime_error", "code": "MC304", "reward": -1,
                   "feedback": "a race, it seems", "place": {"line": 2, "source": "cuda_source", "source_line": 1},
                   "stage_ms": {"compile": 400}, "backend": "sim"}
        db.execute("UPDATE job SET result = ? WHERE id = ?", (json.dumps(verdict), job))
        db.close()
        got = self.ask("GET", f"/v1/jobs/{job}?request=1")[1]
        self.assertEqual((got["request"]["code"], got["request"]["task"]["name"]), (program, "t"))
        self.assertNotIn("request", self.ask("GET", f"/v1/jobs/{job}")[1])
        dom = self.browse("--dump-dom", at=f"#job-{job}")
        self.assertRegex(dom, r'<span class="mark">   2  second line &lt;b&gt;</span>')
        self.assertIn("a race, it seems", dom)
        self.assertRegex(dom, r"line 2 of what was sent, which the compiler calls cuda_source:1")
        self.assertRegex(dom, r'id="newest">.*runtime error MC304')
        task = {"name": "t", "code": self.request("x")["task"]["code"]}
        many = self.ask("POST", "/v1/eval", {"task": task, "candidates": [{"files": {
            "kernel.py": "class ModelNew: pass\n", "b.cu": "first\nsecond <i>\n"}}]})[1]["jobs"][0]["id"]
        db = sqlite3.connect(self.queue, timeout=30, isolation_level=None)
        verdict["place"] = {"line": 2, "source": "b.cu", "source_line": 2, "file": "b.cu"}
        db.execute("UPDATE job SET result = ? WHERE id = ?", (json.dumps(verdict), many))
        db.close()
        dom = self.browse("--dump-dom", at=f"#job-{many}")
        self.assertRegex(dom, r'<span class="mark">   4  #\|second &lt;i&gt;</span>')
        self.assertIn("line 2 of b.cu<", dom)
        shots = os.environ.get("SHOTS", self.folder.name)
        for width in (400, 900, 1600):
            self.browse(f"--window-size={width},1000", f"--screenshot={shots}/job-{width}.png", at=f"#job-{job}")

    @unittest.skipUnless(CHROMIUM, "no chromium")
    def test_it_shows_what_happens_and_executes_nothing(self):
        foul = "<img src=x onerror=\"document.title='owned'\">"
        stop = threading.Event()

        def feed():
            for i in range(500):
                if stop.wait(0.2):
                    return
                task = dict(self.request("x")["task"], name=foul)
                self.ask("POST", "/v1/eval", dict(self.request(f"p{i}"), task=task, run="of " + foul, turn=i % 3 + 1))
                self.ask("POST", "/v1/eval?wait=0", self.request(f"never {i}"))
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            dom = self.browse("--dump-dom")
            shots = os.environ.get("SHOTS", self.folder.name)
            dark = "--blink-settings=preferredColorScheme=0"
            for kind, *flags in (("light", "--window-size=1400,1100"), ("dark", "--window-size=1400,1100", dark),
                                 ("phone", "--window-size=500,2400")):
                self.browse(*flags, f"--screenshot={shots}/dashboard-{kind}.png")
                self.assertGreater(os.path.getsize(f"{shots}/dashboard-{kind}.png"), 20000)
        finally:
            stop.set()
            feeder.join()
        self.assertIn('id="state">live<', dom)
        self.assertIn("<title>musacoder judge</title>", dom)
        self.assertIn("&lt;img src=x", dom)
        self.assertRegex(dom, r'id="runs"><tr><td class="t">of &lt;img[^\n]*100.0 %')
        self.assertNotIn("<img", dom)
        self.assertRegex(dom, r'id="waiting">[1-9]\d*<')
        self.assertRegex(dom, r">never|>waiting<")


del test_serve.Calls, test_serve.Tokens, test_serve.Refusals  # they run in their own file

if __name__ == "__main__":
    unittest.main()
