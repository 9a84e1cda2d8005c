"""streamed.py - the reference side of tasks whose values would fill a device several times: no value is kept that can
be made again (docs/internals/memory.md). Inputs lie in one area of the judge's, which the executor maps too; expected
values are made when the judge asks, leave in tiles through a second area, and are dropped. Values come from
reference.py's distributions, drawn in place.

Requests, beside reference.py's task (with "small", where tests want small tasks to be large) and facts; replies are
{"ok":true,..} or reference.py's errors:
    inputs                   -> {"inputs":{"tree","nbytes","kinds","output_bytes"}}: how one draw's inputs lie in their
                                area, of which kind each is (Task.kind_of), and bytes of the answer (null: not known)
    areas {"inputs","tile"}  -> {} maps both (specs of area.py; two descriptors)
    next                     -> {"draw":{"regime","trial","inputs","eager","oracle","noise","mutates"}}, trees
                                without values, or {"end":true,"skipped"}. The area's content is lost
    lay {"regime","trial","other"} -> {} the draw's inputs lie in the area; other: some of the same kind, for calls that
                                are not judged
    fresh {"seed"}           -> {} inputs of the same kind that no call met before, the same ones for the same seed:
    after
                                lay, in place of what can be drawn in place (Fresh)
    expect {"regime","trial","own"} -> {"truth":"double"|"rows"|"own"}: the draw's inputs lie in the area, and expected
                                values are there until drop. double: in double, whole. rows: in double, made a tile at a
                                time. own: the reference's own answer, also where that is asked for
    tile {"leaf","from","n","own"} -> {"dtype"} elements [from, from + n) of an output, in C order, at the tile area's
                                start; own: of the reference's own answer
    drop                     -> {} the device's memory is given back
    frames                   -> reference.py's answer to a task without an area: all draws, with their values
    state {"at","n"}         -> {} and bytes [at, at + n) of facts' "state_values", whose own bytes facts leaves out
"""
import copy
import gc
import importlib
import math
import time

import torch

import area
import frame
import reference
import structure
import values
from reference import REGIMES, Refused, Skip, derive

ALIGN = 512        # bytes between the starts of two inputs, at least; as much lies behind each
SMALL = 1 << 24    # elements of the largest input or output; up to so many the oracle is made as a whole, with what
                   # rounding moves. Half as many tell a large task's noise, twice as many are made in double at once
USUALLY_SMALL = SMALL
KEPT_INPUTS = 1 << 28  # bytes of masks and labels that stay on the device between two draws
PUBLISHED_BYTES = 12 << 30  # of host memory for inputs that the published code draws there
PATIENCE_S = 2.0   # of one draw's truth in double; where it takes longer the reference's own answer is expected
EVERY_S = 0.25     # where it takes longer than this only the first draw of each distribution has it


class Layout(values.Packer):
    """Where each input lies in the area: as in memory, so with its strides."""

    def tensor(self, t):
        span = span_of(t)
        desc = {"t": "tensor", "dtype": str(t.dtype)[6:], "shape": list(t.shape), "strides": list(t.stride()),
                "offset": self.size, "nbytes": span}
        self.size += -(-(span + ALIGN) // ALIGN) * ALIGN
        return desc


def extent_of(t):
    return 1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride())) if t.numel() else 0


def span_of(t):
    return extent_of(t) * t.element_size()


def storage_of(t):
    """Everything between t's first and last element, flat."""
    return t.as_strided((extent_of(t),), (1,))


def is_plain(t):
    """Nothing about t's values is to be kept, and each place in memory is one element: it can be drawn in place."""
    if reference.keeps_distribution(t) or extent_of(t) != t.numel():
        return False
    looks = (structure.is_probability, structure.is_unit, structure.is_symmetric, structure.order_of,
             structure.has_pattern, structure.has_special)
    return not any(look(t) for look in looks)


