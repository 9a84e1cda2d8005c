"""lint.py - what lint wants to know about a task: draws for the judge's null battery, and facts in numbers.

The judge (src/lint/lint.c) decides with its own arithmetic what passes; here the task is only run: as it is, with an
operator left out, with an input or a parameter exchanged, with the rounding of TF32. A task above max_elements is made
smaller first, batch sizes before all else, because reductions decide how large outputs are.

Request {"op":"lint","source","trials","seed","max_elements","variant","regimes"}. Replies, in this order:
  draw   {"group":"strict"|"kernelbench", as a draw of reference.py, "dropped":[{"call","name","line","out":section}]}
  done   {"facts":{..}}, or {"op":"failed","type","message","line","text"}
"""
import torch

import frame
import home
import ops
import reference
import shrink
import values

MAX_CALLS = 48    # operators that are left out one at a time
MAX_STATE = 48    # parameters that are exchanged one at a time
KEPT = 3          # draws on which inputs and parameters are exchanged
SAMPLE = 65536    # elements looked at for the commonest value
PUBLISHED = 1e-4  # KernelBench's fp32 tolerance


class Linted(reference.Task):
    """A task whose draws go to the judge one by one instead of into one answer."""

    secret = 0

    def __init__(self, req, sock, group):
        super().__init__(dict(req, protocol=group, params="random" if group == "strict" else "seed"))
        self.sock, self.group, self.alive, self.kept = sock, group, None, []

    def record(self, regime, trial, inputs, eager, oracle, noise, given):
        head = super().record(regime, trial, inputs, eager, oracle, noise, given)
        head["dropped"] = [dict(c, out=self.section(out)) for c, out in self.dropped(inputs, eager)]
        frame.send(self.sock, reference.scrub(dict(head, op="draw", group=self.group)), self.parts)
        self.parts, self.size = [], 0
        if len(self.kept) < KEPT and trial == 0:
            self.kept.append((regime, inputs, eager))
        return head

    def calls(self, inputs):
        watch = ops.Calls(reference.FILE)
        reference.run(self.model, inputs, 0, watch)
        return [{"call": k, "name": name, "line": line} for k, name, line in watch.list[:MAX_CALLS]]

    def dropped(self, inputs, eager):
        """[(call, output without it)] of the calls whose absence has not shown clearly in any draw so far."""
        if self.alive is None:
            self.alive = self.calls(inputs)
        near = [(c, self.without(c["call"], inputs)) for c in self.alive]
        near = [(c, out) for c, out in near if out is not None and close(out, eager)]
        self.alive = [c for c, _ in near]
        return near

    def without(self, call, inputs):
        mode = ops.Calls(reference.FILE, drop=call)
        try:
            out, _ = reference.run(self.model, inputs, 0, mode)
        except Exception:
            return None
        return out if mode.done else None


def close(a, b):
    """Could the judge take a for b at its loosest? It decides; this only spares it the clear cases."""
    la, lb = values.leaves(a), values.leaves(b)
    if len(la) != len(lb) or any(x.shape != y.shape or x.dtype != y.dtype for x, y in zip(la, lb)):
        return False
    for x, y in zip(la, lb):
        if x.is_floating_point() and reference.max_diff(x, y) > 0.02 * (1 + top_of([y])):
            return False
        if not x.is_floating_point() and not torch.equal(x, y):
            return False
    return True


def top_of(tensors):
    tops = [float(t.abs()[torch.isfinite(t)].max()) for t in tensors
            if t.is_floating_point() and bool(torch.isfinite(t).any())]
    return max(tops, default=0.0)


def effect(a, b):
    """How far b is from a, in units of a's largest value; integers that differ at all count as 1."""
    worst = 0.0
    for x, y in zip(values.leaves(a), values.leaves(b)):
        if x.shape != y.shape:
            return 1.0
        if not x.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(x, y) else 1.0)
        else:
            worst = max(worst, reference.max_diff(x, y) / (top_of([x]) or 1.0))
    return worst


# Facts ----------------------------------------------------------------------------------------------------------------


def swap_leaf(inputs, index, new):
    seen = [-1]

    def pick(t):
        seen[0] += 1
        return new if seen[0] == index else t

    return values.map_tensors(inputs, pick)


