"""make_model_golden.py - tiny random Qwen3 and Qwen3.5 models made with Transformers, and what they compute.

Writes OUT/CASE/{config.json, model.safetensors} and OUT/CASE/golden.safetensors:
  tokens (T) i32, cu (n+1) i32, targets (T) i32 (-1: none), weight (T) f32, coef (T) f32, temperature (1) f32,
  logits (T, V), logp (T), entropy (T), loss (1), grad.NAME for every parameter,
  losses (10) of ten AdamW steps on that loss / T (lr 2e-3, betas 0.9 0.98, weight decay 0.1 on matrices, gradients clipped
  to norm 0.5), norms (10) before clipping, and after.NAME: two tensors after the last step.
  own (1), for Qwen3.5: the worst relative distance of these logits and gradients from the same code in double.
Each sequence runs alone and unpadded through Transformers, fp32, eager attention, its own PyTorch code for the delta
rule; the loss is
  sum_t -weight_t * log_softmax(z_t / T)[target_t] + coef_t * entropy_t.
'vision' is a checkpoint with a vision tower and tensors of multi-token prediction, in two shards.
Usage: make_model_golden.py OUT [--seed N] [--big] [--only CASE ...] | FOLDER --same FOLDER
Needs torch, transformers >= 4.51 (for Qwen3.5: 5.17) and safetensors.
"""
import argparse
import json
import os
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
import transformers
from transformers import Qwen3Config, Qwen3ForCausalLM

CASES = {
    "tied": dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                 num_key_value_heads=1, head_dim=32, tie_word_embeddings=True, theta=10000.0),
    "untied": dict(vocab_size=96, hidden_size=40, intermediate_size=72, num_hidden_layers=2, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=16, tie_word_embeddings=False, theta=1000000.0),
    "big": dict(vocab_size=2000, hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=6,
                num_key_value_heads=2, head_dim=64, tie_word_embeddings=True, theta=10000.0),
}
QWEN35 = {
    "qwen35": dict(vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=16, rotary=0.5, linear_num_key_heads=2, linear_num_value_heads=6,
                   linear_key_head_dim=16, linear_value_head_dim=16),
    "vision": dict(vocab_size=61, hidden_size=48, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2,
                   num_key_value_heads=1, head_dim=32, rotary=0.25, linear_num_key_heads=2, linear_num_value_heads=2,
                   linear_key_head_dim=16, linear_value_head_dim=32, tie_word_embeddings=True,
                   layer_types=["full_attention", "linear_attention", "linear_attention"]),
    "qwen35big": dict(vocab_size=512, hidden_size=256, intermediate_size=384, num_hidden_layers=4,
                      num_attention_heads=2, num_key_value_heads=1, head_dim=256, rotary=0.25, linear_num_key_heads=1,
                      linear_num_value_heads=3, linear_key_head_dim=128, linear_value_head_dim=128),
}
LENGTHS = [1, 2, 3, 63, 64, 65, 127, 200]
LENGTHS35 = [1, 2, 3, 4, 63, 64, 65, 127, 129, 200]


def make_qwen35(case, seed):
    """Norms, gates and rates are drawn: zeros, or all alike, would hide a missing one.

    Decays are gentle and the convolution's output small: where a head reads almost nothing, its norm magnifies rounding,
    and then Transformers itself is 5e-4 away from its own arithmetic in double."""
    torch.manual_seed(seed)
    c = dict(QWEN35[case])
    part = c.pop("rotary")
    tied = c.pop("tie_word_embeddings", False)
    common = dict(max_position_embeddings=1024, rms_norm_eps=1e-6, initializer_range=0.08, eos_token_id=3,
                  rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": part,
                                   "mrope_section": [2, 1, 1], "mrope_interleaved": True})
    if case == "vision":
        vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=48, patch_size=4,
                      num_position_embeddings=16)
        config = transformers.Qwen3_5Config(text_config=dict(c, **common), vision_config=vision,
                                            tie_word_embeddings=tied)
        config._attn_implementation = config.text_config._attn_implementation = "eager"
        model = transformers.Qwen3_5ForConditionalGeneration(config)
    else:
        config = transformers.Qwen3_5TextConfig(**c, **common, tie_word_embeddings=tied, attn_implementation="eager")
        model = transformers.Qwen3_5ForCausalLM(config)
    model = model.float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("A_log"):
                p.copy_(torch.linspace(-3, -1, p.numel()))
            elif name.endswith("dt_bias"):
                p.copy_(0.5 * torch.randn_like(p))
            elif name.endswith("linear_attn.norm.weight"):
                p.copy_(1 + 0.2 * torch.randn_like(p))
            elif p.dim() == 1:
                p.copy_(0.2 * torch.randn_like(p))
            elif name.endswith(("in_proj_a.weight", "in_proj_b.weight")):
                p.mul_(4)  # away from one half
            elif "in_proj" in name:
                p.mul_(2)
            if case != "qwen35":
                p.copy_(p.bfloat16())  # so that a run in bf16 has these very weights
    return model


def make_model(case, seed):
    if case in QWEN35:
        return make_qwen35(case, seed)
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


def lengths_of(case):
    return LENGTHS35 if case in QWEN35 else LENGTHS


def loss_of(model, t, s):
    """The loss of sequence s of the pack in t."""
    a, b = int(t["cu"][s]), int(t["cu"][s + 1])
    z = model(t["tokens"][None, a:b].long()).logits[0]
    lp = torch.log_softmax(z / t["temperature"], -1)
    on = t["targets"][a:b] >= 0
    picked = lp.gather(1, t["targets"][a:b].long().clamp(min=0)[:, None])[:, 0] * on
    return -(t["weight"][a:b] * picked).sum() + (t["coef"][a:b] * -(lp.exp() * lp).sum(-1) * on).sum()


