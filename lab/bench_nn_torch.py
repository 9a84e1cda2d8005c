"""bench_nn_torch.py - the training step and sampling of bench_nn.c in PyTorch (eager, fp32, same shapes), for
comparison.

Usage: bench_nn_torch.py [hidden layers ffn head_dim vocab]
The model is Qwen3's dense architecture written with torch's own fused operators (scaled_dot_product_attention,
rms_norm); sampling keeps a static KV cache, 64 rows, one prompt length, so that no step pays for padding.
"""
import sys
import time

import torch
import torch.nn.functional as F

d, L, f, hd, V = [int(x) for x in sys.argv[1:6]] if len(sys.argv) > 5 else (192, 5, 512, 64, 2048)
H, KV = d // hd, 1
torch.set_num_threads(2)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        lin = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.n1, self.n2 = torch.nn.RMSNorm(d, 1e-6), torch.nn.RMSNorm(d, 1e-6)
        self.qn, self.kn = torch.nn.RMSNorm(hd, 1e-6), torch.nn.RMSNorm(hd, 1e-6)
        self.qkv, self.o = lin(d, (H + 2 * KV) * hd), lin(H * hd, d)
        self.gu, self.down = lin(d, 2 * f), lin(f, d)

    def forward(self, x, cos, sin, cache=None, at=0):
        B, T, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, T, H + 2 * KV, hd).transpose(1, 2).split([H, KV, KV], 1)
        rot = lambda y: y * cos + torch.cat([-y[..., hd // 2:], y[..., :hd // 2]], -1) * sin
        q, k = rot(self.qn(q)), rot(self.kn(k))
        if cache is not None:
            cache[0][:, :, at:at + T], cache[1][:, :, at:at + T] = k, v
            k, v = cache[0][:, :, :at + T], cache[1][:, :, :at + T]
        a = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1, enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).reshape(B, T, H * hd))
        g, u = self.gu(self.n2(x)).split(f, -1)
        return x + self.down(F.silu(g) * u)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(V, d)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(L))
        self.norm = torch.nn.RMSNorm(d, 1e-6)
        a = torch.arange(1024)[:, None] * (10000.0 ** (-torch.arange(0, hd, 2) / hd))[None]
        self.cos, self.sin = torch.cat([a.cos()] * 2, -1), torch.cat([a.sin()] * 2, -1)

    def forward(self, ids, cache=None, at=0, last=False):
        x, T = self.embed(ids), ids.shape[1]
        for i, layer in enumerate(self.layers):
            x = layer(x, self.cos[at:at + T], self.sin[at:at + T], cache and cache[i], at)
        return self.norm(x[:, -1:] if last else x) @ self.embed.weight.T


def train(model):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids, target = torch.randint(V, (16, 512)), torch.randint(V, (16, 512))
    best = 1e9
    for _ in range(5):
        t = time.perf_counter()
        opt.zero_grad()
        F.cross_entropy(model(ids).view(-1, V), target.view(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        best = min(best, time.perf_counter() - t)
    return ids.numel() / best


@torch.no_grad()
def sample(model, rows=64, prompt=300, new=256):
    cache = [(torch.zeros(rows, KV, prompt + new, hd), torch.zeros(rows, KV, prompt + new, hd)) for _ in range(L)]
    ids = torch.randint(V, (rows, prompt))
    t = time.perf_counter()
    z = model(ids, cache, 0, last=True)
    for i in range(new):
        token = torch.multinomial(torch.softmax(z[:, -1], -1), 1)
        if i + 1 < new:
            z = model(token, cache, prompt + i, last=True)
    return rows * new / (time.perf_counter() - t)


m = Model()
print(f"PyTorch {torch.__version__} eager, fp32, {torch.get_num_threads()} threads: training {train(m):.0f} tokens/s, "
      f"sampling {sample(m):.0f} tokens/s (64 rows)")