def draw_in_place(flat, regime, gen, trial):
    """reference.filling, without a copy; the same distributions, other bits."""
    if regime == "normal":
        flat.normal_(0, 1, generator=gen)
    elif regime == "uniform":
        flat.uniform_(0, 1, generator=gen)
    elif regime == "signed":
        flat.uniform_(-3, 3, generator=gen)
    elif regime == "large":
        flat.normal_(0, 100, generator=gen)
    else:
        step, shift = 3 + 2 * (trial % 4), int(torch.randint(17, (1,), generator=gen, device=gen.device))
        for at in range(0, flat.numel(), (2 * SMALL)):
            part = flat[at:at + (2 * SMALL)]
            i = torch.arange(at, at + part.numel(), device=flat.device)
            part.copy_((i * step + i.div(13, rounding_mode="floor") * 5 + shift) % 17 - 8)


def make_other(flat):
    """Other values of the same kind: backwards, and floats halved, so that they stay in the task's domain."""
    half = flat.numel() // 2
    for at in range(0, half, (2 * SMALL)):
        n = min((2 * SMALL), half - at)
        low, high = flat[at:at + n], flat[flat.numel() - at - n:flat.numel() - at]
        kept = low.clone()
        low.copy_(high.flip(0))
        high.copy_(kept.flip(0))
    if flat.dtype in (torch.float32, torch.float64):
        flat.mul_(0.5)


def views_of(place, tree):
    """The tensors of a tree that lie in an area, in the tree's order."""
    blob = place.blob if isinstance(place.blob, torch.Tensor) else torch.frombuffer(place.blob, dtype=torch.uint8)
    found = []

    def look(node):
        if isinstance(node, dict) and node.get("t") == "tensor":
            flat = blob[node["offset"]:node["offset"] + node["nbytes"]].view(getattr(torch, node["dtype"]))
            found.append(flat.as_strided(node["shape"], node["strides"]))
        elif isinstance(node, dict):
            look(node.get("v"))
        elif isinstance(node, list):
            for x in node:
                look(x)

    look(tree)
    return found


def hollow(tree):
    """The value of a tree, with empty tensors."""
    def look(node):
        if isinstance(node, dict) and node.get("t") == "tensor":
            return dict(node, shape=[0], strides=[1], offset=0, nbytes=0)
        if isinstance(node, dict) and "v" in node:
            return dict(node, v=look(node["v"]))
        return [look(x) for x in node] if isinstance(node, list) else node

    return values.decode(look(tree), b"")


def near(a, b, share):
    """Is each element of a within that share of b's largest? A part at a time."""
    top = max(abs(float(x)) for x in torch.aminmax(b))
    return all(bool(((x - y).abs() <= share * top).all())
               for x, y in zip(a.reshape(-1).split(SMALL), b.reshape(-1).split(SMALL)))


class Fresh:
    """Inputs like those that lie in the area, others for each seed, and the same in each process that maps it. Timed
    calls have them. What has no structure is drawn in place: in a regime as the regime's draws are, else between the
    least and the largest value there is, or normal where some are negative. What is small and has a structure is made
    smaller as a whole. Masks and labels stay as they are: small ones are put back each time."""

    def __init__(self, views, kinds, regime):
        self.plain, self.shaped, self.kept, self.regime = [], [], [], regime
        room = KEPT_INPUTS
        for i, (view, kind) in enumerate(zip(views, kinds)):
            if not view.numel():
                continue
            flat = storage_of(view)
            if kind == "plain" and view.is_floating_point():
                self.plain.append((i, flat, None if regime in REGIMES else self.law(flat)))
            elif span_of(view) <= room:
                room -= span_of(view)
                varies = kind == "shaped" and view.is_floating_point() and not (
                    structure.is_probability(view) or structure.is_unit(view))
                (self.shaped if varies else self.kept).append((i, flat, flat.clone()))

    @staticmethod
    def law(flat):
        low, high = (float(x) for x in torch.aminmax(flat))
        if low >= 0:
            return "uniform", low, high
        parts = [(p.double().sum().item(), p.double().square().sum().item()) for p in flat.split(SMALL)]
        mean, square = (sum(p[k] for p in parts) / flat.numel() for k in (0, 1))
        return "normal", mean, math.sqrt(max(square - mean * mean, 0.0))

    def leaves(self):
        return [i for i, _, _ in self.plain + self.shaped]

    def draw(self, seed):
        seed &= (1 << 62) - 1
        gen = torch.Generator(reference.PLACE).manual_seed(seed)
        for _, flat, law in self.plain:
            if law is None:
                draw_in_place(flat, self.regime, gen, seed % 8)
            elif law[0] == "uniform":
                flat.uniform_(law[1], max(law[2], law[1] + 1e-6), generator=gen)
            else:
                flat.normal_(law[1], law[2], generator=gen)
        for _, flat, base in self.kept:
            flat.copy_(base)
        for _, flat, base in self.shaped:
            torch.mul(base, 0.75 + 0.25 * (seed % 65521) / 65521, out=flat)


