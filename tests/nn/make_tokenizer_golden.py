#!/usr/bin/env python3
"""Makes the tokenizer fixtures: small tokenizer.json files in the Qwen3, Qwen3.5, GPT-2 and SmolLM2 layouts,
and golden ids.

The ids come from Hugging Face's 'tokenizers', which our C code must equal. Run it in an environment that has that
package:  python3 tests/nn/make_tokenizer_golden.py   (writes tests/nn/data/). nasty_texts() also feeds the live
comparison in test_tokenizer_live.py.
"""
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
ROOT = os.path.dirname(os.path.dirname(HERE))

HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN3 = HEAD + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN35 = HEAD + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL

KERNEL = r'''#include <torch/extension.h>
template <typename scalar_t, int BLOCK>
__global__ void softmax_rows(const scalar_t* __restrict__ x, scalar_t* y, int64_t n, float scale) {
    __shared__ float buf[BLOCK + 1];
    int row = blockIdx.x, tid = threadIdx.x;	// tab
    float m = -INFINITY;
    for (int i = tid; i < n; i += blockDim.x) m = fmaxf(m, (float)x[row * n + i]);
    for (int off = 16; off > 0; off >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, off));
    if (!(tid & 31)) buf[tid >> 5] = m;
    __syncthreads();
    y[row * n + tid] = (scalar_t)expf(scale * (m - 1.0e-5f)) / 3.14159f;
}
softmax_rows<float, 256><<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y, n, 1.f);
TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor; it's not, I'll say: don't");
'''

PYTHON = '''import torch, torch.nn as nn
from torch.utils.cpp_extension import load_inline
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(1_024, 0x7F))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ self.w.t(), dim=-1)
'''

PROSE = ("The quick brown fox doesn't jump; it'LL fly, WE'VE seen. 深度学习模型可以编写内核。日本語のテキスト、カタカナ。한국어 문장입니다. "
         "Привет, мир! Ελληνικά. عربى. हिन्दी में पाठ। ภาษาไทย naïve café résumé. 123 4567 ٣٤٥ ⅷ ² ½\n")


def nasty_texts():
    """Short texts that have broken tokenizers before."""
    t = [
        "", " ", "  ", "\n", "\r", "\r\n", "\n\n\n", " \n", "\n ", "\t\t", " \t \n \t x", "a", "ab", " a", "a ",
        "  a  b  ",
        KERNEL, PYTHON, PROSE, KERNEL.replace("\n", "\r\n"), KERNEL.replace("\n", "\r"), PYTHON.replace("    ", "\t"),
        "I'm you're he's we'll they'd I've can't I'M YOU'RE HE'S WE'LL THEY'D I'VE CAN'T 'S'T'RE'VE'M'LL'D '' 'x 's",
        "it'\u017f it'\u017fx '\u017f\u017f \u212a '\u212a K",            # long s under caseless matching, Kelvin sign
        "a\u00a0b \u00a0c\u00a0 \u00a0\u00a0d", "\u3000全角　空白",
        "\u2003em\u2009thin\u200bzero\u2028line\u2029para\u0085nel",
        "\u180emongolian\u180e\u180e vowel\ufeffbom", "\x1c\x1d\x1e\x1f\x0b\x0c control \x00 nul \x7f\x80\x9f",
        "e\u0301 e\u0301\u0301 a\u0323\u0307 a\u0307\u0323 \u1e69 s\u0323\u0307 \u0344 \u0340 \u212b \u2126 \ufb01 "
        "\u0958",
        "\u0301start", "x\u0301\u0302\u0303\u0304y z\u0338 \u0338= =\u0338",
        "\u1100\u1161\u11a8 \uac00\u11a8 \u1100\u1161 \uac01",
        "\u0915\u093c \u0928\u093f \u0e01\u0e33 \u0bc6\u0bbe \u0bca", "नमस्ते दुनिया ् ा", "עִבְרִית שָׁלוֹם",
        "Việt Nam Tiê\u0301ng",
        "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 1️⃣ ❤️ 😀😀😀", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𐍈 𠀀𠀁 \U0010ffff \U000e0001",
        "١٢٣ 一二三 ⅣⅤ ①② ½¾ 1,234.56e-10 0xDEADBEEF 1_000", "!!!??? ... --- ===> <<<>>> ++--**//", "a.b,c;d:e!f?g",
        "\ufffd\ufffd \ufffdx", "x = \"\\u00e9\\n\";", "\n\n  \n\t\n    indented\n\n", "trailing   ", "   \n",
        " \r \n \r\n\r ",
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", "<|im_end|><|im_end|>",
        "<|im_end",
        "<|im_start|><|im_start|>  <|endoftext|>x<|endoftext|>", "x<think>y</think>z <think >", "e<|im_end|>\u0301",
        "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "a<mask> b  <mask>  c<mask>",
        "foowordfoo word,word _word wordé",
        "NORME\u0301 x NORMÉ", "\u01c4\u01c5\u01c6 ß ẞ İ ı ŉ ǰ ﬅ",
        "\u0378 \U0001fae8 \u0cf3 \U00011f00 \U0001e4d0 unassigned then new",
        "_ __init__ _a a_ \u203f\u2040 ª º ʰ ᵃ ⁿ ₙ", "\u00ad soft\u00adhyphen \u200c\u200d joiners \u2066x\u2069",
        " " * 50, " " * 51 + "x", "x" * 200, "ab" * 300, "中" * 100, "\n" * 70, "\r\n" * 40, "\t" * 45 + "y", "=" * 120,
        "é" * 60,
    ]
    return t


