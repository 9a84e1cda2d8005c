"""ops.py - watching and changing the operators of a reference run: which ran, what if one were missing, what TF32
costs.

Watching works on ATen operators (below autograd and composite functions), dropping on the calls that the task's source
makes (F.relu, torch.add, x.mul, x + y), because those are what a program could leave out.
"""
import math
import sys

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

CONVOLUTIONS = {"aten::convolution", "aten::_convolution", "aten::convolution_overrideable", "aten::mkldnn_convolution"}
# Tensor arguments that a tensor core would round.
ROUNDED = {"aten::convolution": (0, 1), "aten::_convolution": (0, 1), "aten::mm": (0, 1), "aten::bmm": (0, 1),
           "aten::addmm": (1, 2), "aten::baddbmm": (1, 2), "aten::mv": (0, 1), "aten::addmv": (1, 2)}
# Value-preserving by what they are: leaving them out is no saving. Dropout and friends are so in eval mode.
PLUMBING = {"contiguous", "clone", "detach", "detach_", "to", "type", "float", "double", "half", "bfloat16",
            "requires_grad_",
            "cpu", "cuda", "alias", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
            "feature_alpha_dropout",
            "feature_dropout", "dropout_", "identity", "view", "reshape", "view_as", "expand", "expand_as", "flatten",
            "squeeze",
            "unsqueeze", "__get__", "__set__", "data", "empty_like", "zeros_like", "ones_like", "full_like",
            "rand_like",
            "randn_like", "new_zeros", "new_ones", "new_empty", "new_full", "permute", "transpose", "t", "movedim",
            "unflatten"}

# Operators that move values and make none.
COPIES = {"aten::" + n for n in (
    "alias", "as_strided", "cat", "clone", "constant_pad_nd", "copy_", "detach", "empty", "empty_like", "empty_strided",
    "expand", "fill_", "flip", "full", "full_like", "lift_fresh", "narrow", "new_empty", "new_empty_strided",
    "new_zeros",
    "ones", "permute", "pixel_shuffle", "pixel_unshuffle", "repeat", "reshape", "_reshape_alias", "resize_", "roll",
    "select",
    "slice", "split", "split_with_sizes", "squeeze", "stack", "t", "_to_copy", "transpose", "unbind", "unfold",
    "unsqueeze",
    "_unsafe_view", "view", "zero_", "zeros", "zeros_like")}


# They move values to places that other values name.
MOVING = {"aten::" + n for n in (
    "embedding", "gather", "index", "index_copy", "index_put", "index_put_", "index_select", "masked_fill",
    "masked_fill_", "masked_scatter", "scalar_tensor", "scatter", "scatter_", "select_scatter", "slice_scatter", "take",
    "tril", "triu", "where")}


def uncompiled(f):
    """torch wraps __torch_dispatch__ so that its compiler stays out, and imports the compiler for that (0.9 s of every
    process); nothing is compiled here, so f may stand for its own wrapping."""
    setattr(f, "__dynamo_disable", f)
    return f


def name_of(func):
    return func._schema.name if hasattr(func, "_schema") else str(func)


class Watch(TorchDispatchMode):
    """Calls see(name, result, arguments) for every ATen operator."""

    def __init__(self, see):
        super().__init__()
        self.see = see

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.see(name_of(func), out, args)
        return out


# Operators that add up: to fewer numbers, or to statistics that they give beside what they normalise.
SUMMING = {"aten::" + n for n in (
    "sum", "mean", "nansum", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "native_batch_norm",
    "_native_batch_norm_legit", "_batch_norm_with_update", "cudnn_batch_norm", "native_layer_norm",
    "native_group_norm")}


class Widest:
    """result: elements of the largest floating tensor that an operator of a forward computes."""

    def __init__(self):
        self.result, self.terms = 0, {}  # terms: by memory, of the longest sum that what lies there follows

    def see(self, name, out, args):
        made, given = ([t for t in tree_leaves(x) if torch.is_tensor(t)] for x in (out, args))
        sizes = [t.numel() for t in made if t.is_floating_point() and t.numel()]
        terms = max((self.terms_of(t) for t in given), default=0)
        if name not in COPIES:
            self.result = max([*sizes, self.result])
        if name in SUMMING and sizes:
            terms = max(terms, given[0].numel() / min(sizes))
        self.terms.update({self.memory_of(t): terms for t in made if t.layout == torch.strided})

    @staticmethod
    def memory_of(t):
        """What views of one memory share; None: a sparse tensor has none of its own."""
        return t.untyped_storage()._cdata if t.layout == torch.strided else None

    def terms_of(self, t):
        return self.terms.get(self.memory_of(t), 0)