AFTER = ["layers.1.mlp.down_proj.weight", "layers.0.input_layernorm.weight", "layers.0.linear_attn.A_log",
         "layers.0.linear_attn.conv1d.weight"]


def train(model, t):
    used = [p for p in model.parameters() if p.grad is not None]
    groups = [{"params": [p for p in used if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in used if p.dim() == 1], "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98), eps=1e-8)
    losses, norms = [], []
    for _ in range(10):
        opt.zero_grad()
        loss = sum(loss_of(model, t, s) for s in range(len(t["cu"]) - 1)) / len(t["tokens"])
        loss.backward()
        losses.append(loss.detach())
        norms.append(torch.nn.utils.clip_grad_norm_(used, 0.5))
        opt.step()
    t["losses"], t["norms"] = torch.stack(losses), torch.stack(norms)
    for name, p in model.named_parameters():
        if name.endswith(tuple(AFTER)) and p.grad is not None:
            t["after." + name] = p.detach().clone()


def golden(model, case, seed):
    g = torch.Generator().manual_seed(seed + 1)
    V = model.config.get_text_config().vocab_size
    general = case != "tied"  # one case is plain SFT, the others use temperature and entropy
    temperature = 0.9 if general else 1.0
    out = {k: [] for k in ("tokens", "targets", "weight", "coef", "logits", "logp", "entropy")}
    cu, loss = [0], 0.0
    for n in lengths_of(case):
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
        if p.grad is not None:
            t["grad." + name] = p.grad.clone().contiguous()
    if case in QWEN35:
        t["own"] = own_error(in_double(model), t)
        print(case, "fp32 against double:", t["own"].item())
    train(model, t)
    return t


def in_double(model):
    """The same model in double: Transformers' own source with its casts to fp32 taken out, as its model file says them."""
    import importlib.util
    import transformers.models.qwen3_5.modeling_qwen3_5 as fp32
    text = open(fp32.__file__).read().replace("torch.float32", "torch.float64").replace(".float()", ".double()")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in_double.py")
        open(path, "w").write(text)
        spec = importlib.util.spec_from_file_location("transformers.models.qwen3_5.in_double", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # its classes are looked up by module name
        spec.loader.exec_module(module)
        twin = getattr(module, type(model).__name__)(model.config).double().eval()
    twin.load_state_dict(model.state_dict())
    return twin


def own_error(twin, t):
    """How far fp32 is from double in Transformers itself, given what fp32 gave."""
    logits = torch.cat([twin(t["tokens"][None, a:b].long()).logits[0].detach() for a, b in zip(t["cu"], t["cu"][1:])])
    sum(loss_of(twin, t, s) for s in range(len(t["cu"]) - 1)).backward()
    pairs = [(t["logits"], logits)] + [(t["grad." + n], p.grad) for n, p in twin.named_parameters() if p.grad is not None]
    return torch.tensor([max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)])


def save(model, case, folder):
    if case != "vision":
        model.save_pretrained(folder)
        return
    model.save_pretrained(folder, max_shard_size="150KB")
    path = os.path.join(folder, "model.safetensors.index.json")
    index = json.load(open(path))
    shard = "model-mtp.safetensors"  # what Transformers does not run, and we must not lose
    save_file({"mtp.fc.weight": torch.randn(8, 4).bfloat16()}, os.path.join(folder, shard))
    index["weight_map"]["mtp.fc.weight"] = shard
    json.dump(index, open(path, "w"), indent=2)


def tensors(folder):
    """All of a folder's tensors, whatever files they lie in."""
    files = [f for f in os.listdir(folder) if f.endswith(".safetensors") and f != "golden.safetensors"]
    return {k: v for f in files for k, v in load_file(os.path.join(folder, f)).items()}


def compare(first, second):
    """Two model folders: the same tensors, Transformers misses none and adds none, and the same logits, bit for bit."""
    a, b = tensors(first), tensors(second)
    assert a.keys() == b.keys(), sorted(a.keys() ^ b.keys())
    assert all(torch.equal(a[k].float(), b[k].float()) and a[k].shape == b[k].shape for k in a)
    logits = []
    for folder in (first, second):
        config = json.load(open(os.path.join(folder, "config.json")))
        model, info = getattr(transformers, config["architectures"][0]).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not info["missing_keys"], info
        logits.append(model.eval()(torch.arange(1, 50)[None]).logits)
    assert torch.equal(*logits)
    print("the same:", len(a), "tensors")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("--same", metavar="FOLDER", help="instead: do Transformers' logits of OUT and FOLDER agree?")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--big", action="store_true", help="also a model of the size of the demo's")
    a.add_argument("--only", nargs="+", help="these cases")
    args = a.parse_args()
    if args.same:
        return compare(args.out, args.same)
    torch.set_num_threads(1)  # tiny products: threads only wait for each other
    has35 = hasattr(transformers, "Qwen3_5ForCausalLM")
    for case in args.only or [*CASES, *(QWEN35 if has35 else ())]:
        if case.endswith("big") and not args.big and not args.only:
            continue
        model = make_model(case, args.seed)
        folder = os.path.join(args.out, case)
        save(model, case, folder)
        if case == "untied":  # the keys of Transformers 4
            path = os.path.join(folder, "config.json")
            config = json.load(open(path))
            config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
            config["rope_scaling"] = None
            config["torch_dtype"] = config.pop("dtype", "float32")
            json.dump(config, open(path, "w"), indent=2)
        save_file(golden(model, case, args.seed), os.path.join(folder, "golden.safetensors"))


main()
