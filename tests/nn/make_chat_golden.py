"""make_chat_golden.py - what Qwen's chat templates make of dialogues, as Jinja renders them.

    make_chat_golden.py TEMPLATES [> tests/nn/data/chat_golden.jsonl]

TEMPLATES is a folder with qwen3.jinja, qwen3_5_think.jinja, qwen3_5_nothink.jinja and qwen3_6.jinja (the chat_templates
of the package 'trl' 1.16 are the published ones). A line: template, messages, think (null: not asked), generate, text.
test_chat.c must give the ids of that text. Needs jinja2.
"""
import json
import os
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

NAMES = ["qwen3", "qwen3_5_think", "qwen3_5_nothink", "qwen3_6"]
USERS = ["hi", "", "\n\nblank lines first", "  spaces  ", "e\u0301 \u6df1\u5ea6\u3000", "x\n", "\r\ncrlf\r\n",
         "\u00a0no\u2003break\u0085", "__global__ void f(float *x)\n{\n    x[0] = 1;\n}\n"]
ANSWERS = ["done", "  indented\n", "\n\nlines", "<think>\nfirst, then\n\nsecond\n</think>\n\nanswer",
           "<think>\n\n</think>\n\nanswer", "<think> a </think> b", "x</think>y",
           "<think>one</think>two</think>\n\nthree",
           "```python\nclass ModelNew:\n    pass\n```\n"]


def fail(text):
    raise jinja2.TemplateError(text)


def dialogues():
    for i, user in enumerate(USERS):
        system = [{"role": "system", "content": " You write CUDA.\n"}] if i % 2 else []
        asked = system + [{"role": "user", "content": user}]
        for think in (None, True, False):
            yield asked, think, True
    for i, answer in enumerate(ANSWERS):
        asked = [{"role": "user", "content": USERS[i]}]
        said = asked + [{"role": "assistant", "content": answer}]
        yield said, None, False
        yield said + [{"role": "user", "content": " and now? "}], None, True  # thinking of earlier turns goes
        yield said + [{"role": "user", "content": "again"},
                      {"role": "assistant", "content": ANSWERS[i - 1]}], None, False


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.globals["raise_exception"] = fail
    for name in NAMES:
        template = env.from_string(open(os.path.join(sys.argv[1], name + ".jinja")).read())
        for messages, think, generate in dialogues():
            extra = {} if think is None else {"enable_thinking": think}
            text = template.render(messages=messages, add_generation_prompt=generate, **extra)
            print(json.dumps({"template": name, "messages": messages, "think": think, "generate": generate,
                              "text": text}))


main()
