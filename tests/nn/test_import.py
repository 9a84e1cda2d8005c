"""test_import.py - setup/import_gguf.py on small GGUF files made here: every weight is where Transformers has it, q
and k of the llama family in their own order again, quantised weights as the numbers they stand for, the
tokenizer's ids, and what is refused leaves no folder. Skipped where the converter's Python is not set up
('setup/import.sh --venv')."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("MUSACODER_DATA_DIR") or os.path.join(
    os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "musacoder")
PY = os.environ.get("MUSACODER_IMPORT_PYTHON") or os.path.join(DATA, "import/bin/python")
EXE = os.environ.get("MUSACODER_EXE") or os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")
FIXTURES = os.path.join(ROOT, "tests/nn/fixtures/model")

# Runs under the converter's Python: FIXTURE OUT.gguf FAMILY PRE [quantise]. Names and the order of q and k rows are
# llama.cpp's, as its convert_hf_to_gguf.py writes them.
MAKE = r'''
import json, struct, sys
import gguf, numpy
folder, out, family, pre = sys.argv[1:5]
quantise = "quantise" in sys.argv[5:]
config = json.load(open(folder + "/config.json"))
raw = open(folder + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
         "lm_head.weight": "output.weight"}
def permute(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)
w = gguf.GGUFWriter(out, "gemma" if "gemma" in sys.argv else family)
heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
w.add_block_count(config["num_hidden_layers"]); w.add_context_length(config["max_position_embeddings"])
w.add_embedding_length(config["hidden_size"]); w.add_feed_forward_length(config["intermediate_size"])
w.add_head_count(heads); w.add_head_count_kv(kv); w.add_layer_norm_rms_eps(config["rms_norm_eps"])
w.add_rope_freq_base(config["rope_parameters"]["rope_theta"]); w.add_license("apache-2.0")
dim = config.get("head_dim") or config["hidden_size"] // heads
w.add_key_length(dim); w.add_value_length(dim)
tok = json.load(open(sys.argv[-1]))
vocab = sorted(tok["model"]["vocab"].items(), key=lambda x: x[1])
added = {a["id"]: a for a in tok["added_tokens"]}
tokens = {i: t for t, i in vocab}; tokens.update({i: a["content"] for i, a in added.items()})
w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre(pre)
w.add_token_list([tokens[i] for i in range(len(tokens))])
w.add_token_types([3 if i in added else 1 for i in range(len(tokens))])
w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tok["model"]["merges"]])
w.add_eos_token_id(2)
for name, t in head.items():
    if name == "__metadata__": continue
    a, b = t["data_offsets"]
    x = numpy.frombuffer(raw[8 + n + a:8 + n + b], dtype=numpy.float32).reshape(t["shape"])
    part = name.split(".")
    if family == "llama" and part[-2] in ("q_proj", "k_proj"):
        x = permute(x, heads if part[-2] == "q_proj" else kv)
    at = whole.get(name) or f"blk.{part[2]}.{names['.'.join(part[3:-1])]}.{part[-1]}"
    if quantise and x.ndim == 2 and x.shape[1] % 32 == 0:
        kind = gguf.GGMLQuantizationType.Q8_0
        w.add_tensor(at, gguf.quants.quantize(x, kind), raw_dtype=kind)
    else:
        w.add_tensor(at, numpy.ascontiguousarray(x))
if "experts" in sys.argv: w.add_tensor("blk.0.ffn_gate_exps.weight", numpy.zeros((2, 32), dtype=numpy.float32))
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
'''

# Runs under the converter's Python: SETUP FILE.gguf FOLDER COUNT. Copies of the file with a cut or with bytes changed,
# half of them where its fields are; prints what became of each: imported, refused, or what it should not have said.
ALTER = r'''
import contextlib, io, os, random, shutil, sys
sys.path.insert(0, sys.argv[1])
import import_gguf
with open(sys.argv[2], "rb") as f:
    whole = f.read()
folder, file = sys.argv[3] + "/out", sys.argv[3] + "/altered.gguf"
for i in range(int(sys.argv[4])):
    draw, b = random.Random(i), bytearray(whole)
    if i % 8 == 0:
        b = b[:draw.randrange(len(b))]
    for _ in range(draw.choice((1, 1, 2, 8)) if b else 0):
        b[draw.randrange(min(len(b), 20000))] = draw.choice((0, 255, draw.randrange(256)))
    with open(file, "wb") as f:
        f.write(b)
    shutil.rmtree(folder, ignore_errors=True)
    sys.argv[1:] = [file, folder]
    said = "imported"
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            import_gguf.main()
    except SystemExit as e:
        said = str(e.code)
        good = said.startswith("import: ") and "\n" not in said and not os.path.exists(folder)
        said = "refused" if good else said
    except Exception as e:
        said = f"{i}: {e!r}"
    print(said)
'''


def tensors(folder):
    """Names, shapes and numbers of a folder's one file, fp32 or bf16."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__":
            data = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
            if t["dtype"] == "BF16":
                data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
            out[name] = (t["shape"], struct.unpack(f"<{len(data) // 4}f", data))
    return out


