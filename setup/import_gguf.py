"""import_gguf.py - a GGUF file of a llama, qwen2 or qwen3 model as a Hugging Face folder: weights in bf16,
configuration, tokenizer and a model card. Called by import.sh ('musacoder import', 'make base').

    import_gguf.py FILE.gguf FOLDER [--source TEXT]

llama.cpp keeps the q and k rows of the llama family in the order of its own rotation; here they get back the order of
Transformers. Quantised weights become the numbers that they stand for, rounded to bf16: what quantising lost stays
lost.
The chat template is the one that musacoder trains: ChatML without a system message that nobody wrote.
What is not understood (another family, another tokenizer, tensors of experts) is refused before anything is written.
Needs numpy and gguf.
"""
import argparse
import contextlib
import hashlib
import json
import os
import re
import struct
import sys

import gguf
import numpy

FAMILIES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
         "output.weight": "lm_head.weight"}
ROPE = "rope_freqs.weight"
QWEN2_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
               r"|\s+(?!\S)|\s+")
LLAMA3_SPLIT = QWEN2_SPLIT.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
NORMAL, CONTROL, USER = 1, 3, 4  # types of tokens in the file
SHARD = 4 << 30  # bytes
WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
TEMPLATE = ("{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
            "{%- endif %}")


def refuse(why):
    sys.exit(f"import: {why}")


class Source:
    """The file's fields, by the name of the family where that is a part of them."""

    def __init__(self, path):
        try:
            self.reader = gguf.GGUFReader(path)
        except (ValueError, OSError) as e:
            refuse(f"'{path}' is no GGUF file that can be read: {e}")
        self.family = self.get("general.architecture")
        if self.family not in FAMILIES:
            refuse(f"a GGUF of '{self.family}' is not supported; 'llama', 'qwen2' and 'qwen3' are")

    def get(self, key, default=None):
        field = self.reader.get_field(key)
        return default if field is None else field.contents()

    def own(self, key, default=None):
        value = self.get(f"{self.family}.{key}", default)
        if value is None:
            refuse(f"the file does not say '{self.family}.{key}'")
        return value


def name_of(tensor):
    """Transformers' name; None: no weight."""
    if tensor in WHOLE or tensor == ROPE:
        return WHOLE.get(tensor)
    part = tensor.split(".")
    if len(part) != 4 or part[0] != "blk" or part[2] not in NAMES or part[3] not in ("weight", "bias"):
        refuse(f"tensor '{tensor}' belongs to no model that is supported")
    return f"model.layers.{part[1]}.{NAMES[part[2]]}.{part[3]}"


