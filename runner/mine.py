"""mine.py - modules of a source tree as tasks: found by reading, completed by trying, never imported from the tree.

One conversation of src/synth/mine.c; requests are {"op":..}:
  known    {"name","code"}: a task that mined ones must not be like (likeness.py).  -> {"op":"ok"}
  file     {"path","source"}: a file of the tree, for imports of others.             -> {"op":"ok"}
  scan     {"path"}: every nn.Module class, with all it needs from the tree.         -> {"op":"found","classes":[..]}
  try      {"code","hints"}: constructor arguments and input shapes that run.       -> {"op":"task"}
  compare  {"name","code"}: against what is known.                                  -> {"op":"likeness","found","near"}
A refusal is {"op":"refused","reason","detail"}; src/synth/mine.c lists reasons. 'try' runs foreign code.
"""
import ast
import inspect
import os
import re
import time

import torch

import frame
import likeness
import reference
import values

ALLOWED = {"torch", "math", "typing", "functools", "collections", "dataclasses", "abc", "enum", "itertools", "operator",
           "numbers", "copy", "warnings", "__future__", "numpy"}
OUTSIDE = {"open", "exec", "eval", "compile", "input", "__import__", "globals", "breakpoint"}
OUTSIDE_TEXT = re.compile(r"torch\.(load|save|hub|distributed|jit\.load|utils\.cpp_extension|ops\.|library)")
DEVICE_TEXT = re.compile(r"\.cuda\(|torch\.cuda\.|device\s*=\s*['\"]cuda|\.to\(\s*['\"]cuda")
BATCH, STEPS, SIDES = 4, 12, (16, 32, 28, 64, 224)
TRIES, SECONDS, LARGEST = 240, 20.0, 1 << 22


class Refusal(Exception):
    def __init__(self, reason, detail=""):
        super().__init__(reason)
        self.reason, self.detail = reason, str(detail)[:300]


# Reading --------------------------------------------------------------------------------------------------------------


