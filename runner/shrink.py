"""shrink.py - makes a big task small: rewrites its module-level sizes until no tensor exceeds a number of elements.

Knobs are the module-level integers (sizes.py), except those whose name says that they are not a size (kernel_size,
stride, groups, heads, dim ...). The largest knob that makes the largest tensor smaller is halved, as long as
constructor and forward still accept the sizes; relations such as "groups divide channels" and "the kernel fits the
image" hold because the task itself refuses otherwise. A size that is a multiple of TILE stays one as long as another
size can give way: kernels are written in tiles, and the batch is none. Where the module-level sizes do not suffice,
the integers inside get_inputs are knobs too. Shapes are tried on the meta device, so that a task of terabytes can be
shrunk on a laptop; the result is then run for real.

Request {"op":"shrink","source","max_elements"}; reply {"ok":true,"source","changes":[{"name","line","from","to"}],
"largest","before"} or {"ok":false,"type","message","line","text"}.
"""
import re

import torch
from torch.overrides import TorchFunctionMode

import frame
import home
import reference
import sizes
import values

NOT_A_SIZE = re.compile(
    r"kernel|stride|pad|dilat|group|head|(^|_)dims?$|axis|eps|bits|scale|expon|power|seed|num_layers|"
                        r"(^|_)k$|topk|bias|momentum|iter|steps|window|shift|factor|order|level|block|mode|"
                        r"ratio|value|pool")
SMALLEST = 8  # integers below this are not taken for sizes
SURELY_A_SIZE = 256  # no kernel, axis or group count is this large: "dim = 393216" and "K = 131072" are sizes
FLOOR = 2     # and no size is made smaller than this
TILE = 32     # what kernels are written in: a multiple of it stays one while anything else can give way


def is_size(k):
    return k.value >= SMALLEST and (k.value >= SURELY_A_SIZE or not NOT_A_SIZE.search(k.name.split("[")[0].lower()))


def lonely_groups(model):
    """Group norms whose groups are single channels: on vectors they compute nothing but their bias."""
    return sum(isinstance(m, torch.nn.GroupNorm) and m.num_groups == m.num_channels for m in model.modules())