def random_texts(n, seed):
    rng = random.Random(seed)
    alphabet = ["a", "b", "S", "s", "'", "'", " ", " ", "  ", "\n", "\r", "\t", "1", "9", ".", "{", "(", "_", "\u00a0",
                "\u0301", "\u0323",
                "é", "中", "が", "か\u3099", "\u017f", "👍", "\u200d", "🏽", "\u3000", "\u0915", "\u093c", "\u1100",
                "\u1161", "\u11a8", "<|im_end|>",
                "<think>", "<|", "|>", "\u2028", "\x85", "ſ", "İ", "ll", "RE", "float", "int ", "__", "if (", "\u0378",
                "\U0001d7d9", "\ufffd"]
    return ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40))) for _ in range(n)]


def every_char(step=1):
    """Every Unicode scalar value once, in contexts that show its class."""
    out = []
    for base in range(0, 0x110000, 64):
        cps = [c for c in range(base, base + 64, step) if not 0xD800 <= c < 0xE000]
        out.append("".join("a" + chr(c) + "b " + chr(c) + "1" + chr(c) + chr(c) for c in cps))
    return [t for t in out if t]


def added(content, special, **more):
    return dict(content=content, special=special, normalized=more.pop("normalized", False), **more)


LAYOUTS = {
    "qwen3": (QWEN3, [added("<|endoftext|>", True), added("<|im_start|>", True), added("<|im_end|>", True),
                      added("<tool_call>", False), added("</tool_call>", False), added("<think>", False),
                      added("</think>", False)]),
    "qwen35": (QWEN35, [added("<|endoftext|>", True), added("<|im_start|>", True), added("<|im_end|>", True),
                        added("<think>", False), added("</think>", False),
                        added("<mask>", True, lstrip=True, rstrip=True),
                        added("word", False, single_word=True), added("NORM\u00c9", False, normalized=True)]),
    "gpt2": (None, [added("<|endoftext|>", True)]),
    "smollm": ("digits", [added("<|endoftext|>", True), added("<|im_start|>", True), added("<|im_end|>", True)]),
}


def make(name):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers import pre_tokenizers, processors, trainers
    regex, extra = LAYOUTS[name]
    tok = Tokenizer(models.BPE())
    if regex == "digits":
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                     pre_tokenizers.ByteLevel(add_prefix_space=False)])
    elif regex:
        tok.normalizer = normalizers.NFC()
        tok.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(regex), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    corpus = [KERNEL, PYTHON, PROSE] * 3 + nasty_texts() + random_texts(300, 5)
    trainer = trainers.BpeTrainer(vocab_size=900, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator([t for t in corpus if "<|" not in t], trainer)
    for a in extra:
        a = dict(a)
        special = a.pop("special")
        (tok.add_special_tokens if special else tok.add_tokens)([AddedToken(a.pop("content"), special=special, **a)])
    return tok


def string_merges(text):
    """The older spelling of merges: "a b" instead of ["a", "b"]."""
    doc = json.loads(text)
    doc["model"]["merges"] = [" ".join(m) for m in doc["model"]["merges"]]
    return json.dumps(doc, ensure_ascii=False)


def main():
    os.makedirs(DATA, exist_ok=True)
    golden = []
    for name in LAYOUTS:
        tok = make(name)
        text = tok.to_str(pretty=False)
        if name == "gpt2":
            text = string_merges(text)
        with open(os.path.join(DATA, f"tok_{name}.json"), "w", encoding="utf-8") as f:
            f.write(text)
        texts = nasty_texts() + random_texts(60, 9)
        for special in (True, False):
            tok.encode_special_tokens = not special
            for t in texts if special else [t for t in texts if "<" in t or "word" in t]:
                golden.append({"tok": name, "mode": "special" if special else "markup", "text": t,
                               "ids": tok.encode(t, add_special_tokens=False).ids})
    with open(os.path.join(DATA, "tokenizer_golden.jsonl"), "w", encoding="utf-8") as f:
        for g in golden:
            f.write(json.dumps(g, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(f"{len(golden)} golden cases")


if __name__ == "__main__":
    sys.exit(main())