def bound_names(node):
    """Names that a statement at module level binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name.split(".")[0] for a in node.names]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [x.id for t in targets for x in ast.walk(t) if isinstance(x, ast.Name)]


def is_allowed(node):
    roots = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return not getattr(node, "level", 0) and all(r.split(".")[0] in ALLOWED for r in roots)


def used_names(node, annotations=False):
    """Names read in a statement; those of annotations alone are left out unless asked for."""
    out, stack = set(), [node]
    while stack:
        x = stack.pop()
        if isinstance(x, ast.Name):
            out.add(x.id)
        for field, v in ast.iter_fields(x):
            if field in ("annotation", "returns") and not annotations:
                continue
            stack += [y for y in (v if isinstance(v, list) else [v]) if isinstance(y, ast.AST)]
    return out


class File:
    def __init__(self, source, path="", tree=None):
        self.source, self.lines, self.path, self.tree_of = source, source.splitlines(), path, tree
        self.tree = ast.parse(source)
        self.by_name = {n: node for node in self.tree.body for n in bound_names(node)}

    def text(self, node):
        first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
        return "\n".join(self.lines[first - 1:node.end_lineno])

    def is_module(self, node, depth=0):
        for b in node.bases:
            text = ast.unparse(b)
            if text in ("nn.Module", "torch.nn.Module", "Module"):
                return True
            file, base = self.lookup(text)
            if isinstance(base, ast.ClassDef) and depth < 8 and file.is_module(base, depth + 1):
                return True
        return False

    def lookup(self, name, depth=0):
        """(file, statement) that binds the name, through imports of files of the tree; (self, import) of others."""
        node = self.by_name.get(name)
        if isinstance(node, ast.ImportFrom) and not is_allowed(node) and self.tree_of is not None and depth < 8:
            other = self.tree_of.find(self.path, node.module or "", node.level)
            was = next((a.name for a in node.names if (a.asname or a.name) == name), None)
            if other is not None and other.by_name.get(was) is not None:
                return other.lookup(was, depth + 1)
        return self, node

    def closure(self, node):
        """[(file, statement)] that the class needs. Names that nothing binds here are builtins or local."""
        need, todo, names = {id(node): (self, node)}, [(self, node)], {}
        while todo:
            file, at = todo.pop()
            for name in sorted(used_names(at)):
                where, other = file.lookup(name)
                if other is None:
                    continue
                if isinstance(other, (ast.Import, ast.ImportFrom)) and not is_allowed(other):
                    raise Refusal("foreign_import", where.text(other).strip())
                if where is not file and name not in bound_names(other):
                    raise Refusal("name_clash", f"'{name}' is called otherwise in {where.path}")
                if names.setdefault(name, other) is not other and not same_import(names[name], other):
                    raise Refusal("name_clash", f"two files have a '{name}'")
                if id(other) not in need:
                    need[id(other)] = (where, other)
                    todo.append((where, other))
        return list(need.values())

    def ordered(self, parts):
        """Imports, then each file after the files that it needs, in order of their lines."""
        files, seen = [], set()

        def visit(file):
            if id(file) in seen:
                return
            seen.add(id(file))
            for where, node in parts:
                for name in used_names(node) if where is file else ():
                    other = file.lookup(name)[0]
                    if any(f is other for f, _ in parts):
                        visit(other)
            files.append(file)

        visit(self)
        imports = [p for p in parts if isinstance(p[1], (ast.Import, ast.ImportFrom))]
        rest = [p for f in files for p in sorted(((w, n) for w, n in parts if w is f), key=lambda p: p[1].lineno)
                if p not in imports]
        return imports + rest

    def alone(self, node):
        """The class and what it needs as one file in which it is called Model."""
        parts = self.ordered(self.closure(node))
        texts = []
        for f, p in parts:
            if not (isinstance(p, ast.ImportFrom) and p.module == "__future__") and f.text(p) not in texts:
                texts.append(f.text(p))
        code = "\n\n".join(texts)
        if node.name != "Model" and re.search(r"\bModel\b", code):
            raise Refusal("name_clash", "it uses another thing called Model")
        if OUTSIDE & used_names(ast.parse(code)) or OUTSIDE_TEXT.search(code):
            raise Refusal("external_state", "it reads or runs what is not in its text")
        if DEVICE_TEXT.search(code):
            raise Refusal("names_a_device", "it names a device")
        there = {id(p) for _, p in parts}
        foreign = [n for f, p in parts for n in used_names(p, True) if f.by_name.get(n) is not None and
                   id(f.lookup(n)[1]) not in there]
        head = "from __future__ import annotations\n\n" if foreign else ""
        head += "" if re.search(r"^import torch$", code, re.M) else "import torch\n"
        return head + re.sub(rf"\b{node.name}\b", "Model", code) + "\n"

    def classes(self):
        for node in self.tree.body:
            if not isinstance(node, ast.ClassDef) or not self.is_module(node):
                continue
            row = {"class": node.name, "line": node.lineno, "code": None, "reason": None, "detail": ""}
            try:
                if not any(isinstance(x, ast.FunctionDef) and x.name == "forward" for x in node.body) and \
                        not any(isinstance(self.lookup(ast.unparse(b))[1], ast.ClassDef) for b in node.bases):
                    raise Refusal("no_forward", "it defines no forward")
                row["code"] = self.alone(node)
            except Refusal as e:
                row.update(reason=e.reason, detail=e.detail)
            yield row


def same_import(a, b):
    return isinstance(a, (ast.Import, ast.ImportFrom)) and isinstance(b, type(a)) and ast.dump(a) == ast.dump(b)


class Tree:
    """All files, parsed when they are first needed."""

    def __init__(self):
        self.sources, self.files = {}, {}

    def file(self, path):
        if path not in self.files:
            self.files[path] = File(self.sources[path], path, self)
        return self.files[path]

    def find(self, path, module, level):
        """The file that an import in 'path' means, if it is of the tree; of several, the one that lies nearest."""
        inner = module.replace(".", "/")
        if level:
            base = path.rsplit("/", level)[0] if path.count("/") >= level else ""
            ends = [f"{base}/{inner}.py" if inner else f"{base}/__init__.py", f"{base}/{inner}/__init__.py"]
            found = [e for e in ends if e in self.sources]
        else:
            ends = (f"/{inner}.py", f"/{inner}/__init__.py")
            found = [p for p in self.sources if inner and ("/" + p).endswith(ends)]
        found = [p for p in found if p != path]
        if not found:
            return None
        try:
            return self.file(max(found, key=lambda p: len(os.path.commonprefix([p, path]))))
        except (SyntaxError, ValueError, RecursionError):
            return None


# Constructing ---------------------------------------------------------------------------------------------------------

INTEGERS = [(r"kernel", 3), (r"stride|dilation|groups|(num_)?layers?$|depth|n_layer|repeat|reps", 1), (r"padding", 1),
            (r"(n|num)_?heads?|^heads?$", 4), (r"vocab|num_embed|n_token", 64), (r"classes|n_class", 10),
            (r"reduction|ratio|factor|scale|expan|mult", 2), (r"seq|length|block_size|max_len|ctx|context", 32),
            (r"img|image|resolution|size$", 16), (r"hidden|inner|ff|mlp", 64), (r"", 32)]
FLOATS = r"eps|drop|alpha|beta|gamma|momentum|slope|temperature|prob|rate|lambda"


def guess(p, flat):
    """A value for a constructor's parameter without a default, or None. flat: equal sizes, for residual sums."""
    kind, name = str(p.annotation).lower() if p.annotation is not p.empty else "", p.name.lower()
    if "drop" in name:
        return 0.0
    if "bool" in kind or re.match(r"(use|is|with|has|bias|do)(_|$)", name):
        return False
    if "float" in kind or re.search(FLOATS, name):
        return 1e-5 if "eps" in name else 0.5
    if "str" in kind or "callable" in kind or "module" in kind or "dict" in kind or "config" in name or name == "cfg":
        return None
    if "list" in kind or "sequence" in kind or name.endswith(("dims", "sizes", "channels_list")):
        return [32, 32]
    value = next(v for pattern, v in INTEGERS if re.search(pattern, name))
    return 32 if flat and value in (10, 16, 64) else value


