"""likeness.py - how like two task files are, from their text alone. For mine.py and lab/decontaminate.py.

Layers, each of a task's text:
  L0  equal source, white space and comments aside
  L1  a run of 13 tokens in common, once the scaffold that every task has is taken out (numbers are kept)
  L2  Jaccard of 5-token shingles at least 0.6, names of variables aside
  L3  the same operators with the same constants of the class and of get_inputs, in order
  L4  the same operators in order, whatever the attributes
"""
import ast
import hashlib
import io
import re
import tokenize

NEAR = 0.6
SCAFFOLD = {"import", "torch", "nn", "class", "Model", "Module", "def", "forward", "self", "return", "get_inputs",
            "get_init_inputs", "super", "__init__", "F", "functional", "as", "Tensor", ":", "(", ")", "[", "]", ",",
            ".", "="}


def tokens(code):
    out = []
    try:
        for t in tokenize.generate_tokens(io.StringIO(code).readline):
            if t.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
                out.append(t.string)
    except (tokenize.TokenError, IndentationError):
        pass
    return out


def without_docstrings(code):
    return re.sub(r'("""|\'\'\')(?:.|\n)*?\1', "", code)


def renamed(words):
    """Variables by order of first use: names that are not followed as attributes or calls stay as they are."""
    names, out = {}, []
    for i, w in enumerate(words):
        plain = (re.fullmatch(r"[A-Za-z_]\w*", w) and not (i and words[i - 1] == ".") and
                 not (i + 1 < len(words) and words[i + 1] in "(."))
        out.append(names.setdefault(w, f"v{len(names)}") if plain and w not in SCAFFOLD else w)
    return out


def shingles(words, n):
    return {tuple(words[i:i + n]) for i in range(len(words) - n + 1)}


def operators(tree):
    """Names of calls and arithmetic of the classes, in order of the text."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for x in ast.walk(node):
            if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr not in ("__init__",):
                found.append((x.lineno, x.col_offset, x.func.attr))
            elif isinstance(x, ast.BinOp):
                found.append((x.lineno, x.col_offset, type(x.op).__name__))
    return tuple(name for _, _, name in sorted(found))


def constants(tree):
    """Numbers of the text in order, with names of the file's own constants put in."""
    known = {t.id: n.value.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
             for t in n.targets if isinstance(t, ast.Name)}
    found = []
    for f in [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]:
        for x in ast.walk(f):
            if isinstance(x, ast.Constant) and isinstance(x.value, (int, float)):
                found.append((x.lineno, x.col_offset, float(x.value)))
            elif isinstance(x, ast.Name) and x.id in known and isinstance(known[x.id], (int, float)):
                found.append((x.lineno, x.col_offset, float(known[x.id])))
    return tuple(v for _, _, v in sorted(found))


class Text:
    def __init__(self, name, code):
        self.name = name
        code = without_docstrings(code)
        words = tokens(code)
        self.sha = hashlib.sha256(" ".join(words).encode()).hexdigest()
        self.grams = shingles([w for w in words if w not in SCAFFOLD], 13)
        self.shingles = shingles(renamed(words), 5)
        tree = ast.parse(code)
        self.ops = operators(tree)
        self.graph = (self.ops, constants(tree))


class Index:
    """Known tasks by layer, so that each text is looked up, not compared with all."""

    def __init__(self, tasks=()):
        self.sha, self.grams, self.graph, self.ops, self.by_shingle = {}, {}, {}, {}, {}
        self.sizes, self.names = [], []
        for t in tasks:
            self.add(t)

    def add(self, t):
        for s in t.shingles:
            self.by_shingle.setdefault(s, []).append(len(self.names))
        self.sizes.append(len(t.shingles))
        self.names.append(t.name)
        self.sha[t.sha] = self.graph[t.graph] = self.ops[t.ops] = t.name
        self.grams.update((g, t.name) for g in t.grams)

    def nearest(self, x):
        common = {}
        for s in x.shingles:
            for i in self.by_shingle.get(s, ()):
                common[i] = common.get(i, 0) + 1
        best = max(((n / (len(x.shingles) + self.sizes[i] - n), i) for i, n in common.items()), default=(0, None))
        return best[0], self.names[best[1]] if best[1] is not None else None

    def layers(self, x):
        """{layer: name of the known task}, and the highest Jaccard."""
        near, name = self.nearest(x)
        found = {"L0": self.sha.get(x.sha), "L1": next((self.grams[g] for g in x.grams if g in self.grams), None),
                 "L2": name if near >= NEAR else None, "L3": self.graph.get(x.graph), "L4": self.ops.get(x.ops)}
        return {k: v for k, v in found.items() if v}, near
