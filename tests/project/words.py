"""words.py - comments of src/: one style, and the glossary's words in place of the private ones that went."""

import re

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", re.S)
# What each was: a device context, a rollout engine, a prompt format; a recording; a client library; to bind.
STRANGE = re.compile(r"\b(?:drawers?|desks?|voices?)\b|\b(?:a|the|this|each|whole|next|one|second) life\b|"
                     r"\b(?:a|the|its|another) front\b(?! end)|\b(?:lays|laid)\b(?! out| (?:\w+ ){1,2}out)", re.I)


def comments(text):
    return [m.group(0) for m in TOKEN.finditer(text) if m.group(0)[:2] in ("/*", "//")]


def slashes(name, text):
    return [f"{name}: {c}" for c in comments(text) if c.startswith("//")]


def strange(name, texts):
    return [f"{name}: {m.group(0)}" for text in texts for m in STRANGE.finditer(text)]
