#!/usr/bin/env python3
"""Small models of random weights under the names that KernelBench's level 4 asks for, in the layout of the hub's cache.

    lab/level4_models.py HF_HOME

Needs transformers beside PyTorch (tests/adapters/run.sh makes such a Python). Afterwards, with that Python:
    HF_HOME=HF_HOME MUSACODER_PYTHON=PYTHON lab/kernelbench_tasks.py KERNELBENCH OUT --levels 4
"""
import os
import sys

import torch
import transformers as t

VOCABULARY = 64
WIDTH = 32
ALL = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
BERT = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * WIDTH}


def configs():
    return {
        "gpt2": t.GPT2Config(n_embd=WIDTH, n_layer=2, n_head=2, n_positions=1024, **ALL),
        "EleutherAI/gpt-neo-2.7B": t.GPTNeoConfig(
            hidden_size=WIDTH, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=2, window_size=16,
            max_position_embeddings=2048, **ALL),
        "facebook/opt-1.3b": t.OPTConfig(
            hidden_size=WIDTH, word_embed_proj_dim=WIDTH, num_hidden_layers=2, ffn_dim=2 * WIDTH,
            num_attention_heads=2, max_position_embeddings=2048, **ALL),
        "facebook/bart-large": t.BartConfig(
            d_model=WIDTH, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH, max_position_embeddings=1024, **ALL),
        "google/electra-small-discriminator": t.ElectraConfig(
            embedding_size=WIDTH, max_position_embeddings=512, **BERT, **ALL),
        "google/bigbird-roberta-base": t.BigBirdConfig(max_position_embeddings=4096, block_size=64, **BERT, **ALL),
        "google/reformer-enwik8": t.ReformerConfig(
            hidden_size=WIDTH, attention_head_size=16, num_attention_heads=2, feed_forward_size=2 * WIDTH,
            attn_layers=["local", "lsh"], axial_pos_shape=[16, 32], axial_pos_embds_dim=[16, 16], is_decoder=True,
            max_position_embeddings=512, **ALL),
    }


def keep(hub, name, model):
    folder = os.path.join(hub, "models--" + name.replace("/", "--"))
    model.save_pretrained(os.path.join(folder, "snapshots", "0"))
    os.makedirs(os.path.join(folder, "refs"), exist_ok=True)
    with open(os.path.join(folder, "refs", "main"), "w") as f:
        f.write("0")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    for name, config in configs().items():
        torch.manual_seed(1)
        keep(os.path.join(sys.argv[1], "hub"), name, t.AutoModelForCausalLM.from_config(config))
        print(name)


if __name__ == "__main__":
    main()