def sums_of(leaves):
    """Of each tensor's bytes, a part at a time (torch widens what it sums): what changes in place changes it."""
    out = []
    for t in leaves:
        words = storage_of(t).view(torch.uint8)
        words = words[:words.numel() // 4 * 4].view(torch.int32)
        out.append([(int(w.sum()), int(w[1::2].sum())) for w in words.split(2 * SMALL)])
    return out


def all_finite(v):
    """As reference.finite, in one pass and without a mask: a tensor may be of gigabytes."""
    for t in values.leaves(v):
        if t.is_complex():
            t = torch.view_as_real(t)
        if t.is_floating_point() and t.numel() and not all(map(math.isfinite, (float(x) for x in torch.aminmax(t)))):
            return False
    return True


def settle():
    if reference.PLACE.type == "cuda":
        torch.cuda.synchronize()


def elements(*trees):
    return max([t.numel() for tree in trees for t in values.leaves(tree)] + [0])


def forward(model, inputs, seed=0):
    """As reference.run, without copies of the inputs."""
    m = copy.deepcopy(model)
    reference.seed_all(seed)
    with torch.no_grad():
        return m(*inputs)


# Rows -----------------------------------------------------------------------------------------------------------------


class Rows:
    """A task whose outputs' first dimension is made of rows that forward treats one by one. sliced[i]: input i has
    them."""

    def __init__(self, n, sliced):
        self.n, self.sliced = n, sliced

    def part(self, inputs, pick):
        """inputs of some rows; pick: what of a tensor they are."""
        at = iter(self.sliced)
        return values.map_tensors(inputs, lambda t: pick(t) if next(at) else t)

    def between(self, inputs, a, b):
        return self.part(inputs, lambda t: t[a:b])

    def ends(self, inputs, k):
        """The first and the last k rows."""
        return self.part(inputs, lambda t: ends_of(t, k))


def ends_of(t, k):
    return torch.cat([t[:k], t[-k:]]) if t.shape[0] > 2 * k else t


def guesses(inputs, n):
    """Which inputs may have rows: all whose first dimension has n, then only the first of them."""
    has = [t.dim() > 0 and t.shape[0] == n for t in values.leaves(inputs)]
    if not any(has):
        return []
    first = [i == has.index(True) for i in range(len(has))]
    return [has] if has == first else [has, first]


def close(a, b):
    """The same up to the order of sums in another kernel."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    top = float(b.abs().max()) if b.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-3, atol=1e-3 * top, equal_nan=True)


def alone(model, rows, inputs, eager, at, k):
    """Are the answers of k rows from 'at' on those of the whole, and the same whatever the next k rows hold?"""
    pair = rows.between(inputs, at, at + 2 * k)
    changed = rows.part(pair, lambda t: torch.cat([t[:k], t[k:].flip(-1) * 2 if t.is_floating_point() else t[k:]]))
    a, b = forward(model, pair), forward(model, changed)
    for x, y, whole in zip(values.leaves(a), values.leaves(b), values.leaves(eager)):
        top = float(x[:k].abs().max()) if x.is_floating_point() and x.numel() else 0.0
        steady = torch.equal(x[:k], y[:k]) or x.is_floating_point() and reference.max_diff(x[:k], y[:k]) <= 1e-6 * top
        if not steady or not close(x[:k], whole[at:at + k]):
            return False
    return True


def rows_of(model, inputs, eager):
    """Rows, or None."""
    outs = values.leaves(eager)
    n = outs[0].shape[0] if outs and outs[0].dim() else 0
    if n < 2 or any(t.dim() == 0 or t.shape[0] != n for t in outs):
        return None
    k = max(1, min(n // 2, SMALL // 2 * n // max(1, elements(inputs, eager))))
    for sliced in guesses(inputs, n):
        rows = Rows(n, sliced)
        try:
            if alone(model, rows, inputs, eager, 0, k) and alone(model, rows, inputs, eager, n - 2 * k, k):
                return rows  # at both ends: an answer may depend on where its row is
        except torch.OutOfMemoryError:
            raise
        except Exception:  # shapes that do not fit together
            continue
    return None


# Expected values ------------------------------------------------------------------------------------------------------


def wide_forward(wide, inputs):
    """wide: the model in double."""
    with reference.doubles():
        return forward(wide, values.map_tensors(inputs, reference.to_double))


class Expected:
    """One draw's expected values: of forward, and in double where that is to be had."""

    def __init__(self, model, inputs, eager, rows, truth):
        self.model, self.inputs, self.eager, self.rows, self.truth = model, inputs, eager, rows, truth
        self.wide = copy.deepcopy(model).double() if truth == "rows" else None
        self.whole, self.block = None, None

    def block_of(self, row):
        """(first row, answers) of the rows around this one, in double."""
        if self.block is None or not self.block[0] <= row < self.block[1]:
            self.block = None
            k = max(1, min(self.rows.n, (2 * SMALL) * self.rows.n // max(1, elements(self.inputs, self.eager))))
            a = row // k * k
            part = self.rows.between(self.inputs, a, a + k)
            self.block = (a, min(a + k, self.rows.n), values.leaves(wide_forward(self.wide, part)))
        return self.block

    def piece(self, leaf, at, n):
        """A tensor of at most n elements from 'at' on, in C order, in double where that is the truth."""
        own = values.leaves(self.eager)[leaf]
        if self.truth == "double":
            return flat_part(values.leaves(self.whole)[leaf], at, n)
        if self.truth == "own" or not own.is_floating_point():
            return flat_part(own, at, n)
        per = own.numel() // self.rows.n
        a, b, answers = self.block_of(at // per)
        return flat_part(answers[leaf], at - a * per, min(n, b * per - at))


def flat_part(t, at, n):
    """Elements [at, at + n) in C order, or fewer; without a copy of a whole that is large."""
    if t.is_contiguous() or t.numel() <= (2 * SMALL):
        return t.reshape(-1)[at:at + n]
    per = t.numel() // t.shape[0]
    if per > (2 * SMALL) and t.dim() > 1:
        return flat_part(t[at // per], at % per, n)
    a, b = at // per, min(t.shape[0], -(-(at + n) // per))
    return t[a:b].reshape(-1)[at - a * per:at - a * per + n]


def scaled(rows, factor_of):
    """Noise of a part, as that of the whole, whose largest value is another."""
    out = []
    for row, top in zip(rows, factor_of):
        f = max(1.0, top / row["max_abs"]) if row["max_abs"] > 0 and math.isfinite(top) else 1.0
        out.append(dict(row, n1=row["n1"] * f, n2=row["n2"] * f, max_abs=max(top, row["max_abs"])))
    return out


class Task(reference.Task):
    def __init__(self, req):
        super().__init__(req, there=False)
        self.leaf_kinds, self.kept, self.views, self.tile, self.fresh = None, {}, None, None, None
        self.rows, self.looked, self.private, self.mutates = None, False, False, None
        self.double_s = 0.0  # of forward in double, on all of a large draw; 0: not known yet
        self.spiked, self.expected_values, self.published_draws = {}, None, {}
        self.in_double = True  # can the task be run in double?
        self.laid = None     # the regime of what lies in the area
        self.laid_trial = 0

    # Inputs

    def raw(self, regime, trial):
        """The task's own inputs, as get_inputs makes them."""
        if self.req["protocol"] == "kernelbench":
            return self.published(trial)
        return self.variant.form(reference.task_draw(self.task, derive(self.seed, regime, trial)))

    def published(self, trial):
        """As the published code draws: on the CPU, which takes seconds for gigabytes. Once, as far as there is room."""
        if trial in self.published_draws:
            return self.published_draws[trial]
        _, s = reference.published_seed(trial, self.req["trials"], self.seed)
        raw = self.cast(reference.task_draw(self.task, s, torch.device("cpu")), self.everything)
        raw = values.map_tensors(raw, torch.Tensor.cpu)
        known = list(self.published_draws.values())
        if sum(span_of(t) for t in values.leaves(known + [raw])) <= PUBLISHED_BYTES:
            self.published_draws[trial] = raw
        return raw

    def takes(self, raw):
        """Can the reference take all tensors as floats?"""
        self.model = self.model.to(torch.float32)
        try:
            forward(self.model, values.map_tensors(raw, lambda t: t.to(reference.PLACE)))
            return True
        except torch.OutOfMemoryError:
            raise
        except Exception:
            return False

    def kind_of(self, t):
        return "plain" if is_plain(t) else "kept" if reference.keeps_distribution(t) else "shaped"

    def layout(self):
        """{"tree","nbytes"} of one draw's inputs."""
        self.arrive()
        raw = self.raw(self.regimes[0], 0)
        if self.req["protocol"] == "kernelbench" and not self.takes(raw):
            self.everything = False  # class indices stay whole
            self.published_draws.clear()
            raw = self.raw(self.regimes[0], 0)
        self.check_size("an input", values.leaves(raw))
        self.leaf_kinds = [self.kind_of(t) for t in values.leaves(raw)]
        p = Layout()
        self.tree = self.packed(p, raw, 0)["tree"]
        self.shape_of = values.map_tensors(raw, lambda t: t.new_empty(0))
        return {"tree": self.tree, "nbytes": p.size, "kinds": self.leaf_kinds, "output_bytes": self.output_bytes(raw)}

    def output_bytes(self, raw):
        """As forward gives them once; None where it does not stand these inputs."""
        try:
            out = forward(self.model, values.map_tensors(raw, lambda t: t.to(reference.PLACE)))
        except Exception:
            return None
        return sum(t.numel() * t.element_size() for t in values.leaves(out))

    def take(self, place):
        """The inputs' area: views of it, in the tree's order."""
        self.views = views_of(place, self.tree)

    def inputs(self):
        at = iter(self.views)
        given = values.map_tensors(self.shape_of, lambda t: next(at))
        return values.map_tensors(given, reference.clone) if self.private else given

    def lay(self, regime, trial, spiked=None, other=False):
        """The draw's inputs come into the area. spiked: reference.draw_inputs'; None: as the draw was first made."""
        self.live(regime)
        odd = regime != "task" and regime in REGIMES and trial % 2
        base = trial - 1 if odd else trial
        spiked = self.spiked.get((regime, trial), True) if spiked is None else spiked
        self.fill(regime, base)
        if odd:
            gen = torch.Generator().manual_seed(derive(self.seed, regime, trial, "nudge"))
            for view, kind in zip(self.views, self.leaf_kinds):
                self.nudge(view, kind, regime, gen, trial, spiked and regime == reference.SPIKED)
        if other:
            for view in self.views:
                if view.is_floating_point() and view.numel():
                    make_other(storage_of(view))

    def fill(self, regime, trial):
        drawn = regime in REGIMES
        raws = None
        if not drawn or any(k == "shaped" or k == "kept" and i not in self.kept for i, k in enumerate(self.leaf_kinds)):
            raws = values.leaves(self.raw(regime, trial))
        gen = torch.Generator(reference.PLACE).manual_seed(derive(self.seed, regime, trial))
        for i, (view, kind) in enumerate(zip(self.views, self.leaf_kinds)):
            if not view.numel():
                continue
            if drawn and kind == "plain":
                draw_in_place(storage_of(view), regime, gen, trial)
            elif drawn and kind == "shaped":
                self.copy_in(view, reference.refill(raws[i], regime, gen, trial))
            else:
                self.copy_in(view, self.kept[i] if raws is None else raws[i])

    def draw_fresh(self, seed):
        if self.fresh is None or self.fresh.regime != self.laid:
            self.fresh = Fresh(self.views, self.leaf_kinds, self.laid)
        self.fresh.draw(seed)

    def copy_in(self, view, t):
        if t.stride() == view.stride():
            storage_of(view).copy_(storage_of(t))
        else:
            view.copy_(t)

    def keep(self):
        """Small masks and labels stay: most tasks then need no draw of their own for the next inputs."""
        raws = None
        room = KEPT_INPUTS
        for i, (view, kind) in enumerate(zip(self.views, self.leaf_kinds)):
            if kind == "kept" and span_of(view) <= room and self.req["protocol"] != "kernelbench":
                raws = raws or values.leaves(self.raw(self.regimes[0], 0))
                self.kept[i] = raws[i].clone()
                room -= span_of(view)

    def nudge(self, view, kind, regime, gen, trial, spike):
        if kind == "kept" or any(st == 0 and n > 1 for st, n in zip(view.stride(), view.shape)):
            return
        if kind == "shaped":
            self.copy_in(view, reference.nudge(view, regime, gen, trial, spike))
            return
        at = torch.randint(view.numel(), (min(reference.NUDGED, view.numel()),), generator=gen)
        new = reference.filling("normal" if regime == "structured" else regime, len(at), gen, trial)
        for i, x in zip(at.tolist(), new.tolist()):
            pos = reference.position(i, view.shape)
            view[pos] = (float(view[pos]) + 9 + round(abs(x)) % 13) % 17 - 8 if regime == "structured" else x
        if spike:
            for pos, x in reference.spikes(view, gen, trial):
                view[pos] = x

    # Draws

    def run(self, model, inputs, seed=0):
        return forward(model, inputs, seed)

    def first_inputs(self):
        self.lay("task", 0)
        self.find_writes("task", 0)
        return self.inputs()

    def find_writes(self, regime, trial):
        """Once: tasks that write to their inputs get copies from then on."""
        self.eager(look=True)
        if self.mutates:
            self.private = True
            self.lay(regime, trial)

    def widen(self, own):
        """Large tasks have the draws of the distributions and their own. An answer of gigabytes does not stay."""
        self.own_answer = None

    def trials_of_kinds(self):
        return {}

    def drawn_from(self, regime, trial, spiked, domains=None):
        self.forget()
        self.spiked[regime, trial] = spiked
        self.lay(regime, trial, spiked)
        return self.facts_of(regime, trial)

    def kernelbench_draw(self, trial):
        self.forget()
        regime, _ = reference.published_seed(trial, self.req["trials"], self.seed)
        self.lay(regime, trial)
        return self.facts_of(regime, trial)

    def eager(self, look=False):
        """Forward on what lies in the area. look: which inputs does it write to?"""
        before = sums_of(self.views) if look else []
        with self.usage.forward():
            out = forward(self.model, self.inputs())
        if look:
            self.mutates = [i for i, (a, b) in enumerate(zip(before, sums_of(self.views))) if a != b]
        return out

    def facts_of(self, regime, trial):
        if self.mutates is None:
            self.find_writes(regime, trial)
        eager = self.eager()
        self.check_size("an output", values.leaves(eager))
        inputs = self.inputs()
        if elements(inputs, eager) > reference.HUGE:
            self.trials = min(self.trials, reference.HUGE_TRIALS)
        if regime in REGIMES and not all_finite(eager):
            raise Skip("the reference is not finite at its own precision")
        noise = self.noise_for(regime, trial, inputs, eager)
        p = values.Collector()
        out = {"tree": self.packed(p, eager, 0)["tree"], "at": 0, "nbytes": p.size}
        return {"regime": regime, "trial": trial, "inputs": {"tree": self.tree, "at": 0, "nbytes": 0}, "eager": out,
                "oracle": out, "noise": noise, "mutates": self.mutates}

    def noise_for(self, regime, trial, inputs, eager):
        if regime not in REGIMES and self.req["protocol"] == "kernelbench":
            return [{"n1": 0.0, "n2": 0.0, "fan_in": 1.0, "max_abs": 0.0, "dtype": str(t.dtype)[6:]}
                    for t in values.leaves(eager)]
        big = reference.large(self.model, inputs, eager)
        if trial and regime in self.noise and big:
            return reference.noise_again(self.noise[regime], eager)
        try:
            noise = self.measured(inputs, eager, derive(self.seed, regime, trial, "noise"))
        except (Skip, torch.OutOfMemoryError):
            raise
        except Exception as e:
            if regime in REGIMES:
                raise Skip("the oracle raises " + reference.one_line(e)) from e
            self.in_double = False
            noise = self.measured(inputs, eager, derive(self.seed, regime, trial, "noise"))
        self.noise.setdefault(regime, noise)
        return noise

    def measured(self, inputs, eager, seed):
        """The reference's error and what rounding the inputs moves: of all of a small task, of some rows of a large
        one."""
        if elements(inputs, eager) <= SMALL:
            return self.noise_between(inputs, eager, inputs, eager, seed)
        if not self.looked:
            self.rows, self.looked = rows_of(self.model, inputs, eager), True
        some, own = self.some_of(inputs, eager)
        noise = self.noise_between(some, own, inputs, eager, seed)
        if not self.double_s and self.in_double and not self.req.get("small"):  # what is made small is never slow
            self.double_s = self.time_double(some) * elements(inputs, eager) / elements(some, own)
        return scaled(noise, [reference.top_of(t) for t in values.leaves(eager)])

    def some_of(self, inputs, eager):
        """(inputs, answer) of some rows, which are a smaller task of the same kind where rows do not stand alone; all
        of them where nothing can be left out."""
        n = self.rows.n if self.rows else max([t.shape[0] for t in values.leaves(inputs) if t.dim()] + [1])
        k = max(1, SMALL // 2 * n // elements(inputs, eager) // 2)
        if self.rows:
            return self.rows.ends(inputs, k), values.map_tensors(eager, lambda t: ends_of(t, k))
        for sliced in guesses(inputs, n):
            try:
                some = Rows(n, sliced).ends(inputs, k)
                return some, forward(self.model, some)
            except torch.OutOfMemoryError:
                raise
            except Exception:  # shapes that do not fit together
                continue
        return inputs, eager

    def noise_between(self, inputs, eager, all_inputs, all_eager, seed):
        if self.in_double:
            with reference.doubles():
                oracle, shifts = reference.oracle_of(self.model, inputs, eager, seed)
        else:
            oracle, shifts = eager, reference.own_shifts(self.model, inputs, eager, seed)
        if not (all_finite(oracle) and all(map(math.isfinite, shifts))):
            raise Skip("the oracle is not finite")
        if not reference.shapes_agree(eager, oracle):
            raise Skip("the oracle has another shape")
        noise = reference.noise_of(eager, oracle, shifts, inputs, self.model)
        whole = [reference.fan_in(all_inputs, t, self.model) for t in values.leaves(all_eager)]
        return [dict(row, fan_in=m) for row, m in zip(noise, whole)]

    def time_double(self, inputs):
        """Seconds of forward in double."""
        wide = copy.deepcopy(self.model).double()
        settle()
        t0 = time.monotonic()
        wide_forward(wide, inputs)
        settle()
        return time.monotonic() - t0

    # Parameters

    def state_section(self, in_bytes):
        """Never with the bytes, which may be of gigabytes: state_part has them."""
        self.items, self.room = [], 0
        p = values.Collector()
        rows = reference.state_rows(self.model)
        kinds = [{"name": n, "kind": k, "dtype": str(t.dtype)[6:], "shape": list(t.shape)} for n, k, t in rows]
        section = self.packed(p, [t for _, _, t in rows], 0)
        self.state_items = p.items
        return kinds, section

    def state_part(self, at, n):
        """Bytes [at, at + n) of that section."""
        out = bytearray(n)
        for start, t, _, _ in self.state_items:
            a, b = max(start, at), min(start + t.numel() * t.element_size(), at + n)
            if a < b:
                flat = t.detach().contiguous().reshape(-1).view(torch.uint8)[a - start:b - start].cpu()
                out[a - at:b - at] = flat.numpy().tobytes()
        return bytes(out)

    # Expected values

    def forget(self):
        self.expected_values = None
        if reference.PLACE.type == "cuda":
            torch.cuda.empty_cache()

    def expect(self, own=False):
        self.forget()
        eager = self.eager()
        inputs = self.inputs()
        x = Expected(self.model, inputs, eager, self.rows, "own" if own else self.truth_of(inputs, eager))
        if x.truth == "double":
            try:
                x.whole = wide_forward(copy.deepcopy(self.model).double(), inputs)
            except torch.OutOfMemoryError:
                x.whole, x.truth = None, "own"
                self.double_s = math.inf
            if x.whole is not None and (not reference.shapes_agree(eager, x.whole) or not all_finite(x.whole)):
                x.whole, x.truth = None, "own"
        self.expected_values = x
        return x.truth

    def truth_of(self, inputs, eager):
        if not self.in_double or self.req["protocol"] == "kernelbench":
            return "own"
        if not any(t.is_floating_point() for t in values.leaves(eager)):
            return "own"
        if self.double_s > EVERY_S and self.laid_trial:
            return "own"
        if elements(inputs, eager) <= SMALL:
            return "double"
        return "own" if self.double_s > PATIENCE_S else "rows" if self.rows else "double"

    def put_tile(self, leaf, at, n, own):
        """Elements [at, at + n) of an output come to the tile area's start. -> their dtype"""
        x, done = self.expected_values, 0
        dtype = None
        while done < n:
            if own:
                piece = flat_part(values.leaves(x.eager)[leaf], at + done, n - done)
            else:
                piece = x.piece(leaf, at + done, n - done)
            dtype = piece.dtype
            if not piece.numel() or (done + piece.numel()) * piece.element_size() > self.tile.size:
                raise Refused("a tile is not within the output")
            self.tile.write(done * piece.element_size(), piece.contiguous(), values.Packer())
            done += piece.numel()
        return str(dtype)[6:]


class Server(reference.Server):
    """Its task's areas stay mapped."""

    def __init__(self, sock, device):
        super().__init__(sock, device, reuses=True)
        self.areas = []

    def op_task(self, req, fds):
        global SMALL
        self.source, SMALL = req["source"], req.get("small") or USUALLY_SMALL
        self.task, self.skipped = Task(req), {}
        published = req["protocol"] == "kernelbench"
        self.draws = self.task.kernelbench_draws({}) if published else self.task.strict_draws(self.skipped)
        return dict(self.task.sizes(), ok=True), []

    def op_inputs(self, req, fds):
        return {"ok": True, "inputs": self.task.layout()}, []

    def op_areas(self, req, fds):
        self.areas += [area.open_area(fds[0], req["inputs"], self.device),
                       area.open_area(fds[1], req["tile"], self.device)]
        self.task.take(self.areas[0])
        self.task.tile = self.areas[1]
        self.task.keep()
        self.task.forget()
        return {"ok": True}, []

    def op_next(self, req, fds):
        draw = next(self.draws, None)
        self.task.forget()
        if draw is None:
            return {"ok": True, "end": True, "skipped": self.skipped}, []
        return {"ok": True, "draw": draw, "size": 0, "memory": self.task.usage.facts()}, []

    def op_lay(self, req, fds):
        self.task.lay(req["regime"], req["trial"], other=req.get("other", False))
        self.task.laid, self.task.laid_trial = req["regime"], req["trial"]
        self.task.forget()
        self.task.tile.settle()
        return {"ok": True}, []

    def op_fresh(self, req, fds):
        self.task.draw_fresh(int(req["seed"]))
        self.task.tile.settle()
        return {"ok": True}, []

    def op_expect(self, req, fds):
        return {"ok": True, "truth": self.task.expect(req.get("own", False))}, []

    def op_tile(self, req, fds):
        dtype = self.task.put_tile(req["leaf"], req["from"], req["n"], req["own"])
        self.task.tile.settle()
        return {"ok": True, "dtype": dtype}, []

    def op_state(self, req, fds):
        return {"ok": True}, [self.task.state_part(req["at"], req["n"])]

    def op_drop(self, req, fds):
        self.task.forget()
        return {"ok": True, "memory": self.task.usage.facts()}, []

    def op_frames(self, req, fds):
        return super().op_task(req, fds)

    def drop(self):
        super().drop()
        gc.collect()  # views of the areas
        while self.areas:
            self.areas.pop().close()


def serve(sock, args):
    """As reference.serve."""
    torch.set_num_threads(1)
    reference.PLACE = torch.device((args or {}).get("place") or "cpu")
    s = Server(sock, importlib.import_module(reference.PLACE.type) if reference.PLACE.type != "cpu" else None)
    for req, _, fds in frame.requests(sock, frame.recv_fds):
        head, parts = s.answer(req, fds)
        frame.send(sock, reference.scrub(head), parts)