def constructor(cls, hints):
    """Dicts of arguments to try; dropout is switched off where the constructor lets us."""
    if "init" in hints:
        return [hints["init"]]
    params = [p for p in inspect.signature(cls.__init__).parameters.values() if p.name != "self"]
    out = []
    for flat in (False, True):
        args = {}
        for p in params:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            if p.default is not p.empty:
                if "drop" in p.name.lower() and isinstance(p.default, float) and p.default:
                    args[p.name] = 0.0
                continue
            args[p.name] = guess(p, flat)
            if args[p.name] is None:
                raise Refusal("constructor_unknown", f"argument '{p.name}' of __init__: say it in --hints")
        if args not in out:
            out.append(args)
    return out


# Shapes ---------------------------------------------------------------------------------------------------------------


def of_layer(m):
    """Shapes that a layer says it takes."""
    nn, b = torch.nn, BATCH
    if isinstance(m, nn.Embedding):
        return [("int", m.num_embeddings, (b, STEPS)), ("int", m.num_embeddings, (b,))]
    if isinstance(m, nn.Linear):
        return [(b, m.in_features), (b, STEPS, m.in_features)]
    if isinstance(m, nn.modules.conv._ConvNd):
        rank = len(m.kernel_size)
        return [(b, m.in_channels) + ((s,) * rank if rank < 3 else (8,) * 3) for s in SIDES[:4 if rank < 3 else 1]]
    if isinstance(m, (nn.BatchNorm1d, nn.InstanceNorm1d)):
        return [(b, m.num_features), (b, m.num_features, 16)]
    if isinstance(m, (nn.BatchNorm2d, nn.InstanceNorm2d)):
        return [(b, m.num_features, s, s) for s in SIDES[:2]]
    if isinstance(m, nn.GroupNorm):
        return [(b, m.num_channels, 16, 16), (b, m.num_channels, 16)]
    if isinstance(m, nn.LayerNorm):
        return [(b, STEPS) + tuple(m.normalized_shape), (b,) + tuple(m.normalized_shape)]
    if isinstance(m, nn.MultiheadAttention):
        return [(b, STEPS, m.embed_dim)]
    if isinstance(m, nn.RNNBase):
        return [(b, STEPS, m.input_size)]
    return []


