"""reference.py - the reference side: draws inputs, runs Model in its own precision and in double, says how
ill-conditioned each draw is. Runs jailed in a child of the fork server; the candidate's process never sees any of
this.

Request {"op":"task","source","name","protocol":"strict"|"kernelbench","params":"random"|"seed","trials","seed",
"max_elements"} and, from a sidecar (src/task/sidecar.h), "variant":{"sizes","dtype","layout","numbers"},
"regimes":[..] and "effects":[..]; reply
{"ok":true, ...sections} or {"ok":false,"type","message","line","text"}. A section is {"tree","at","nbytes"}: a value
tree whose tensors' offsets count from blob[at].

With "area":true draws do not come with the reply but one at a time, as they are needed, through memory that the judge
shares (area.py), and nothing is on the device before the first next. The reply is {"ok":true,"state_bytes",
"input_bytes"}: of the model's parameters and buffers, and of one draw's inputs (null: get_inputs needs values).
    next                     -> {"ok":true,"draw":{..},"size":bytes}, or, after the last,
    {"ok":true,"end":true,"skipped"}
    facts {"bytes"}          -> everything but the draws, as above; after the first draw, which settles the mode.
    Without
                                bytes the state's values come with fill, like a draw's
    again {"regime","trial"} -> the same draw once more
    fill  {"area":spec|null} -> {"ok":true}: the last draw's values lie in the area (null: the one of the fill before);
                                sections' "at" count from its start

    clean                    -> {"ok":true,"left":text|null}: the task is gone; null: another one may follow (clean.py)
"""
import collections
import contextlib
import copy
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import linecache
import math
import random
import re
import types

import torch

import area
import clean
import defects
import frame
import home
import influence
import ops
import sizes
import structure
import values

FILE = "task.py"
REGIMES = ("normal", "uniform", "signed", "large", "structured")
SPIKED = "signed"  # the distribution whose odd trials have a few large elements, the last one among them
SECRET = "secret"  # protocol kernelbench: one draw more, as the published ones, of a seed that nobody knows
KERNELBENCH_SEED = 42
PLACE = torch.device("cpu")  # where inputs are drawn and Model runs: serve's "place". Models are constructed on the CPU
NUDGED = 8  # elements
SMALL = 1e-3  # odd trials of distribution "uniform" are so much smaller: an eps or a lower bound decides there
SMALL_MOST = 1 << 20  # elements; a larger task has one oracle for a distribution, whose noise hides what is small
OWN_TRIALS = 2  # draws of the task's own inputs, whatever they are
SPIKES = 8  # in a draw with large values: the last element, and others that nobody knows
TRIES = 8  # elements that must have been shaken before their movement says something
KEPT_BYTES = 1 << 30  # device memory that torch may keep between two draws
LARGE = 1 << 20  # elements; of a task with a larger tensor the first draw of each regime alone has an oracle
HUGE = 1 << 27  # elements; of a task with a larger input or output each regime has HUGE_TRIALS draws at most: one
HUGE_TRIALS = 2  # compares as many values as a hundred draws of others, and holds a gigabyte
PART = 1 << 24  # elements of a parameter that are drawn at once
LAWS = ("wild", "signed", "mild")  # how parameters are drawn: mild for most draws; gates of a wild set remember
WILD = 4.0      # the spread of vectors in a wild set
ROUNDS = (1 / 8, 1 / 2)  # of a loop's rounds: so many at its end must matter in some draw, the first that can
BOUNDED = 1 / 32  # of the elements that are bounded, so many lie beyond either bound in some draw
LARGEST = 8     # doublings of an input by which a loop may be made to need them
SHAPING = 8     # draws, at most, that are looked at for one without empty tensors
TOLD = 8.0      # tolerances: by so many an answer must move where a part of the inputs has influence
NUMBERS = 8     # among the inputs that are no tensors, at most, that others are sought for
FAR_AXES = 6    # of inputs, at most, that are looked at for it
SET_MOST = 1 << 22  # elements of parameters; a larger model has one set


class Refused(Exception):
    """The task cannot be judged; the message says why and what to do."""


class NoMemory(Exception):
    """The device's memory does not suffice now: nobody's fault."""


class TooLarge(Refused):
    """The task is larger than asked for, and that is all."""


class Skip(Exception):
    """This regime does not apply to this task; the message is recorded."""


def seed_all(seed):
    random.seed(seed)
    try:
        import numpy
        numpy.random.seed(seed % 2**32)
    except ImportError:
        pass
    # torch.manual_seed also tells devices that were never begun, which writes the stack down each time: 2 ms.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def copy_of(model):
    """copy.deepcopy; empty tables of hooks, of which a module has a dozen, are not sent through its machinery."""
    empty = [v for m in model.modules() for v in vars(m).values() if type(v) is collections.OrderedDict and not v]
    return copy.deepcopy(model, {id(v): collections.OrderedDict() for v in empty})


def derive(seed, *what):
    text = "/".join(str(x) for x in (seed,) + what)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


WORKLOAD = re.compile(r"^#@workload: (\{.*\})$", re.M)


def load(source):
    """The task's module. A line '#@workload: {"sizes","dtype","layout"}' (src/task/task.h) changes what it is."""
    source = source.lstrip("\ufeff")
    says = {}
    for line in WORKLOAD.findall(source):  # the last one of a kind holds
        says.update(json.loads(line))
    changed = Variant(says)
    source = changed.source(source)
    if PLACE.type == "cpu":
        home.stay(source)
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    module = types.ModuleType("task")
    exec(compile(source, FILE, "exec"), module.__dict__)
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(module.__dict__.get(name)):
            raise Refused(f"the task defines no {name}; a task defines Model, get_inputs and get_init_inputs")
    own = module.get_init_inputs
    module.get_init_inputs = lambda: home.arguments(module.Model, own())
    if changed.dtype or changed.layout:
        change(module, changed)
    module.in_dtype, module.shaped = changed.dtype, None
    module.sentinel, module.sums_grow, module.longest = influence.named_sentinel(source), False, 0
    return module


def change(module, variant):
    """The task in another dtype or layout, as if it were written so."""
    inputs, construction = module.get_inputs, module.Model.__init__

    @functools.wraps(construction)
    def __init__(self, *args, **kwargs):
        construction(self, *args, **kwargs)
        if variant.dtype:
            self.to(variant.dtype)

    module.Model.__init__ = __init__  # in place: the task's own text may say super(Model, self)
    module.get_inputs = lambda: variant.form(inputs())


def construct(task, init, seed):
    seed_all(seed)
    model = task.Model(**init) if isinstance(init, dict) else task.Model(*init)
    if any(torch.nn.parameter.is_lazy(t) for t in list(model.parameters()) + list(model.buffers())):
        with torch.no_grad():  # LazyLinear and friends have no weights before
            model(*task.get_inputs())
    return model


# Parameters -----------------------------------------------------------------------------------------------------------


def spread(x):
    """(mean, standard deviation) in double; a large tensor is not copied to double as a whole."""
    if x.numel() <= PART:
        return x.double().mean(), x.double().std()
    parts = x.reshape(-1).split(PART)
    mean = sum(p.double().sum() for p in parts) / x.numel()
    return mean, (sum((p.double() - mean).square().sum() for p in parts) / (x.numel() - 1)).sqrt()


def new_values(t, name, gen, law):
    """Non-trivial values of the same kind: norm weights leave 1, biases leave 0, variances stay positive. Drawn where t
    and gen are, in parts: a weight may be of gigabytes. Yields them in C order, flat, in double. law: of LAWS."""
    x = t.detach()
    flat = x.reshape(-1)
    constant = "running_" not in name and x.numel() > 0 and bool((flat == flat[0]).all())
    c = float(flat[0]) if constant else 0.0
    usable = x.numel() > 0 and bool(torch.isfinite(flat).all())
    mean, std = spread(flat) if usable and not constant else (0.0, 0.0)
    for part in flat.split(PART):
        noise = torch.rand(part.shape, generator=gen, dtype=torch.float64, device=gen.device)
        if name.endswith("running_var"):
            yield 0.5 + noise
        elif name.endswith("running_mean"):
            yield noise - 0.5
        elif not usable:
            yield part.double()
        elif constant and law == "mild":
            yield c * (0.5 + noise) if c else noise - 0.5
        else:
            normal = torch.randn(part.shape, generator=gen, dtype=torch.float64, device=gen.device).clamp(-3, 3)
            if constant:
                yield constant_in_regime(c, x.numel(), noise, normal, law)
            elif law == "wild" and x.dim() == 1:
                yield mean + max(float(std), WILD) * normal
            else:
                yield mean + std * normal


def constant_in_regime(c, n, noise, normal, law):
    """A parameter that is c everywhere as constructed: of both signs, and half of it of ordinary size, whatever c is.
    One number alone is above 1."""
    if n == 1:
        if c or law == "wild":  # a gate that remembers
            return math.copysign(1.25, c) * (1 + noise) if c else WILD * (0.6 + 0.4 * noise)
        return noise - 0.5
    if not c:
        return normal * (WILD if law == "wild" else 1.0)
    size = torch.where((noise * 64).floor() % 2 < 1, abs(c) * (0.5 + noise), 0.5 + 2 * noise)
    return torch.where(normal < 0, -size, size)


def renew(t, name, gen, law):
    """t gets new_values, a part at a time."""
    whole, at = t.detach(), 0
    flat = whole.view(-1) if whole.is_contiguous() else torch.empty(whole.numel(), dtype=whole.dtype,
                                                                    device=whole.device)
    for new in new_values(t, name, gen, law):
        flat[at:at + new.numel()] = new.to(flat.dtype)
        at += new.numel()
    if flat.numel() and not whole.is_contiguous():
        whole.copy_(flat.view(whole.shape))


def randomise(model, seed, law="mild"):
    gen = torch.Generator(PLACE).manual_seed(derive(seed, "parameters", law))
    running = [(n, b) for n, b in model.named_buffers() if n.endswith(("running_mean", "running_var"))]
    with torch.no_grad():
        for name, t in list(model.named_parameters()) + running:
            if t.is_floating_point():
                renew(t, name, gen, law)


def is_renewed(name, kind, t):
    return t.is_floating_point() and (kind == "param" or name.endswith(("running_mean", "running_var")))


def redraw_fixed(model, another):
    """What randomise leaves alone (integers, masks, tables) and the seed of the construction decides is data, and the
    candidate knows that seed: it gets the values of another one. What every construction makes alike stays."""
    fixed = {n: t for n, k, t in named_state(model) if not is_renewed(n, k, t) and t.numel() > 1}
    if not fixed:
        return
    with torch.no_grad():
        for name, _, other in named_state(another()):
            mine = fixed.get(name)
            if mine is not None and mine.shape == other.shape and not torch.equal(mine, other):
                mine.copy_(other)


def held(model):
    """{name: tensor} that modules hold beside parameters: buffers, attributes, lists of them."""
    own = [(n, k, v) for n, m in model.named_modules() for k, v in list(m._buffers.items()) + list(vars(m).items())
           if k not in ("_parameters", "_buffers", "_modules")]
    return {f"{n}.{k}.{i}": t for n, k, v in own for i, t in enumerate(values.leaves(v))}


def table_bytes(model, another):
    """Bytes of what each construction makes alike (tables of angles, masks, filters): a program may bring as much. -1
    where the task also holds what its seed decides and nothing lays: that could be folded."""
    mine, laid = held(model), {id(t) for _, _, t in named_state(model)}
    if not mine:
        return 0
    other = held(another())
    alike = {n for n, t in mine.items() if n in other and same(t, other[n])}
    if any(n not in alike and id(t) not in laid for n, t in mine.items()):
        return -1
    return sum(mine[n].numel() * mine[n].element_size() for n in alike)


def named_state(model):
    """[(name, "param"|"buffer", tensor)] in registration order; what state_dict leaves out is left out."""
    keep = set(model.state_dict().keys())
    return ([(n, "param", p) for n, p in model.named_parameters()] +
            [(n, "buffer", b) for n, b in model.named_buffers() if n in keep])


def state_rows(model):
    """named_state, and what state_dict leaves out as "constant": the candidate may hold the same, by its own
    construction."""
    keep = set(model.state_dict().keys())
    return named_state(model) + [(n, "constant", b) for n, b in model.named_buffers() if n not in keep]


# Inputs ---------------------------------------------------------------------------------------------------------------


def task_draw(task, seed, place=None):
    """Of a task whose get_inputs gives other shapes from call to call all draws have those of the first one, for a
    program's launches are of those sizes: a draw of others is the first one, until it is redrawn."""
    place = place or PLACE
    if task.shaped is None:
        task.shaped = shaping_draw(task, seed, place)
    inputs = seeded_draw(task, seed, place)
    return inputs if shapes_of(inputs) == task.shaped[1] else seeded_draw(task, task.shaped[0], place)


def shapes_of(inputs):
    return [t.shape for t in values.leaves(inputs)]


