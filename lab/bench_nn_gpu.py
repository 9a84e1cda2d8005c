"""bench_nn_gpu.py - the training step of bench_nn_gpu.c in PyTorch and Transformers, same shapes, for comparison.

Usage: bench_nn_gpu.py [--compile] [--no-eager] [--generate] [--rows N...] [--steps N] [shape...]
Shapes: those of the table below (all).
Qwen3ForCausalLM with bf16 weights, scaled_dot_product_attention, fused AdamW, clipping; eager, then compiled with
--compile.
--generate: tokens a second of 'generate' at batch 1, 64 and 512 (static cache and compiled with --compile). MFU as
there.
"""
import argparse
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
    d, layers, f, heads, kv, dim, V, rows, length = shape
    model = make(shape).train()
    n = sum(p.numel() for p in model.parameters())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(V, (rows, length), device="cuda")
    torch._dynamo.reset()  # or the second shape would be compiled for any length, and the ninth not at all
    call = torch.compile(model, dynamic=False) if compiled else model

    def step():
        opt.zero_grad(set_to_none=True)
        loss = call(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        return loss

    began = time.perf_counter()
    for _ in range(min(3, args.steps)):
        step()
    torch.cuda.synchronize()
    t = time.perf_counter()
    t0 = t - began
    for _ in range(args.steps):
        step()
    torch.cuda.synchronize()
    t = (time.perf_counter() - t) / args.steps
    flops = (6.0 * n + 6.0 * length * heads * dim * layers) * rows * length
    print(f"train  {name:5} {n / 1e6:6.1f} M weights, {rows} x {length}: {t * 1e3:8.2f} ms a step "
          f"{rows * length / t:9.0f} "
          f"tokens/s {100 * flops / t / PEAK:5.1f} % MFU, {'compiled' if compiled else 'eager'}, "
          f"peak {torch.cuda.max_memory_allocated() / 1e9:.2f} GB, first steps {t0:.1f} s", flush=True)
    torch.cuda.reset_peak_memory_stats()


@torch.no_grad()
def generate(name, shape, rows, compiled, prompt=128, new=256):
    model = make(shape).eval()
    ids = torch.randint(shape[6], (rows, prompt), device="cuda")
    torch._dynamo.reset()
    kind = dict(cache_implementation="static") if compiled else {}
    for i in range(2):
        torch.cuda.synchronize()
        t = time.perf_counter()
        model.generate(ids, do_sample=True, top_p=1.0, top_k=0, min_new_tokens=new, max_new_tokens=new, **kind)
        torch.cuda.synchronize()
        t = time.perf_counter() - t
    print(f"sample {name:5} batch {rows:4}, prompt {prompt}, {new} new: {rows * new / t:9.0f} tokens/s, "
          f"{'static cache, compiled' if compiled else 'as it comes'}", flush=True)


args = argparse.ArgumentParser()
args.add_argument("--compile", action="store_true")
args.add_argument("--no-eager", action="store_true")
args.add_argument("--generate", action="store_true")
args.add_argument("--steps", type=int, default=8)
args.add_argument("--rows", type=int, nargs="+", default=[1, 64, 512])
args.add_argument("shapes", nargs="*")
args = args.parse_args()
print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for name in args.shapes or SHAPES:
    for compiled in ([False] * (not args.no_eager) + [True] * args.compile):
        if args.generate and "-" not in name:
            for rows in args.rows:
                generate(name, SHAPES[name], rows, compiled)
        elif not args.generate:
            try:
                train(name, SHAPES[name], compiled)
            except torch.OutOfMemoryError as e:
                print(f"train  {name:5} {'compiled' if compiled else 'eager'}: out of memory: {str(e)[:120]}", flush=True)
        torch.cuda.empty_cache()