class Empties(TorchFunctionMode):
    """Counts results without elements. The meta device gives one where a kernel no longer fits its image, and a
    later reduction would hide it."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.count += isinstance(out, torch.Tensor) and out.numel() == 0
        return out


def numels(source, device, lonely=None, empties=None):
    """Elements of every tensor of the task: inputs, parameters, outputs. lonely, empties: as many lonely groups and
    results without elements are fine."""
    home.place = device
    with torch.device(device), torch.no_grad():
        task = reference.load(source)
        reference.seed_all(0)
        init = task.get_init_inputs()
        model = reference.construct(task, init, 0)
        if lonely is not None and lonely_groups(model) > lonely:
            raise RuntimeError("a group norm would be left with one channel per group")
        inputs = reference.task_draw(task, 0)
        with Empties() as seen:
            out = model(*inputs)
        if empties is not None and seen.count > empties:
            raise RuntimeError("a result would have no elements")
    tensors = values.leaves(inputs) + list(model.parameters()) + list(model.buffers()) + values.leaves(out)
    if not values.leaves(out) and device == "meta":
        raise RuntimeError("no tensor comes out")
    return [t.numel() for t in tensors]


BATCH = re.compile(r"batch|^b$|^bs$|^n_?samples$")  # what a reduction rarely runs over


class Shrinker:
    def __init__(self, source, limit, first=None):
        """first: a pattern; sizes whose name has it are made small before any other is touched."""
        home.stay(source)  # before any other mode is entered, or it would end with that one
        self.source, self.limit, self.first = source, limit, first
        self.device, self.lonely, self.empties, self.loose = "meta", None, None, False
        self.take(sizes.knobs_of(source))
        try:
            self.now = self.measure()
        except Exception:
            self.device = "cpu"
            self.now = self.measure()
        self.lonely, self.empties = self.count_oddities()
        self.before = max(self.now, default=0)

    def take(self, knobs):
        self.knobs = [k for k in knobs if is_size(k)]

    def count_oddities(self):
        """Of the task as it came: lonely groups, and results without elements."""
        home.place = self.device
        with torch.device(self.device), torch.no_grad():
            task = reference.load(self.source)
            model = reference.construct(task, task.get_init_inputs(), 0)
            inputs = reference.task_draw(task, 0)
            with Empties() as seen:
                model(*inputs)
        return lonely_groups(model), seen.count

    def measure(self):
        return numels(sizes.rewrite(self.source, self.knobs), self.device, self.lonely, self.empties)

    def cost(self, all_sizes):
        """What has to come down: the excess of all tensors that are too large."""
        return sum(max(n - self.limit, 0) for n in all_sizes)

    def smaller(self, k, num, den):
        """The knob's next value, or None where it has none that keeps its tiles, or only one below SMALLEST."""
        value = max(k.value * num // den, FLOOR)
        if not self.loose and not BATCH.search(k.name.lower()):
            value = -(-value // TILE) * TILE if k.original % TILE == 0 else max(value, SMALLEST)
        return value if value < k.value else None

    def attempt(self, group, num=1, den=2):
        """Scales these knobs together; keeps it if the task still runs and got nearer. Returns success."""
        old, to = [k.value for k in group], [self.smaller(k, num, den) for k in group]
        if None in to:
            return False
        for k, v in zip(group, to):
            k.value = v
        try:
            new = self.measure()
        except Exception:
            new = None
        if new is not None and self.cost(new) < self.cost(self.now):
            self.now = new
            return True
        for k, v in zip(group, old):
            k.value = v
        return False

    def try_singles(self):
        movable = [k for k in self.knobs if not k.stuck and k.value > FLOOR]
        for k in sorted(movable, key=lambda k: (not (self.first and self.first.search(k.name.lower())), -k.value)):
            if self.attempt([k]):
                return True
            k.stuck = True
        return False

    def try_together(self):
        by_value = {}
        for k in self.knobs:
            if k.value > FLOOR:
                by_value.setdefault(k.value, []).append(k)
        if any(len(g) > 1 and self.attempt(g) for _, g in sorted(by_value.items(), reverse=True)):
            return True
        pairs = [(a, b) for i, a in enumerate(self.knobs) for b in self.knobs[i + 1:] if a.value > FLOOR
                 and b.value > FLOOR]
        if any(self.attempt([a, b]) for a, b in sorted(pairs, key=lambda p: -p[0].value - p[1].value)):
            return True
        return any(self.attempt([k], 3, 4) for k in sorted(self.knobs, key=lambda k: -k.value) if k.value > FLOOR)

    def step(self):
        if self.try_singles() or self.try_together():
            return True
        if self.loose:
            return False
        self.loose = True  # from here on tiles give way too
        for k in self.knobs:
            k.stuck = False
        return self.step()

    def descend(self):
        while max(self.now, default=0) > self.limit:
            if not self.step():
                return False
        return True

    def descend_by_inputs(self):
        """From the start again, with the integers inside get_inputs as knobs too."""
        inner = sizes.knobs_inside(self.source, "get_inputs")
        if not any(is_size(k) for k in inner):
            return False
        self.take(sizes.knobs_of(self.source) + inner)
        self.loose, self.now = False, self.measure()
        return self.descend()

    def run(self):
        if not self.descend():
            nearest, none = max(self.now), not self.knobs
            if not self.descend_by_inputs():
                raise reference.TooLarge(
                    f"the task cannot be made smaller than {nearest} elements by its module-level sizes"
                    + (": it has none" if none else "") + "; raise --max-elements or edit it by hand")
        out = sizes.rewrite(self.source, self.knobs)
        largest = max(numels(out, "cpu"), default=0)
        if largest > self.limit:
            raise reference.TooLarge(f"the shrunk task still has a tensor of {largest} elements")
        changes = [{"name": k.name, "line": k.line, "from": k.original, "to": k.value} for k in self.knobs
                   if k.value != k.original]
        return {"ok": True, "source": out, "changes": changes, "largest": largest, "before": self.before}


def serve(sock, args):
    torch.set_num_threads(1)
    for req, _ in frame.requests(sock):
        try:
            head = Shrinker(req["source"], req["max_elements"]).run()
        except reference.Refused as e:
            head = {"ok": False, "type": "refused", "message": str(e), "line": None, "text": ""}
        except Exception as e:
            head = dict(values.describe_error(e, reference.FILE, req["source"]), ok=False)
        frame.send(sock, head)