def hypotheses(model, args):
    found = [h for m in model.modules() for h in of_layer(m)]
    for p in model.parameters():
        if p.dim() == 1:
            found += [(BATCH, p.shape[0]), (BATCH, STEPS, p.shape[0]), (BATCH, p.shape[0], 16, 16)]
        elif p.dim() >= 2 and p.shape[0] == 1:
            found += [(BATCH,) + tuple(16 if s == 1 else s for s in p.shape[1:]), (BATCH,) + tuple(p.shape[1:])]
        elif p.dim() == 2:
            found += [(BATCH, p.shape[0]), (BATCH, p.shape[1])]
    sizes = [v for v in (args.values() if isinstance(args, dict) else args) if type(v) is int and v > 3]
    for d in sizes + [32]:
        found += [(BATCH, d), (BATCH, STEPS, d), (BATCH, d, 16, 16), (BATCH, 4, STEPS, d), (BATCH, d, 16)]
    found += [(BATCH, 3, s, s) for s in SIDES] + [(BATCH, 1, 28, 28), (BATCH, 8, 8, 8, 8), (BATCH,), (16, 16)]
    out = []
    for h in found:
        if h not in out:
            out.append(h)
    return out


def tensor_params(model):
    params = [p for p in inspect.signature(model.forward).parameters.values()
              if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    for p in params:
        if str(p.annotation) in ("int", "float", "bool", "str", "<class 'int'>", "<class 'float'>", "<class 'bool'>",
                                 "<class 'str'>"):
            raise Refusal("scalar_input", f"forward takes the {p.annotation} '{p.name}'")
    if not params or len(params) > 4:
        raise Refusal("no_inputs" if not params else "many_inputs", f"forward takes {len(params)} tensors")
    return params


def combinations(hyps, n):
    """First every input alike, then each other one on its own."""
    for h in hyps:
        yield [h] * n
    for h in hyps[:12] if n > 1 else ():
        for g in hyps[:12]:
            if g != h:
                yield [h] + [g] * (n - 1)


def draw(shapes, seed):
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(0, s[1], s[2], generator=g) if s and s[0] == "int" else torch.randn(s, generator=g)
            for s in shapes]


def build(cls, args):
    reference.seed_all(0)
    return cls(**args) if isinstance(args, dict) else cls(*args)


def hinted(hints):
    out = []
    for s in hints["inputs"]:
        if isinstance(s, dict):
            below = int(s.get("below", 2))
            ints = str(s.get("dtype", "")).startswith("int")
            out.append(("int", below, tuple(s["shape"])) if ints else tuple(s["shape"]))
        else:
            out.append(tuple(s))
    return out


class Attempt:
    """The first constructor arguments and shapes with which the class runs."""

    def __init__(self, cls, hints):
        self.last, self.end, self.tries = "", time.monotonic() + SECONDS, 0
        for args in constructor(cls, hints):
            self.args = args
            try:
                self.model = build(cls, args)
            except Exception as e:
                self.last = f"__init__ raises {type(e).__name__}: {e}"
                continue
            n = len(tensor_params(self.model))
            for shapes in [hinted(hints)] if "inputs" in hints else combinations(hypotheses(self.model, args), n):
                if self.runs(shapes):
                    self.shapes = shapes
                    return
        if self.last.startswith("__init__"):
            raise Refusal("constructor_fails", self.last)
        raise Refusal("no_shapes", f"{self.tries} shapes were tried, say them in --hints; {self.last}")

    def runs(self, shapes):
        self.tries += 1
        if self.tries > TRIES or time.monotonic() > self.end:
            raise Refusal("no_shapes", f"{self.tries} shapes were tried, say them in --hints; {self.last}")
        try:
            out = values.leaves(self.model(*draw(shapes, 1)))
        except Exception as e:
            self.last = f"forward raises {type(e).__name__}: {e}"
            return False
        return bool(out) and all(0 < t.numel() <= LARGEST for t in out)