class Offsets(TorchDispatchMode):
    """most: how far serial sums of terms that are all alike move what is normalised by them, its weights included. u:
    of one rounding; least: shorter sums are left out."""

    def __init__(self, u, least, longest):
        super().__init__()
        self.u, self.least, self.longest, self.most = u, least, longest, 0.0

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if name_of(func) in SUMMING and isinstance(out, (list, tuple)) and len(out) >= 3 and out[1].numel():
            terms = args[0].numel() / out[1].numel()
            if terms >= self.least:
                weight = max((float(t.abs().max()) for t in args[1:3] if torch.is_tensor(t) and t.numel()), default=1.0)
                missed = self.u / 4 * min(terms, self.longest) * float((out[1] * out[2]).abs().max()) * weight
                self.most = max(self.most, missed)
        return out


def record(f):
    """({operator: calls} of what f() runs, Widest)"""
    seen, widest = {}, Widest()

    def see(name, out, args):
        seen[name] = seen.get(name, 0) + 1
        widest.see(name, out, args)

    with Watch(see):
        f()
    return seen, widest


# Exact arithmetic -----------------------------------------------------------------------------------------------------

EXACT = COPIES | {"aten::" + n for n in (
    "abs", "add", "amax", "amin", "bitwise_and", "bitwise_not", "bitwise_or", "ceil", "clamp", "clamp_max", "clamp_min",
    "div", "eq", "floor", "frac", "ge", "gt", "le", "logical_and", "logical_not", "logical_or", "lt", "masked_fill",
    "maximum", "minimum", "mul", "ne", "neg", "relu", "round", "rsub", "scalar_tensor", "sign", "sub", "sum", "trunc",
    "where", "_local_scalar_dense")}
STEPS = {"aten::" + n for n in ("ceil", "floor", "frac", "ge", "gt", "le", "lt", "round", "sign", "trunc")}
SHORT = 256  # a number in the task is exact where its fraction has no more bits than this one


def is_short(number, divides):
    """Few bits, so that products with eighths are exact; as a divisor a power of two."""
    fraction = abs(math.frexp(number)[0])
    return fraction in (0, 0.5) if divides else fraction * SHORT == int(fraction * SHORT)


class Exactness(TorchDispatchMode):
    """exact: every operator so far gives eighths, and sums and products of them, without rounding."""

    def __init__(self):
        super().__init__()
        self.exact = True

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func)
        given = [*args, *(kwargs or {}).values()]
        numbers = [a for a in given if isinstance(a, (int, float)) and not isinstance(a, bool)]
        self.exact &= name in EXACT and not (name == "aten::div" and not numbers) and \
            all(math.isfinite(n) and is_short(n, name == "aten::div") for n in numbers)
        return func(*args, **(kwargs or {}))


class ExactValues(TorchDispatchMode):
    """exact: each operator so far gives what it gives in double."""

    def __init__(self):
        super().__init__()
        self.exact = True

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        def wide(x):
            return x.double() if torch.is_tensor(x) and x.is_floating_point() else x
        self.exact &= name_of(func) in EXACT
        before = tree_map(wide, (args, kwargs or {})) if self.exact and name_of(func) not in COPIES else None
        out = func(*args, **(kwargs or {}))
        if before:
            self.exact = all(torch.equal(wide(a), b) for a, b in zip(tree_leaves(out), tree_leaves(
                func(*before[0], **before[1]))) if torch.is_tensor(a))
        return out


# Places that are written more than once ------------------------------------------------------------------------------


def _rows_differ(keys, rows):
    """Of rows with equal keys: do any differ?"""
    _, group = torch.unique(keys, return_inverse=True, dim=0)
    first = torch.full((int(group.max()) + 1,), len(group), dtype=torch.long, device=group.device)
    first.scatter_reduce_(0, group, torch.arange(len(group), device=group.device), "amin")
    a, b = rows, rows[first[group]]
    return not bool(((a == b) | ((a != a) & (b != b))).all())


