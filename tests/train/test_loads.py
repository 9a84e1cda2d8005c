"""test_loads.py - what was trained loads in Transformers: folders of llama, qwen2 and qwen3 with random weights that
Transformers wrote take steps of SFT here, and their model folders give the same logits there, and the same ids of a
dialogue. Needs transformers beside PyTorch (tests/adapters/run.sh makes such a Python)."""

import importlib.util
import json
import os
import struct
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
HAVE = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
TEXTS = [("Write a kernel that adds.", "out[i] = x[i] + y[i];"), ("Write a kernel that scales.", "out[i] = x[i] * s;"),
         ("Write a kernel that negates.", "out[i] = -x[i];")]
SHAPE = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 512, "rope_theta": 10000.0}


def musacoder(*args):
    done = subprocess.run([EXE, *args], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise AssertionError(f"{args[0]}: {done.stderr[-2000:]}")


def dialogue(question, answer):
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def write_records(path):
    with open(path, "w", encoding="utf-8") as f:
        for i, (question, answer) in enumerate(TEXTS * 8):
            f.write(json.dumps({"id": f"r{i}", "kind": "generate", "messages": dialogue(question, answer)}) + "\n")


def byte_tokenizer():
    """Each byte is a token, and the tags of the dialogue are."""
    import tokenizers
    import transformers
    words = [*sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), "<|im_start|>", "<|im_end|>"]
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={w: i for i, w in enumerate(words)}, merges=[]))
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    tok = transformers.PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|im_end|>",
                                               additional_special_tokens=["<|im_start|>"])
    tok.chat_template = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
                         "{% endfor %}"
                         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    return tok


def tensor(path, name):
    import torch
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    info = head[name]
    return torch.frombuffer(bytearray(data[slice(*info["data_offsets"])]), dtype=torch.float32).reshape(info["shape"])


@unittest.skipUnless(HAVE, "transformers is not there")
class Loads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.data = os.path.join(cls.folder.name, "train.jsonl")
        write_records(cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def made(self, kind):
        """A folder of the family, as Transformers writes it."""
        import torch
        import transformers
        to = os.path.join(self.folder.name, kind)
        tok = byte_tokenizer()
        config = transformers.AutoConfig.for_model(kind, vocab_size=len(tok), eos_token_id=tok.eos_token_id,
                                                   bos_token_id=tok.eos_token_id, tie_word_embeddings=kind != "llama",
                                                   **SHAPE)
        torch.manual_seed(2)
        transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(to)
        tok.save_pretrained(to)
        return to

    def check(self, kind):
        import torch
        import transformers
        model, run = self.made(kind), os.path.join(self.folder.name, kind + "-run")
        musacoder("sft", "--model", model, "--data", self.data, "--out", run, "--steps", "3", "--lr", "1e-2",
                  "--batch-tokens", "256", "--max-length", "256", "--val-share", "0")
        trained = os.path.join(run, "model")
        tok = transformers.AutoTokenizer.from_pretrained(trained)
        ids = tok.apply_chat_template(dialogue(*TEXTS[0]), return_dict=True)["input_ids"]
        self.assertEqual(ids, transformers.AutoTokenizer.from_pretrained(model).apply_chat_template(
            dialogue(*TEXTS[0]), return_dict=True)["input_ids"])
        tokens, out = os.path.join(run, "ids.json"), os.path.join(run, "logits.safetensors")
        with open(tokens, "w", encoding="utf-8") as f:
            json.dump(ids, f)
        musacoder("logits", "--model", trained, "--tokens", tokens, "--out", out)
        ours = tensor(out, "logits")
        with torch.no_grad():
            theirs, before = (transformers.AutoModelForCausalLM.from_pretrained(
                m, dtype=torch.float32, attn_implementation="eager")(torch.tensor([ids])).logits[0]
                for m in (trained, model))
        scale = theirs.abs().max()
        self.assertGreater((theirs - before).abs().max(), 0.01 * scale)  # it has learned something
        self.assertLess((ours - theirs).abs().max(), 1e-5 * scale)

    def test_llama(self):
        self.check("llama")

    def test_qwen2(self):
        self.check("qwen2")

    def test_qwen3(self):
        self.check("qwen3")


if __name__ == "__main__":
    unittest.main()