def unpermuted(x, heads):
    """Rows (heads, half, 2) of llama.cpp to (heads, 2, half) of Transformers, whose pairs are half a head apart."""
    return x.reshape(heads, x.shape[0] // heads // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def to_bf16(x):
    """Nearest, ties to even; the numbers are finite."""
    bits = numpy.ascontiguousarray(x, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)


def weight_of(source, tensor):
    x = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
    if not numpy.isfinite(x).all():
        refuse(f"tensor '{tensor.name}' holds numbers that are not finite")
    part = tensor.name.split(".")[2:3]
    if source.family == "llama" and part in (["attn_q"], ["attn_k"]):
        heads = "attention.head_count" + ("" if part == ["attn_q"] else "_kv")
        x = unpermuted(x, source.own(heads))
    return to_bf16(x)


def scaling_of(source, config):
    """Llama 3's scaling: the file has one factor for each frequency, configurations have the rule that made them."""
    kind = source.get(f"{source.family}.rope.scaling.type", "none")
    factors = [t for t in source.reader.tensors if t.name == ROPE]
    if kind not in ("none", "") and source.get(f"{source.family}.rope.scaling.factor", 1.0) != 1.0:
        refuse(f"rope scaling '{kind}' is not supported")
    if not factors:
        return None
    given = numpy.array(factors[0].data, dtype=numpy.float64)
    rule = {"rope_type": "llama3", "factor": float(given.max()), "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}
    wave = 2 * numpy.pi * config["rope_theta"] ** (numpy.arange(len(given)) / len(given))
    smooth = numpy.clip((8192 / wave - 1.0) / 3.0, 0, 1)
    if not numpy.allclose(given, 1 / ((1 - smooth) / rule["factor"] + smooth), rtol=1e-4):
        refuse(f"'{ROPE}' is not Llama 3's scaling of 8192 positions; other scalings are not supported")
    return rule


def config_of(source, shapes):
    heads, width = source.own("attention.head_count"), source.own("embedding_length")
    config = {"architectures": [FAMILIES[source.family]], "model_type": source.family, "dtype": "bfloat16",
              "vocab_size": shapes["model.embed_tokens.weight"][0], "hidden_size": width,
              "intermediate_size": source.own("feed_forward_length"), "num_hidden_layers": source.own("block_count"),
              "num_attention_heads": heads, "num_key_value_heads": source.own("attention.head_count_kv", heads),
              "head_dim": source.own("attention.key_length", width // heads), "hidden_act": "silu",
              "max_position_embeddings": source.own("context_length"), "initializer_range": 0.02,
              "rms_norm_eps": float(f"{source.own('attention.layer_norm_rms_epsilon'):.6g}"),  # not the nearest fp32
              "rope_theta": float(f"{source.own('rope.freq_base', 10000.0):.9g}"), "rope_scaling": None,
              "tie_word_embeddings": "lm_head.weight" not in shapes}
    if source.own("attention.value_length", config["head_dim"]) != config["head_dim"]:
        refuse("keys and values have heads of different sizes")
    if source.family == "llama":
        config.update(attention_bias=False, mlp_bias=False)
    if source.family == "qwen3":
        config.update(attention_bias=False)
    if source.family != "llama":
        config.update(use_sliding_window=False)
    if source.own("rope.dimension_count", config["head_dim"]) != config["head_dim"]:
        refuse("only a part of each head is rotated")
    config["rope_scaling"] = scaling_of(source, config)
    for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        value = source.get(f"tokenizer.ggml.{theirs}_token_id")
        if value is not None:
            config[ours + "_token_id"] = int(value)
    return config


def pre_tokenizer_of(kind):
    """tokenizer.json's pre-tokenizer, and whether text is normalised and whole words go before merges."""
    def split(regex):
        return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}

    def level(regex):
        return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}

    known = {"smollm": ([{"type": "Digits", "individual_digits": True}, level(True)], None, False),
             "gpt-2": ([level(True)], None, False),
             "qwen2": ([split(QWEN2_SPLIT), level(False)], {"type": "NFC"}, False),
             "llama-bpe": ([split(LLAMA3_SPLIT), level(False)], None, True)}
    if kind not in known:
        refuse(f"pre-tokenizer '{kind}' is not supported; {', '.join(known)} are")
    return known[kind]


def tokenizer_of(source):
    if source.get("tokenizer.ggml.model") != "gpt2":
        refuse(f"a tokenizer of '{source.get('tokenizer.ggml.model')}' is not supported; byte-level BPE ('gpt2') is")
    tokens, types = source.get("tokenizer.ggml.tokens"), source.get("tokenizer.ggml.token_type")
    stages, normalizer, whole = pre_tokenizer_of(source.get("tokenizer.ggml.pre", "default"))
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": types[i] == CONTROL} for i, t in enumerate(tokens) if types[i] in (CONTROL, USER)]
    unused = {i for i in range(len(tokens)) if types[i] not in (NORMAL, CONTROL, USER)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": stages}, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": whole,
                      "vocab": {t: i for i, t in enumerate(tokens) if i not in unused},
                      "merges": source.get("tokenizer.ggml.merges")}}


def tokenizer_config_of(source, config, tokens):
    special = {f"{k}_token": tokens[config[f"{k}_token_id"]] for k in ("bos", "eos", "pad")
               if f"{k}_token_id" in config}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
            "model_max_length": config["max_position_embeddings"], "add_bos_token": False, "chat_template": TEMPLATE,
            **special}