def _scatter(x, dim, index, src):
    places, order = index.sort(stable=True, dim=dim)
    values = src[tuple(slice(0, n) for n in index.shape)].gather(dim, order) if index.dim() else src
    if index.dim() == 0 or index.shape[dim] < 2:
        return False
    n = index.shape[dim]
    same = places.narrow(dim, 1, n - 1) == places.narrow(dim, 0, n - 1)
    return bool((same & (values.narrow(dim, 1, n - 1) != values.narrow(dim, 0, n - 1))).any())


def _index_copy(x, dim, index, source):
    return index.numel() > 1 and _rows_differ(index.reshape(-1, 1), source.movedim(dim, 0).reshape(index.numel(), -1))


def _index_put(x, indices, rows, accumulate=False, unsafe=False):
    given = [i for i in indices if i is not None]
    if accumulate or not given or len(given) < len(indices) or any(i.dtype in (torch.bool, torch.uint8) for i in given):
        return False
    given = torch.broadcast_tensors(*given)
    n = given[0].numel()
    whole = rows.expand(*given[0].shape, *x.shape[len(given):])
    return n > 1 and _rows_differ(torch.stack([i.reshape(-1) for i in given], 1), whole.reshape(n, -1))


WRITERS = {"index_copy": _index_copy, "index_copy_": _index_copy, "scatter": _scatter, "scatter_": _scatter,
           "index_put": _index_put, "index_put_": _index_put, "_index_put_impl_": _index_put}


class Ambiguous(TorchDispatchMode):
    """found: the first operator that writes one place with several values; which of them stays nobody has promised."""

    def __init__(self):
        super().__init__()
        self.found = None

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func)[6:]
        writes = WRITERS.get(name)
        if writes and not self.found and not kwargs and all(a is not None for a in args) and \
                (writes is not _scatter or isinstance(args[3], torch.Tensor)) and writes(*args):
            self.found = name
        return func(*args, **(kwargs or {}))


# What a task tells of its arguments ----------------------------------------------------------------------------------

# Operators that name the least, the largest or an order of values, and make none.
SELECTING = {"aten::" + n for n in (
    "amax", "amin", "aminmax", "argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "max", "max_pool1d",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "adaptive_max_pool2d", "maximum",
    "median", "min", "minimum", "msort", "sort", "topk", "max_pool1d_with_indices", "_cummax_helper",
    "_cummin_helper")}
ORDERING = {"aten::argsort", "aten::msort", "aten::sort", "aten::topk", "aten::argmax", "aten::argmin", "aten::max",
            "aten::min", "aten::kthvalue", "aten::median"}
# Of equal values these are documented to name the first, if they name one; the others any.
FIRST = {"aten::argmax", "aten::argmin", "aten::max", "aten::min"}
ANYWHERE = ORDERING - FIRST | {"aten::" + n for n in ("cummax", "cummin", "mode", "_cummax_helper", "_cummin_helper",
                                                      "max_pool2d_with_indices", "max_pool3d_with_indices")}
SEVERAL = {"aten::argsort", "aten::msort", "aten::sort", "aten::topk", "aten::kthvalue", "aten::median"}


class Told(TorchDispatchMode):
    """singled: the whole numbers that a forward compares whole numbers with (ids == 0). stable: it sorts, and asks
    that equal values keep their order, and orders nothing otherwise. first: what it asks for the place of a largest or
    least value names the first of equals."""

    def __init__(self):
        super().__init__()
        self.singled, self.sorts, self.unstable = set(), False, False
        self.finds, self.anywhere = False, False

    @property
    def stable(self):
        return self.sorts and not self.unstable

    @property
    def first(self):
        return self.finds and not self.anywhere

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, name_of(func)
        if name in ("aten::eq", "aten::ne") and isinstance(args[1], int) and not args[0].is_floating_point() and \
                args[0].dtype != torch.bool:
            self.singled.add(args[1])
        if name in ORDERING:
            asked = name == "aten::sort" and kwargs.get("stable") is True
            self.sorts |= asked
            self.unstable |= not asked
        self.finds |= name in FIRST
        self.anywhere |= name in ANYWHERE
        return func(*args, **kwargs)


