"""make_model_golden.py - tiny random Llama, Qwen2, Qwen3 and Qwen3.5 models of Transformers, and what they compute.

Writes OUT/CASE/{config.json, model.safetensors} and OUT/CASE/golden.safetensors:
  tokens (T) i32, cu (n+1) i32, targets (T) i32 (-1: none), weight (T) f32, coef (T) f32, temperature (1) f32,
  logits (T, V), logp (T), entropy (T), loss (1), grad.NAME for every parameter,
  losses (10) of ten AdamW steps on that loss / T (lr 2e-3, betas 0.9 0.98, weight decay 0.1 on matrices, gradients
  clipped to norm 0.5), norms (10) before clipping, and after.NAME: some tensors after the last step.
These are Transformers' own PyTorch code run in double, rounded to fp32. Beside them stands how far that code is from
it:
  fp32.KEY: in fp32, the worst of four runs; the largest difference over the largest value, for losses and norms (10)
  each step's (losses over the first one);
  bf16.KEY: in bf16; root of the summed squares of the difference over those of the truth; of the ten steps, with
  weights kept in fp32, as above, the worst of eight runs that sum the sequences' gradients in other orders;
  bf16.worst (1): the largest difference of a log-prob.
Tests derive their limits from these. Each sequence runs alone and unpadded, eager attention; the loss is
  sum_t -weight_t * log_softmax(z_t / T)[target_t] + coef_t * entropy_t.
Weights are numbers of bf16 and depend on the seed alone. What a folder holds is the same bytes in each run on one
machine; on another, fp32.* and bf16.* may differ: they are roundings of its matrix library. --check FOLDER compares
the rest. Transformers gives the row of pad_token_id in the input embedding no gradient. The goldens of 'llama', which
has one, are computed without that; pad (1) i32 and padded.grad.NAME beside them are what Transformers says by itself.
'vision' is a checkpoint with a vision tower and tensors of multi-token prediction, in two shards.
Usage: make_model_golden.py OUT [--seed N] [--big] [--only CASE ...] | FOLDER --same FOLDER | FOLDER --check FOLDER
       make_model_golden.py - --spread RUNS [--only CASE ...]
Needs torch, transformers >= 4.51 (for Qwen3.5: 5.17) and safetensors.
"""
import argparse
import copy
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
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
PLAIN = {  # without norms of heads; 'llama' has slow, mixed and fast rotations in one head
    "llama": dict(kind="Llama", vocab_size=96, hidden_size=48, intermediate_size=72, num_hidden_layers=2,
                  num_attention_heads=6, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True, pad_token_id=7,
                  theta=500.0, scaling=LLAMA3),
    "qwen2": dict(kind="Qwen2", vocab_size=88, hidden_size=64, intermediate_size=56, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False, theta=1000000.0),
    "llamabig": dict(kind="Llama", vocab_size=2000, hidden_size=192, intermediate_size=512, num_hidden_layers=4,
                     num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True, theta=100000.0),
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

    Decays are gentle and the convolution's output small: where a head reads almost nothing, its norm magnifies
    rounding, and then Transformers itself is 5e-4 away from its own arithmetic in double."""
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
    draw(model, seed, 0.08)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("A_log"):
                p.copy_(torch.linspace(-3, -1, p.numel()))
            elif name.endswith("dt_bias"):
                p.mul_(0.5 / 0.08)
            elif name.endswith("linear_attn.norm.weight"):
                p.mul_(0.2 / 0.08).add_(1)
            elif p.dim() == 1:
                p.mul_(0.2 / 0.08)
            elif name.endswith(("in_proj_a.weight", "in_proj_b.weight")):
                p.mul_(4)  # away from one half
            elif "in_proj" in name:
                p.mul_(2)
    return model


def draw(model, seed, std):
    """All weights in the order of their names: Transformers' order of drawing them is not the same in all versions."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            p.copy_(std * torch.randn(p.shape, generator=g))


def make_model(case, seed):
    make = make_qwen35 if case in QWEN35 else make_plain if case in PLAIN else make_qwen3
    model = make(case, seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16())  # so that a run in bf16 has these very weights
    return model


def make_qwen3(case, seed):
    c = dict(CASES[case])
    theta = c.pop("theta")
    config = Qwen3Config(**c, max_position_embeddings=1024, rms_norm_eps=1e-6, initializer_range=0.08,
                         rope_parameters={"rope_type": "default", "rope_theta": theta}, eos_token_id=3,
                         attn_implementation="eager")
    model = Qwen3ForCausalLM(config).float().eval()
    draw(model, seed, 0.08)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.mul_(0.2 / 0.08).add_(1)  # all ones would hide a missing weight
    return model


def make_plain(case, seed):
    c = dict(PLAIN[case])
    kind, rope = c.pop("kind"), {"rope_type": "default", **c.pop("scaling", {}), "rope_theta": c.pop("theta")}
    config = getattr(transformers, kind + "Config")(**c, max_position_embeddings=1024, rms_norm_eps=1e-5,
                                                    initializer_range=0.08, rope_parameters=rope, eos_token_id=3,
                                                    bos_token_id=1, attn_implementation="eager")
    model = getattr(transformers, kind + "ForCausalLM")(config).float().eval()
    draw(model, seed, 0.08)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:  # biases of the size of what they are added to
                p.mul_(0.2 / 0.08).add_(0 if name.endswith("bias") else 1)
    return model


def lengths_of(case):
    return LENGTHS35 if case in QWEN35 else LENGTHS


def batch_of(model, case, seed):
    """What is fed: tokens, targets, the loss's coefficients."""
    g = torch.Generator().manual_seed(seed + 1)
    vocab = model.config.get_text_config().vocab_size
    general = case != "tied"  # one case is plain SFT, the others use temperature and entropy
    out = {k: [] for k in ("tokens", "targets", "weight", "coef")}
    cu = [0]
    for n in lengths_of(case):
        ids = torch.randint(0, vocab, (n,), generator=g)
        target = torch.cat([ids[1:], torch.tensor([-1])])
        target[torch.rand(n, generator=g) < 0.25] = -1
        out["weight"].append(torch.rand(n, generator=g) - (0.4 if general else 0.0))
        out["coef"].append((torch.rand(n, generator=g) - 0.5) * (0.3 if general else 0.0))
        out["tokens"].append(ids.to(torch.int32))
        out["targets"].append(target.to(torch.int32))
        cu.append(cu[-1] + n)
    t = {k: torch.cat(v).contiguous() for k, v in out.items()}
    t["cu"] = torch.tensor(cu, dtype=torch.int32)
    t["temperature"] = torch.tensor([0.9 if general else 1.0])
    return t


def forward(model, t, s):
    """Logits, log-probs, entropies and the loss of sequence s of the pack in t."""
    a, b = int(t["cu"][s]), int(t["cu"][s + 1])
    z = model(t["tokens"][None, a:b].long()).logits[0]
    z = z.float() if z.dtype == torch.bfloat16 else z
    lp = torch.log_softmax(z / t["temperature"].to(z.dtype), -1)
    on = t["targets"][a:b] >= 0
    picked = lp.gather(1, t["targets"][a:b].long().clamp(min=0)[:, None])[:, 0] * on
    entropy = -(lp.exp() * lp).sum(-1) * on
    return z, picked, entropy, -(t["weight"][a:b] * picked).sum() + (t["coef"][a:b] * entropy).sum()


def measure(model, t):
    """The values of one forward and backward pass over all sequences."""
    model.zero_grad()
    parts = [forward(model, t, s) for s in range(len(t["cu"]) - 1)]
    loss = sum(p[3] for p in parts)
    loss.backward()
    out = {k: torch.cat([p[i].detach() for p in parts]) for i, k in enumerate(("logits", "logp", "entropy"))}
    out["loss"] = loss.detach().reshape(1)
    out.update({"grad." + n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    return out


AFTER = ["layers.1.mlp.down_proj.weight", "layers.0.input_layernorm.weight", "layers.0.linear_attn.A_log",
         "layers.0.linear_attn.conv1d.weight"]


def train(model, t, dtype=None, order=None):
    """Ten steps of AdamW on the model's weights, which measure() has given gradients; with a dtype, forward and
    backward run on a copy of them in it. order: of the sequences, whose gradients are summed in that type."""
    order = order or range(len(t["cu"]) - 1)
    worker = cast(copy.deepcopy(model), dtype) if dtype else model
    used = [(p, w) for p, w in zip(model.parameters(), worker.parameters()) if p.grad is not None]
    groups = [{"params": [p for p, _ in used if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p, _ in used if p.dim() == 1], "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98), eps=1e-8)
    losses, norms = [], []
    for _ in range(10):
        worker.zero_grad()
        loss = sum(forward(worker, t, s)[3] for s in order) / len(t["tokens"])
        loss.backward()
        for p, w in used:
            p.grad = w.grad.to(p.dtype)
        losses.append(loss.detach())
        norms.append(torch.nn.utils.clip_grad_norm_([p for p, _ in used], 0.5))
        opt.step()
        for p, w in used:
            w.data.copy_(p.data)
    out = {"losses": torch.stack(losses), "norms": torch.stack(norms)}
    out.update({"after." + n: p.detach().clone() for n, p in model.named_parameters()
                if n.endswith(tuple(AFTER)) and p.grad is not None})
    return out


def in_double(model):
    """The same model in double: Transformers' own source with its casts to fp32 taken out, as its model file says them.
    The angles of RoPE stay: that they are products in fp32 is part of what the model is."""
    import importlib
    import importlib.util
    kind = type(model).__module__.split(".")[-2]
    fp32 = importlib.import_module(type(model).__module__)
    angles = "position_ids[..., None].float() * "
    text = open(fp32.__file__).read().replace("torch.float32", "torch.float64")
    text = text.replace(angles, "ANGLES").replace(".float()", ".double()").replace("ANGLES", angles)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in_double.py")
        open(path, "w").write(text)
        spec = importlib.util.spec_from_file_location(f"transformers.models.{kind}.in_double", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # its classes are looked up by module name
        spec.loader.exec_module(module)
        twin = getattr(module, type(model).__name__)(model.config)
    twin.load_state_dict(model.state_dict())
    twin.get_input_embeddings().padding_idx = model.get_input_embeddings().padding_idx
    return cast(twin, torch.float64).eval()


def cast(model, dtype):
    """Weights only: the frequencies of RoPE stay the numbers of fp32 that they are."""
    for p in model.parameters():
        p.data = p.data.to(dtype)
    return model


def greatest(x, truth):
    """max |x - truth| / max |truth|, as test_model.c measures"""
    return ((x.double() - truth).abs().max() / truth.abs().max()).reshape(1).float()


def of_squares(x, truth):
    return ((x.double() - truth).norm() / truth.norm()).reshape(1).float()


def by_step(key, x, truth):
    return (x.double() - truth[key]).abs() / truth[key][:1 if key == "losses" else None].abs()


def jittered(model, seed):
    """The same weights, each moved by at most one rounding: another draw of what fp32 makes of this model."""
    g = torch.Generator().manual_seed(seed)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for p in twin.parameters():
            p.mul_(1 + (2 * torch.rand(p.shape, generator=g) - 1) * 2**-24 * 2)
    return twin


RUNS = 4  # of Transformers in fp32: the weights as they are, and moved by a rounding
HALF_RUNS = 8  # of ten steps in bf16: one is a single draw of how PyTorch happens to sum


def padded(model, t):
    """The gradient that Transformers gives the embedding, and from here on one that counts every row."""
    words = model.get_input_embeddings()
    pad = words.padding_idx
    if pad is None:
        return {}
    assert (t["tokens"] == pad).any()
    own = {"grad." + n: p for n, p in model.named_parameters() if p is words.weight}
    measure(model, t)
    own = {"padded." + k: p.grad.clone() for k, p in own.items()}
    words.padding_idx = None
    return {"pad": torch.tensor([pad], dtype=torch.int32), **own}


def golden(model, case, seed):
    t = batch_of(model, case, seed)
    t.update(padded(model, t))
    twin = in_double(model)
    truth = measure(twin, t)
    truth.update(train(twin, t))
    own = {}
    for run in range(RUNS):
        other = jittered(model, run) if run else copy.deepcopy(model)
        got = measure(other, t)
        got.update(train(other, t))
        for k, v in got.items():
            d = by_step(k, v, truth) if k in ("losses", "norms") else greatest(v, truth[k])
            own[k] = torch.maximum(own.get(k, d), d).float()
    t.update({"fp32." + k: v for k, v in own.items()})
    half = measure(cast(copy.deepcopy(model), torch.bfloat16), t)
    t["bf16.worst"] = (half["logp"] - truth["logp"]).abs().max().reshape(1).float()
    t.update({"bf16." + k: of_squares(v, truth[k]) for k, v in half.items() if k != "loss"})
    t.update({"bf16." + k: v.amax(0).float() for k, v in half_runs(model, t, truth, HALF_RUNS).items()})
    t.update({k: v.float().contiguous() for k, v in truth.items()})
    for k in ("logits", "losses", "norms"):
        print(f"{case}: fp32 from double, {k}: {own[k].max().item():.1e}")
    print(f"{case}: worst gradient {max(own[k].item() for k in own if k.startswith('grad.')):.1e},",
          f"bf16 logits {t['bf16.logits'].item():.1e} losses {t['bf16.losses'].max().item():.1e}")
    return t


def half_runs(model, t, truth, runs):
    """How far ten steps in bf16 go from those in double: {"losses", "norms"}: (runs, 10). Runs differ in the order of
    the sequences alone, so in the order in which PyTorch sums gradients; the first has the pack's."""
    away = {"losses": [], "norms": []}
    for run in range(runs):
        other = copy.deepcopy(model)
        measure(other, t)
        g = torch.Generator().manual_seed(run)
        order = torch.randperm(len(t["cu"]) - 1, generator=g).tolist() if run else None
        got = train(other, t, torch.bfloat16, order)
        for key, steps in away.items():
            steps.append(by_step(key, got[key], truth))
    return {key: torch.stack(steps) for key, steps in away.items()}


def spread(case, seed, runs):
    """Prints what half_runs() says."""
    model = make_model(case, seed)
    t = batch_of(model, case, seed)
    twin = in_double(model)
    measure(twin, t)
    for key, x in half_runs(model, t, train(twin, t), runs).items():
        for i in range(x.shape[1]):
            print(f"{case} {key} step {i}: first run {x[0, i]:.2e}, of {runs} runs least {x[:, i].min():.2e}",
                  f"median {x[:, i].median():.2e} most {x[:, i].max():.2e}", flush=True)


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


def check(first, second):
    """Two folders of goldens: equal but for what the machine's matrix library rounds."""
    for case in sorted(os.listdir(second)):
        a, b = ({**tensors(f), **load_file(os.path.join(f, "golden.safetensors"))}
                for f in (os.path.join(first, case), os.path.join(second, case)))
        assert a.keys() == b.keys(), sorted(a.keys() ^ b.keys())
        rounded = [k for k in a if k.startswith(("fp32.", "bf16."))]
        last = [k for k in a if k not in rounded and not torch.equal(a[k], b[k])]
        more = [k for k in last if not greatest(b[k], a[k].double()) <= 2e-7]
        assert not more, (case, more)
        print(f"{case}: {len(a) - len(last) - len(rounded)} tensors equal, {len(last)} but for a last bit;",
              f"of {len(rounded)} errors {sum(not torch.equal(a[k], b[k]) for k in rounded)} differ")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("--same", metavar="FOLDER", help="instead: do Transformers' logits of OUT and FOLDER agree?")
    a.add_argument("--check", metavar="FOLDER", help="instead: are the goldens of OUT and FOLDER the same numbers?")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--big", action="store_true", help="also a model of the size of the demo's")
    a.add_argument("--spread", type=int, metavar="RUNS", help="instead: ten steps in bf16, so many times")
    a.add_argument("--only", nargs="+", help="these cases")
    args = a.parse_args()
    if args.same:
        return compare(args.out, args.same)
    if args.check:
        return check(args.out, args.check)
    torch.set_num_threads(1)  # tiny products: threads only wait for each other
    has35 = hasattr(transformers, "Qwen3_5ForCausalLM")
    for case in args.only or [*CASES, *PLAIN, *(QWEN35 if has35 else ())]:
        if case.endswith("big") and not args.big and not args.only:
            continue
        if args.spread:
            spread(case, args.seed, args.spread)
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