def input_effects(t):
    """[{"index","shape","effect"}]: the largest effect of redrawing one input alone; null where it is always the
    same."""
    rows = []
    for i, x in enumerate(values.leaves(t.kept[0][1])):
        rows.append({"index": i, "shape": list(x.shape), "effect": None})
    for regime, inputs, eager in t.kept:
        try:
            others = values.leaves(reference.draw_inputs(t.task, regime if regime in reference.REGIMES else "task",
                                                         1000, t.seed,
                                                         t.variant.form))
        except Exception:
            continue
        for row, old, new in zip(rows, values.leaves(inputs), others):
            if old.shape != new.shape or torch.equal(old, new.to(old.dtype)):
                continue
            try:
                out, _ = reference.run(t.model, swap_leaf(inputs, row["index"], new.to(old.dtype)))
            except Exception:
                continue
            row["effect"] = max(row["effect"] or 0.0, effect(eager, out))
    return rows


def parameter_effects(t):
    """[{"name","effect"}]: the largest effect of other values of one parameter alone, on the same inputs."""
    rows = []
    floats = [(n, p) for n, p in t.model.named_parameters() if p.is_floating_point() and p.numel()]
    for name, p in floats[:MAX_STATE]:
        gen = torch.Generator(p.device).manual_seed(reference.derive(t.seed, "lint", name))
        old, worst = p.detach().clone(), None
        with torch.no_grad():
            reference.renew(p, name, gen, "mild")
        try:
            for _, inputs, eager in t.kept:
                worst = max(worst or 0.0, effect(eager, reference.run(t.model, inputs)[0]))
        except Exception:
            worst = None
        with torch.no_grad():
            p.copy_(old)
        rows.append({"name": name, "effect": worst})
    return rows


def tf32_cost(t):
    """What TF32 does to the reference, against the published tolerance: {"ops","error","ratio"} of convolutions alone
    (cuDNN's default) and of matrix products too; null where there is none."""
    _, inputs, eager = t.kept[0]

    def cost(matmul):
        mode = ops.Tf32(matmul)
        rounded, _ = reference.run(t.model, inputs, 0, mode)
        if not mode.hits:
            return None
        error = ratio = 0.0
        for a, b in zip(values.leaves(rounded), values.leaves(eager)):
            if a.is_floating_point() and a.numel():
                d = (a.double() - b.double()).abs()
                d = torch.where(torch.isfinite(d), d, torch.zeros_like(d))
                error = max(error, float(d.max()))
                ratio = max(ratio, float((d / (PUBLISHED + PUBLISHED * b.double().abs())).nan_to_num(0.0).max()))
        return {"ops": mode.hits, "error": error, "ratio": ratio}

    asked = torch.backends.cuda.matmul.allow_tf32 or torch.get_float32_matmul_precision() != "highest"
    return {"convolution": cost(False), "all": cost(True), "matmul_asked": bool(asked), "tolerance": PUBLISHED}


def full_size(source):
    """Elements and bytes at the task's own sizes, on the meta device; null if it cannot be tried there. needed_bytes:
    the inputs, parameters and outputs of reference and candidate, and one temporary of the comparison."""
    rows, state = [], {"bytes": 0}

    def add(what, t, copies):
        rows.append((t.numel(), t.numel() * t.element_size(), what))
        state["bytes"] += t.numel() * t.element_size() * copies

    def see(name, out, _):
        for t in values.leaves(out):
            if t.untyped_storage().nbytes() >= t.numel() * t.element_size():  # an expanded view is not that large
                add("the result of " + name, t, 0)

    home.stay(source)  # before any other mode is entered, or that one would stay in its place
    try:
        with torch.device("meta"), torch.no_grad():
            task = reference.load(source)
            model = reference.construct(task, task.get_init_inputs(), 0)
            inputs = reference.task_draw(task, 0)
            with ops.Watch(see):
                out = model(*inputs)
        if not values.leaves(out):
            return None
    except Exception:
        return None
    for i, t in enumerate(values.leaves(inputs)):
        add(f"input {i}", t, 1)
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        add(f"parameter {name}", p, 2)
    for i, t in enumerate(values.leaves(out)):
        add(f"output {i}", t, 3)
    named = [r for r in rows if not r[2].startswith("the result")] + [r for r in rows if r[2].startswith("the result")]
    # of equals the first: a name, not an operator
    large, wide = max(named, key=lambda r: r[0]), max(named, key=lambda r: r[1])
    return {"elements": large[0], "elements_of": large[2], "bytes": wide[1], "bytes_of": wide[2],
            "needed_bytes": state["bytes"]}


