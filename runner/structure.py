"""structure.py - what anybody can see of an input's values, and a redrawn tensor that keeps it: a lower triangle stays
one, a symmetric matrix symmetric, sorted rows sorted, rows of probabilities sum to one. A program may rely on that.

    like(t, new)   new, of t's shape, with t's structure; new itself where t has none. NaN, infinities and -0 stay where
                   they are

Structure is looked for in SAMPLES elements where it can be, so that tensors of gigabytes cost little. Masks and
labels of few whole numbers are not redrawn at all (reference.keeps_distribution)."""

import math

import torch

SAMPLES = 65536
ZERO_SHARE = 0.1  # of elements: more exact zeros than this are a pattern (triangle, band, mask, padding), not chance
CHANCE = 20.0     # nats: rows in order that random ones show less often than once in 10^8 are sorted
CODES_LEAST, CODES_MOST = 8, 1 << 16  # the largest of floats that may be places
HUGE = 1 << 27    # elements; above it symmetry is not looked for


def samples(t, seed=0):
    """Some elements of t, at positions that have nothing to do with its strides."""
    if t.numel() <= SAMPLES:
        return t.reshape(-1)
    gen = torch.Generator().manual_seed(seed)
    at = [torch.randint(n, (SAMPLES,), generator=gen).to(t.device) for n in t.shape]
    return t[tuple(at)]


def slack(t):
    return 4e-2 if t.dtype == torch.bfloat16 else 4e-3 if t.dtype == torch.float16 else 1e-4


def rows_of(t):
    """At most 4096 rows along the last dimension, and no more than SAMPLES * 16 elements."""
    n = max(1, min(4096, SAMPLES * 16 // max(t.shape[-1], 1)))
    return t.reshape(-1, t.shape[-1])[:n] if t.is_contiguous() else t[(0,) * max(t.dim() - 2,
                                                                                 0)].reshape(-1, t.shape[-1])[:n]


def has_pattern(t):
    share = float((samples(t) == 0).float().mean())
    return ZERO_SHARE <= share < 1


def is_symmetric(t):
    if t.dim() < 2 or t.shape[-1] != t.shape[-2] or t.shape[-1] < 2 or t.numel() > HUGE:
        return False
    return torch.equal(t, t.mT)


def order_of(t):
    """1 where each row ascends, -1 where each descends, else 0. Few short rows say nothing."""
    if t.dim() < 1 or t.shape[-1] < 2:
        return 0
    rows = rows_of(t)
    step = rows.diff(dim=-1)
    if rows.shape[0] * math.lgamma(rows.shape[1] + 1) < CHANCE or bool((step == 0).all()):
        return 0
    return 1 if bool((step >= 0).all()) else -1 if bool((step <= 0).all()) else 0


def is_probability(t):
    if t.dim() < 1 or t.shape[-1] < 2:
        return False
    rows = rows_of(t).double()
    return bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() <= slack(t)).all())


def is_unit(t):
    if t.dim() < 1 or t.shape[-1] < 2:
        return False
    return bool(((rows_of(t).double().square().sum(-1) - 1).abs() <= 2 * slack(t)).all())


def in_place(t, new, value):
    """value's elements in the memory layout of new."""
    if value is new or value.stride() == new.stride():
        return value
    out = torch.empty_like(new)
    return out.copy_(value) if out.stride() == new.stride() else value


def is_special(t):
    """NaN, infinities and -0, whose places mean something. None where there are none."""
    if not t.is_floating_point() or not t.numel():
        return None
    odd = ~torch.isfinite(t) | ((t == 0) & t.signbit())
    return odd if bool(odd.any()) else None


def has_special(t):
    return is_special(samples(t)) is not None


def like(t, new):
    """new with t's structure; what is special about single elements of t stays in its place."""
    out, odd = shaped_like(t, new), is_special(t)
    if odd is None or any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)):
        return out
    return in_place(t, new, torch.where(odd, t, out))


def is_codes(t):
    """Whole numbers from 0 on, of floating type: pixels, classes, that a program may take for places."""
    if not t.is_floating_point() or t.element_size() < 4 or t.numel() < 16:
        return False
    some = samples(t)
    return bool((some == some.floor()).all()) and float(some.min()) >= 0 and \
        CODES_LEAST <= float(some.max()) < CODES_MOST


def codes_like(t, new):
    """Whole numbers in t's range, which follow from new; those of new that are such stay."""
    low, high = (float(x) for x in torch.aminmax(t))
    mixed = (new.double() * 12.9898).sin() * 43758.5453
    other = low + ((mixed - mixed.floor()) * (high - low + 1)).floor().clamp(max=high - low)
    return torch.where((new == new.floor()) & (new >= low) & (new <= high), new.double(), other).to(t.dtype)


def shaped_like(t, new):
    if is_codes(t):
        return in_place(t, new, codes_like(t, new))
    if not t.is_floating_point() or t.numel() < 2 or any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)):
        return new
    out = new
    if is_probability(t):
        out = out.double().abs() + 1e-6
        out = (out / out.sum(-1, keepdim=True)).to(t.dtype)
    elif is_unit(t):
        out = (out.double() / (out.double().square().sum(-1, keepdim=True).sqrt() + 1e-30)).to(t.dtype)
    elif is_symmetric(t):
        out = out.tril() + out.tril(-1).mT
    order = order_of(t)
    if order:
        out = out.sort(dim=-1, descending=order < 0).values
    if has_pattern(t):
        out = torch.where(t == 0, torch.zeros((), dtype=t.dtype, device=t.device), out)
    return in_place(t, new, out)
