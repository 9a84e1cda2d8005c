"""influence.py - draws that decide what random values alone do not: whether each part of an input, and each argument
that get_inputs makes constant, has the influence on a program's answer that it has on the reference's.

A draw of regime "influence" or "edges" is of a kind (KINDS, EDGES); its trial is the kind's index.
    contents(kind, base, gen, place)   new values for the place'th input; base: normal numbers
    domain_of(leaf, stands, gen)       how an argument that is one value everywhere may vary: [way, ..]
A constant argument varies where the reference stands it: scales and moments around their value, masks as coin flips,
lengths from 1 to their value. What a program leaves out of a mean of bounded functions, a minimum or a long product
is found where little else contributes: on a background where such functions are flat, with a few other elements."""
import itertools
import math
import re

import torch

MASK_MOST = 1 << 20  # elements of a mask whose rows may be emptied
BY_CHANCE = 1e-6     # what is less likely was meant
FLAT = 8.0      # where sigmoid, exp and relu are flat; sums of 65,536 such squares are exact in single precision
ENDS = 8        # elements at both ends of each input that stand out from the background
ACTIVE = 512    # elements that do, at most
PARTS = 64      # one in so many, in smaller inputs
LAST = 1.5      # the last element stands out farthest
LINES = 12      # of each axis, in which the first, the last or any other element stands out more than its neighbours

KINDS = ("background 0", "background -", "background +", "near 1", "below 1", "shifted +", "shifted -", "whole numbers",
         "parameters, normal", "parameters, uniform", "signed numbers", "long numbers")
ALWAYS = ("background 0", "background -", "background +", "whole numbers", "parameters, normal", "parameters, uniform",
          "signed numbers", "long numbers")
NUMBERS = (KINDS[7], *KINDS[10:])  # kinds that change whole numbers alone
FAR = ("parameters, normal", "near 1", "below 1", "shifted +", "shifted -")  # that let early elements reach the end
AMPLIFIED = 64  # trials from here on: an input is 2^(trial % 64) times as large, the one of number trial / 64 - 1
FAR_LEAST = 32  # elements along an axis, for whether the first quarter reaches the last
EDGES = ("rows of zeros", "constant rows", "equal values", "scattered zeros", "places without", "places of -1",
         "places moved", "eighths", "rows without", "triangles with holes", "far below", "far above",
         "far down", "opposed", "places crowded", "halves of 127", "halves of 7", "halves of 255", "tops apart",
         "far out", "places exchanged", "rows full", "chain")
CHOOSING = EDGES[3:7] + EDGES[8:10] + EDGES[14:15] + EDGES[20:]  # change only tensors of which the reference stands it
PLACING = EDGES[4:7] + EDGES[14:15] + EDGES[20:21]  # in these whole numbers name other places
MASKING = EDGES[8]     # in these some rows of a mask allow nothing
THINNING = EDGES[9]    # in these a triangular mask allows less than its triangle
FAR_OFF = EDGES[10:12]  # where the task only selects among its inputs: all are beyond a bound that stands for infinity
FAR_DOWN = EDGES[12]   # in rows of which nothing but differences counts (softmax): exp of each element is 0
OPPOSED = EDGES[13]    # where products are so: of queries and keys
EXACT = EDGES[7]       # where the reference's arithmetic is exact, so steps decide
HALVED = dict(zip(EDGES[15:18], (127, 7, 255)))  # so too: numbers and a half, of a largest one that makes a scale one
APART = EDGES[18]      # where several of the largest are sought: those are a multiple of 32 apart, or in a row
FAR_OUT = EDGES[19]    # as far as half precision goes, or tens of millions
FILLED = EDGES[21]     # rows without zeros, where zeros lie at random
CHAIN = EDGES[22]      # where a square mask may be a graph: each node leads to the next one alone
REGIMES = {"influence": KINDS, "edges": EDGES}


def kind_of(regime, trial):
    return REGIMES[regime][trial] if trial < AMPLIFIED else "amplified"


def amplified_trial(place, doublings):
    return AMPLIFIED * (1 + place) + doublings


def amplification(trial, place):
    """By what factor the place'th input of such a draw is larger."""
    return 2.0 ** (trial % AMPLIFIED) if trial // AMPLIFIED - 1 == place else 1.0


