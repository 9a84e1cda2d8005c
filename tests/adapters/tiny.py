"""tiny.py - a tokenizer whose tokens are bytes, so that nothing has to be downloaded."""

import tokenizers
import transformers

CHAT = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}")


def tokenizer():
    vocab = {c: i for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    vocab.update({"<pad>": len(vocab), "<eos>": len(vocab) + 1})
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", eos_token="<eos>")
    fast.chat_template = CHAT
    return fast