def converts():
    try:
        return subprocess.run([PY, "-c", "import gguf, numpy"], capture_output=True).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(converts(), "no Python for the converter: setup/import.sh --venv makes it")
class Import(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def make(self, fixture, family, pre, *more):
        out = os.path.join(self.dir, "m.gguf")
        tok = os.path.join(ROOT, "tests/nn/data", {"smollm": "tok_smollm.json"}.get(pre, "tok_gpt2.json"))
        subprocess.run([PY, "-c", MAKE, fixture, out, family, pre, *more, tok], check=True, capture_output=True)
        return out

    def convert(self, file):
        folder = os.path.join(self.dir, "folder")
        argv = [PY, os.path.join(ROOT, "setup/import_gguf.py"), file, folder]
        p = subprocess.run(argv, capture_output=True, text=True)
        return p, folder

    def fixture(self, name):
        """The fixture without Llama 3's scaling, which GGUF files have for 8,192 positions alone."""
        folder = os.path.join(self.dir, "plain")
        shutil.copytree(os.path.join(FIXTURES, name), folder, ignore=shutil.ignore_patterns("golden*"))
        return folder

    def test_weights_are_where_they_were(self):
        for name, family in (("llama", "llama"), ("qwen2", "qwen2")):
            with self.subTest(name):
                shutil.rmtree(os.path.join(self.dir, "plain"), ignore_errors=True)
                source = self.fixture(name)
                p, folder = self.convert(self.make(source, family, "gpt-2"))
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(tensors(folder), tensors(source))  # the fixtures' weights are numbers of bf16
                with open(os.path.join(folder, "config.json")) as f:
                    config = json.load(f)
                with open(os.path.join(source, "config.json")) as f:
                    was = json.load(f)
                for key in ("model_type", "hidden_size", "num_attention_heads", "num_key_value_heads", "rms_norm_eps",
                            "intermediate_size", "vocab_size", "tie_word_embeddings", "num_hidden_layers"):
                    self.assertEqual(config[key], was[key], key)
                self.assertEqual(config["rope_theta"], was["rope_parameters"]["rope_theta"])
                shutil.rmtree(folder)

    def test_altered_files_are_refused_in_one_line(self):
        file, n = self.make(self.fixture("llama"), "llama", "gpt-2"), 48
        p = subprocess.run([PY, "-c", ALTER, os.path.join(ROOT, "setup"), file, self.dir, str(n)], capture_output=True,
                           text=True)
        said = p.stdout.splitlines()
        self.assertEqual(len(said), n, p.stderr)
        self.assertLessEqual(set(said), {"imported", "refused"})
        self.assertGreater(said.count("refused"), n // 2)

    def test_nothing_stays_of_the_model_that_was_there(self):
        file = self.make(self.fixture("llama"), "llama", "gpt-2")
        folder = os.path.join(self.dir, "folder")
        os.makedirs(folder)
        for name in ("model.safetensors.index.json", "model-00001-of-00002.safetensors", "notes.txt"):
            with open(os.path.join(folder, name), "w") as f:
                f.write("{}")
        self.assertEqual(self.convert(file)[0].returncode, 0)
        self.assertEqual({n for n in os.listdir(folder) if "model" in n or "notes" in n},
                         {"model.safetensors", "notes.txt"})

    def test_quantised_weights_are_near(self):
        source = self.fixture("qwen2")
        p, folder = self.convert(self.make(source, "qwen2", "gpt-2", "quantise"))
        self.assertEqual(p.returncode, 0, p.stderr)
        there, apart = tensors(source), 0
        for name, (shape, x) in tensors(folder).items():
            self.assertEqual(shape, there[name][0])
            top = max(abs(v) for v in there[name][1])
            worst = max(abs(a - b) for a, b in zip(x, there[name][1])) / top
            self.assertLess(worst, 0.02, name)  # 1/254 of a block's largest, and a rounding to bf16
            apart += worst > 0
        self.assertGreater(apart, 0)

    def test_ids_are_the_tokenizers(self):
        file, folder = self.make(self.fixture("qwen2"), "qwen2", "smollm"), os.path.join(self.dir, "out")
        p = subprocess.run([EXE, "import", file, "--out", folder], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        again = subprocess.run([EXE, "import", file, "--out", folder], capture_output=True, text=True)
        self.assertIn("is there already", again.stderr)
        self.assertNotEqual(again.returncode, 0)
        text = os.path.join(self.dir, "text")
        with open(text, "w") as f:
            f.write("float x[1024]; <|im_start|> y = 3.14159f * 42;\n")
        ids = [subprocess.run([EXE, "tokenize", "--model", model, text], capture_output=True, text=True).stdout
               for model in (folder, os.path.join(ROOT, "tests/nn/data/tok_smollm.json"))]
        self.assertEqual(*ids)
        self.assertGreater(len(ids[0]), 50)
        with open(os.path.join(folder, "README.md")) as f:
            self.assertIn("sha256", f.read())

    def test_refused_without_a_folder(self):
        source = self.fixture("qwen2")
        for pre, more, word in (("tekken", (), "tekken"), ("gpt-2", ("experts",), "ffn_gate_exps"),
                                ("gpt-2", ("gemma",), "gemma"), (None, (), "no GGUF file")):
            p, folder = self.convert(self.make(source, "qwen2", pre, *more) if pre else __file__)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(word, p.stderr)
            self.assertFalse(os.path.exists(folder))


class Folders(unittest.TestCase):
    """setup/import.sh with a converter that writes a file's text, and the rest of it once another has begun."""
    CONVERTER = """#!/bin/sh
[ "$1" = -c ] && exit 0
cp "$2" "$3/config.json" && touch "$2.begun"
for k in $(seq 600); do [ -f "$OTHER.begun" ] && break; sleep 0.1; done
cp "$2" "$3/model.safetensors"
"""

    def test_two_at_once_make_one_whole_model(self):
        with tempfile.TemporaryDirectory() as folder:
            python = os.path.join(folder, "data/import/bin/python")
            os.makedirs(os.path.dirname(python))
            for name, text in ((python, self.CONVERTER), ("a", "a"), ("b", "b")):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
            os.chmod(python, 0o755)
            calls = [subprocess.Popen([os.path.join(ROOT, "setup/import.sh"), a, "m"], cwd=folder, text=True,
                                      env=dict(os.environ, MUSACODER_DATA_DIR=os.path.join(folder, "data"), OTHER=b),
                                      stderr=subprocess.PIPE) for a, b in (("a", "b"), ("b", "a"))]
            said = [p.communicate()[1] for p in calls]
            self.assertEqual(sorted(p.returncode for p in calls), [0, 3], said)
            self.assertIn("'m' is there by now", "".join(said))
            with open(folder + "/m/config.json") as f, open(folder + "/m/model.safetensors") as g:
                self.assertEqual(f.read(), g.read())


if __name__ == "__main__":
    sys.exit(unittest.main())
