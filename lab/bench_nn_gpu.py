"""bench_nn_gpu.py - the training step of bench_nn_gpu.c in PyTorch and Transformers, same shapes, for comparison.

Usage: bench_nn_gpu.py [--compile] [--no-eager] [--generate] [--rows N...] [--steps N] [--wait FILE] [shape...]
Shapes: those of the table below (all).
Qwen3ForCausalLM with bf16 weights, scaled_dot_product_attention, fused AdamW, clipping; eager, then compiled with
--compile.
--generate: tokens a second of 'generate' at batch 1, 64 and 512 (static cache and compiled with --compile). MFU as
there.
--wait FILE: compile everything first, say 'ready', and time it when FILE exists, so that a card that others use
meanwhile is needed for the timing alone. --prepare S: nothing more is compiled after S seconds; what is not is left
out. --eager SHAPE: that one eager too.
"""
import argparse
import gc
import os
import time

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

SHAPES = {  # d, layers, f, heads, kv, dim, V, rows, length
    "20m": (384, 8, 1152, 6, 2, 64, 16384, 32, 2048),
    "20m-4k": (384, 8, 1152, 6, 2, 64, 16384, 16, 4096),
    "123m": (768, 16, 2304, 12, 4, 64, 16384, 16, 2048),
    "600m": (1024, 28, 3072, 16, 8, 128, 151936, 4, 4096),
    "1700m": (2048, 28, 6144, 16, 8, 128, 151936, 2, 4096),
    "123m-1k": (768, 16, 2304, 12, 4, 64, 16384, 32, 1024),
    "123m-4k": (768, 16, 2304, 12, 4, 64, 16384, 8, 4096),
    "123m-16k": (768, 16, 2304, 12, 4, 64, 16384, 2, 16384),
    "1700m-1k": (2048, 28, 6144, 16, 8, 128, 151936, 8, 1024),
    "1700m-16k": (2048, 28, 6144, 16, 8, 128, 151936, 1, 16384),
    "1700m-40k": (2048, 28, 6144, 16, 8, 128, 151936, 1, 40960),
}
PEAK = 989e12


def make(shape):
    d, layers, f, heads, kv, dim, V, _, length = shape
    config = Qwen3Config(vocab_size=V, hidden_size=d, intermediate_size=f, num_hidden_layers=layers,
                         num_attention_heads=heads,
                         num_key_value_heads=kv, head_dim=dim, tie_word_embeddings=True, max_position_embeddings=2 *
                         length,
                         attn_implementation="sdpa", eos_token_id=None, pad_token_id=0)
    with torch.device("cuda"):
        return Qwen3ForCausalLM(config).to(torch.bfloat16)


def train(name, shape, compiled):
    """Three steps; returns what times the others."""
    d, layers, f, heads, kv, dim, V, rows, length = shape
    model = make(shape).train()
    n = sum(p.numel() for p in model.parameters())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(V, (rows, length), device="cuda")
    call = torch.compile(model, dynamic=False) if compiled else model

    def step():
        opt.zero_grad(set_to_none=True)
        loss = call(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()

    def steps(count):
        torch.cuda.synchronize()
        t = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - t

    def timed():
        held = torch.cuda.memory_allocated() - own
        steps(2)
        torch.cuda.reset_peak_memory_stats()
        t = steps(args.steps) / args.steps
        flops = (6.0 * n + 6.0 * length * heads * dim * layers) * rows * length
        print(f"train  {name:5} {n / 1e6:6.1f} M weights, {rows} x {length}: {t * 1e3:8.2f} ms a step "
              f"{rows * length / t:9.0f} "
              f"tokens/s {100 * flops / t / PEAK:5.1f} % MFU, {'compiled' if compiled else 'eager'}, "
              f"peak {(torch.cuda.max_memory_allocated() - held) / 1e9:.2f} GB, first steps {t0:.1f} s", flush=True)

    before = torch.cuda.memory_allocated() - sum(p.numel() * p.element_size() for p in model.parameters())
    t0 = steps(min(3, args.steps))
    opt.zero_grad(set_to_none=True)
    own = torch.cuda.memory_allocated() - before
    return timed


@torch.no_grad()
def generate(name, shape, rows, compiled, prompt=128, new=256):
    """Once; returns what times it again."""
    model = make(shape).eval()
    ids = torch.randint(shape[6], (rows, prompt), device="cuda")
    kind = dict(cache_implementation="static") if compiled else {}

    @torch.no_grad()
    def once():
        torch.cuda.synchronize()
        t = time.perf_counter()
        model.generate(ids, do_sample=True, top_p=1.0, top_k=0, min_new_tokens=new, max_new_tokens=new, **kind)
        torch.cuda.synchronize()
        return time.perf_counter() - t

    def timed():
        t = once()
        print(f"sample {name:5} batch {rows:4}, prompt {prompt}, {new} new: {rows * new / t:9.0f} tokens/s, "
              f"{'static cache, compiled' if compiled else 'as it comes'}, first time {t0:.1f} s", flush=True)

    t0 = once()
    return timed


def attempt(what, make_or_time):
    """Its result; None, and said, where memory is too small or the compiler fails."""
    try:
        return make_or_time()
    except Exception as e:
        print(f"{what}: {type(e).__name__}: {str(e)[:160]}", flush=True)
    finally:
        torch.cuda.empty_cache()


args = argparse.ArgumentParser()
args.add_argument("--compile", action="store_true")
args.add_argument("--no-eager", action="store_true")
args.add_argument("--generate", action="store_true")
args.add_argument("--steps", type=int, default=8)
args.add_argument("--rows", type=int, nargs="+", default=[1, 64, 512])
args.add_argument("--wait", metavar="FILE")
args.add_argument("--prepare", type=float, default=1e9)
args.add_argument("--eager", nargs="+", default=[])
args.add_argument("shapes", nargs="*")
args = args.parse_args()
began = time.perf_counter()
jobs = []
for name in args.shapes or SHAPES:
    kinds = [False] * (not args.no_eager or name in args.eager) + [True] * args.compile
    if args.generate and "-" in name:
        continue
    jobs += [(name, rows, k) for rows in (args.rows if args.generate else [0]) for k in kinds]
print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)


def prepare(name, rows, compiled):
    f = generate if rows else train
    return attempt(f"{name} {rows or ''}", lambda: f(name, SHAPES[name], *([rows] if rows else []), compiled))


ready = {}
if args.wait:
    torch._dynamo.config.recompile_limit = 64  # all shapes are code of one function
    for job in jobs:
        if job[2] and time.perf_counter() - began < args.prepare and not os.path.exists(args.wait):
            ready[job] = prepare(*job)
            print(f"prepared {job[0]} at {time.perf_counter() - began:.0f} s", flush=True)
    print("ready", flush=True)
    while not os.path.exists(args.wait):
        time.sleep(0.05)
for job in jobs:
    if not args.wait:
        torch._dynamo.reset()  # or the second shape would be compiled for any length, and the ninth not at all
    if args.wait and job[2] and job not in ready:
        continue
    timed = ready.pop(job) if job in ready else prepare(*job)
    if timed:
        attempt(job[0], timed)
    timed = None
    gc.collect()
    torch.cuda.empty_cache()
