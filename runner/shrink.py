"""shrink.py - makes a big task small: rewrites its module-level sizes until no tensor exceeds a number of elements.

Knobs are the module-level integers (sizes.py), except those whose name says that they are not a size (kernel_size,
stride, groups, heads, dim ...). The largest knob that makes the largest tensor smaller is halved, as long as
constructor and forward still accept the sizes; relations such as "groups divide channels" and "the kernel fits the
image" hold because the task itself refuses otherwise. Shapes are tried on the meta device, so that a task of
terabytes can be shrunk on a laptop; the result is then run for real.

Request {"op":"shrink","source","max_elements"}; reply {"ok":true,"source","changes":[{"name","line","from","to"}],
"largest","before"} or {"ok":false,"type","message","line","text"}.
"""
import re

import torch

import frame
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


def is_size(k):
    return k.value >= SMALLEST and (k.value >= SURELY_A_SIZE or not NOT_A_SIZE.search(k.name.split("[")[0].lower()))


def lonely_groups(model):
    """Group norms whose groups are single channels: on vectors they compute nothing but their bias."""
    return sum(isinstance(m, torch.nn.GroupNorm) and m.num_groups == m.num_channels for m in model.modules())


def numels(source, device, lonely=None):
    """Elements of every tensor of the task: inputs, parameters, outputs. lonely: as many lonely groups are fine."""
    with torch.device(device), torch.no_grad():
        task = reference.load(source)
        reference.seed_all(0)
        init = task.get_init_inputs()
        model = reference.construct(task, init, 0)
        if lonely is not None and lonely_groups(model) > lonely:
            raise RuntimeError("a group norm would be left with one channel per group")
        inputs = reference.task_draw(task, 0)
        out = model(*inputs)
    tensors = values.leaves(inputs) + list(model.parameters()) + list(model.buffers()) + values.leaves(out)
    if not values.leaves(out) and device == "meta":
        raise RuntimeError("no tensor comes out")
    return [t.numel() for t in tensors]


BATCH = re.compile(r"batch|^b$|^bs$|^n_?samples$")  # what a reduction rarely runs over


class Shrinker:
    def __init__(self, source, limit, first=None):
        """first: a pattern; sizes whose name has it are made small before any other is touched."""
        self.source, self.limit, self.first = source, limit, first
        self.knobs = [k for k in sizes.knobs_of(source) if is_size(k)]
        self.device, self.lonely = "meta", None
        try:
            self.now = self.measure()
        except Exception:
            self.device = "cpu"
            self.now = self.measure()
        with torch.device(self.device):
            task = reference.load(source)
            self.lonely = lonely_groups(reference.construct(task, task.get_init_inputs(), 0))
        self.before = max(self.now, default=0)

    def measure(self):
        return numels(sizes.rewrite(self.source, self.knobs), self.device, self.lonely)

    def cost(self, all_sizes):
        """What has to come down: the excess of all tensors that are too large."""
        return sum(max(n - self.limit, 0) for n in all_sizes)

    def attempt(self, group, num=1, den=2):
        """Scales these knobs together; keeps it if the task still runs and got nearer. Returns success."""
        old = [k.value for k in group]
        for k in group:
            k.value = max(k.value * num // den, FLOOR)
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

    def step(self):
        movable = [k for k in self.knobs if not k.stuck and k.value > FLOOR]
        for k in sorted(movable, key=lambda k: (not (self.first and self.first.search(k.name.lower())), -k.value)):
            if self.attempt([k]):
                return True
            k.stuck = True
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

    def run(self):
        while max(self.now, default=0) > self.limit:
            if not self.step():
                raise reference.TooLarge(
                    f"the task cannot be made smaller than {max(self.now)} elements by its module-level sizes"
                    + ("" if self.knobs else ": it has none") + "; raise --max-elements or edit it by hand")
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
