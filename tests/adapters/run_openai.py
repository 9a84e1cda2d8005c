"""run_openai.py - OpenAI's own client against 'musacoder serve --model DIR': answers, streams, errors."""

import os
import signal
import subprocess
import sys
import tempfile

import judge

try:
    import openai
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(judge.SKIP)

sys.path.insert(0, os.path.join(judge.ROOT, "tests/chat"))
from test_chat import HI, make_model  # noqa: E402


def check(client):
    assert [m.id for m in client.models.list()] == ["tiny"]
    ask = dict(model="tiny", messages=HI, seed=5, max_completion_tokens=16, n=2, logprobs=True)
    whole = client.chat.completions.create(**ask, extra_body={"return_token_ids": True})
    u = whole.usage
    assert len(whole.choices) == 2 and u.total_tokens == u.prompt_tokens + u.completion_tokens
    assert len(whole.choices[0].logprobs.content) == len(whole.choices[0].token_ids), whole.choices[0]
    texts, last = ["", ""], None
    for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
        last = chunk
        for c in chunk.choices:
            texts[c.index] += c.delta.content or ""
    assert texts == [c.message.content for c in whole.choices], texts
    assert last.usage == whole.usage, last
    plain = client.completions.create(model="tiny", prompt=["a", "b"], max_tokens=4, logprobs=0, temperature=0)
    assert len(plain.choices) == 2 and len(plain.choices[0].logprobs.token_logprobs) <= 4
    for more, kind in (({"temperature": 1000}, openai.BadRequestError), ({"model": "other"}, openai.NotFoundError)):
        try:
            client.chat.completions.create(**dict(ask, **more))
            raise AssertionError(f"{more} was answered")
        except kind as e:
            assert e.body["message"] and e.body["type"] == "invalid_request_error", e.body


def main():
    with tempfile.TemporaryDirectory() as folder:
        model, _ = make_model(folder)
        server = subprocess.Popen([os.path.join(judge.BUILD, "musacoder"), "serve", "--queue", folder + "/q.db",
                                   "--port",
                                   "0", "--workers", "0", "--model", model], stderr=subprocess.PIPE, text=True)
        server.stderr.readline()
        url = server.stderr.readline().split(",")[0].split("serve: ")[1]
        try:
            check(openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0))
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0
    print(f"ok openai {openai.__version__}: whole answers, streams, log-probabilities, refusals")


if __name__ == "__main__":
    main()