class Ties(TorchDispatchMode):
    """Of equal values topk and sort name the first ones, or the last ones. any: some index is another than before."""

    DIM = {"aten::topk": 2, "aten::sort": 1}

    def __init__(self, last):
        super().__init__()
        self.last, self.any = last, False

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, name_of(func)
        out = func(*args, **kwargs)
        if name not in self.DIM or kwargs.get("stable") or "out" in func._schema.overload_name or not args[0].dim():
            return out
        asked = dict(zip([a.name for a in func._schema.arguments], args), **kwargs)
        dim, down = asked.get("dim", -1), asked.get("largest", True) if name == "aten::topk" else \
            asked.get("descending", False)
        n = args[0].size(dim)
        x = args[0].flip(dim) if self.last else args[0]
        index = torch.sort(x, dim=dim, descending=down, stable=True).indices.narrow(dim, 0, out[1].size(dim))
        index = n - 1 - index if self.last else index
        self.any |= not torch.equal(index, out[1])
        return out[0], index


MAKING = {"aten::" + n for n in ("add", "addmm", "bmm", "cumprod", "cumsum", "mm", "mul", "pow", "prod", "sub", "sum",
                                 "square", "neg", "matmul", "dot", "mv", "__lshift__", "bitwise_left_shift")}
HOLDS = 2.0**62  # numbers of 64 bits below it have not wrapped


class Wrapping(TorchDispatchMode):
    """wraps: arithmetic on numbers of 64 bits went beyond them, where languages and operators differ."""

    def __init__(self):
        super().__init__()
        self.wraps = False

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if name_of(func) in MAKING and out.dtype == torch.int64 and out.numel():
            self.wraps |= self.is_beyond(func, args, {k: v for k, v in (kwargs or {}).items() if k != "dtype"})
        return out

    @staticmethod
    def is_beyond(func, args, kwargs):
        try:
            wide = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
            return not float(func(*wide, **kwargs).abs().max()) < HOLDS
        except Exception:  # no arithmetic on doubles
            return True


# Casts ----------------------------------------------------------------------------------------------------------------

CASTING = ("aten::_to_copy", "aten::copy_")


class Unheld(TorchDispatchMode):
    """any: a cast gave a type of whole numbers what it does not hold (NaN, infinities, values beyond its ends). What
    comes of that C leaves open, and CPUs and GPUs differ."""

    def __init__(self):
        super().__init__()
        self.any = False

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if name_of(func) in CASTING and is_whole(out) and not self.any:
            given = args[name_of(func) == "aten::copy_"]
            self.any = given.is_floating_point() and not is_held(given, torch.iinfo(out.dtype))
        return out


def is_whole(t):
    return not (t.is_floating_point() or t.is_complex() or t.dtype == torch.bool)


def is_held(given, ends):
    cut = given.double().trunc()
    return bool(((cut >= ends.min) & (cut <= ends.max)).all())


# What a card asserts --------------------------------------------------------------------------------------------------

def _of_one(args):
    return all(bool(((t >= 0) & (t <= 1)).all()) for t in args[:2])


def _within(index, size, least=0):
    return index.numel() == 0 or bool(((index >= least) & (index < size)).all())


def _along(args):
    return args[0].dim() == 0 or _within(args[2], args[0].size(args[1]))


def _rows(args):
    return _within(args[1], args[0].size(0))


def _places(args):
    at = 0
    for index in args[1]:
        mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        if index is not None and not mask and not _within(index, args[0].size(at), -args[0].size(at)):
            return False
        at += index.dim() if mask else 1
    return True


def _labels(args):
    given, ignored = args[1], args[4]
    return bool((((given >= 0) & (given < args[0].size(min(1, args[0].dim() - 1)))) | (given == ignored)).all())


ASSERTED = {"binary_cross_entropy": _of_one, "embedding": _rows, "index_select": _along, "gather": _along,
            "scatter": _along, "scatter_": _along, "scatter_add": _along, "scatter_add_": _along,
            "scatter_reduce": _along, "scatter_reduce_": _along, "index": _places, "index_put": _places,
            "index_put_": _places, "_index_put_impl_": _places, "nll_loss_forward": _labels,
            "nll_loss2d_forward": _labels}


