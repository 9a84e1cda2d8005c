"""tiny.py - a tokenizer whose tokens are bytes and a model of two layers, so that nothing has to be downloaded; or
those of the folder that ADAPTER_MODEL names."""

import os

import tokenizers
import torch
import transformers

CHAT = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}")


FOLDER = os.environ.get("ADAPTER_MODEL")


def tokenizer():
    if FOLDER:
        return transformers.AutoTokenizer.from_pretrained(FOLDER)
    vocab = {c: i for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    vocab.update({"<pad>": len(vocab), "<eos>": len(vocab) + 1})
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", eos_token="<eos>")
    fast.chat_template = CHAT
    return fast


def model(tok):
    torch.manual_seed(1)
    if FOLDER:
        return transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=len(tok), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=1024, eos_token_id=tok.eos_token_id,
        pad_token_id=tok.pad_token_id))


def save_config(tok, folder):
    """What a trainer reads of a model before it loads weights."""
    tok.save_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(FOLDER) if FOLDER else transformers.Qwen3Config(
        vocab_size=len(tok))
    config.save_pretrained(folder)