def check(attempt, cls):
    """What no judge could compare."""
    model, shapes = build(cls, attempt.args), attempt.shapes
    statistics = ("running_mean", "running_var", "_tracked")
    before = {n: b.clone() for n, b in model.named_buffers() if not n.endswith(statistics)}
    raw = model(*draw(shapes, 1))
    first = [t.detach().clone() for t in values.leaves(raw)]
    if not any(t.is_floating_point() for t in first):
        raise Refusal("no_float_output", "no floating tensor comes out")
    if any(not bool(torch.isfinite(t).all()) for t in first if t.is_floating_point()):
        raise Refusal("not_finite", "NaN or infinity comes out of normally distributed inputs")
    for n, b in model.named_buffers():
        if n in before and not torch.equal(before[n], b):
            raise Refusal("changes_state", f"forward writes buffer '{n}'")
    again = values.leaves(model(*draw(shapes, 1)))  # the generator has moved on
    if any(x.shape != y.shape or not torch.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True)
           for x, y in zip(first, again)):
        raise Refusal("stochastic", "equal inputs and parameters give different outputs")
    other = values.leaves(build(cls, attempt.args)(*draw(shapes, 2)))
    if [t.shape for t in other] != [t.shape for t in first]:
        raise Refusal("data_dependent_shape", "shapes of the outputs depend on values of the inputs")


def spelled(shape):
    if shape and shape[0] == "int":
        return f"torch.randint(0, {shape[1]}, ({', '.join(str(s) for s in shape[2])},))"
    return f"torch.randn({', '.join(str(s) for s in shape)})"


def positional(cls, args):
    """Arguments in order with constant defaults filled in, or the dict itself."""
    if not isinstance(args, dict):
        return args
    params, out = [p for p in inspect.signature(cls.__init__).parameters.values() if p.name != "self"], []
    last = max([i for i, p in enumerate(params) if p.name in args], default=-1)
    for p in params[:last + 1]:
        v = args.get(p.name, p.default)
        if p.kind is p.KEYWORD_ONLY or not isinstance(v, (int, float, bool, str, list, tuple, type(None))):
            return None
        out.append(v)
    return out


def completed(req):
    space = {"__name__": "task"}
    try:
        exec(compile(req["code"], "task.py", "exec"), space)
        cls = space["Model"]
    except Exception as e:
        raise Refusal("does_not_load", f"{type(e).__name__}: {e}")
    reference.seed_all(0)
    with torch.no_grad():
        a = Attempt(cls, req.get("hints") or {})
        check(a, cls)
    init = positional(cls, a.args)
    if init is None:
        raise Refusal("constructor_unknown", "its arguments cannot be written as a list")
    code = (req["code"] + "\n\ndef get_inputs():\n    return [" + ", ".join(spelled(s) for s in a.shapes) + "]\n\n\n"
            "def get_init_inputs():\n    return " + repr(init) + "\n")
    return {"op": "task", "code": code, "tries": a.tries,
            "inputs": [list(s[2]) if s and s[0] == "int" else list(s) for s in a.shapes]}


# The conversation -----------------------------------------------------------------------------------------------------


class Conversation:
    def __init__(self):
        self.index, self.tree = likeness.Index(), Tree()

    def known(self, req):
        try:
            self.index.add(likeness.Text(req["name"], req["code"]))
        except (SyntaxError, ValueError, RecursionError):
            pass
        return {"op": "ok"}

    def file(self, req):
        self.tree.sources[req["path"]] = req["source"]
        return {"op": "ok"}

    def scan(self, req):
        try:
            return {"op": "found", "classes": list(self.tree.file(req["path"]).classes())}
        except (SyntaxError, ValueError, RecursionError) as e:
            return {"op": "refused", "reason": "unreadable", "detail": f"{type(e).__name__}: {e}"[:300]}

    def compare(self, req):
        text = likeness.Text(req["name"], req["code"])
        found, near = self.index.layers(text)
        return {"op": "likeness", "found": found, "near": round(near, 3)}

    def answer(self, req):
        if req.get("op") == "try":
            return completed(req)
        return {"known": self.known, "file": self.file, "scan": self.scan, "compare": self.compare}[req["op"]](req)


def serve(sock, args):
    torch.set_num_threads(1)
    talk = Conversation()
    for req, _ in frame.requests(sock):
        try:
            head = talk.answer(req)
        except Refusal as e:
            head = {"op": "refused", "reason": e.reason, "detail": e.detail}
        except Exception as e:
            head = {"op": "refused", "reason": "does_not_run", "detail": f"{type(e).__name__}: {e}"[:300]}
        frame.send(sock, reference.scrub(head))