def card_of(source, path, where):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 22):
            digest.update(block)
    kinds = sorted({t.tensor_type.name for t in source.reader.tensors})
    licence = str(source.get("general.license", "unknown"))
    return (f"---\nlicense: {licence}\n---\n# {source.get('general.name', os.path.basename(path))}\n\n"
            f"Imported by musacoder from a GGUF file, weights of {', '.join(kinds)} as bf16: "
            "what quantising lost is lost.\n\n"
            f"- file: {os.path.basename(path)}, sha256 {digest.hexdigest()}\n- from: {where}\n"
            f"- made by: {source.get('general.organization', 'unknown')}\n- licence, as the file says: {licence}\n"
            "- chat template: ChatML without a default system message, as musacoder asks it\n")


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2, ensure_ascii=False)
        f.write("\n")


def write_shard(source, names, shard, path):
    """One safetensors file, a tensor at a time: the length of the head, the head, the numbers."""
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for t in shard:
        n = 2 * int(t.n_elements)
        head[names[t.name]] = {"dtype": "BF16", "shape": [int(x) for x in reversed(t.shape)],
                               "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in shard:
            f.write(weight_of(source, t).tobytes())


def write_weights(source, names, folder):
    """Files of SHARD bytes at most, with an index where there are several."""
    shards, size = [[]], 0
    for t in source.reader.tensors:
        if names[t.name]:
            more = 2 * int(t.n_elements)
            if size and size + more > SHARD:
                shards.append([])
                size = 0
            shards[-1].append(t)
            size += more
    index = {}
    for i, shard in enumerate(shards):
        file = "model.safetensors" if len(shards) == 1 else f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        write_shard(source, names, shard, os.path.join(folder, file))
        index.update({names[t.name]: file for t in shard})
    if len(shards) > 1:
        total = 2 * sum(int(t.n_elements) for t in source.reader.tensors if names[t.name])
        write_json(folder, "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": index})


def understood(path, about):
    """All that is written but the weights' numbers: (source, names, config, tokenizer, card). A file that is cut or
    altered breaks its reader in many ways; each is a refusal."""
    try:
        source = Source(path)
        names = {t.name: name_of(t.name) for t in source.reader.tensors}
        shapes = {names[t.name]: [int(n) for n in reversed(t.shape)] for t in source.reader.tensors if names[t.name]}
        return source, names, config_of(source, shapes), tokenizer_of(source), card_of(source, path, about)
    except Exception as e:  # noqa: BLE001
        refuse(f"'{path}' is damaged: {type(e).__name__}: {' '.join(str(e).split())[:200]}")


def begin(folder):
    """A folder without config.json is no model: while others are written over, it is none. Of the model that was there
    no weights stay, which an index or a second file would bring back."""
    os.makedirs(folder, exist_ok=True)
    for name in ["config.json", *sorted(os.listdir(folder))]:
        if name == "config.json" or name == "model.safetensors.index.json" or WEIGHTS.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("file")
    a.add_argument("folder")
    a.add_argument("--source", default="a file of the user's", help="where the file comes from, for the card")
    args = a.parse_args()
    source, names, config, tokenizer, card = understood(args.file, args.source)
    begin(args.folder)
    write_weights(source, names, args.folder)
    write_json(args.folder, "tokenizer.json", tokenizer)
    write_json(args.folder, "tokenizer_config.json",
               tokenizer_config_of(source, config, source.get("tokenizer.ggml.tokens")))
    write_json(args.folder, "generation_config.json",
               {k: config[k] for k in ("bos_token_id", "eos_token_id", "pad_token_id") if k in config})
    with open(os.path.join(args.folder, "README.md"), "w", encoding="utf-8") as f:
        f.write(card)
    write_json(args.folder, "config.json", config)  # last: a folder without it is not whole


if __name__ == "__main__":
    main()
