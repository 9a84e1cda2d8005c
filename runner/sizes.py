"""sizes.py - the module-level integers of a task file: found, changed, written back. Used by shrink and by sidecar
variants.

What counts: integers of module-level assignments (N = 4096, M, K = 1 << 12, 256, shape = (8, 64, 56)); an element of a
tuple or list is called "shape[1]". Comments and layout of the file stay as they are.
"""
import ast
import difflib


class Knob:
    def __init__(self, name, node, value):
        self.name, self.value, self.original, self.line = name, value, value, node.lineno
        self.start = (node.lineno, node.col_offset)
        self.end = (node.end_lineno, node.end_col_offset)
        self.stuck = False


def fold(node):
    """The value of an integer expression without names, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        v = fold(node.operand)
        return None if v is None else -v
    if isinstance(node, ast.BinOp):
        a, b = fold(node.left), fold(node.right)
        if a is None or b is None:
            return None
        ops = {ast.Add: lambda: a + b, ast.Sub: lambda: a - b, ast.Mult: lambda: a * b,
               ast.FloorDiv: lambda: a // b if b else None, ast.LShift: lambda: a << b if 0 <= b < 63 else None,
               ast.Pow: lambda: a ** b if 0 <= b < 63 and abs(a) < 2**31 else None}
        return ops.get(type(node.op), lambda: None)()
    return None


def collect(name, node, out):
    if isinstance(node, (ast.Tuple, ast.List)):
        for i, x in enumerate(node.elts):
            collect(f"{name}[{i}]", x, out)
        return
    v = fold(node)
    if v is not None:
        out.append(Knob(name, node, v))


def knobs_of(source):
    out = []
    for st in ast.parse(source).body:
        if isinstance(st, ast.AnnAssign) and isinstance(st.target, ast.Name) and st.value:
            collect(st.target.id, st.value, out)
        if not isinstance(st, ast.Assign):
            continue
        target = st.targets[-1]
        if isinstance(target, ast.Name):
            collect(target.id, st.value, out)
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(st.value, (ast.Tuple, ast.List)):
            for t, v in zip(target.elts, st.value.elts):
                if isinstance(t, ast.Name):
                    collect(t.id, v, out)
    return out


def knobs_inside(source, function):
    """The integers that are passed to calls in a module-level function's body: torch.rand(batch, 3, 224, 224). They are
    called "FUNCTION[0]", in the order of the text."""
    out = []
    for st in ast.parse(source).body:
        if isinstance(st, ast.FunctionDef) and st.name == function:
            passed = [a for x in ast.walk(st) if isinstance(x, ast.Call) for a in x.args]
            flat = [e for a in passed for e in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
            found = {(e.lineno, e.col_offset): e for e in flat if fold(e) is not None}
            for _, e in sorted(found.items()):
                collect(f"{function}[{len(out)}]", e, out)
    return out


def rewrite(source, knobs):
    lines = source.encode("utf-8").split(b"\n")
    for k in sorted(knobs, key=lambda k: k.start, reverse=True):
        if k.value == k.original:
            continue
        (l0, c0), (l1, c1) = k.start, k.end
        tail = lines[l1 - 1][c1:]
        lines[l0 - 1:l1] = [lines[l0 - 1][:c0] + str(k.value).encode() + tail]
    return b"\n".join(lines).decode("utf-8")


def with_sizes(source, wanted):
    """The task with these sizes, {name: integer}. KeyError with a message for a name that the task does not have."""
    knobs = knobs_of(source)
    for name, value in wanted.items():
        mine = [k for k in knobs if k.name == name]
        if not mine:
            known = list(dict.fromkeys(k.name for k in knobs))
            near = difflib.get_close_matches(name, known, 1, 0.5)
            raise KeyError(f"no module-level size '{name}'" + (f"; did you mean '{near[0]}'?" if near else
                           f"; the task has {', '.join(known[:20])}" if known else "; the task has none"))
        for k in mine:
            k.value = value
    return rewrite(source, knobs)