def commonest(t):
    """The commonest value among a sample, and its share."""
    flat = t.reshape(-1)
    flat = flat[::max(flat.numel() // SAMPLE, 1)]
    found, counts = torch.unique(flat, return_counts=True)
    k = int(counts.argmax())
    return float(found[k]), float(counts[k]) / flat.numel()


def output_facts(t):
    """[{"output","elements","nan","inf","commonest","share"}] on the task's own inputs, the least degenerate draw."""
    rows = []
    for _, _, eager in t.kept:
        for i, x in enumerate(values.leaves(eager)):
            if x.is_complex() or x.numel() == 0:
                continue
            value, share = commonest(x)
            row = {"output": i, "elements": x.numel(), "nan": int(torch.isnan(x).sum()) if x.is_floating_point() else 0,
                   "inf": int(torch.isinf(x).sum()) if x.is_floating_point() else 0, "commonest": value, "share": share}
            old = next((r for r in rows if r["output"] == i), None)
            if old is None:
                rows.append(row)
            elif share < old["share"]:
                old.update(row, nan=max(old["nan"], row["nan"]), inf=max(old["inf"], row["inf"]))
    return rows


def integer_inputs(t):
    return [i for i, x in enumerate(values.leaves(reference.task_draw(t.task, 0)))
            if not x.is_floating_point() and not x.is_complex()]


def unseeded(t):
    """Does get_inputs give other inputs for the same seed?"""
    return not reference.same(reference.task_draw(t.task, 5), reference.task_draw(t.task, 5))


class Lint:
    def __init__(self, req, sock):
        self.req, self.sock = dict(req), sock
        variant = dict(req.get("variant") or {})
        self.published = not variant  # the published protocol knows the task as written, and only that
        self.req["source"] = reference.Variant(variant).source(req["source"])
        self.req["variant"] = dict(variant, sizes=None)
        self.facts = {"full": full_size(self.req["source"]), "changes": []}

    def shrink(self):
        """Above the limit, the task is judged at smaller sizes."""
        full = self.facts["full"]
        if full is not None and full["elements"] <= self.req["max_elements"]:
            return
        out = shrink.Shrinker(self.req["source"], self.req["max_elements"], shrink.BATCH).run()
        self.req["source"], self.facts["changes"] = out["source"], out["changes"]

    def run(self):
        self.shrink()
        kb = Linted(dict(self.req, regimes=None), self.sock, "kernelbench") if self.published else None
        if kb:
            kb.kernelbench()
            self.facts.update(defects=kb.defects, tf32=tf32_cost(kb))
        strict = Linted(self.req, self.sock, "strict")
        _, skipped = strict.strict()
        self.facts.update(skipped=skipped, mode=strict.mode,
                          own_inputs_only=all(r[0] == "task" for r in strict.kept) and
                          "task" not in (self.req.get("regimes") or []), inputs=input_effects(strict),
                          parameters=parameter_effects(strict), outputs=output_facts(kb or strict),
                          integer_inputs=integer_inputs(strict), unseeded=unseeded(strict))
        return self.facts


def serve(sock, args):
    torch.set_num_threads(1)
    for req, _ in frame.requests(sock):
        try:
            head = {"op": "done", "facts": Lint(req, sock).run()}
        except reference.Refused as e:
            kind = "too_large" if isinstance(e, reference.TooLarge) else "refused"
            head = {"op": "failed", "type": kind, "message": str(e), "line": None, "text": ""}
        except Exception as e:
            head = dict(values.describe_error(e, reference.FILE, req["source"]), op="failed")
        frame.send(sock, reference.scrub(head))