def parameters_of(regime, trial):
    """Which of the task's parameter sets a draw is made with."""
    return int(regime in REGIMES and kind_of(regime, trial).startswith("parameters"))


def standing_out(n, gen):
    """Places of the elements that stand out from a background: the ends, and others anywhere."""
    some = torch.randint(n, (min(ACTIVE, max(2 * ENDS, n // PARTS)),), generator=gen)
    ends = torch.arange(min(ENDS, n))
    return torch.cat([ends, some, n - 1 - ends.flip(0)]).unique()


def on_background(level, base, gen, place):
    """base's values where elements stand out, of the other sign than level; the last one stands out farthest."""
    flat = torch.full_like(base, level).reshape(-1)
    at = standing_out(base.numel(), gen).to(base.device)
    some = base.reshape(-1)[at]
    some = some if level == 0 else some.abs() * (-1.0 if level > 0 else 1.0)
    flat[at] = some
    top = (-1.0 if level > 0 else 1.0) * max(1.0, float(some.abs().max()))
    crown_lines(flat.reshape(base.shape), top, gen)
    flat[-1] = top * (LAST + place / 8)
    if level == 0:
        flat[0], flat[-1] = -flat[-1], flat[0]
    return flat.reshape(base.shape)


def crown_lines(t, top, gen):
    """In a few lines along each axis the first, the last or any other element, by turns, becomes an extreme one."""
    for axis, n in enumerate(t.shape):
        k = min(LINES, t.numel() // max(n, 1))
        at = [torch.randint(size, (k,), generator=gen) for size in t.shape]
        turn = torch.arange(k) % 3
        at[axis] = torch.where(turn == 0, 0, torch.where(turn == 1, n - 1, at[axis]))
        new = top * (1.05 + 0.3 * torch.rand(k, generator=gen, dtype=t.dtype))
        t[tuple(i.to(t.device) for i in at)] = new.to(t.device)


def some_rows(base, gen):
    """(base as rows, which third of them); the first of several is one."""
    rows = base.reshape(-1, base.shape[-1] if base.dim() else 1)
    mark = torch.rand(rows.shape[0], generator=gen) < 1 / 3
    mark[:1] |= rows.shape[0] > 1
    return rows, mark.to(base.device)


def zero_rows(base, gen):
    """A single number is no row: it may be a scale, and what is no number as a whole one is nobody's mistake."""
    rows, mark = some_rows(base, gen)
    mark &= base.numel() > 1
    return torch.where(mark[:, None], 0.0, rows).reshape(base.shape)


def constant_rows(base, gen):
    """Small whole numbers, whose sums and squares are exact; other inputs of the same shape hold the same rows."""
    rows, mark = some_rows(base, gen)
    level = torch.randint(1, 4, (rows.shape[0], 1), generator=gen).to(base)
    return torch.where(mark[:, None], level, rows).reshape(base.shape)


def zeros_by_chance(a, b):
    """Two draws of one input: do zeros lie elsewhere in each, and are rows without any promise of how many?"""
    if a.dim() < 2 or a.shape != b.shape or not a.is_floating_point() or is_mask(a):
        return False
    counts = [(t == 0).double().sum(-1) for t in (a, b)]
    return all(float(n.max()) > float(n.min()) for n in counts) and bool(((a == 0) != (b == 0)).any()) and \
        float(counts[0].mean()) > a.shape[-1] / 4


def filled_rows(t, gen):
    """A quarter of the rows, the last one among them, hold no zero."""
    rows = t.reshape(-1, t.shape[-1])
    mark = torch.rand(len(rows), generator=gen) < 1 / 4
    mark[-1] = True
    new = torch.randn(rows.shape, generator=gen, dtype=torch.float64).to(rows)
    return torch.where(mark.to(t.device)[:, None] & (rows == 0), new, rows).reshape(t.shape)


def scattered_zeros(new, like_rows, gen):
    """new with zeros among its values, as probabilities have them; no row is all zero. like_rows: its rows sum to
    one."""
    rows = new.reshape(-1, new.shape[-1] if new.dim() else 1)
    mark = torch.rand(rows.shape, generator=gen).to(rows.device) < 1 / 8
    mark &= rows.abs() < rows.abs().amax(1, keepdim=True)
    rows = rows.masked_fill(mark, 0)
    if like_rows:
        rows = (rows.double() / rows.double().sum(1, keepdim=True)).to(new.dtype)
    return rows.reshape(new.shape)


FAR_SINGLE = 40  # times as far as half precision goes; beyond 65504 and a million
FAR_MOST = 400   # times that in arithmetic: tens of millions
GROUP = 32       # elements, at least, that have a scale or a thread of their own


def far_off(base):
    """As far as half precision goes."""
    return 3e4 + 8e3 * base.abs().clamp(max=3)


def usual_ways(x, most):
    """Is x / most * most itself in single precision, divided or by the reciprocal? Then a number and a half stays one,
    however a program scales."""
    x, most = x.float(), torch.tensor(float(most))
    return (x / most * most == x) & (x * (1 / most) * most == x) & (x / (most / 127) * (most / 127) == x)


def halves_of(base, most, gen):
    """Numbers and a half, as far as 'most', which stands in each group of a row and all along the first one."""
    low = 0 if most == 255 else -most
    x = (base * most / 3).floor().clamp(-most, most - 1) + 0.5
    x = x if low else x.abs()
    x = torch.where(usual_ways(x.cpu(), most).to(x.device), x, x.floor())
    at = torch.arange(base.shape[-1] if base.dim() else 1, device=base.device)
    start = int(torch.randint(GROUP // 2, (1,), generator=gen))
    rows = x.reshape(-1, len(at)).clone()
    rows[0] = most
    rows[:, (at % GROUP == start % max(1, min(GROUP, len(at) - 1)))] = most
    if len(at) > 1:
        rows[:, (at % GROUP == (start + 1) % min(GROUP, len(at)))] = low
    return rows.reshape(base.shape)


def tops_apart(base, gen):
    """In each row the largest stand a multiple of 32, 64, 128 or 256 apart, or one beside the other."""
    rows = base.reshape(-1, base.shape[-1] if base.dim() else 1)
    n, k = rows.shape[1], rows.shape[0]
    turn = torch.arange(k) % 5
    step = torch.where(turn < 4, GROUP * 2 ** turn, 1)[:, None]
    start = torch.randint(max(n, 1), (k, 1), generator=gen)
    at = torch.arange(n)[None]
    top = torch.where(turn[:, None] < 4, at % step == start % torch.clamp(step, max=max(n, 1)),
                      (at - start) % max(n, 1) < GROUP)
    return (rows + 10 * top.to(rows)).reshape(base.shape)


FILLS = {
    "background 0": lambda base, gen, place: on_background(0.0, base, gen, place),
    "background -": lambda base, gen, place: on_background(-FLAT, base, gen, place),
    "background +": lambda base, gen, place: on_background(FLAT, base, gen, place),
    "near 1": lambda base, gen, place: torch.where(base < 0, -1.0, 1.0) * (1 + 0.02 * base.abs() * base.sign()),
    "below 1": lambda base, gen, place: 1 - 0.01 * base.abs().clamp(max=3),
    "shifted +": lambda base, gen, place: base + 5,
    "shifted -": lambda base, gen, place: base - 5,
    "parameters, normal": lambda base, gen, place: base,
    "parameters, uniform": lambda base, gen, place: (base.abs() / 4).clamp(max=1),
    "rows of zeros": lambda base, gen, place: zero_rows(base, gen),
    "constant rows": lambda base, gen, place: constant_rows(base, gen),
    "equal values": lambda base, gen, place: torch.full_like(base, 1.0),
    **dict.fromkeys(CHOOSING, lambda base, gen, place: base),
    FAR_OFF[0]: lambda base, gen, place: -far_off(base),
    FAR_OFF[1]: lambda base, gen, place: far_off(base),
    FAR_DOWN: lambda base, gen, place: base - 200,
    OPPOSED: lambda base, gen, place: base / 2 + (-5 if place % 2 else 5),
    **{kind: lambda base, gen, place, most=most: halves_of(base, most, gen) for kind, most in HALVED.items()},
    APART: lambda base, gen, place: tops_apart(base, gen),
    FAR_OUT: lambda base, gen, place: (3.3e4 + 2e3 * base.abs().clamp(max=3)) * torch.where(base < 0, -1.0, 1.0),
    EXACT: lambda base, gen, place: (base * 8).round().clamp(-32, 32) / 8,
}


def contents(kind, base, gen, place):
    """Values in double for the place'th input, of base's shape. base: normal numbers. gen: the same for inputs of one
    shape, so that they stand out at the same places and have the same constant rows."""
    return FILLS[kind](base, gen, place)


# What is undecided? ---------------------------------------------------------------------------------------------------


def first_quarter(t, axis, new):
    """t with new's values in the first quarter along an axis."""
    mark = torch.arange(t.shape[axis], device=t.device) < t.shape[axis] // 4
    return torch.where(mark.reshape([-1 if d == axis else 1 for d in range(t.dim())]), new, t)


def last_quarter(out, n):
    """Of an output that has an axis of n elements: the last quarter along it; all of others."""
    axis = next((d for d, size in enumerate(out.shape) if size == n), None)
    return out if axis is None else out.narrow(axis, n - n // 4, n // 4)


class Shorter:
    """While it holds, loops of a module over range(n) end early, by a share of their rounds."""

    def __init__(self, module, share):
        self.module, self.share, self.ended = module, share, False

    def __enter__(self):
        self.module.range = self.range

    def __exit__(self, *_):
        del self.module.range

    def range(self, *ends):
        whole = range(*ends)
        self.ended |= len(whole) > 1
        return whole[:max(1, len(whole) - max(1, int(len(whole) * self.share)))]


# Whole numbers --------------------------------------------------------------------------------------------------------

CODES = 32      # bytes below it may be codes of a few bits
WIDE = 4099     # whole numbers become so many times as large: their sums are no floats any more
# Words in the names of operators that take whole numbers for places, sizes or counts: wide ones would be places that
# there are not, or results of gigabytes.
PLACES = ("index", "gather", "scatter", "embedding", "take", "put", "one_hot", "bincount", "repeat_interleave",
          "arange", "unique", "histc", "segment", "bucketize", "sparse", "jagged", "nested", "nll_loss", "ctc_loss")
# Of these the answer is the same where all of a row is larger, or smaller, by one number;
SHIFTED = ("softmax", "logsumexp", "scaled_dot")
# these sum products; and these square what they are given, so that large numbers leave few digits.
PRODUCTS = ("mm", "matmul", "conv", "linear", "attention", "mv", "dot", "scaled_dot")
SQUARES = ("var", "norm", "std", "rsqrt", "square", "pow")
# Of these some look at no place before they go there: a wrong one ends the process instead of raising.
UNCHECKED = ("sparse", "jagged", "nested", "segment")


def takes_shifts(kind, seen):
    """Do draws of FAR_DOWN or OPPOSED say anything of a task with these operators?"""
    return names_any(seen, SHIFTED) and not names_any(seen, SQUARES) and \
        names_any(seen, PRODUCTS) == (kind == OPPOSED)


def takes_far_out(seen):
    """Sums of products hide it, and masks of large negative numbers are honest beside scores; a place on a grid need
    not be a whole number of 32 bits; a loop that asks for values may take many more rounds."""
    return not names_any(seen, (*PRODUCTS, "grid_sampler", "_local_scalar_dense"))


def names_any(seen, words):
    """Does the name of an operator in seen ('aten::..') hold one of the words?"""
    return any(w in name for name in seen for w in words)


def longest_axis(leaves):
    """Of the floating arguments: a whole number up to it may be a place in one of them, whoever reads it."""
    return max((n for t in leaves if t.is_floating_point() for n in t.shape), default=0)


def is_number(leaf, longest):
    """Whole numbers that may be values: wide types of more than masks, lengths and places up to longest, bytes of more
    than codes."""
    if leaf.numel() < 2 or leaf.dtype not in (torch.int64, torch.int32, torch.uint8, torch.int8):
        return False
    least, most = int(leaf.min()), int(leaf.max())
    if leaf.element_size() == 1:
        return least < most and max(most, -least) >= CODES
    return least < most and (least < 0 or most > longest)


LONG = 1 << 40   # whole numbers of 64 bits become so large
NATURAL = 64     # times its least, at least, is the largest of whole numbers that may be negative as well


def numbers_changed(kind, leaf, gen, sums_grow=False):
    """Whole numbers that are values in a draw of a kind of NUMBERS."""
    least, most = int(leaf.min()), int(leaf.max())
    if kind == NUMBERS[0]:
        return widened(leaf, sums_grow)
    if is_ascending(leaf):  # positions, offsets
        return leaf
    if kind == NUMBERS[1]:
        sign = torch.randint(2, leaf.shape, generator=gen).to(leaf) * 2 - 1
        return leaf * sign if leaf.dtype != torch.uint8 and most >= NATURAL * max(least, 1) else leaf
    return leaf * (LONG // most) if leaf.dtype == torch.int64 and 0 <= least and leaf.numel() < 1 << 20 else leaf


def widened(leaf, sums_grow=False):
    """sums_grow: a narrow type's answers are of a wide one, so that its own sums need not hold."""
    top = max(abs(int(leaf.min())), abs(int(leaf.max())), 1)
    if leaf.element_size() == 1:
        return leaf * (torch.iinfo(leaf.dtype).max // top or 1)
    if sums_grow and leaf.dtype == torch.int32:
        return leaf * max((1 << 30) // top, 1)
    most = (1 << 62 if leaf.dtype == torch.int64 else 1 << 30) // max(leaf.numel(), 1)
    return leaf * min(WIDE, max(most // top, 1))


# Places ---------------------------------------------------------------------------------------------------------------

# Operators that single out a place of -1.
COMPARED = {"aten::" + n for n in ("ge", "gt", "le", "lt", "ne", "clamp", "clamp_min")}


def named_sentinel(source):
    """The label that a task leaves out by name; None where it names none."""
    found = re.search(r"ignore_index\s*=\s*(-\d+)", source)
    return int(found[1]) if found else None


def is_compared(seen):
    return any(name.split(".")[0] in COMPARED for name in seen)


def is_ascending(leaf):
    return bool((leaf.reshape(-1).diff() >= 0).all())


def has_distinct_lines(leaf):
    """In no line of several does a number stand twice: each token's experts, orders."""
    return leaf.dim() > 1 and leaf.shape[-1] > 1 and bool((leaf.sort(-1).values.diff(dim=-1) > 0).all())


def names_places(leaf):
    """Whole numbers of which some stand several times: labels, places, rows of edges."""
    if leaf.dtype not in (torch.int64, torch.int32) or leaf.numel() < 8 or has_distinct_lines(leaf):
        return False
    n = len(leaf.unique())
    return 3 < n < leaf.numel() and int(leaf.min()) >= 0


def follows_from(leaf):
    """May this one be worked out of another one: offsets, counts, an order?"""
    flat = leaf.reshape(-1)
    if leaf.dtype not in (torch.int64, torch.int32) or flat.numel() < 2:
        return False
    return bool(flat[0] == 0) and is_ascending(leaf) or len(flat.unique()) == flat.numel()


def free_places(leaves):
    """Which of the leaves name places that may be others; none where one may follow from another."""
    out = [i for i, t in enumerate(leaves) if names_places(t)]
    return [] if any(follows_from(t) for i, t in enumerate(leaves) if [i] != out) else out


def without_some(leaf, gen):
    """A quarter of the values that stand in leaf stand there no more, but the least and the largest do: others are
    named in their place, in an ascending leaf the ones before them."""
    named = leaf.unique()
    inner = torch.arange(1, len(named) - 1)[torch.randperm(len(named) - 2, generator=gen)[:max(1, len(named) // 4)]]
    to = torch.arange(len(named))
    for k in inner.sort().values.tolist():
        to[k] = to[k - 1]
    return named[to.to(leaf.device)][torch.searchsorted(named, leaf)]


def crowded(leaf, gen):
    """All values of leaf but its least and its largest are one of them: a counter, a bin, a segment holds nearly all.
    Where there is no order, the first half is a run of it."""
    named = leaf.unique()
    to = torch.full((len(named),), len(named) // 2)
    to[0], to[-1] = 0, len(named) - 1
    out = named[to.to(leaf.device)][torch.searchsorted(named, leaf)]
    if not is_ascending(leaf):
        ends = [int(leaf.reshape(-1).argmin()), int(leaf.reshape(-1).argmax())]
        run = torch.arange(leaf.numel(), device=leaf.device).reshape(leaf.shape) < leaf.numel() // 2
        run.view(-1)[ends] = False
        out = out.masked_fill(run, int(named[len(named) // 2]))
    return out


def with_sentinels(leaf, gen, value=-1):
    mark = torch.rand(leaf.shape, generator=gen) < 1 / 8
    mark.view(-1)[leaf.numel() // 2] = True
    return leaf.masked_fill(mark.to(leaf.device), value)


def is_offsets(leaf):
    """Places in ascending order, each once: positions, a table of blocks, where sequences begin. A few that leave
    none out are an order."""
    return (leaf.dtype in (torch.int64, torch.int32) and leaf.dim() == 1 and leaf.numel() >= 4 and
            int(leaf.min()) >= 0 and bool((leaf.diff() > 0).all()) and
            (leaf.numel() >= 8 or bool((leaf.diff() > 1).any())))


def movable(leaves, numbers):
    """The one leaf whose places may move: nothing else among the arguments may follow from it."""
    out = [i for i, t in enumerate(leaves) if is_offsets(t)]
    whole = [i for i, t in enumerate(leaves) if not t.is_floating_point() and t.dtype != torch.bool and i not in out]
    alone = len(out) == 1 and all(names_places(leaves[i]) and not is_ascending(leaves[i]) for i in whole)
    return out if alone and all(isinstance(n, float) or abs(n) < 2 or not may_tell(leaves[out[0]], n)
                                for n in numbers) else []


def may_tell(leaf, number):
    """May a whole number have been worked out of places in order: how many, how far, the largest gap?"""
    steps = leaf.diff()
    ends = (leaf.numel(), int(leaf[-1]), int(steps.max()), int(steps.min()))
    return any(abs(abs(number) - end) < 2 for end in ends)


def moved(leaf, gen):
    """Still in order, between the same ends. Where there is room between them no two are alike; else some stand twice,
    others no more."""
    n, gap = leaf.numel(), int(leaf.diff().min())
    if gap >= 3:
        most = (gap - 1) // 2
        step = torch.randint(-most, most + 1, (n,), generator=gen)
        step[0] = step[-1] = 0
        step[n // 2] = most
        return leaf + step.to(leaf)
    at = (torch.arange(n) + torch.randint(-1, 2, (n,), generator=gen)).clamp(0, n - 1)
    at[0], at[-1], at[n // 2] = 0, n - 1, n // 2 - 1
    return leaf[at.sort().values.to(leaf.device)]


def is_table(leaf):
    """Places of which each stands once, in rows (a table of blocks), or in no order."""
    return (leaf.dtype in (torch.int64, torch.int32) and leaf.dim() > 0 and leaf.numel() >= 4 and
            int(leaf.min()) >= 0 and len(leaf.unique()) == leaf.numel() and
            (leaf.dim() > 1 and leaf.shape[0] > 1 or not is_ascending(leaf)))


def tables(leaves):
    """The one leaf whose places may change places; none where another one may follow from it, or it from that one."""
    out = [i for i, t in enumerate(leaves) if is_table(t)]
    others = [t for i, t in enumerate(leaves) if [i] != out]
    if len(out) != 1 or any(names_places(t) or follows_from(t) for t in others):
        return []
    lines = leaves[out[0]].dim() > 1 or all(t.is_floating_point() or t.numel() < 2 for t in others)
    return out if lines else []


def places_exchanged(leaf, gen):
    """The same places in another order; rows that ascend still do."""
    out = leaf.reshape(-1)[torch.randperm(leaf.numel(), generator=gen).to(leaf.device)].reshape(leaf.shape)
    return out.sort(-1).values if bool((leaf.diff(dim=-1) > 0).all()) else out


def places_changed(kind, leaf, gen, sentinel=None):
    if kind == PLACING[1] and sentinel is not None:
        return with_sentinels(leaf, gen, sentinel)
    return {PLACING[0]: without_some, PLACING[1]: with_sentinels, PLACING[2]: moved,
            PLACING[3]: crowded, PLACING[4]: places_exchanged}[kind](leaf, gen)


# Masks ----------------------------------------------------------------------------------------------------------------


def is_mask(leaf):
    """Ones and zeros, in rows of which some have more ones than others: no rows of one hot."""
    if leaf.dim() < 2 or not 0 < leaf.numel() <= MASK_MOST or leaf.is_complex() or any(st == 0 for st in leaf.stride()):
        return False
    if leaf.dtype != torch.bool and not bool(((leaf == 0) | (leaf == 1)).all()):
        return False
    ones = leaf.double().sum(-1)
    return bool((ones.min() < ones.max()))


def is_triangle(leaf):
    """Is one side of the diagonal empty, and not by chance? Few flags in wide rows may leave it so."""
    whole = torch.ones(leaf.shape[-2:], dtype=torch.bool, device=leaf.device)
    for kept, side in ((leaf.tril(), whole.tril()), (leaf.triu(), whole.triu())):
        if torch.equal(kept, leaf):
            share = float((leaf != 0).double().mean()) * side.numel() / int(side.sum())
            empty = int((~side).sum()) * (leaf.numel() // side.numel())
            return (1 - min(share, 1)) ** empty < BY_CHANCE
    return False


def is_free_mask(leaf):
    return is_mask(leaf) and not is_triangle(leaf)


def is_triangular_mask(leaf):
    return leaf.dtype == torch.bool and is_mask(leaf) and is_triangle(leaf) and leaf.shape[-1] == leaf.shape[-2]


def thinned(leaf, gen):
    """A third of the ones beside the diagonal are none. A row that would be empty stays as it is."""
    n = leaf.shape[-1]
    mark = (torch.rand(leaf.shape, generator=gen) < 1 / 3) & ~torch.eye(n, dtype=torch.bool)
    out = leaf.masked_fill(mark.to(leaf.device), 0)
    empty = out.double().sum(-1, keepdim=True) == 0
    return torch.where(empty, leaf, out)


def is_graph(leaf):
    return is_free_mask(leaf) and leaf.shape[-1] == leaf.shape[-2] > 3


def chain(leaf):
    """Each row allows the next one alone, the last row itself. Where all allow themselves or each other, that stays."""
    n = leaf.shape[-1]
    one = torch.diag(torch.ones(n - 1), 1)
    one[-1, -1] = 1
    if bool((leaf.diagonal(dim1=-2, dim2=-1) == 1).all()):
        one += torch.eye(n)
    if torch.equal(leaf, leaf.mT):
        one += one.T
    return one.clamp(max=1).to(leaf).expand(leaf.shape).clone()


def emptied(leaf, gen):
    """A third of the rows, and one at least, hold no one; a third, and the first, one alone, behind their half."""
    n, part = leaf.shape[-1], torch.rand(leaf.shape[:-1], generator=gen)
    part.view(-1)[0], part.view(-1)[-1] = 1, 0
    at = torch.randint(n // 2, n, leaf.shape[:-1], generator=gen)
    one = torch.arange(n) == at[..., None]
    out = leaf.masked_fill(((part < 1 / 3)[..., None] | (part > 2 / 3)[..., None] & ~one).to(leaf.device), 0)
    return out.masked_fill(((part > 2 / 3)[..., None] & one).to(leaf.device), 1)


# Numbers that are no tensors ------------------------------------------------------------------------------------------

# In the name of an argument: another number is another task, or one that a program is written for.
SETTLED = ("dim", "axis", "axes", "size", "head", "group", "num", "block", "chunk", "stride", "kernel", "dilation")
LEAST = 1e-3                       # smaller ones (an eps) hardly show
FACTORED = 8                       # whole numbers, at most, of which products are sizes


def is_plain_number(v):
    return isinstance(v, (bool, int, float))


def numbers_of(tree, name=""):
    """[(number, the name of the argument that it belongs to)]; True and False are numbers."""
    if isinstance(tree, dict):
        return [n for v in tree.values() for n in numbers_of(v, name)]
    if isinstance(tree, (list, tuple)):
        return [n for v in tree for n in numbers_of(v, name)]
    return [(tree, name)] if is_plain_number(tree) else []


def numbers_said(given, new):
    """Which numbers of [(number, name)] are others in new, in words."""
    return ", ".join(f"{name or 'a number'} = {n} (was {old})" for (old, name), n in zip(given, new) if n != old)


def numbers_put(tree, new):
    """The tree with its numbers from the iterator new."""
    if isinstance(tree, dict):
        return {k: numbers_put(v, new) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)) and type(tree) in (list, tuple):
        return type(tree)(numbers_put(v, new) for v in tree)
    return next(new) if is_plain_number(tree) else tree


def other_numbers(number, name, sizes=()):
    """Other values for it, the best first; none where it may say what the task is: sizes, axes, counts. A whole number
    that divides sizes may be a number of parts: another one divides them too. Odd ones (of windows) stay odd."""
    if any(w in name for w in SETTLED):
        return []
    if isinstance(number, bool):
        return [not number]
    if isinstance(number, float):
        return [number * 0.75] if LEAST <= abs(number) < 1e30 else []
    if number == 0:
        return [1]
    divided = [n for n in sizes if number > 1 and n % number == 0]
    if divided:
        prime = next(p for p in range(2, number + 1) if number % p == 0)
        return [number // prime] + [2 * number] * all(n % (2 * number) == 0 for n in divided)
    step = 1 if abs(number) < 3 else 2
    return [number - step, number + step, -number]


def sizes_among(numbers, leaves):
    """Those whole numbers that tell how large the tensors are: an axis, all elements, or a factor of a flat tensor's,
    beside the other factors. The reference may read such a number as a scale; a program strides by it."""
    whole = [n for n in numbers[:FACTORED] if isinstance(n, int) and not isinstance(n, bool) and n > 1]
    known = {n for t in leaves for n in (*t.shape, t.numel())}
    several = (some for k in range(1, 5) for some in itertools.combinations(whole, k))
    return {n for some in several if math.prod(some) in known for n in some}


# Constant arguments ---------------------------------------------------------------------------------------------------


def uniform(leaf, gen):
    return torch.rand(leaf.shape, generator=gen, dtype=torch.float64).to(leaf.device)


def around(leaf, c, gen):
    return (c * (0.5 + uniform(leaf, gen))).to(leaf.dtype)


def signed(leaf, c, gen):
    sign = torch.where(uniform(leaf, gen) < 0.5, -1.0, 1.0)
    return (sign * c * (0.5 + uniform(leaf, gen))).to(leaf.dtype)


def offsets(leaf, c, gen):
    return (uniform(leaf, gen) - 0.5).to(leaf.dtype)


def positive(leaf, c, gen):
    return uniform(leaf, gen).to(leaf.dtype)


def coins(leaf, c, gen):
    """c, or what a mask holds elsewhere."""
    other = torch.full_like(leaf, (not c) if leaf.dtype == torch.bool else 0 if c else 1)
    return torch.where(uniform(leaf, gen) < 0.6, leaf, other)


def coins_and_none(leaf, c, gen):
    """The last row has the other value alone."""
    out = coins(leaf, c, gen)
    if out.dim() > 1:
        out.view(-1, out.shape[-1])[-1] = 0 if c else 1
    return out


def coins_but_first(leaf, c, gen):
    """No row is all masked."""
    out = coins(leaf, c, gen)
    if out.dim():
        out[..., 0] = leaf[..., 0]
    return out


def lengths(leaf, c, gen):
    return (1 + (uniform(leaf, gen) * int(c)).long().clamp(max=int(c) - 1)).to(leaf.dtype)


def constant_value(leaf):
    """What the argument is everywhere; None where it is not one finite value."""
    if leaf.is_complex() or leaf.numel() < 2 or any(s == 0 and n > 1 for s, n in zip(leaf.stride(), leaf.shape)):
        return None
    c = leaf.reshape(-1)[0]
    return c.item() if bool((leaf == c).all()) and bool(torch.isfinite(c)) else None


def ways_of(leaf, c):
    """[[way, another one where the reference does not stand it, ..], ..]: each list gives one way, or none."""
    masks = [coins_and_none, coins, coins_but_first]
    if leaf.dtype == torch.bool:
        return [masks]
    if not leaf.is_floating_point():
        return [masks] if c in (0, 1) else [[lengths]] if c > 1 else []
    if c == 0:
        return [[offsets, positive]]
    return [[signed, around], masks] if c == 1 else [[signed, around]]


def domain_of(leaf, stands, gen):
    """The ways in which a constant argument varies, none for others. stands(value): does the reference stand it?"""
    c = constant_value(leaf)
    if c is None:
        return []
    out = []
    for ways in ways_of(leaf, c):
        way = next((w for w in ways if stands(w(leaf, c, gen))), None)
        if way:
            out.append(way)
    return out


def vary(leaf, domain, phase, gen):
    """A constant argument in a draw: as it is in each third one, and in each way of its domain by turns."""
    ways = [None] + (domain if len(domain) > 1 else domain * 2)
    way = ways[phase % 3]
    return way(leaf, constant_value(leaf), gen) if way else leaf
