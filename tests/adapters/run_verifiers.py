"""run_verifiers.py - vf-eval over the judge's taskset with a chat server of the test's own: rewards for what is scored,
an error and no reward for what is not."""

import glob
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

import judge

try:
    import verifiers
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)


class Chat(http.server.BaseHTTPRequestHandler):
    """Says what the prompt says; streams when it is asked to."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = self.says(body["messages"][-1]["content"])
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "x", "created": 1, "model": "m"}
        if body.get("stream"):
            chunks = [dict(head, object="chat.completion.chunk", choices=[
                {"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": None}]),
                dict(head, object="chat.completion.chunk", choices=[
                    {"index": 0, "delta": {}, "finish_reason": "stop"}]),
                dict(head, object="chat.completion.chunk", choices=[], usage=usage)]
            text = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
            kind = "text/event-stream"
        else:
            kind = "application/json"
            text = json.dumps(dict(head, object="chat.completion", usage=usage, choices=[
                {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def says(self, content):
        return content if isinstance(content, str) else content[0]["text"]

    def log_message(self, *a):
        pass


def main():
    chat = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=chat.serve_forever, daemon=True).start()
    with judge.running(), tempfile.TemporaryDirectory() as folder:
        tasks = os.path.join(folder, "tasks.jsonl")
        with open(tasks, "w") as f:
            for kind in ("passed", "correctness_error", "infra", "unsupported"):
                f.write(json.dumps({"prompt": f"say {kind}", "task_code": judge.TASK}) + "\n")
        env = dict(os.environ, OPENAI_API_KEY="none", PYTHONPATH=os.path.join(judge.ROOT, "python"),
                   PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
        got = subprocess.run([os.path.join(os.path.dirname(sys.executable), "vf-eval"), "musacoder_verifiers",
                              "--env.taskset.path", tasks, "--env.agent.harness.id", "null",
                              "--env.agent.runtime.type", "subprocess", "-m", "m", "-r", "1", "--no-push",
                              "--client.base-url",
                              f"http://127.0.0.1:{chat.server_port}/v1", "--client.api-key-var", "OPENAI_API_KEY"],
                             cwd=folder, env=env, capture_output=True, text=True, timeout=600)
        print(got.stdout[-3000:], got.stderr[-3000:], file=sys.stderr)
        traces = [json.loads(line) for path in glob.glob(folder + "/**/traces.jsonl", recursive=True)
                  for line in open(path)]
        assert len(traces) == 4, len(traces)
        rewards = {}
        for episode in traces:
            kind, t = episode["task"]["data"]["prompt"].split()[1], episode["traces"][0]
            given = [r for r in (t.get("rewards") or {}).values() if r is not None]
            scores = [r["score"] if isinstance(r, dict) else r for r in given]
            rewards[kind] = (sum(scores) if scores else None, bool(episode["errors"] or t.get("errors")))
        print(rewards, file=sys.stderr)
        assert rewards == {"passed": (1.0, False), "correctness_error": (-0.25, False), "infra": (None, True),
                           "unsupported": (None, True)}, rewards
        print(f"ok verifiers {verifiers.__version__}: 4 rollouts, 2 rewards, 2 errors for what is not scored")


if __name__ == "__main__":
    main()