def shaping_draw(task, seed, place):
    """(the seed of the draw whose shapes all have, its shapes): the first, or one in which no tensor is empty."""
    first = shapes_of(seeded_draw(task, seed, place))
    for s in range(seed, seed + SHAPING * any(0 in shape for shape in first)):
        shapes = shapes_of(seeded_draw(task, s, place))
        if not any(0 in shape for shape in shapes):
            return s, shapes
    return seed, first


def seeded_draw(task, seed, place):
    seed_all(seed)
    inputs = call_there(task.get_inputs, place)
    if not isinstance(inputs, (list, tuple)):
        raise Refused(f"get_inputs returns {type(inputs).__name__}; it must return a list")
    return list(placed(inputs))


def with_numbers(inputs, first):
    """Numbers that are no tensors belong to what a program was asked, so all draws have those of one."""
    if isinstance(inputs, (list, tuple)) and isinstance(first, (list, tuple)) and len(inputs) == len(first):
        return type(inputs)(with_numbers(a, b) for a, b in zip(inputs, first))
    if isinstance(inputs, dict) and isinstance(first, dict):
        return {k: with_numbers(v, first.get(k)) for k, v in inputs.items()}
    return first if isinstance(inputs, (int, float)) and type(first) is type(inputs) else inputs


def put_at(tree, i, t):
    """The tree with t as its tensor i."""
    return each_place(tree, lambda x, k: stored_as(t, x.dtype) if k == i else x)


def has_numbers(v):
    if isinstance(v, (list, tuple)):
        return any(has_numbers(x) for x in v)
    return any(has_numbers(x) for x in v.values()) if isinstance(v, dict) else isinstance(v, (int, float))


def call_there(f, place):
    """f, whose torch.rand and the like draw at place; on the CPU where f does not stand that."""
    if place.type == "cpu":
        return f()
    state = random.getstate()
    try:
        with place:
            return f()
    except Exception:
        random.setstate(state)
        return f()


class Valueless(torch.overrides.TorchFunctionMode):
    """Beside torch.device("meta"): normal values there import a symbolic algebra, half a second for each child."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.normal_ and args[0].device.type == "meta":
            return args[0]
        if func is torch.randn and torch.device(kwargs.get("device") or "meta").type == "meta":
            func = torch.rand
        return func(*args, **kwargs)


def input_bytes(task, variant):
    """Bytes of one draw's inputs, from a draw without values; None where get_inputs does not stand that. Random states
    stay as they are."""
    states = random.getstate(), torch.get_rng_state()
    try:
        with torch.device("meta"), Valueless():
            leaves = values.leaves(task.get_inputs())
        if any(t.device.type != "meta" for t in leaves):
            return None
        return sum(t.numel() * variant.width(t) for t in leaves)
    except Exception:
        return None
    finally:
        random.setstate(states[0])
        torch.set_rng_state(states[1])


def placed(v):
    """Tensors of the meta device stay there: they have a size and no values."""
    return values.map_tensors(v, lambda t: t if t.device.type in (PLACE.type, "meta") else t.to(PLACE))


def keeps_distribution(t):
    """Labels, masks, constants: a float input of a few whole numbers is not a value to be redrawn."""
    if not t.is_floating_point() or t.numel() == 0:
        return True
    flat = t.detach().reshape(-1)[:65536].double()
    if len(torch.unique(flat[:64])) > 3:
        return False
    few = torch.unique(flat)
    return len(few) == 1 and t.numel() > 1 or len(few) <= 3 and t.numel() > 8 and bool((few == few.round()).all())


def filling(regime, n, gen, trial):
    if regime == "normal":
        return torch.randn(n, generator=gen, dtype=torch.float64, device=gen.device)
    if regime == "uniform":
        return torch.rand(n, generator=gen, dtype=torch.float64, device=gen.device)
    if regime == "signed":
        return torch.rand(n, generator=gen, dtype=torch.float64, device=gen.device) * 6 - 3
    if regime == "large":
        return torch.randn(n, generator=gen, dtype=torch.float64, device=gen.device) * 100
    # structured: small whole numbers, so that sums are exact
    i = torch.arange(n, dtype=torch.float64, device=gen.device)
    step, shift = 3 + 2 * (trial % 4), int(torch.randint(17, (1,), generator=gen, device=gen.device))
    return (i * step + (i / 13).floor() * 5 + shift) % 17 - 8


def refill(t, regime, gen, trial):
    """New contents in the layout of t, of its visible structure. Overlapping layouts (expand) are filled through their
    storage."""
    if keeps_distribution(t):
        return t
    extent = 1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride()))
    base = filling(regime, extent, gen, trial).to(t.dtype).as_strided(t.shape, t.stride())
    return structure.like(t, base)


def position(i, shape):
    """Element i in C order. torch's own unravel_index imports its compiler, which costs each child a third of a
    second."""
    out = []
    for n in reversed(shape):
        i, k = divmod(i, n)
        out.append(k)
    return tuple(reversed(out))


def spike_of(t):
    """A value that a sum over all elements of t cannot hide in its tolerance (src/eval/check/tolerance.h)."""
    rel = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}.get(t.dtype, 2e-5)
    return min(8 * max(1.0, t.numel() * rel), 800.0 if t.dtype == torch.float16 else math.inf)


def spikes(t, gen, trial=1):
    """[(position, value)]: the last element, and others anywhere. No two are alike, in no two inputs, so that none ties
    with another. They are negative in every second draw that has some."""
    size = spike_of(t) * (1 + float(torch.rand((), generator=gen)) / 4) * (-1 if trial % 4 == 3 else 1)
    places = [t.numel() - 1] + torch.randint(t.numel(), (min(SPIKES, t.numel()) - 1,), generator=gen).tolist()
    return [(position(i, t.shape), size * (1 - k / (4 * SPIKES))) for k, i in reversed(list(enumerate(places)))]


def exchanged(t, gen):
    """t where in a few rows two elements have changed places; None where rows have no two that differ. Whole numbers
    keep their sums so: what remembers answers by those of its rows is wrong."""
    rows = t.reshape(-1, t.shape[-1] if t.dim() else 1)
    if structure.is_special(t) is not None:
        return None
    some = torch.randint(len(rows), (NUDGED // 2,), generator=gen).unique().to(t.device)
    first = rows[some, :1]
    differ = (rows[some] != first).double()
    some, differ = some[differ.any(1)], differ[differ.any(1)]
    if not len(some):
        return None
    other = torch.multinomial(differ.cpu(), 1, generator=gen)[:, 0].to(t.device)
    out = rows.clone()
    out[some, 0], out[some, other] = rows[some, other], rows[some, 0]
    return values._laid_out(out.reshape(-1), list(t.shape), list(t.stride()))


def nudge(t, regime, gen, trial, spike=False):
    """A few elements of t, anywhere, drawn anew: what remembers answers by samples of the input is then wrong. spike:
    the last one and a few others so large that a sum without one of them is wrong; no two are alike."""
    if keeps_distribution(t) or any(st == 0 and n > 1 for st, n in zip(t.stride(), t.shape)):
        return t
    swapped = exchanged(t, gen) if regime == "structured" and t.numel() else None
    if swapped is not None:
        return structure.like(t, swapped)
    at = torch.randint(t.numel(), (min(NUDGED, t.numel()),), generator=gen)
    new = filling("normal" if regime == "structured" else regime, len(at), gen, trial)
    out = clone(t)
    for i, x in zip(at.tolist(), new.tolist()):
        pos = position(i, t.shape)
        out[pos] = (float(out[pos]) + 9 + round(abs(x)) % 13) % 17 - 8 if regime == "structured" else x
    if spike:
        for pos, x in spikes(t, gen, trial):
            out[pos] = x
    return structure.like(t, out)


def small(t):
    """t, of another size: of its structure, so that probabilities and rows of unit length stay."""
    if keeps_distribution(t) or t.numel() > SMALL_MOST or any(st == 0 and n > 1 for st, n in zip(t.stride(), t.shape)):
        return t
    return structure.like(t, clone(t).mul_(SMALL))


def refill_kind(t, kind, gen, seed, place, task):
    """As refill, for a draw of influence.py. seed: of what inputs of one shape have in common."""
    if kind in influence.NUMBERS:
        own = torch.Generator().manual_seed(seed + place)
        return influence.numbers_changed(kind, t, own, task.sums_grow) if influence.is_number(t, task.longest) else t
    if keeps_distribution(t):
        return t
    base = torch.randn(t.shape, generator=gen, dtype=torch.float64, device=gen.device)
    new = influence.contents(kind, base, torch.Generator().manual_seed(seed), place)
    if kind in influence.FAR_OFF and t.dtype in (torch.float32, torch.float64):
        new *= influence.FAR_SINGLE
    if kind == influence.FAR_OUT and t.dtype != torch.float16:
        new *= influence.FAR_MOST
    new = new.to(t.dtype)
    return structure.like(t, values._laid_out(new.reshape(-1), list(t.shape), list(t.stride())))


def changed_by_choice(kind, t, gen, sentinel=None):
    """Of a kind that changes only those tensors of which the reference stands it."""
    if kind in influence.PLACING:
        return influence.places_changed(kind, t, gen, sentinel)
    if kind == influence.MASKING:
        return influence.emptied(t, gen)
    if kind == influence.THINNING:
        return influence.thinned(t, gen)
    if kind == influence.CHAIN:
        return influence.chain(t)
    if kind == influence.FILLED:
        return structure.in_place(t, t, influence.filled_rows(t, gen))
    return structure.in_place(t, t, influence.scattered_zeros(t, structure.is_probability(t), gen))


def each_place(inputs, f):
    """f(tensor, its number) of all tensors."""
    count = itertools.count()
    return values.map_tensors(inputs, lambda t: f(t, next(count)))


def phase_of(regime, trial):
    return REGIMES.index(regime) + trial // 2 if regime in REGIMES else 1


def draw_inputs(task, regime, trial, seed, form=lambda inputs: inputs, spiked=True, domains=None, chosen=()):
    """Odd trials are the trial before with a few elements changed; all others are independent. form: gives the inputs
    their dtype and layout, before they are redrawn. spiked: regime "signed" has a few large values in odd trials.
    domains: of each tensor, how it varies if it is a constant (influence.py); None: as it is. chosen: {kind of
    influence.CHOOSING: the tensors that it changes}."""
    types = []

    def numbers(inputs):
        inputs = form(inputs)
        types[:] = [t.dtype for t in values.leaves(inputs)]
        return values.map_tensors(inputs, in_single)

    drawn = drawn_inputs(task, regime, trial, seed, numbers, spiked, domains, chosen)
    return each_place(drawn, lambda t, i: stored_as(t, types[i]))


def in_single(t):
    """What is stored in 8 bits, as a number that torch has operators for."""
    return t.float() if is_stored(t) else t


def stored_as(t, dtype):
    """t as it was before in_single: no number beyond the type's largest."""
    if dtype not in STORED or is_stored(t):
        return t
    most = torch.finfo(dtype).max
    return t.clamp(-most, most).to(dtype)


def drawn_inputs(task, regime, trial, seed, form, spiked=True, domains=None, chosen=()):
    if regime in influence.REGIMES and trial >= influence.AMPLIFIED:
        base = drawn_inputs(task, "normal", 0, seed, form, domains=domains)
        return each_place(base, lambda t, i: t * influence.amplification(trial, i) if t.is_floating_point() else t)
    if regime in influence.REGIMES:
        return draw_kind(task, regime, trial, seed, form, domains, chosen)
    if regime != "task" and trial % 2:
        gen = torch.Generator().manual_seed(derive(seed, regime, trial, "nudge"))
        base = drawn_inputs(task, regime, trial - 1, seed, form, domains=domains)
        near = values.map_tensors(base, lambda t: nudge(t, regime, gen, trial, spiked and regime == SPIKED))
        return values.map_tensors(near, small) if regime == "uniform" else near
    s = derive(seed, regime, trial)
    inputs = task_draw(task, s)
    if has_numbers(inputs):
        inputs = with_numbers(inputs, task_draw(task, derive(seed, "numbers")))
    inputs = form(inputs)
    if regime == "task":
        return inputs
    gen = torch.Generator(PLACE).manual_seed(s)
    redrawn = values.map_tensors(inputs, lambda t: refill(t, regime, gen, trial))
    return varied(redrawn, domains, phase_of(regime, trial), derive(s, "constants"))


def draw_kind(task, regime, trial, seed, form, domains, chosen):
    kind, s = influence.kind_of(regime, trial), derive(seed, regime, trial)
    inputs = form(with_numbers(task_draw(task, s), task_draw(task, derive(seed, "numbers"))))
    gen, common = torch.Generator(PLACE).manual_seed(s), derive(s, "common")
    redrawn = each_place(inputs, lambda t, i: refill_kind(t, kind, gen, common, i, task))
    if kind in influence.CHOOSING:
        return each_place(redrawn, lambda t, i: changed_by_choice(
            kind, t, torch.Generator().manual_seed(derive(s, "chosen", i)), task.sentinel) if i in chosen[kind] else t)
    return varied(redrawn, domains, trial, derive(s, "constants")) if regime == "influence" else redrawn


