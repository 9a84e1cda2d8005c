"""test_base.py - recipes/smollm2-small.yaml from a tiny random Llama folder with SmolLM2's kind of tokenizer, a
template with a default system message and no generation_config.json: a base that cannot be trained from is refused
before anything is made. slow_base.py runs every stage."""
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE") or os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
WIDTH, INNER, ROWS, LAYERS = 32, 48, 960, 2
SMALL = ["synth.tasks=60", "synth.heldout=1", "synth.prompts=8", "synth.verify-share=0", "synth.knowledge=20",
         "synth.max-program=1500", "sft.steps=2", "sft.batch-tokens=2048", "rft.mix=knowledge=0.1", "bench.limit=2",
         "rl_single.steps=1", "rl_multi.steps=1"]


def tensors():
    """Names and shapes of the weights, in Transformers' names."""
    out = {"model.embed_tokens.weight": (ROWS, WIDTH), "model.norm.weight": (WIDTH,)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        out.update({at + "input_layernorm.weight": (WIDTH,), at + "post_attention_layernorm.weight": (WIDTH,),
                    at + "self_attn.q_proj.weight": (WIDTH, WIDTH), at + "self_attn.k_proj.weight": (16, WIDTH),
                    at + "self_attn.v_proj.weight": (16, WIDTH), at + "self_attn.o_proj.weight": (WIDTH, WIDTH),
                    at + "mlp.gate_proj.weight": (INNER, WIDTH), at + "mlp.up_proj.weight": (INNER, WIDTH),
                    at + "mlp.down_proj.weight": (WIDTH, INNER)})
    return out


def make_base(folder):
    draw, head, body = random.Random(3), {}, b""
    for name, shape in tensors().items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        x = [1.0] * n if len(shape) == 1 else [draw.gauss(0, 0.1) for _ in range(n)]
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * n]}
        body += struct.pack(f"<{n}f", *x)
    text = json.dumps(head).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)
    config = {"model_type": "llama", "vocab_size": ROWS, "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": LAYERS, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_theta": 100000.0,
              "tie_word_embeddings": True, "max_position_embeddings": 8192}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    system = "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nHelp.<|im_end|>\n{% endif %}"
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"model_max_length": 10**30, "chat_template": system}, f)
    shutil.copy(os.path.join(ROOT, "tests/nn/data/tok_smollm.json"), os.path.join(folder, "tokenizer.json"))


def run(base, out, *more):
    sets = [w for s in SMALL for w in ("--set", s)]
    return subprocess.run([EXE, "run", os.path.join(ROOT, "recipes/smollm2-small.yaml"), "--out", out, "--set",
                           f"model={base}", *sets, *more], capture_output=True, text=True)


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.base, self.out = os.path.join(self.dir, "base"), os.path.join(self.dir, "run")
        make_base(self.base)


class Base(Folder):
    def test_a_base_that_cannot_be_trained_from_is_refused_first(self):
        os.remove(os.path.join(self.base, "model.safetensors"))
        p = run(self.base, self.out)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("model.safetensors", p.stderr)
        self.assertFalse(os.path.exists(self.out))
        p = run("base:no-such-model", self.out)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("make base", p.stderr)


if __name__ == "__main__":
    unittest.main()
