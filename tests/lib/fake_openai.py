"""fake_openai.py - a server of the test's own that speaks OpenAI's chat completions as a plan says.

Server(plan): each request takes the next step of the plan. (TEXT, True) streams the text and ends; (TEXT, False)
breaks off; None is never answered; a number is refused with that status. An empty plan answers 400, which is final.
asked holds the requests, each with 'key', its Authorization. Usable in a with statement, which ends it."""

import http.server
import json
import threading


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, plan):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.asked, self.never = list(plan), [], threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *args):
        self.shutdown()
        self.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, {"data": [{"id": "tiny"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(dict(asked, key=self.headers.get("Authorization")))
        say = self.server.plan.pop(0) if self.server.plan else 400
        if say is None:
            self.server.never.wait()
            return
        if isinstance(say, int):
            self.answer(say, {"error": {"message": "no more"}}, Retry_After="1")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        text, whole = say
        for i in range(0, len(text), 100):
            self.say({"choices": [{"delta": {"content": text[i:i + 100]}}]})
        if whole:
            self.say({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            self.say({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 42}})
            self.wfile.write(b"data: [DONE]\n\n")

    def say(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")


def fenced(program):
    return "<think>Hm.</think>Here it is:\n```python\n" + program + "```\n"