class Asserted(TorchDispatchMode):
    """Raises where a kernel of PyTorch on a card would assert and so end the whole context: what an operator does not
    take (an index out of range) is told as on a CPU."""

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func).removeprefix("aten::")
        if name in ASSERTED:
            with _disable_current_modes():  # those around this one look at the task's operators alone
                if not ASSERTED[name](args):
                    raise RuntimeError(f"{name}: a value out of range")
        return func(*args, **(kwargs or {}))


# Bounds ---------------------------------------------------------------------------------------------------------------

BOUNDING = ("aten::clamp", "aten::clamp_", "aten::hardtanh", "aten::hardtanh_")


class Bounds(TorchDispatchMode):
    """share: of the elements that an operator bounds from both sides, how many lie beyond a bound; the least of all
    such operators and of both sides. None: there was no such operator."""

    def __init__(self):
        super().__init__()
        self.share = None

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if name_of(func) in BOUNDING and args[0].numel():
            self.look(args[0], *self.ends(func, args, kwargs))
        return func(*args, **kwargs)

    @staticmethod
    def ends(func, args, kwargs):
        """The operator's bounds, None where it has none on that side."""
        rows = func._schema.arguments[1:3]
        return [args[k] if k < len(args) else kwargs.get(row.name, row.default_value) for k, row in enumerate(rows, 1)]

    def look(self, x, low, high):
        if low is not None and high is not None:
            beyond = [float(side.double().mean()) for side in (x < low, x > high)]
            self.share = min(beyond + ([] if self.share is None else [self.share]))


# TF32 -----------------------------------------------------------------------------------------------------------------


def tf32_round(t):
    """To a mantissa of 10 bits, to nearest; exponents as in fp32."""
    bits = t.contiguous().view(torch.int32)
    special = ~torch.isfinite(t)
    out = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(special, t, out)


class Tf32(TorchDispatchMode):
    """Rounds what a tensor core would round: inputs of convolutions, and of matrix products if asked."""

    def __init__(self, matmul):
        super().__init__()
        self.matmul, self.hits = matmul, {}

    @uncompiled
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func)
        which = ROUNDED.get(name, ()) if self.matmul or name in CONVOLUTIONS else ()
        args = list(args)
        for i in which:
            if args[i].dtype == torch.float32 and args[i].layout == torch.strided:
                args[i] = tf32_round(args[i])
                self.hits[name] = self.hits.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


# A missing operator ---------------------------------------------------------------------------------------------------


def call_name(func):
    name = getattr(func, "__name__", "")
    if name in ("__get__", "wrapped"):
        return name
    return name or resolve_name(func) or str(func)


def task_line(filename):
    f = sys._getframe(1)
    line = None
    while f is not None:
        if f.f_code.co_filename == filename:
            line = f.f_lineno  # innermost frame of the task
            break
        f = f.f_back
    return line


def stand_in(args, kwargs, out):
    """What the result would be without the operator: its first tensor argument of the same shape and dtype."""
    # a counter is no arithmetic
    if not isinstance(out, torch.Tensor) or out.dim() == 0 and not out.is_floating_point():
        return None
    for a in list(args) + list((kwargs or {}).values()):
        if isinstance(a, torch.Tensor) and a.shape == out.shape and a.dtype == out.dtype:
            return a
        if isinstance(a, torch.Tensor):
            return None
    return None


class Calls(TorchFunctionMode):
    """Numbers the calls of one run; 'drop' names the one whose result is replaced by its input. list: [(k, name, line)]
    of those that could be dropped."""

    def __init__(self, filename, drop=None):
        super().__init__()
        self.filename, self.drop, self.k, self.list, self.done = filename, drop, -1, [], False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.k += 1
        k, name = self.k, call_name(func)
        if k == self.drop:
            self.done = True
            return next(a for a in args if isinstance(a, torch.Tensor))
        out = func(*args, **(kwargs or {}))
        if self.drop is None and name.rstrip("_") not in PLUMBING and name not in PLUMBING:
            if stand_in(args, kwargs, out) is not None and isinstance(args[0] if args else None, torch.Tensor):
                self.list.append((k, name, task_line(self.filename)))
        return out
