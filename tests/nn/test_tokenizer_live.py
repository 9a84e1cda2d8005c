"""Live comparison of 'musacoder tokenize' with Hugging Face's tokenizers, where that package can be imported: every
Unicode character, random nasty texts, a tokenizer whose merges make every piece border visible. Skipped otherwise."""
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import make_tokenizer_golden as golden  # noqa: E402

BINARY = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("B", "build"), "musacoder")
SEP = "<|endoftext|>"

try:
    import tokenizers
except ImportError:
    tokenizers = None


def ours(model, data):
    with tempfile.NamedTemporaryFile(suffix=".txt") as f:
        f.write(data)
        f.flush()
        out = subprocess.run([BINARY, "tokenize", "--model", model, f.name], capture_output=True, check=True)
    return json.loads(out.stdout)


def border_tokenizer(regex):
    """Merges of letters, spaces and digits with the first and last byte of other characters show where pieces end."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    byte_char = {}
    extra = 256
    for b in range(256):
        if 33 <= b < 127 or 161 <= b < 173 or 174 <= b:
            byte_char[b] = chr(b)
        else:
            byte_char[b] = chr(extra)
            extra += 1
    lead = [byte_char[b] for b in list(range(0xC2, 0xF5)) + [b for b in range(128) if not chr(b).isalnum()]]
    last = [byte_char[b] for b in range(0x80, 0xC0)]
    merges = [(a, b) for b in lead for a in ("a", byte_char[32])] + [(a, b) for a in last for b in "b1!"]
    vocab = {c: b for b, c in byte_char.items()}
    for a, b in merges:
        vocab.setdefault(a + b, len(vocab))
    tok = Tokenizer(models.BPE(vocab, merges))
    if regex:
        tok.normalizer = normalizers.NFC()
        tok.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(regex), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.add_special_tokens([SEP])
    return tok


@unittest.skipIf(tokenizers is None, "the Python package 'tokenizers' is not installed")
class Live(unittest.TestCase):
    def compare(self, tok, texts):
        data = SEP.join(texts)
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            f.write(tok.to_str())
            f.flush()
            got = ours(f.name, data.encode())
        want = tok.encode(data, add_special_tokens=False).ids
        if got != want:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            self.fail(f"ids differ at {at}: {got[at - 3:at + 5]} != {want[at - 3:at + 5]}: "
                      f"{tok.decode(want[at - 3:at + 5])!r}")

    def test_random(self):
        for name in golden.LAYOUTS:
            self.compare(golden.make(name), golden.nasty_texts() + golden.random_texts(2000, 77))

    def test_borders(self):
        for name, (regex, _) in golden.LAYOUTS.items():
            texts = golden.random_texts(2000, 78)
            for base in [*range(0, 0x3400, 64), *range(0xA000, 0x20000, 64)]:
                chars = [chr(c) for c in range(base, base + 64) if not 0xD800 <= c < 0xE000]
                # U+11938 composes in Unicode 13 and later; the crate behind 'tokenizers' has older tables.
                texts.append("".join(f"a{c}b {c}b {c}1 {c}! \n{c} b a{unicodedata.normalize('NFD', c)}b"
                                     for c in chars if c != "\U00011938"))
            self.compare(border_tokenizer(regex), [t for t in texts if t])

    def test_invalid_bytes(self):
        import random
        rng = random.Random(4)
        tok = golden.make("qwen3")
        data = bytes(rng.choice(b"ab \n\xc3\xa9\xe4\xb8\xad\xf0\x9f\x91\x8d\xff\xed\xa0\x80") for _ in range(20000))
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            f.write(tok.to_str())
            f.flush()
            got = ours(f.name, data)
        self.assertEqual(got, tok.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids)


if __name__ == "__main__":
    unittest.main()
