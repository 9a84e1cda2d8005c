"""make_model_golden.py - tiny random Qwen3 models made with Transformers, and what they compute.

Writes OUT/CASE/{config.json, model.safetensors} and OUT/CASE/golden.safetensors:
  tokens (T) i32, cu (n+1) i32, targets (T) i32 (-1: none), weight (T) f32, coef (T) f32, temperature (1) f32,
  logits (T, V), logp (T), entropy (T), loss (1), grad.NAME for every parameter,
  losses (10) of ten AdamW steps on that loss / T (lr 2e-3, betas 0.9 0.98, weight decay 0.1 on matrices, gradients clipped
  to norm 0.5), norms (10) before clipping, and after.NAME: two tensors after the last step.
Each sequence runs alone and unpadded through Transformers, fp32, eager attention; the loss is
  sum_t -weight_t * log_softmax(z_t / T)[target_t] + coef_t * entropy_t.
Usage: make_model_golden.py OUT [--seed N] [--big]     (needs torch, transformers >= 4.51, safetensors)
"""
import argparse
import json
import os

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

CASES = {
    "tied": dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                 num_key_value_heads=1, head_dim=32, tie_word_embeddings=True, theta=10000.0),
    "untied": dict(vocab_size=96, hidden_size=40, intermediate_size=72, num_hidden_layers=2, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=16, tie_word_embeddings=False, theta=1000000.0),
    "big": dict(vocab_size=2000, hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=6,
                num_key_value_heads=2, head_dim=64, tie_word_embeddings=True, theta=10000.0),
}
LENGTHS = [1, 2, 3, 63, 64, 65, 127, 200]


def make_model(case, seed):
    torch.manual_seed(seed)
    c = dict(CASES[case])
    theta = c.pop("theta")
    config = Qwen3Config(**c, max_position_embeddings=1024, rms_norm_eps=1e-6, initializer_range=0.08,
                         rope_parameters={"rope_type": "default", "rope_theta": theta}, eos_token_id=3,
                         attn_implementation="eager")
    model = Qwen3ForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.copy_(1 + 0.2 * torch.randn_like(p))  # all ones would hide a missing weight
    return model


def loss_of(model, t, s):
    """The loss of sequence s of the pack in t."""
    a, b = int(t["cu"][s]), int(t["cu"][s + 1])
    z = model(t["tokens"][None, a:b].long()).logits[0]
    lp = torch.log_softmax(z / t["temperature"], -1)
    on = t["targets"][a:b] >= 0
    picked = lp.gather(1, t["targets"][a:b].long().clamp(min=0)[:, None])[:, 0] * on
    return -(t["weight"][a:b] * picked).sum() + (t["coef"][a:b] * -(lp.exp() * lp).sum(-1) * on).sum()


AFTER = ["model.layers.1.mlp.down_proj.weight", "model.layers.0.input_layernorm.weight"]


def train(model, t):
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98), eps=1e-8)
    losses, norms = [], []
    for _ in range(10):
        opt.zero_grad()
        loss = sum(loss_of(model, t, s) for s in range(len(LENGTHS))) / len(t["tokens"])
        loss.backward()
        losses.append(loss.detach())
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        opt.step()
    t["losses"], t["norms"] = torch.stack(losses), torch.stack(norms)
    for name, p in model.named_parameters():
        if name in AFTER:
            t["after." + name] = p.detach().clone()


def golden(model, case, seed):
    g = torch.Generator().manual_seed(seed + 1)
    V = model.config.vocab_size
    general = case != "tied"  # one case is plain SFT, the others use temperature and entropy
    temperature = 0.9 if general else 1.0
    out = {k: [] for k in ("tokens", "targets", "weight", "coef", "logits", "logp", "entropy")}
    cu, loss = [0], 0.0
    for n in LENGTHS:
        ids = torch.randint(0, V, (n,), generator=g)
        target = torch.cat([ids[1:], torch.tensor([-1])])
        target[torch.rand(n, generator=g) < 0.25] = -1
        w = torch.rand(n, generator=g) - (0.4 if general else 0.0)
        c = (torch.rand(n, generator=g) - 0.5) * (0.3 if general else 0.0)
        z = model(ids[None]).logits[0]
        lp = torch.log_softmax(z / temperature, -1)
        ent = -(lp.exp() * lp).sum(-1)
        on = target >= 0
        picked = lp.gather(1, target.clamp(min=0)[:, None])[:, 0] * on
        loss = loss - (w * picked).sum() + (c * ent * on).sum()
        cu.append(cu[-1] + n)
        for k, v in dict(tokens=ids, targets=target, weight=w, coef=c, logits=z, logp=picked, entropy=ent * on).items():
            out[k].append(v.detach())
    loss.backward()
    t = {k: torch.cat(v).contiguous() for k, v in out.items()}
    for k in ("tokens", "targets"):
        t[k] = t[k].to(torch.int32)
    t["cu"] = torch.tensor(cu, dtype=torch.int32)
    t["temperature"] = torch.tensor([temperature])
    t["loss"] = loss.detach().reshape(1)
    for name, p in model.named_parameters():
        t["grad." + name] = p.grad.clone().contiguous()
    train(model, t)
    return t


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--big", action="store_true", help="also a model of the size of the demo's")
    args = a.parse_args()
    torch.set_num_threads(2)
    for case in CASES:
        if case == "big" and not args.big:
            continue
        model = make_model(case, args.seed)
        folder = os.path.join(args.out, case)
        model.save_pretrained(folder)
        if case == "untied":  # the keys of Transformers 4
            path = os.path.join(folder, "config.json")
            config = json.load(open(path))
            config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
            config["rope_scaling"] = None
            config["torch_dtype"] = config.pop("dtype", "float32")
            json.dump(config, open(path, "w"), indent=2)
        save_file(golden(model, case, args.seed), os.path.join(folder, "golden.safetensors"))


main()