def varied(inputs, domains, phase, seed):
    """Constant arguments in another way of their domain."""
    if not domains or not any(domains):
        return inputs
    gen = torch.Generator().manual_seed(seed)
    return each_place(inputs, lambda t, i: influence.vary(t, domains[i], phase, gen) if domains[i] else t)


# Variants of a sidecar ------------------------------------------------------------------------------------------------


def laid(t, layout):
    """t in another memory layout; None if it cannot have it."""
    if layout == "contiguous":
        return t.contiguous()
    if layout == "transposed" and t.dim() >= 2:
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "strided" and t.dim() >= 1:
        wide = torch.empty(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype, device=t.device)
        wide[..., ::2] = t
        return wide[..., ::2]
    if layout == "channels_last" and t.dim() in (4, 5):
        return t.contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
    return None


class Variant:
    """What a sidecar changes about a task; without one, nothing."""

    def __init__(self, spec):
        self.sizes, self.layout = spec.get("sizes"), spec.get("layout")
        self.numbers, self.other = spec.get("numbers"), None  # other: the numbers in the place of the task's own
        self.dtype = getattr(torch, spec["dtype"]) if spec.get("dtype") else None

    def source(self, source):
        try:
            return sizes.with_sizes(source, self.sizes) if self.sizes else source
        except KeyError as e:
            raise Refused(e.args[0]) from e

    def model(self, model):
        return model.to(self.dtype) if self.dtype else model

    def width(self, t):
        """Bytes of an element of an input."""
        return self.dtype.itemsize if self.dtype and t.is_floating_point() else t.element_size()

    def form(self, inputs):
        if self.other:
            inputs = influence.numbers_put(inputs, iter(self.other))
        if self.dtype:
            inputs = values.map_tensors(inputs, lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        if isinstance(self.layout, str):
            return self.everywhere(inputs)
        for i, layout in enumerate(self.layout or []):
            if layout is not None:
                inputs[i] = self.one(inputs, i, layout)
        return inputs

    def everywhere(self, inputs):
        done = []

        def apply(t):
            new = laid(t, self.layout)
            done.append(new is not None)
            return t if new is None else new

        inputs = values.map_tensors(inputs, apply)
        if not any(done):
            raise Refused(f"no input can have the layout '{self.layout}'")
        return inputs

    @staticmethod
    def one(inputs, i, layout):
        if i >= len(inputs) or not isinstance(inputs[i], torch.Tensor):
            raise Refused(f"layout '{layout}' is for input {i}, which is " +
                          ("no tensor" if i < len(inputs) else f"not there: get_inputs returns {len(inputs)} values"))
        new = laid(inputs[i], layout)
        if new is None:
            raise Refused(f"input {i} has {inputs[i].dim()} dimensions and cannot have the layout '{layout}'")
        return new


# Running --------------------------------------------------------------------------------------------------------------


def run(model, inputs, seed=0, around=None, own=False):
    """forward on copies of the inputs, on a copy of the model (own: on the model itself): no state survives. around: a
    context for forward alone."""
    m = model if own else copy_of(model)
    given = values.map_tensors(inputs, clone)
    seed_all(seed)
    on_card = ops.Asserted() if PLACE.type == "cuda" else contextlib.nullcontext()
    with torch.no_grad(), around or contextlib.nullcontext(), on_card:
        answer = m(*given)
    return (values.map_tensors(answer, widened) if torch.get_default_dtype() == torch.float64 else answer), given


def widened(t):
    """What is stored in 8 bits, as a number that doubles are compared with."""
    return t.double() if is_stored(t) else t


def clone(t):
    out = values._laid_out(t.detach().reshape(-1), list(t.shape), list(t.stride())) if t.numel() else t.detach().clone()
    return out


def to_double(t):
    return t.double() if t.is_floating_point() else t


def finite(v):
    return all(bool(torch.isfinite(widened(t)).all()) for t in values.leaves(v)
               if t.is_floating_point() or t.is_complex())


def is_at_its_end(answer):
    """Few values, whatever the inputs: of a function that does not grow any more (tanh) a wrong factor is right too."""
    return all(len(values.comparable(t).reshape(-1)[:4096].unique()) <= 4 < t.numel() for t in values.leaves(answer))


def same_finite(a, b):
    """Are the same elements finite? Shapes agree."""
    pairs = zip(map(widened, values.leaves(a)), map(widened, values.leaves(b)))
    return all(torch.equal(torch.isfinite(x), torch.isfinite(y)) for x, y in pairs
               if x.is_floating_point() or x.is_complex())


def places(v):
    """Where the memory of the tensors begins."""
    return {t.untyped_storage().data_ptr() for t in values.leaves(v) if t.numel()}


def same(a, b):
    la, lb = values.leaves(a), values.leaves(b)
    return len(la) == len(lb) and all(x.shape == y.shape and torch.equal(values.comparable(x), values.comparable(y))
                                      for x, y in zip(la, lb))


def same_values(a, b):
    """Equal as numbers, whatever their types."""
    return all(torch.equal(x.double(), y.double()) for x, y in zip(values.leaves(a), values.leaves(b)))


def alike(a, b):
    """Equal; on a GPU up to the order of atomic sums, which is far less than what random numbers do."""
    la, lb = values.leaves(a), values.leaves(b)
    if PLACE.type == "cpu" or same(a, b):
        return same(a, b)
    return shapes_agree(a, b) and all(
        x.is_floating_point() and torch.allclose(x, y, rtol=1e-3, atol=1e-4 * float(x.abs().max()), equal_nan=True)
        for x, y in zip(map(in_single, la), map(in_single, lb)) if x.numel())


STORED = (torch.float8_e4m3fn, torch.float8_e5m2)


def is_stored(t):
    """Floating numbers of 8 bits: nothing is computed in them, so they lower no precision."""
    return t.is_floating_point() and t.element_size() == 1


def unit(tensors):
    """Rounding unit and dtype of the lowest precision among the floating tensors."""
    worst, name = 2.0**-53, "float64"
    for t in tensors:
        if is_stored(t):
            worst, name = max((worst, name), (SINGLE, "float32"))
        elif t.is_floating_point() and torch.finfo(t.dtype).eps / 2 >= worst:
            worst, name = torch.finfo(t.dtype).eps / 2, str(t.dtype)[6:]
    return worst, name


def max_diff(a, b):
    """Largest difference over elements that are finite in both; 0 for integers."""
    if not (a.is_floating_point() or a.is_complex()) or a.shape != b.shape or a.numel() == 0:
        return 0.0
    wide = torch.complex128 if a.is_complex() else torch.float64
    return largest(a.to(wide) - b.to(wide))


def beyond_rounding(e, o):
    """The largest difference of e from o beyond one rounding of e's type; 0 for integers. A part at a time."""
    if not e.is_floating_point() or e.shape != o.shape:
        return max_diff(e, o)
    u = torch.finfo(e.dtype).eps / 2
    worst = 0.0
    for x, y in zip(e.reshape(-1).split(PART), o.reshape(-1).split(PART)):
        y = y.double()
        over = (x.double() - y).abs_()
        worst = max(worst, largest(over.sub_(y.abs(), alpha=u).clamp_(min=0)))
    return worst


def largest(t):
    """The largest finite absolute value of floating or complex numbers, 0 if there is none. One pass where all are
    finite: a tensor may be of gigabytes."""
    if not t.numel():
        return 0.0
    if is_stored(t):  # which has neither order nor abs on the CPU
        t = t.float()
    if not t.is_complex():
        lo, hi = (float(x) for x in torch.aminmax(t))  # NaN, if there is any
        if math.isfinite(lo) and math.isfinite(hi):
            return max(abs(lo), abs(hi))
    t = t.abs()
    t = t[torch.isfinite(t)]
    return float(t.max()) if t.numel() else 0.0


# Does a task only move values?
# --------------------------------------------------------------------------------------------


def numbered(tensors):
    """Other values for each floating element of tensors, in place: one that says which element it is, and, on a second
    call of the result, one of any sign that follows from the first. -> (elements, second)."""
    starts = list(itertools.accumulate((t.numel() for t in tensors), initial=0))
    for t, at in zip(tensors, starts):
        t.copy_((torch.arange(at, at + t.numel(), dtype=torch.float64, device=t.device) + 0.25).reshape(t.shape))

    def second():
        for t in tensors:
            t.copy_(relabelled(t))

    return starts[-1], second


def relabelled(x):
    """Of the value that names an element: its other value, between -10 and 10, in no order."""
    return 10 * torch.sin(x * 12.9898 + (x * 0.7391).floor() * 2.399963)


def is_moved(a, b, n):
    """a, b: an output for both values of all elements. Is each of its elements one of those, or the same in both?"""
    if not a.is_floating_point():
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    named = (a >= 0) & (a < n) & (a - a.floor() == 0.25) & (relabelled(a) == b)
    return bool((named | (a == b) | (a.isnan() & b.isnan())).all())


class Width(collections.namedtuple("Width", "result sums")):
    """Of what a forward computes on the way. result: elements of the largest floating tensor; sums: of each output, the
    terms of the longest sum that it follows."""

    def terms(self, i):
        return self.sums[i] if i < len(self.sums) else 0


def traced(model, inputs):
    """(the operators of a forward, Width, does it change a parameter, ops.Told)"""
    m = copy_of(model)
    outputs = []
    with ops.Ambiguous() as writes, ops.Told() as told:
        seen, widest = ops.record(lambda: outputs.extend(values.leaves(run(m, inputs, own=True)[0])))
    for t in values.leaves(inputs) + outputs:
        if torch.is_tensor(t) and is_stored(t) and t.dtype not in STORED:
            raise Refused(f"the task has a tensor of {str(t.dtype)[6:]}, which is not judged; let it give and take "
                          "float8_e4m3fn, float8_e5m2, bytes (view(torch.uint8)) or float32")
    if writes.found:
        raise Refused(f"the task is ambiguous: torch.{writes.found} writes one place with several values, and which of "
                      "them stays is not determined; give each place one source, or add them up")
    width = Width(widest.result, [widest.terms_of(t) for t in outputs if torch.is_tensor(t)])
    return set(seen), width, any(not torch.equal(p, q) for p, q in zip(model.parameters(), m.parameters())), told


def moves_only(model, inputs, seen):
    """Does the task only move values? Then an answer is one for any values in place of its own. A program whose
    launches write few of them has let torch's copies do its work, whatever operators the task is written with."""
    if seen <= ops.COPIES:
        return True
    if seen & set(ops.ROUNDED) or max([t.numel() for t in values.leaves(inputs)] + [0]) > HUGE:
        return False
    try:
        m = copy_of(model).double()
        given = values.map_tensors(inputs, lambda t: clone(to_double(t)) if torch.is_tensor(t) else t)
        with doubles(), torch.no_grad():
            n, second = numbered([t for t in values.leaves(given) + [p for _, _, p in named_state(m)]
                                  if t.is_floating_point() and not any(st == 0 for st in t.stride())])
            first = values.leaves(run(m, given)[0])
            if not all(t.is_floating_point() for t in first) and not seen <= ops.COPIES | ops.MOVING:
                return False  # numbers and flags cannot be renamed: some is no move of them, nor is any
            second()
            return all(is_moved(a, b, n) for a, b in zip(first, values.leaves(run(m, given)[0]), strict=True))
    except torch.OutOfMemoryError:
        raise
    except Exception:  # not in double, or not with these values
        return False


def large(model, *trees):
    tensors = [t for tree in trees for t in values.leaves(tree)] + [p for _, _, p in named_state(model)]
    return max([t.numel() for t in tensors] + [0]) > LARGE


def fan_in(inputs, output, model, widest=0, terms=0):
    """How many numbers make one element of an output, at most: the elements of the largest input, parameter, or tensor
    on the way (a transposed convolution's result is larger than what it was made of) / its elements, or the terms of
    the longest sum on the way (a statistic of a batch, which each element follows)."""
    state = [p.numel() for _, _, p in named_state(model)]
    biggest = max([t.numel() for t in values.leaves(inputs)] + state + [widest, 1])
    return max(biggest / max(min(output.numel(), biggest), 1), terms)


def lows_of(model, inputs, eager, oracle):
    """(rounding unit, dtype) of each output: of the lowest precision that its arithmetic shows. Inputs of a lower type
    do not lower an output whose own error is far below that type's rounding."""
    outs = values.leaves(eager)
    all_of_them = values.leaves(inputs) + [p for _, _, p in named_state(model)] + outs
    types = {t.dtype for t in all_of_them if t.is_floating_point() and not is_stored(t)}
    below = sorted(((torch.finfo(t).eps / 2, str(t)[6:]) for t in types), reverse=True)
    return [low_of(e, o, below) for e, o in zip(outs, values.leaves(oracle))]


def low_of(e, o, below):
    own = unit([e])
    if not below or not (e.is_floating_point() or e.is_complex()):
        return below[0] if below else own
    if e.shape != o.shape or e.is_complex():
        return max(below[0], own)
    error, top = beyond_rounding(e, o), top_of(o)
    return next((low for low in below if low[0] > own[0] and error >= low[0] * top / 16), own)


def noise_of(eager, oracle, shifts, inputs, model, width=Width(0, [])):
    """Per output tensor: the numbers that src/eval/check/tolerance.h turns into a tolerance. shifts: n2 of each."""
    outs, lows = values.leaves(eager), lows_of(model, inputs, eager, oracle)
    rows = []
    for i, (e, o, shift, (_, dtype)) in enumerate(zip(outs, values.leaves(oracle), shifts, lows)):
        out = str(e.dtype)[6:]
        rows.append({"n1": beyond_rounding(e, o), "n2": shift, "max_abs": top_of(o), "out": out,
                     "fan_in": fan_in(inputs, e, model, width.result, width.terms(i)),
                     "dtype": dtype if e.is_floating_point() or e.is_complex() else out})
    return rows


EQUAL_TERMS = 1 << 14  # of a serial sum, at most, that are all alike


LONG_SUM, LONGEST_SUM = 1024, 1 << 17  # terms
DEVIATIONS = 3   # that the largest of what was normalised lies from its mean
OFTEN = 32       # times n1 is the tolerance in single precision (src/eval/check/tolerance.h)
USABLE = 2048    # of the largest value: a draw of a larger n1 would decide nothing


def as_for_equal_terms(noise, share, axis, width):
    """A serial sum of terms that are all alike errs in one direction, like its length; torch's own does not. axis: the
    longest of an input, along which an output of the inputs' size (softmax) may have summed; it widens its rel, as a
    sum on the way does."""
    for i, row in enumerate(noise):
        if getattr(torch, row["out"]).is_floating_point:
            row["n1"] = max(float(row["n1"]), SINGLE * share * min(row["fan_in"], EQUAL_TERMS) * float(row["max_abs"]))
            row["rel"] = SINGLE * min(max(axis, width.terms(i)), EQUAL_TERMS) / 4


def tries_of(oracle, inputs):
    """How often the inputs are shaken: a single number moves by next to nothing in some tries."""
    outs = [t.numel() for t in values.leaves(oracle) if t.numel()]
    most = 4 if max([t.numel() for t in values.leaves(inputs)] + [0]) > HUGE else TRIES
    return max(1, min(most, -(-TRIES // min(outs)))) if outs else 1


def top_of(t):
    """The largest finite absolute value, 0 if there is none."""
    if t.is_floating_point() or t.is_complex():
        return largest(t)
    return float(t.to(torch.float64).abs().max()) if t.numel() else 0.0


def noise_again(rows, eager):
    """noise_of for another draw of the same distribution, whose expected values are the reference's own: their error
    is n1 at most, and a tolerance is many times that (src/eval/check/tolerance.c). Larger answers, as of a spiked
    draw, have errors that are larger by as much."""
    out = []
    for row, e in zip(rows, values.leaves(eager)):
        top, old = top_of(e), float(row["max_abs"])  # numbers may have travelled as text
        f = max(1.0, top / old) if old > 0 and math.isfinite(top / old) else 1.0
        out.append(dict(row, max_abs=top, n1=float(row["n1"]) * f, n2=float(row["n2"]) * f))
    return out


def shaken(t, u, gen):
    if not t.is_floating_point():
        return t
    return (t * (1 +
                 u * (2 * torch.rand(t.shape, generator=gen, dtype=torch.float64, device=t.device) - 1))).to(t.dtype)


def shaken_inside(t, u, gen):
    """As shaken, and no element passes the least or the largest one: probabilities and labels of 0 and 1 stay such."""
    out = shaken(t, u, gen)
    if not t.is_floating_point() or not t.numel() or is_stored(t):
        return out
    low, high = torch.aminmax(t)
    return out.clamp(low, high) if -math.inf < float(low) < float(high) < math.inf else out


def perturbed(model, inputs, u, seed):
    gen = torch.Generator(PLACE).manual_seed(seed)

    def shake(t):
        return shaken(t, u, gen)

    m = copy_of(model).double()
    with torch.no_grad():
        for p in m.parameters():
            if p.is_floating_point() and p.is_contiguous():
                for part in p.detach().view(-1).split(PART):
                    part.copy_(shake(part))
            elif p.is_floating_point():
                p.copy_(shake(p.detach()))
    return m, values.map_tensors(inputs, lambda t: shaken_inside(t, u, gen))


def oracle_of(model, inputs, eager, seed, each=None):
    """(oracle in double, how far rounded inputs move each of its tensors: not finite if they make it so). Inputs are
    rounded as coarsely as each output's own arithmetic shows. each: an empty list, for how far each element moved."""
    x64 = values.map_tensors(inputs, to_double)
    oracle, _ = run(copy_of(model).double(), x64, own=True)  # one copy at a time: a model may be of gigabytes
    outs = values.leaves(oracle)
    alike_shaped = shapes_agree(eager, oracle)
    lows = lows_of(model, inputs, eager, oracle) if alike_shaped else [unit(values.leaves(inputs))] * len(outs)
    shifts = [0.0 for _ in outs]
    for u in sorted({low[0] for low in lows}):
        fits = [low[0] == u for low in lows]
        for i in range(tries_of(oracle, inputs)):
            pm, px = perturbed(model, x64, u, seed + i)
            moved, _ = run(pm, px, own=True)
            shifts = [s if not fit else max(s, max_diff(o, m)) if finite(m) or not finite(o) else math.inf
                      for s, o, m, fit in zip(shifts, outs, values.leaves(moved), fits)]
            if each is not None:
                note_each(each, oracle, moved, fits)
    return oracle, shifts


def note_each(each, oracle, moved, fits):
    """How far each element has moved at most; of the outputs that fit."""
    for i, (o, m, fit) in enumerate(zip(values.leaves(oracle), values.leaves(moved), fits)):
        way = (o - m).abs() if fit and o.shape == m.shape and o.is_floating_point() else torch.zeros_like(o)
        if len(each) <= i:
            each.append(way)
        else:
            torch.maximum(each[i], way, out=each[i])


RANGE_LOW, RANGE_SPAN = 1 << 40, 20  # numbers below -2^61 that code a range: its least number, and bits of its length
# Jumps: floor, round, sign of values that rounding moves across a step ------------------------------------------------

ANY_VALUE = float.fromhex("0x1.5a5a5a5a5a5a5p+1001")  # stands where any value is right (src/eval/check/compare.c)
FAR, NEAR = 4.0, 2.0**-8  # how far inputs are shaken, in roundings: what jumps; what a slope is taken from
STEEP = 8.0   # times as far as its slope goes: a jump
LEAST = 4.0   # roundings of the output, and
OFTEN = 64.0  # times what most elements move by


def roundings(moved, oracle, u):
    """How far each element moved, in roundings of itself or of a middling one."""
    size = oracle.abs()
    middling = size.sum() / (size > 0).sum().clamp(min=1)
    return moved / (u * torch.maximum(size, middling)).clamp(min=1e-300)


def most_move(moved, oracle):
    """The median movement of those that are not zero for good."""
    active = moved[(oracle != 0) | (moved > 0)]
    return float(active.median()) if active.numel() else 0.0


def farthest(model, inputs, oracle, u, tries, seed):
    """Of each output: how far its elements move where inputs and parameters are shaken."""
    out = [torch.zeros_like(o) for o in oracle]
    for i in range(tries):
        pm, px = perturbed(model, inputs, u, seed + i)
        for far, o, m in zip(out, oracle, values.leaves(run(pm, px, own=True)[0])):
            if o.shape == m.shape and o.is_floating_point():
                torch.maximum(far, (o - m).abs(), out=far)
    return out


def jumps_of(model, inputs, eager, oracle, moved, seed):
    """Of each output the elements that a step may throw anywhere, or None: those that move far more than their slope
    and the others do. moved: as farthest, by one rounding."""
    x64 = values.map_tensors(inputs, to_double)
    u = max(low[0] for low in lows_of(model, inputs, eager, oracle))
    outs, marks = values.leaves(oracle), [None] * len(moved)
    fit = [o.dtype == torch.float64 and e.is_floating_point() and finite(e) and o.numel() > 0
           for o, e in zip(outs, values.leaves(eager))]
    rows = [roundings(m, o, u) if f else None for m, o, f in zip(moved, outs, fit)]
    bulk = [most_move(r, o) if f else 0.0 for r, o, f in zip(rows, outs, fit)]
    if not any(f and float(r.max()) > max(OFTEN * b, LEAST) for r, b, f in zip(rows, bulk, fit)):
        return marks
    far = farthest(model, x64, outs, FAR * u, TRIES, seed)
    near = farthest(model, x64, outs, NEAR * u, TRIES // 2, seed + TRIES)
    for i, (o, e) in enumerate(zip(outs, values.leaves(eager))):
        if fit[i]:
            own = (e.double() - o).abs() - torch.finfo(e.dtype).eps / 2 * o.abs()
            way = torch.maximum(torch.maximum(far[i], moved[i]), own)
            steps = (way > STEEP * FAR / NEAR * near[i]) | (way < STEEP * near[i])  # no slope has either
            mark = steps & (roundings(way, o, u) > max(OFTEN * bulk[i], LEAST))
            marks[i] = mark if 0 < float(mark.double().mean()) <= 0.5 else None
    return marks


def with_stored(marks, model, inputs, eager, oracle, seed):
    """The marks, and of outputs of 8 bits those elements that other orders of sums may round to a neighbour: all others
    are exact."""
    outs, given = values.leaves(oracle), values.leaves(eager)
    if not any(map(is_stored, given)):
        return marks
    moved = farthest(model, values.map_tensors(inputs, to_double), outs, ORDERS * SINGLE, TRIES, seed)
    marks = [(m > 0) | (e.double() != o) if is_stored(e) else mark for mark, m, e, o in zip(marks, moved, given, outs)]
    if any(float(m.double().mean()) > 0.5 for m, e in zip(marks, given) if is_stored(e) and m.numel()):
        raise Skip("rounding to 8 bits hides its answer")
    return marks


def as_for_stored(noise, marks=None):
    """An answer of 8 bits is exact where it is known which elements are not; else it may be one unit off."""
    for row, mark in zip(noise, marks or [None] * len(noise)):
        dtype = getattr(torch, row["out"])
        if dtype in STORED:
            row["rel"] = torch.finfo(dtype).eps if mark is None else 0.0


def without(tree, marks, put):
    """The tree, with put(tensor, mark) in place of the marked ones."""
    left = iter(marks)

    def one(t):
        mark = next(left)
        return t if mark is None else put(t, mark)

    return values.map_tensors(tree, one)


WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
SINGLE = 2.0**-24  # arithmetic on half precision is done in single
ORDERS = 64  # roundings in single precision, by which honest sums differ
TINY = 1e-12  # of an input's largest: what zeros become, so that exp of them is not 1 either
TIES = 8  # tries to break them: two equal values change places in half of them


def is_index(t):
    return t.dtype in WHOLE


def apart(x64, inputs, share, tiny, gen, most=1.0):
    """Inputs told apart by a share of their rounding, or of 'most' where that is less: equal values are equal no more,
    and where the share is a quarter no others change places. tiny: also those that are 0."""
    def one(t, own):
        if not t.is_floating_point() or not t.numel():
            return t
        u = min(SINGLE if is_stored(own) else torch.finfo(own.dtype).eps / 2, most) * share
        r = 2 * torch.rand((2, *t.shape), generator=gen, dtype=torch.float64, device=t.device) - 1
        return t * (1 + u * r[0]) + (TINY * largest(t) * r[1] if tiny else 0)

    own = iter(values.leaves(inputs))
    return values.map_tensors(x64, lambda t: one(t, next(own)))


def moved_numbers(model, inputs, oracle, share, tiny, seed, most=1.0):
    """[the outputs in double] for inputs told apart, several times."""
    gen, wide = torch.Generator(PLACE).manual_seed(seed), copy_of(model).double()
    x64 = values.map_tensors(inputs, to_double)
    tries = TIES if not large(model, inputs, oracle) else 2
    return [values.leaves(run(wide, apart(x64, inputs, share, tiny, gen, most))[0]) for _ in range(tries)]


def changes(index, tries):
    return any(t.shape == index.shape and not torch.equal(t, index) for t in tries)


def as_lines(t, dim):
    """(outer, along dim, inner)"""
    if dim < 0:
        return t.reshape(1, -1, 1)
    return t.reshape(math.prod(t.shape[:dim]), t.shape[dim], math.prod(t.shape[dim + 1:]))


def pointed_to(line, index):
    """What the indices (outer, k, inner) point to; None where they point outside."""
    if index.numel() and not bool(((index >= 0) & (index < line.shape[1])).all()):
        return None
    return line.gather(1, index.long())


def places_of(index, tries, inputs):
    """{"input","dim","unique"}: the input among whose equal values, and those alone, the index changes; None: there is
    none."""
    for i, t in enumerate(values.leaves(inputs)):
        for dim in list(range(t.dim())) + [-1]:
            shape = list(t.shape)
            if dim < 0 and index.numel() != 1 or dim >= 0 and list(index.shape) not in (
                    shape[:dim] + shape[dim + 1:], shape[:dim] + list(index.shape)[dim:dim + 1] + shape[dim + 1:]):
                continue
            line = as_lines(t, dim)
            size = (line.shape[0], -1, line.shape[2])
            if not t.numel() or not index.numel() or t.is_complex():
                continue
            want = pointed_to(line, index.reshape(size))
            found = [pointed_to(line, m.reshape(size)) for m in tries] if want is not None else [None]
            if all(f is not None and torch.equal(f, want) for f in found):
                return {"input": i, "dim": dim, "unique": is_unique(index.reshape(size))}
    return None


def names_first(marks, inputs, oracle):
    """Is each index the first among equal values of the input that it points into? Half precision makes many equal
    that nobody meant so."""
    for mark, index in zip(marks, values.leaves(oracle)):
        if isinstance(mark, dict):
            given = values.leaves(inputs)[mark["input"]]
            if given.is_floating_point() and given.element_size() < 4:
                return False
            line = as_lines(given, mark["dim"])
            index = index.reshape(line.shape[0], -1, line.shape[2])
            before = (line == pointed_to(line, index)).cumsum(1) == 0 if index.shape[1] == 1 else None
            if before is None or not torch.equal(before.sum(1, keepdim=True), index.long()):
                return False
    return True


def is_unique(index):
    ordered = index.sort(dim=1).values
    return index.shape[1] > 1 and not bool((ordered.diff(dim=1) == 0).any())


def by_chance(model, inputs, eager, oracle, seed):
    """Of each output of whole numbers that changes where inputs are told apart by a few roundings: the places that it
    names (places_of), or the least and most that stand there; None for others. oracle: without that."""
    outs = values.leaves(oracle)
    marks = [None] * len(outs)
    if not any(is_index(t) for t in outs) or not any(t.is_floating_point() for t in values.leaves(inputs)):
        return marks
    ties = moved_numbers(model, inputs, oracle, 0.25, True, seed)
    rounded = moved_numbers(model, inputs, oracle, FAR, False, seed + 1, SINGLE)
    for i, (o, e) in enumerate(zip(outs, values.leaves(eager))):
        equal, near = [m[i] for m in ties], [e] + [m[i] for m in rounded]
        if not is_index(o) or any(m.shape != o.shape for m in equal + near):
            continue
        marks[i] = places_of(o, equal, inputs) if changes(o, equal) else None
        if marks[i] is None and changes(o, near):
            marks[i] = tuple(torch.stack([o, *near]).aminmax(dim=0))
    return marks


def with_chance(oracle, marks):
    """The oracle for comparing: where a whole number may be another one, a code says which (eval/check/compare.c)."""
    left = iter(marks)

    def put(t):
        mark = next(left)
        if not isinstance(mark, tuple):
            return t
        low, most = mark
        t, low, most = t.long(), low.long(), most.long()
        span = (most - low).clamp(max=(1 << RANGE_SPAN) - 1)
        code = ((low.clamp(-RANGE_LOW, RANGE_LOW - 1) + RANGE_LOW) << RANGE_SPAN) + span
        return torch.where(low < most, -(1 << 62) + code, t)

    return values.map_tensors(oracle, put)


@contextlib.contextmanager
def doubles():
    """What the task makes without saying its type is double too: torch.zeros(n) beside doubles."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def own_shifts(model, inputs, eager, seed):
    """Where the task cannot be run in double: how far inputs that are shaken by a few roundings move its outputs, its
    own rounding included."""
    u, _ = unit(values.leaves(inputs) + [p for _, _, p in named_state(model)])
    shifts = [0.0 for _ in values.leaves(eager)]
    for i in range(tries_of(eager, inputs)):
        gen = torch.Generator(PLACE).manual_seed(seed + i)
        moved, _ = run(model, values.map_tensors(inputs, lambda t: shaken_inside(t, 2 * u, gen)))
        shifts = [max(s, max_diff(e, m)) for s, e, m in zip(shifts, values.leaves(eager), values.leaves(moved))]
    return shifts


class Usage:
    """Bytes of device memory that torch had at most: "eager" in forward, with parameters and inputs, "peak" in all;
    "kept": that it has now, between two draws."""

    def __init__(self):
        self.peak = self.eager = 0

    @contextlib.contextmanager
    def forward(self):
        if PLACE.type != "cuda":
            yield
            return
        self.peak = max(self.peak, torch.cuda.max_memory_reserved())
        torch.cuda.reset_peak_memory_stats()
        yield
        self.eager = max(self.eager, torch.cuda.max_memory_allocated())

    def facts(self):
        if PLACE.type != "cuda":
            return None
        return {"peak": max(self.peak, torch.cuda.max_memory_reserved()), "eager": self.eager,
                "kept": torch.cuda.memory_reserved()}


def one_line(e):
    return f"{type(e).__name__}: {str(e).splitlines()[0][:160] if str(e) else ''}"


def published_seed(trial, trials, seed):
    """(regime, seed) of a draw of protocol kernelbench. The published seeds are known, so a program may bring the
    answers along: behind the last one comes a draw of a seed that nobody knows."""
    if trial >= trials:
        return SECRET, derive(seed, SECRET, trial) % (2**32 - 1)
    torch.manual_seed(KERNELBENCH_SEED)
    return "kernelbench", [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(trial + 1)][trial]


class Task:
    secret = 3  # draws of protocol kernelbench behind the published ones; one, where there are no parameters

    def __init__(self, req, there=True):
        """there: the model is on its device, with its values; else only after arrive()."""
        self.req, self.seed, self.limit = req, req["seed"], req["max_elements"]
        self.variant, self.regimes = Variant(req.get("variant") or {}), tuple(req.get("regimes") or REGIMES)
        self.task = load(self.variant.source(req["source"]))
        # the candidate is told this one, and must not get from it to the draws
        base = KERNELBENCH_SEED if req["protocol"] == "kernelbench" else derive(self.seed, "construction")
        seed_all(base)
        self.init = self.task.get_init_inputs()
        if not isinstance(self.init, (list, tuple, dict)):
            raise Refused(f"get_init_inputs returns {type(self.init).__name__}; it must return a list")
        self.init_seed = base
        self.model = self.variant.model(construct(self.task, self.init, base))
        self.lives, self.second = 1, None
        if req["protocol"] == "kernelbench" and self.secret:
            self.plan_second_life()
        self.check_size("a parameter", [p for _, _, p in named_state(self.model)])
        self.there = False
        if there:
            self.arrive()
        self.mode = "train"
        self.parts, self.size, self.defects, self.copies, self.alters = [], 0, None, False, False
        self.counts = False  # its calls count in Python
        self.keeps = False  # its answers lie in inputs, or in memory that it keeps
        self.everything = True  # kernelbench: all tensors are cast, see cast
        self.items, self.room = [], 0  # with areas: [(at, Collector)] of the last draw, and its bytes
        self.usage = Usage()
        self.noise = {}  # large tasks: of each regime, what its first draw's oracle told
        self.settled, self.odd = False, False  # odd: its own inputs hold NaN or infinities
        self.drawn_so_far = 0
        self.domains = None  # of each tensor among the inputs: in which ways it varies if it is a constant
        self.numbers = False  # are there numbers among its inputs that may be others?
        self.changed = None  # which of them are others now, in words
        self.chosen = {}  # of each kind of influence.CHOOSING that the reference stands: which tensors
        self.sets = [self.model]  # the model with each set of parameters
        self.more = None  # trials of regime "influence" that this task needs beside those that all have
        self.trials = req["trials"]  # strict: draws of each regime; known to be fewer once a draw is there

    def plan_second_life(self):
        """Weights of the published seed are known, too. Behind its draws both models are constructed again, by a
        secret seed."""
        if not named_state(self.model):
            self.secret = 1
            return
        seed = derive(self.seed, "second construction")
        seed_all(seed)
        self.second = {"init": self.task.get_init_inputs(), "seed": seed}

    def live(self, regime):
        """The model as it is constructed for draws of this regime."""
        life = 2 if self.second and regime == SECRET else 1
        if life == self.lives:
            return
        self.lives, self.model = life, None
        init, seed = (self.second["init"], self.second["seed"]) if life == 2 else (self.init, self.init_seed)
        self.model = self.variant.model(construct(self.task, init, seed)).to(PLACE).to(torch.float32)

    def arrive(self):
        """Once; before this nothing of the task is on the device."""
        if self.there:
            return
        self.there = True
        self.model = self.model.to(PLACE)
        if self.req["params"] == "random":
            randomise(self.model, self.seed)
            redraw_fixed(self.model, lambda: self.variant.model(self.another(derive(self.seed, "other construction"))))

    def sizes(self):
        """What the task will need memory for, before it is there."""
        state = {id(t): t for t in list(self.model.parameters()) + list(self.model.buffers())}
        return {"state_bytes": sum(t.numel() * t.element_size() for t in state.values()),
                "input_bytes": input_bytes(self.task, self.variant)}

    def check_size(self, what, tensors):
        n = max([t.numel() for t in tensors] + [0])
        if n > self.limit:
            raise TooLarge(f"{what} has {n} elements, the limit is {self.limit}; make the task smaller with "
                          f"'musacoder shrink TASK --max-elements N' or 'bench --shrink-to N', or raise --max-elements")

    @staticmethod
    def packed(p, tree, at):
        try:
            return {"tree": p.tree(tree), "at": at, "nbytes": p.size}
        except values.NotSendable as e:
            raise Refused(f"the task uses {e}, which cannot be handed to a candidate") from e

    def section(self, tree):
        p = values.Packer(None if PLACE.type == "cpu" else torch.Tensor.cpu)
        out = self.packed(p, tree, self.size)
        self.parts += p.parts
        self.size += p.size
        return out

    def draw_section(self, tree):
        """Of a draw: with areas nothing is copied yet."""
        if not self.req.get("area"):
            return self.section(tree)
        p = values.Collector()
        out = self.packed(p, tree, self.room)
        self.items.append((self.room, p))
        self.room += p.size
        return out

    def fill(self, place):
        for at, p in self.items:
            p.write(place, at)
        place.settle()
        self.items = []

    def is_steady(self, inputs):
        self.own_answer = self.run(self.model, inputs, 1)
        return alike(self.own_answer, self.run(self.model, inputs, 2))

    def first_inputs(self):
        return draw_inputs(self.task, "task", 0, self.seed, self.variant.form)

    def settle(self):
        """Once, with the task's own inputs: what mode the model is in, and what the task is."""
        if self.settled:
            return
        own = self.first_inputs()
        self.odd = not finite(own)
        self.settle_mode(own)
        try:
            self.look_around(own)
        except torch.OutOfMemoryError as e:  # for a moment: no draw may be left out for that
            raise NoMemory(one_line(e)) from e
        self.settled = True

    def look_around(self, own):
        if self.variant.numbers:
            self.variant.other = self.other_numbers(own)
            self.changed = influence.numbers_said(self.numbers_given(own), self.variant.other)
            own = self.first_inputs()
            self.own_answer = self.run(self.model, own)
        else:
            self.numbers = bool(self.other_numbers(own))
        self.widen(own)

    def numbers_given(self, own):
        """[(number, the name of forward's argument)] of its inputs."""
        names = [*inspect.signature(self.model.forward).parameters, *[""] * len(own)]
        return [n for v, name in zip(own, names) for n in influence.numbers_of(v, name)]

    def other_numbers(self, own):
        """Other values for the numbers among its inputs, which the reference stands and which change its answer; none
        where there are no such."""
        given = self.numbers_given(own)
        leaves = values.leaves(own)
        sizes = influence.sizes_among([n for n, _ in given], leaves)
        lengths = {n for t in leaves for n in t.shape}
        chosen = [n for n, _ in given]
        for k, (number, name) in enumerate(given[:NUMBERS]):
            if isinstance(number, int) and number in sizes:
                continue
            chosen[k] = next((n for n in influence.other_numbers(number, name, lengths)
                              if self.tells_numbers(own, chosen[:k] + [n] + chosen[k + 1:], chosen)), number)
        return chosen if chosen != [n for n, _ in given] else []

    def tells_numbers(self, own, new, old):
        """Does the reference stand the new numbers, and give another answer than for the old ones?"""
        new, old = (influence.numbers_put(own, iter(n)) for n in (new, old))
        return self.stands(self.model, new) and not alike(self.run(self.model, new), self.run(self.model, old))

    def widen(self, own):
        """What draws of influence.py need: domains of constants, another set of parameters, wide whole numbers."""
        gen = torch.Generator().manual_seed(derive(self.seed, "domains"))
        leaves = self.own_leaves = [in_single(t) for t in values.leaves(own)]
        unchecked = influence.names_any(self.seen, influence.UNCHECKED)
        self.domains = [[] if unchecked and not t.is_floating_point() else
                        influence.domain_of(t, lambda v, i=i: self.stands(self.model, put_at(own, i, v)), gen)
                        for i, t in enumerate(leaves)]
        self.sets = [self.model] + self.other_sets(own)
        self.task.sums_grow = all(t.dtype == torch.int64 for t in values.leaves(self.own_answer))
        self.task.longest = longest = influence.longest_axis(leaves)
        self.wide = {kind for kind in influence.NUMBERS if self.may_be(own, kind)}
        self.chosen = {**self.zeroed(own), **self.filled(own), **self.masking(own),
                       **({} if unchecked else self.placing(own))}

    def may_be(self, own, kind):
        """May whole numbers among the inputs be others, of a kind? A loop that asks its values may never end then."""
        if not any(influence.is_number(t, self.task.longest) for t in self.own_leaves) or \
                influence.names_any(self.seen, influence.PLACES) or \
                kind != influence.NUMBERS[0] and "aten::_local_scalar_dense" in self.seen:
            return False
        gen = torch.Generator().manual_seed(1)
        other = values.map_tensors(own, lambda t: influence.numbers_changed(kind, t, gen, self.task.sums_grow)
                                   if influence.is_number(t, self.task.longest) else t)
        with ops.Wrapping() as arithmetic:
            return not same(own, other) and self.stands(self.model, other) and \
                (kind == influence.NUMBERS[0] or not arithmetic.wraps)

    def masking(self, own):
        """The one mask that may allow less: nothing else that stays as it is may follow from it."""
        held = [i for i, t in enumerate(self.own_leaves) if not self.is_drawn(t) and not self.domains[i]]
        mask = self.own_leaves[held[0]] if len(held) == 1 else None
        if mask is None:
            return {}
        kinds = {influence.MASKING: influence.is_free_mask, influence.THINNING: influence.is_triangular_mask,
                 influence.CHAIN: influence.is_graph}
        fewer = {kind: put_at(own, held[0], changed_by_choice(kind, mask, torch.Generator().manual_seed(1)))
                 for kind, applies in kinds.items() if applies(mask)}
        return {kind: held for kind, new in fewer.items() if self.stands(self.model, new)}

    def filled(self, own):
        """The tensors whose zeros lie at random: rows may have none."""
        if not any(structure.has_pattern(t) for t in self.own_leaves if self.is_drawn(t)):
            return {}
        other = [in_single(t) for t in values.leaves(task_draw(self.task, derive(self.seed, "zeros")))]
        out = [i for i, (t, o) in enumerate(zip(self.own_leaves, other)) if self.is_drawn(t) and
               t.numel() <= SMALL_MOST and not structure.is_probability(t) and not structure.is_symmetric(t) and
               not structure.is_unit(t) and influence.zeros_by_chance(t, o)]
        gen, new = torch.Generator().manual_seed(1), own
        for i in out:
            new = put_at(new, i, influence.filled_rows(self.own_leaves[i], gen))
        return {influence.FILLED: out} if out and self.stands(self.model, new) else {}

    def zeroed(self, own):
        """The tensors that may hold zeros among their values, together."""
        with_zeros, out = own, []
        for i, t in enumerate(self.own_leaves):
            if not self.is_drawn(t) or t.dim() < 1 or t.numel() > SMALL_MOST or any(st == 0 for st in t.stride()):
                continue
            if structure.order_of(t) or structure.is_symmetric(t) or (structure.is_unit(t) and
                                                                      not structure.is_probability(t)):
                continue  # zeros would break what every other draw keeps
            gen = torch.Generator().manual_seed(1 + i)  # zeros of one input lie elsewhere than those of another
            new = put_at(with_zeros, i, changed_by_choice("scattered zeros", t, gen))
            if self.stands(self.model, new):
                with_zeros, out = new, out + [i]
        return {"scattered zeros": out} if out else {}

    def placing(self, own):
        """{kind: tensors} where whole numbers may name other places. -1 does where any number below zero does the same:
        then the task itself singles such places out."""
        out = {kind: [] for kind in influence.PLACING}
        for i in influence.free_places(self.own_leaves):
            t = self.own_leaves[i]
            fewer, crowd, *below = (put_at(own, i, f(t, torch.Generator().manual_seed(1))) for f in (
                influence.without_some, influence.crowded, influence.with_sentinels,
                functools.partial(influence.with_sentinels, value=-2)))
            if self.stands(self.model, fewer):
                out[influence.PLACING[0]].append(i)
            if self.stands(self.model, crowd):
                out[influence.PLACING[3]].append(i)
            self.find_sentinel(t)
            if self.task.sentinel is not None:
                if self.stands(self.model, put_at(own, i, self.with_sentinel(t))):
                    out[influence.PLACING[1]].append(i)
            elif influence.is_compared(self.seen) and all(self.stands(self.model, b) for b in below):
                one, two = (self.run(self.model, b) for b in below)
                if alike(one, two) and not alike(one, self.own_answer):
                    out[influence.PLACING[1]].append(i)
        out[influence.PLACING[2]] = self.moving(own)
        for i in influence.tables(self.own_leaves):
            other = influence.places_exchanged(self.own_leaves[i], torch.Generator().manual_seed(1))
            if self.stands(self.model, put_at(own, i, other)):
                out[influence.PLACING[4]].append(i)
        return {kind: which for kind, which in out.items() if which}

    def find_sentinel(self, t):
        """A value that the task compares its places with, and that does not stand there."""
        apart = sorted(v for v in self.told.singled if not bool((t == v).any()))
        if self.task.sentinel is None and apart:
            self.task.sentinel = apart[0]

    def with_sentinel(self, t):
        return influence.with_sentinels(t, torch.Generator().manual_seed(1), self.task.sentinel)

    def moving(self, own):
        """The tensors whose places may move. Where one place is then written with several values it may not."""
        for i in influence.movable(self.own_leaves, [n for n, _ in influence.numbers_of(own)]):
            moved = influence.moved(self.own_leaves[i], torch.Generator().manual_seed(1))
            most = int(self.own_leaves[i].diff().max())
            if int(moved.diff().max()) > most and any(n == most for n, _ in influence.numbers_of(self.init)):
                return []  # the constructor was told the longest gap
            other = put_at(own, i, moved)
            if not self.stands(self.model, other):
                return []
            with ops.Ambiguous() as writes:
                answer = self.run(self.model, other)
            return [i] if not writes.found and not alike(answer, self.own_answer) else []
        return []

    def tells(self, model, base, other, part=lambda t: t, around=None):
        """By how many tolerances the answer, or a part of it, moves at most where inputs become others. around: a
        context for the forward of these."""
        eager, most = values.leaves(run(model, base)[0]), 0.0
        with doubles():
            wide = copy_of(model).double()
            a, b = (values.leaves(run(wide, values.map_tensors(x, to_double), around=c)[0])
                    for x, c in ((base, None), (other, around)))
        for e, x, y in zip(eager, a, b):
            if x.shape != y.shape:
                return math.inf
            if x.numel() and e.is_floating_point():
                u = torch.finfo(e.dtype).eps / 2
                allowed = 64 * beyond_rounding(e, x) + (32 if u < 1e-6 else 4) * u * top_of(x)
                allowed = (allowed + max(2e-5, 4 * u) * x.abs()).clamp(min=1e-300)
                most = max(most, largest(part((x - y).abs() / allowed)))
        return most

    def undecided(self):
        """Further trials of regime "influence": those that decide what the distributions leave undecided."""
        if large(self.model, self.own_leaves, self.own_answer):
            return []
        try:
            return self.amplified() + self.far() + self.rounds() + self.bounds()
        except torch.OutOfMemoryError:
            raise
        except Exception:  # not in double, or not with these values
            return []

    def values_like(self, regime, trial, other=False):
        seed = derive(self.seed, "other") if other else self.seed
        return draw_inputs(self.task, regime, trial, seed, self.variant.form)

    def is_drawn(self, t):
        return t.is_floating_point() and not keeps_distribution(t)

    def amplified(self):
        """Inputs of next to no influence (1e-6 y) become larger until they have some."""
        base, other = self.values_like("normal", 0), self.values_like("normal", 0, True)
        drawn = [i for i, t in enumerate(self.own_leaves) if self.is_drawn(t)]
        return [t for i in drawn if len(drawn) > 1 for t in self.amplified_one(base, values.leaves(other)[i], i)]

    def amplified_one(self, base, new, i):
        old = values.leaves(base)[i]
        for doublings in (0, *range(4, 40, 6)):
            larger = [put_at(base, i, t * 2.0 ** doublings) for t in (old, new)]
            if not self.stands(self.model, larger[0]):
                return []
            if self.tells(self.model, *larger) >= TOLD:
                return [influence.amplified_trial(i, doublings)] if doublings else []
        return []

    def rounds(self):
        """Where an iteration has converged long before its end, inputs become larger until its last rounds matter."""
        if "range" not in self.req["source"] or "range" in vars(self.task):
            return []
        for share in ROUNDS:
            found = self.unconverged(share)
            if found is not None:
                return found
        return []

    def unconverged(self, share):
        """[the trial that tells a loop from one that is shorter by a share]; empty: there is nothing to tell, or every
        distribution does. None: nothing does."""
        base, shorter = self.values_like("normal", 0), influence.Shorter(self.task, share)
        try:
            told = self.tells(self.model, base, base, around=shorter) >= TOLD
        except Exception:  # without all rounds there is no answer
            return []
        if told or not shorter.ended:
            return []
        for i in (i for i, t in enumerate(self.own_leaves) if self.is_drawn(t)):
            for doublings in range(1, LARGEST):
                larger = put_at(base, i, values.leaves(base)[i] * 2.0 ** doublings)
                if not self.stands(self.model, larger):
                    break
                if self.tells(self.model, larger, larger, around=shorter) >= TOLD:
                    return [influence.amplified_trial(i, doublings)]
        return None

    def bounds(self):
        """Where values reach a bound (clamp, hardtanh) hardly, inputs become larger until they do on both sides."""
        base = self.values_like("normal", 0)
        share = self.bounded_share(base)
        if share is None or share >= BOUNDED:
            return []
        for i in (i for i, t in enumerate(self.own_leaves) if self.is_drawn(t)):
            for doublings in range(1, LARGEST + 1):
                larger = put_at(base, i, values.leaves(base)[i] * 2.0 ** doublings)
                if not self.stands(self.model, larger):
                    break
                if self.bounded_share(larger) >= BOUNDED:
                    return [influence.amplified_trial(i, doublings)]
        return []

    def bounded_share(self, inputs):
        """Of the elements that the reference bounds, how many lie beyond: on the side that has fewer. None: there are
        no bounds."""
        with ops.Bounds() as seen:
            self.run(self.model, inputs)
        return seen.share

    def far(self):
        """What the early part of a long axis does to the late part of an answer may take draws that remember it."""
        axes = [(i, d) for i, t in enumerate(self.own_leaves) if self.is_drawn(t)
                for d, n in enumerate(t.shape) if n >= influence.FAR_LEAST]
        chosen = set()
        for i, axis in axes[:FAR_AXES]:
            if self.reaches(i, axis):
                chosen |= self.far_kind(i, axis)
        return sorted(chosen)

    def reaches(self, i, axis):
        """Does the last quarter of an answer depend on the first quarter of this input's axis at all?"""
        base = self.values_like("normal", 0)
        t = values.leaves(base)[i]
        out = self.run(self.model, put_at(base, i, influence.first_quarter(t, axis, torch.full_like(t, math.nan))))
        return not finite([influence.last_quarter(o, t.shape[axis]) for o in values.leaves(out)])

    def far_kind(self, i, axis):
        """{the trial that lets it reach there}; empty: a distribution does, or nothing does."""
        n = self.own_leaves[i].shape[axis]
        for regime, trial in [("normal", 0)] + [("influence", influence.KINDS.index(k)) for k in influence.FAR]:
            model = self.sets[min(influence.parameters_of(regime, trial), len(self.sets) - 1)]
            base = self.values_like(regime, trial)
            old, new = values.leaves(base)[i], values.leaves(self.values_like(regime, trial, True))[i]
            other = put_at(base, i, influence.first_quarter(old, axis, new))
            late = functools.partial(influence.last_quarter, n=n)
            if self.stands(model, base) and self.tells(model, base, other, late) >= TOLD:
                return set() if regime == "normal" else {trial}
        return set()

    def stands(self, model, inputs):
        """Does the reference give an answer of its usual shape, as finite as usual, for these? An index out of range is
        an exception on the CPU; on a GPU it ends this process's context, so the CPU is asked first."""
        try:
            if PLACE.type != "cpu" and any(is_index(t) for t in values.leaves(inputs)):
                run(copy_of(model).cpu(), values.map_tensors(inputs, torch.Tensor.cpu))
            out = self.run(model, inputs)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            return False
        return shapes_agree(out, self.own_answer) and self.finite_as_own(out)

    def other_sets(self, own):
        """[the model with parameters in other regimes], where it has some and the reference stands them."""
        params = [p for p in self.model.parameters() if p.is_floating_point()]
        if self.req["params"] != "random" or not params or sum(p.numel() for p in params) > SET_MOST:
            return []
        for law in LAWS[:2]:
            other = self.in_regime(law)
            if self.stands(other, own):
                return [other]
        return []

    def in_regime(self, law):
        """The model as it is constructed, with parameters of another law; what no law renews is as it is."""
        other = copy_of(self.model)
        with torch.no_grad():
            for (name, kind, mine), (_, _, built) in zip(named_state(other), named_state(self.as_built())):
                if is_renewed(name, kind, mine) and mine.shape == built.shape:
                    mine.copy_(built)
        randomise(other, self.seed, law)
        return other

    def as_built(self):
        return self.variant.model(self.another(self.init_seed))

    def finite_as_own(self, eager):
        """Answers are finite where inputs are; those of a task whose own inputs are not need not be."""
        return self.odd or finite(eager)

    def settle_mode(self, inputs):
        """Dropout and friends make train mode random: then both sides are put into eval mode."""
        if not self.is_steady(inputs):
            self.model.eval()
            self.mode = "eval"
            if not self.is_steady(inputs):
                traced(self.model, inputs)  # on a device an ambiguous write is unsteady, and its name says more
                raise Refused("Model gives another result on every call; a task must be deterministic in eval mode")
        self.counts = self.keeps_count(inputs)
        self.look_at(inputs)

    def keeps_count(self, inputs):
        """Does a second call of one model differ from the first, though its buffers are as they were? Then it counts in
        Python, and draws, which begin anew, say nothing about a program that does so too."""
        m = copy_of(self.model)
        first, given = run(m, inputs, own=True)
        with torch.no_grad():
            for (_, _, mine), (_, _, old) in zip(state_rows(m), state_rows(self.model)):
                if mine.shape == old.shape:
                    mine.copy_(old)
        try:
            second = run(m, inputs, own=True)[0]
            self.keeps = not places(first).isdisjoint(places([second, given, [t for _, _, t in state_rows(m)]]))
            return not alike(first, second)
        except torch.OutOfMemoryError:  # two answers of a large task do not fit: nothing was seen
            return False
        except Exception:
            return True

    def look_at(self, inputs):
        self.seen, self.width, self.alters, self.told = traced(self.model, inputs)
        self.copies = moves_only(self.model, inputs, self.seen)

    def expected(self, regime, trial, inputs, seed):
        """(eager, oracle, how far rounding moves it, what became of the inputs). oracle is None where a large task's
        regime has its noise from an earlier draw."""
        with self.usage.forward():
            eager, given = run(self.model, inputs)
        self.check_size("an output", values.leaves(eager))
        if max([t.numel() for t in values.leaves(inputs) + values.leaves(eager)] + [0]) > HUGE:
            self.trials = min(self.trials, HUGE_TRIALS)
        if regime != "task" and not self.finite_as_own(eager):
            raise Skip("the reference is not finite at its own precision")
        if trial and regime in self.noise and large(self.model, inputs, eager):
            return eager, None, None, given
        try:
            with doubles():
                self.moved = None if large(self.model, inputs, eager) else []
                oracle, shifts = oracle_of(self.model, inputs, eager, seed, self.moved)
            if not shapes_agree(eager, oracle):
                raise Skip("the oracle has another shape")
            if not same_finite(eager, oracle):
                raise Skip("the oracle is not finite where the reference is")
            if regime != "task" and not all(map(math.isfinite, shifts)):
                raise Skip("the oracle is not finite")
        except torch.OutOfMemoryError:
            raise
        except Exception as e:
            if regime != "task":
                raise e if isinstance(e, Skip) else Skip("the oracle raises " + one_line(e)) from e
            self.moved = None
            oracle, shifts = eager, own_shifts(self.model, inputs, eager, seed)
        return eager, oracle, shifts, given

    def draw(self, regime, trial):
        """A device that is full for a moment must not cost a regime."""
        try:
            return self.drawn(regime, trial)
        except torch.OutOfMemoryError:
            pass
        torch.cuda.empty_cache()  # here: the exception's frames held tensors
        try:
            return self.drawn(regime, trial)
        except torch.OutOfMemoryError as e:
            raise NoMemory(one_line(e)) from e

    def drawn(self, regime, trial):
        """Where the reference does not stand a large value (exp), or another value of a constant: without that."""
        spiked = regime == SPIKED and trial % 2 == 1
        domains = [self.domains, None] if any(self.domains or ()) else [None]
        ways = [(s, d) for s in (spiked, False)[:1 + spiked] for d in domains]
        for way in ways[:-1]:
            with contextlib.suppress(Skip):
                return self.drawn_with(regime, trial, *way)
        return self.drawn_with(regime, trial, *ways[-1])

    def drawn_with(self, regime, trial, spiked, domains):
        self.model = self.sets[influence.parameters_of(regime, trial)] if len(self.sets) > 1 else self.model
        try:
            return self.drawn_from(regime, trial, spiked, domains)
        finally:
            self.model = self.sets[0] if len(self.sets) > 1 else self.model

    def drawn_from(self, regime, trial, spiked, domains=None):
        seed = derive(self.seed, regime, trial, "noise")
        inputs = draw_inputs(self.task, regime, trial, self.seed, self.variant.form, spiked, domains, self.chosen)
        self.check_size("an input", values.leaves(inputs))
        self.check_casts(regime, inputs)
        eager, oracle, shifts, given = self.expected(regime, trial, inputs, seed)
        self.check_ties(regime, inputs, eager)
        if oracle is None:
            noise = noise_again(self.noise[regime], eager)
            as_for_stored(noise)
            return self.record(regime, trial, inputs, eager, eager, noise, given)
        if regime == "edges" and influence.kind_of(regime, trial) == influence.FAR_OUT and is_at_its_end(eager):
            raise Skip("it has reached its end there")
        jumps, calm = self.jumps(inputs, eager, oracle, seed), (eager, oracle)
        steps_decide = self.steps_decide(regime, trial, inputs, eager, oracle)
        if any(m is not None for m in jumps):  # neither noise nor values: those are of all others
            shifts = [s if m is None else largest(w.masked_fill(m, 0)) for s, w, m in zip(shifts, self.moved, jumps)]
            calm = [without(t, jumps, lambda x, m: widened(x).masked_fill(m, 0).to(x.dtype)) for t in calm]
        if steps_decide:  # that shaken inputs leave a step says nothing of arithmetic that is exact
            shifts = [0.0] * len(shifts)
        noise = noise_of(*calm, shifts, inputs, self.model, self.width)
        if regime == "uniform" and trial % 2:
            self.as_for_ordinary(noise, regime)
            self.as_for_offsets(noise, inputs)
        if regime == "edges" and influence.kind_of(regime, trial) == influence.FAR_OUT:
            self.as_for_ordinary(noise, "normal")
        if regime in influence.REGIMES:
            axis = max((n for t in values.leaves(inputs) for n in t.shape), default=1)
            as_for_equal_terms(noise, 1 / 64 if regime == "edges" else 1 / 256, axis, self.width)
            self.as_for_offsets(noise, inputs)
        as_for_stored(noise, jumps)
        self.noise.setdefault(regime, noise)
        if oracle is not eager and not steps_decide:
            oracle = self.ties_left_out(regime, inputs, eager, oracle, noise, seed)
            oracle = without(oracle, jumps, lambda o, m: o.masked_fill(m, ANY_VALUE))
        return self.record(regime, trial, inputs, eager, oracle, noise, given)

    def check_casts(self, regime, inputs):
        """A draw of the judge's own may not give a type of whole numbers what it does not hold."""
        if regime == "task" or ops.CASTING[0] not in self.seen or not any(map(ops.is_whole, self.own_whole())):
            return
        with ops.Unheld() as cast:
            self.run(self.model, inputs)
        if cast.any:
            raise Skip("it casts what the type of whole numbers does not hold")

    def check_ties(self, regime, inputs, eager):
        """Which of equal values is named is open, and so is what follows from it: a draw of the judge's own where
        another choice gives another answer says nothing. Whole numbers among the answers: see by_chance."""
        if regime == "task" or ops.Ties.DIM.keys().isdisjoint(self.seen):
            return
        for last in (True, False):
            with ops.Ties(last) as ties:
                other = self.run(self.model, inputs)
            pairs = [(a, b) for a, b in zip(values.leaves(eager), values.leaves(other)) if not is_index(a)]
            if ties.any and not all(a.shape == b.shape and same(a, b) for a, b in pairs):
                raise Skip("equal values decide in it, and which of them is named is open")

    def own_whole(self):
        """Its answers, once they are known."""
        return values.leaves(self.own_answer) if self.settled else []

    def steps_decide(self, regime, trial, inputs, eager, oracle):
        """Is the reference's arithmetic exact in this draw, so that a value on a step is there for everybody?"""
        if regime == "task":
            return self.exact_as_given(inputs) and same_values(eager, oracle)
        kind = influence.kind_of(regime, trial) if regime in influence.REGIMES else None
        if kind != influence.EXACT and kind not in influence.HALVED:
            return False
        with ops.Exactness() if kind == influence.EXACT else ops.ExactValues() as arithmetic:
            self.run(self.model, inputs)
        if not arithmetic.exact or not same_values(eager, oracle):
            raise Skip("its arithmetic is not exact")
        return True

    def exact_as_given(self, inputs):
        """Does the reference step, and compute nothing from these inputs that is rounded? x >= 0.3 of levels."""
        if not ops.EXACT.issuperset(self.seen) or ops.STEPS.isdisjoint(self.seen):
            return False
        with ops.ExactValues() as arithmetic:
            self.run(self.model, inputs)
        return arithmetic.exact

    def as_for_ordinary(self, noise, regime):
        """Where inputs are made small a right program may still have terms of ordinary size (tanh by exp, log(1 + x)):
        their rounding is its error. That is no more than a draw of ordinary inputs has. Where they lie far out a
        function that has reached its end there may be cut off before (sigmoid in half precision)."""
        for row, first in zip(noise, self.noise.get(regime, ())):
            dtype = getattr(torch, row["out"])
            if dtype.is_floating_point:
                least = torch.finfo(dtype).eps / 8 * float(first["max_abs"])
                row.update(n1=max(float(row["n1"]), least), lent=float(row["n1"]) < least)

    def as_for_offsets(self, noise, inputs):
        """Draws of the judge's making may have terms that are all alike (small ones beside a bias): a mean that a right
        program adds up one by one then misses by a part of the deviation that it is divided by."""
        if max([*self.width.sums, 0]) < LONG_SUM:
            return
        with ops.Offsets(SINGLE, LONG_SUM, LONGEST_SUM) as offsets:
            self.run(self.model, inputs)
        for i, row in enumerate(noise):
            if self.width.terms(i) >= LONG_SUM and getattr(torch, row["out"]).is_floating_point:
                missed = offsets.most * max(1.0, float(row["max_abs"]) / DEVIATIONS) / OFTEN
                row["n1"] = max(float(row["n1"]), min(missed, float(row["max_abs"]) / USABLE))

    def jumps(self, inputs, eager, oracle, seed):
        if oracle is eager or not self.moved or not finite(oracle):
            return [None] * len(values.leaves(eager))
        with doubles():
            marks = jumps_of(self.model, inputs, eager, oracle, self.moved, seed)
            return with_stored(marks, self.model, inputs, eager, oracle, seed)

    def ties_left_out(self, regime, inputs, eager, oracle, noise, seed):
        """Which of several equal values an index names is nobody's mistake. Notes in noise what it points to."""
        with doubles():
            marks = by_chance(self.model, inputs, eager, oracle, seed)
        if self.told.stable or regime == "task" and self.told.first and names_first(marks, inputs, oracle):
            marks = [None if isinstance(m, dict) else m for m in marks]
        if regime != "task" and marks and all(isinstance(m, tuple) and m[0].numel() and
                                              float((m[0] < m[1]).double().mean()) > 0.5 for m in marks):
            raise Skip("most indices among its outputs depend on how ties are broken")
        for row, mark in zip(noise, marks):
            if isinstance(mark, dict):
                row["places"] = mark
        return with_chance(oracle, marks)

    def record(self, regime, trial, inputs, eager, oracle, noise, given):
        mutates = [i for i, (a, b) in enumerate(zip(values.leaves(inputs), values.leaves(given))) if not same(a, b)]
        self.items, self.room = [], 0
        head = {"regime": regime, "trial": trial, "inputs": self.draw_section(inputs),
                "eager": self.draw_section(eager)}
        head["oracle"] = head["eager"] if oracle is eager and self.req.get("area") else self.draw_section(oracle)
        if mutates and not self.req.get("area"):
            head["after"] = self.section([values.leaves(given)[i] for i in mutates])
        if "buffers" in (self.req.get("effects") or ()) and not self.req.get("area"):
            head.update(self.left_in_buffers(inputs))
        return dict(head, noise=noise, mutates=mutates, extreme=regime in influence.REGIMES,
                    parameters=influence.parameters_of(regime, trial))

    def left_in_buffers(self, inputs):
        """What a forward leaves in those that it changes."""
        m = copy_of(self.model)
        run(m, inputs, own=True)
        rows = [(i, new) for i, ((_, k, old), (_, _, new)) in enumerate(zip(state_rows(self.model), state_rows(m)))
                if k == "buffer" and not same(old, new)]
        return {"left_rows": [i for i, _ in rows], "left": self.section([t for _, t in rows])}

    def strict_draws(self, skipped):
        """Yields draws; fills skipped. Those of the task's own inputs come last: most, where there are no others."""
        for regime in self.regimes:
            yield from self.draws_of(regime, range(self.req["trials"]), skipped)
        if self.regimes == REGIMES:
            yield from self.kinds_drawn(False)
        if "task" not in self.regimes:
            yield from self.own_draws()
        if self.regimes == REGIMES:
            yield from self.kinds_drawn(True)

    def kinds_drawn(self, other_parameters):
        """Draws of influence.py: where a kind does not apply the others still do."""
        for regime, trials in self.trials_of_kinds().items():
            for trial in trials:
                if bool(influence.parameters_of(regime, trial)) == other_parameters:
                    yield from self.draws_of(regime, [trial], {})

    def trials_of_kinds(self):
        """{regime: trials} of influence.py that this task gets."""
        if not self.drawn_so_far or not self.settled:
            return {}
        if self.more is None:
            self.more = self.undecided()
        always = [influence.KINDS.index(k) for k in influence.ALWAYS]
        kinds = {"edges": range(len(influence.EDGES)), "influence": sorted(set(always + self.more))}
        return {r: [t for t in trials if self.takes_kind(r, t)] for r, trials in kinds.items()}

    def takes_kind(self, regime, trial):
        if influence.parameters_of(regime, trial):
            return len(self.sets) > 1
        kind = influence.kind_of(regime, trial)
        if kind in influence.NUMBERS or kind in influence.CHOOSING:
            return kind in (self.wide if kind in influence.NUMBERS else self.chosen)
        if kind in (influence.FAR_DOWN, influence.OPPOSED) and not influence.takes_shifts(kind, self.seen):
            return False
        selects = set(self.seen) <= ops.SELECTING | ops.COPIES
        if kind in influence.FAR_OFF and not (selects and not ops.SELECTING.isdisjoint(self.seen)):
            return False
        if kind == influence.EXACT and not (ops.EXACT.issuperset(self.seen) and not ops.STEPS.isdisjoint(self.seen)):
            return False
        if kind in influence.HALVED and not (ops.EXACT.issuperset(self.seen) and "aten::round" in self.seen):
            return False
        if kind == influence.APART and ops.SEVERAL.isdisjoint(self.seen):
            return False
        if kind == influence.FAR_OUT and (selects or not influence.takes_far_out(self.seen)):
            return False
        return any(t.is_floating_point() and not keeps_distribution(t) for t in self.own_leaves)

    def draws_of(self, regime, trials, skipped):
        for trial in trials:
            if regime not in influence.REGIMES and trial >= self.trials:
                break
            try:
                self.settle()
                draw = self.draw(regime, trial)
            except Skip as e:
                skipped[regime] = str(e)
                break
            except (Refused, NoMemory):
                raise
            except Exception as e:
                if not self.settled:
                    raise
                skipped[regime] = "the reference raises " + one_line(e)
                break
            self.drawn_so_far += 1
            yield draw

    def own_draws(self):
        most = OWN_TRIALS if self.drawn_so_far else self.trials
        for trial in range(min(most, self.trials, self.req["trials"])):
            try:
                yield self.draw("task", trial)
            except Skip:
                if not self.drawn_so_far:
                    raise
                break

    def strict(self):
        skipped = {}
        return list(self.strict_draws(skipped)), skipped

    def cast(self, inputs, everything):
        """KernelBench casts every tensor to the run's precision. Where the reference cannot take that (class indices),
        integers are kept."""
        return values.map_tensors(inputs, lambda t: t.float() if everything or t.is_floating_point() else t)

    def kernelbench_draw(self, trial):
        regime, s = published_seed(trial, self.req["trials"], self.seed)
        self.live(regime)
        raw = task_draw(self.task, s, torch.device("cpu"))
        if has_numbers(raw):
            first = published_seed(0, self.req["trials"], self.seed)[1]
            raw = with_numbers(raw, task_draw(self.task, first, torch.device("cpu")))
        self.check_size("an input", values.leaves(raw))
        inputs = self.cast(raw, self.everything)
        try:
            with self.usage.forward():
                eager, given = run(self.model, inputs, s)
        except Exception:
            if not self.everything:
                raise
            self.everything = False
            inputs = self.cast(raw, False)
            eager, given = run(self.model, inputs, s)
        self.check_size("an output", values.leaves(eager))
        noise = [{"n1": 0.0, "n2": 0.0, "fan_in": 1.0, "max_abs": 0.0, "dtype": str(t.dtype)[6:]}
                 for t in values.leaves(eager)]
        draw = self.record(regime, trial, inputs, eager, eager, noise, given)
        if trial == 0:
            self.look_at(inputs)
            self.defects = self.defects or defects.known(self, raw, inputs, eager, self.everything)
        return draw

    def kernelbench_draws(self, skipped):
        self.model = self.model.to(torch.float32)
        for trial in range(self.req["trials"] + self.secret):
            yield self.kernelbench_draw(trial)

    def kernelbench(self):
        return list(self.kernelbench_draws({})), {}

    def run(self, model, inputs, seed=0):
        return run(model, inputs, seed)[0]

    def another(self, seed):
        """The model as another seed constructs it."""
        return construct(self.task, self.init, seed).to(PLACE)

    def tables(self):
        return table_bytes(self.model, lambda: self.variant.model(self.another(derive(self.seed, "tables"))))

    def state_section(self, in_bytes):
        rows = state_rows(self.model)
        kinds = [{"name": n, "kind": k, "dtype": str(t.dtype)[6:], "shape": list(t.shape)} for n, k, t in rows]
        alike = self.alike(rows)
        for kind in kinds:
            kind["alike"] = kind["name"] in alike
        tree = [t for _, _, t in rows]
        self.items, self.room = [], 0
        return kinds, self.section(tree) if in_bytes else self.draw_section(tree)

    def alike(self, rows):
        """Names of buffers that no law renews and each construction makes alike (masks, tables, the starts of
        segments): they are no secret."""
        mine = {n: t for n, k, t in rows if k == "buffer" and t.numel() > 1 and not is_renewed(n, k, t)}
        built = named_state(self.as_built()) if mine and self.req["params"] == "random" else []
        return {n for n, _, t in built if n in mine and t.shape == mine[n].shape and torch.equal(t, mine[n])}

    def other_states(self, in_bytes):
        """Of each further set of parameters, as state_values."""
        return [self.section([t for _, _, t in state_rows(m)]) for m in self.sets[1:]] if in_bytes else []

    def built(self, in_bytes):
        """As state_values, of the model as init_seed constructs it: a program that packs its weights while it is
        constructed shows by these which element went where. None where there are none, or too many."""
        n = sum(t.numel() for _, _, t in state_rows(self.sets[0]))
        if not in_bytes or self.req["params"] != "random" or not 0 < n <= SET_MOST:
            return None
        return self.section([t for _, _, t in state_rows(self.as_built())])

    def answer(self):
        draws, skipped = self.kernelbench() if self.req["protocol"] == "kernelbench" else self.strict()
        return self.rest(draws, skipped)

    def again(self, regime, trial):
        return self.kernelbench_draw(trial) if self.req["protocol"] == "kernelbench" else self.draw(regime, trial)

    def rest(self, draws, skipped, in_bytes=True):
        kinds, state = self.state_section(in_bytes)
        dtype = self.variant.dtype or getattr(self.task, "in_dtype", None)
        second = self.second and {"init": self.section(self.second["init"]), "seed": self.second["seed"]}
        return {"ok": True, "draws": draws, "skipped": skipped, "mode": self.mode, "init": self.section(self.init),
                "init_seed": self.init_seed, "second": second,
                "state": kinds, "state_values": state, "other_states": self.other_states(in_bytes),
                "torch": torch.__version__,
                "built": self.built(in_bytes), "defects": self.defects, "copies": self.copies, "counts": self.counts,
                "keeps": self.keeps, "numbers": self.numbers, "changed": self.changed,
                "alters": self.alters, "tables": self.tables(),
                "memory": self.usage.facts(),
                "dtype": str(dtype)[6:] if dtype else None}


def shapes_agree(a, b):
    la, lb = values.leaves(a), values.leaves(b)
    return len(la) == len(lb) and all(x.shape == y.shape for x, y in zip(la, lb))


def scrub(v):
    """JSON has no infinity: numbers that may be one become strings."""
    if isinstance(v, float) and not math.isfinite(v):
        return "nan" if math.isnan(v) else "inf" if v > 0 else "-inf"
    if isinstance(v, dict):
        return {k: scrub(x) for k, x in v.items()}
    return [scrub(x) for x in v] if isinstance(v, list) else v


def policy():
    """What this side's arithmetic was allowed to be, for the record."""
    if PLACE.type == "cpu":
        return {}
    return {"tf32": {"matmul": torch.backends.cuda.matmul.allow_tf32, "cudnn": torch.backends.cudnn.allow_tf32}}


class Server:
    """One task after the other; the last one stays for next, again and fill."""

    def __init__(self, sock, device, reuses=False):
        """reuses: it may be asked for clean."""
        self.sock, self.device = sock, device
        self.task, self.draws, self.skipped, self.area, self.source = None, None, {}, None, ""
        self.traces = clean.Traces() if reuses else None

    def op_task(self, req, fds):
        self.task = self.draws = None
        self.source = req["source"]  # also of a task that raises
        t = Task(req, there=not req.get("area"))
        if not req.get("area"):
            return dict(t.answer(), **policy()), t.parts
        self.task, self.skipped = t, {}
        self.draws = t.kernelbench_draws({}) if req["protocol"] == "kernelbench" else t.strict_draws(self.skipped)
        return dict(t.sizes(), ok=True), []

    def let_go(self):
        """One draw at a time: what the last one left is gone before the next is made."""
        self.task.items = []
        if PLACE.type == "cuda" and torch.cuda.memory_reserved() > KEPT_BYTES:
            torch.cuda.empty_cache()

    def op_next(self, req, fds):
        self.let_go()
        self.task.arrive()
        draw = next(self.draws, None)
        if draw is None:
            return {"ok": True, "end": True, "skipped": self.skipped}, []
        return {"ok": True, "draw": draw, "size": self.task.room}, []

    def op_facts(self, req, fds):
        self.let_go()
        self.task.parts, self.task.size = [], 0
        return dict(self.task.rest([], None, req["bytes"]), **policy()), self.task.parts

    def op_again(self, req, fds):
        self.let_go()
        draw = self.task.again(req["regime"], req["trial"])
        return {"ok": True, "draw": draw, "size": self.task.room}, []

    def op_fill(self, req, fds):
        if req["area"]:
            if self.area:
                self.area.close()
            self.area = area.open_area(fds[0], req["area"], self.device)
        self.task.fill(self.area)
        self.let_go()
        return {"ok": True}, []

    def drop(self):
        self.task = self.draws = None
        self.skipped, self.source = {}, ""
        linecache.cache.pop(FILE, None)

    def op_clean(self, req, fds):
        self.drop()
        return {"ok": True, "left": self.traces.found()}, []

    def answer(self, req, fds):
        try:
            return getattr(self, "op_" + req["op"])(req, fds)
        except Refused as e:
            return {"ok": False, "type": "refused", "message": str(e), "line": None, "text": ""}, []
        except (NoMemory, torch.OutOfMemoryError) as e:
            return {"ok": False, "type": "memory", "message": one_line(e), "line": None, "text": ""}, []
        except Exception as e:
            return dict(values.describe_error(e, FILE, self.source), ok=False), []


def serve(sock, args):
    """args: {"place": "cuda"} runs on the GPU; the device's own part of args is in runner/cuda."""
    global PLACE
    torch.set_num_threads(1)
    PLACE = torch.device((args or {}).get("place") or "cpu")
    s = Server(sock, importlib.import_module(PLACE.type) if PLACE.type != "cpu" else None)
    for req, _, fds in frame.requests(sock, frame.recv_fds):
        head, parts = s.answer(req, fds)
        frame.send(sock, scrub(head), parts)
