"""A candidate's shared object as a Python module: arguments in, results out, errors as pybind11 raises them.

The .so describes its functions by type strings (litetorch/include/litetorch/abi.h):
T tensor, i int, d float, b bool, s str, S number, y dtype, v device, ?x optional, [x list, (xyz) tuple.
"""
import ctypes
import types

import torch

import native

NONE, BOOL, INT, DOUBLE, TENSOR, STRING, LIST, TUPLE = range(8)
ERRORS = {1: RuntimeError, 2: ValueError, 3: IndexError, 4: TypeError, 5: OverflowError, 6: MemoryError,
          7: NotImplementedError}
MAX_MESSAGE = 16384


class _Union(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("d", ctypes.c_double), ("p", ctypes.c_void_p)]


class Value(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_int32), ("spare", ctypes.c_int32), ("u", _Union), ("n", ctypes.c_int64)]


class Param(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("has_default", ctypes.c_int),
                ("value", Value)]


class Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("doc", ctypes.c_char_p), ("returns", ctypes.c_char_p),
                ("n_params", ctypes.c_int32), ("spare", ctypes.c_int32), ("params", ctypes.POINTER(Param)),
                ("self", ctypes.c_void_p), ("invoke", ctypes.c_void_p)]


class Module(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int32), ("n_functions", ctypes.c_int32),
                ("functions", ctypes.POINTER(Function)), ("doc", ctypes.c_char_p)]


class Api(ctypes.Structure):  # the first entries are all that we need
    _fields_ = [("version", ctypes.c_int32), ("retain", ctypes.c_void_p),
                ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Mismatch(Exception):
    pass


# The numbers of c10::ScalarType.
DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
          torch.complex32, torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16,
          *[None] * 7, torch.float8_e5m2, torch.float8_e4m3fn]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_libc_free = ctypes.CDLL(None).free
_libc_free.argtypes = [ctypes.c_void_p]


# ---- types ----

def parse_type(text, at=0):
    """-> (type, next position); a type is a character, ('?', t), ('[', t) or ('(', [t..])."""
    c = text[at]
    if c in "?[":
        inner, at = parse_type(text, at + 1)
        return (c, inner), at
    if c == "(":
        inner, at = [], at + 1
        while text[at] != ")":
            t, at = parse_type(text, at)
            inner.append(t)
        return (c, inner), at + 1
    return c, at + 1


PLAIN = {"T": "torch.Tensor", "i": "typing.SupportsInt", "d": "typing.SupportsFloat", "b": "bool", "s": "str",
         "S": "Number", "y": "torch.dtype", "v": "torch.device"}


def type_name(t):
    if isinstance(t, str):
        return PLAIN[t]
    if t[0] == "?":
        return type_name(t[1]) + " | None"
    if t[0] == "[":
        return f"collections.abc.Sequence[{type_name(t[1])}]"
    return "tuple[" + ", ".join(map(type_name, t[1])) + "]"


# ---- Python to C ----

def _to_int(x):
    if isinstance(x, float) or not hasattr(x, "__index__"):
        raise Mismatch
    try:
        return int(x.__index__())
    except TypeError:
        raise Mismatch from None


def _to_float(x):
    if isinstance(x, (str, bytes)) or not (hasattr(x, "__float__") or hasattr(x, "__index__")):
        raise Mismatch
    try:
        return float(x)
    except (TypeError, ValueError):
        raise Mismatch from None


def _to_bool(x):
    if x is None or isinstance(x, (str, bytes)) or not hasattr(x, "__bool__"):
        raise Mismatch
    return bool(x)


def fill(v, t, x, keep):
    """Makes v hold x as type t; what must outlive the call goes into keep. Raises Mismatch."""
    if not isinstance(t, str):
        return _fill_compound(v, t, x, keep)
    if t == "T":
        if not isinstance(x, torch.Tensor):
            raise Mismatch
        keep.append(x)
        v.tag, v.u.p = TENSOR, x._cdata
    elif t == "i":
        n = _to_int(x)
        if not -2**63 <= n < 2**63:
            raise Mismatch
        v.tag, v.u.i = INT, n
    elif t == "d":
        v.tag, v.u.d = DOUBLE, _to_float(x)
    elif t == "b":
        v.tag, v.u.i = BOOL, _to_bool(x)
    elif t == "s":
        if not isinstance(x, (str, bytes)):
            raise Mismatch
        raw = ctypes.create_string_buffer(x.encode() if isinstance(x, str) else x)
        keep.append(raw)
        v.tag, v.u.p, v.n = STRING, ctypes.addressof(raw), len(raw) - 1
    elif t == "S":
        if isinstance(x, bool):
            v.tag, v.u.i = BOOL, x
        elif isinstance(x, int):
            v.tag, v.u.i = INT, x
        else:
            v.tag, v.u.d = DOUBLE, _to_float(x)
    elif t == "y":
        if not isinstance(x, torch.dtype) or x not in DTYPES:
            raise Mismatch
        v.tag, v.u.i = INT, DTYPES.index(x)
    elif t == "v":
        if not isinstance(x, (str, torch.device)):
            raise Mismatch
        v.tag, v.u.i = INT, 1 if torch.device(x).type == "cuda" else 0


def _fill_compound(v, t, x, keep):
    if t[0] == "?":
        if x is None:
            v.tag = NONE
        else:
            fill(v, t[1], x, keep)
        return
    if isinstance(x, (str, bytes, dict, torch.Tensor)) or not hasattr(x, "__len__") or not hasattr(x, "__getitem__"):
        raise Mismatch
    inner = [t[1]] * len(x) if t[0] == "[" else t[1]
    if len(inner) != len(x):
        raise Mismatch
    array = (Value * max(len(x), 1))()
    for slot, kind, item in zip(array, inner, x):
        fill(slot, kind, item, keep)
    keep.append(array)
    v.tag, v.u.p, v.n = LIST if t[0] == "[" else TUPLE, ctypes.addressof(array), len(x)


# ---- C to Python ----

def _api():
    return ctypes.cast(native.library.lt_process_api(), ctypes.POINTER(Api)).contents


def take(v, t):
    """The Python object for a result; owned parts are consumed."""
    if v.tag == NONE:
        return None
    if v.tag == TENSOR:
        if not v.u.p:
            return None
        x = torch._C._wrap_tensor_impl(_new_capsule(v.u.p, None, None))
        _api().release(v.u.p)
        return x
    if v.tag in (LIST, TUPLE):
        items = ctypes.cast(v.u.p, ctypes.POINTER(Value))
        while not isinstance(t, str) and t[0] == "?":
            t = t[1]
        kinds = [t[1]] * v.n if t[0] == "[" else t[1]
        out = [take(items[i], kinds[i]) for i in range(v.n)]
        _libc_free(v.u.p)
        return out if v.tag == LIST else tuple(out)
    if v.tag == STRING:
        text = ctypes.string_at(v.u.p, v.n).decode("utf-8", "replace")
        _libc_free(v.u.p)
        return text
    if v.tag == DOUBLE:
        return v.u.d
    if v.tag == BOOL:
        return bool(v.u.i)
    if t == "y":
        return DTYPES[v.u.i]
    return v.u.i


# ---- functions ----

class Overload:
    def __init__(self, f):
        self.entry = f
        self.name = f.name.decode()
        self.returns = parse_type(f.returns.decode())[0] if f.returns else None
        self.types, self.names, self.defaults = [], [], []
        for i in range(f.n_params):
            p = f.params[i]
            self.types.append(parse_type(p.type.decode())[0])
            self.names.append(p.name.decode() if p.name else f"arg{i}")
            self.defaults.append(p.value if p.has_default else None)

    def describe(self):
        args = ", ".join(f"{n}: {type_name(t)}" for n, t in zip(self.names, self.types))
        return f"({args}) -> {type_name(self.returns) if self.returns else 'None'}"

    def bind(self, args, kwargs, keep):
        """The array of C arguments, or Mismatch."""
        values = (Value * max(len(self.types), 1))()
        if len(args) > len(self.types):
            raise Mismatch
        used = 0
        for i, (name, kind, default) in enumerate(zip(self.names, self.types, self.defaults)):
            if i < len(args):
                if name in kwargs:
                    raise Mismatch
                fill(values[i], kind, args[i], keep)
            elif name in kwargs:
                fill(values[i], kind, kwargs[name], keep)
                used += 1
            elif default is not None:
                values[i] = default
            else:
                raise Mismatch
        if used != len(kwargs):
            raise Mismatch
        return values

    def call(self, values):
        ret = Value()
        message = ctypes.create_string_buffer(MAX_MESSAGE)
        code = native.library.lt_invoke(self.entry.invoke, self.entry.self, values, ctypes.byref(ret), message,
                                        MAX_MESSAGE)
        if code != 0:
            text = message.value.decode("utf-8", "replace")
            raise ERRORS.get(code, RuntimeError)(text or "the extension's host code crashed")
        return take(ret, self.returns)


def note_strides(name, args):
    """A view that is no dense memory: said where an answer is wrong, since kernels often read one as if it were."""
    for i, a in enumerate(args):
        if isinstance(a, torch.Tensor) and a.is_cuda and not a.is_contiguous():
            native.library.front_note(b"strides", f"{name}, argument {i}".encode()[:60],
                                      f"shape {tuple(a.shape)}, strides {a.stride()}".encode()[:200])


def _callable(name, overloads, doc):
    def function(*args, **kwargs):
        for o in overloads:
            keep = []
            try:
                values = o.bind(args, kwargs, keep)
            except Mismatch:
                continue
            note_strides(name, args)
            return o.call(values)
        raise TypeError(_mismatch_text(name, overloads, args, kwargs))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _mismatch_text(name, overloads, args, kwargs):
    text = f"{name}(): incompatible function arguments. The following argument types are supported:\n"
    for i, o in enumerate(overloads, 1):
        text += f"    {i}. {o.describe()}\n"
    shown = [_short(a) for a in args]
    if kwargs:
        shown.append("kwargs: " + ", ".join(f"{k}={_short(v)}" for k, v in kwargs.items()))
    return text + "\nInvoked with: " + ", ".join(shown)


def _short(x):
    if isinstance(x, torch.Tensor):
        return f"Tensor(shape={tuple(x.shape)}, dtype={x.dtype}, device={x.device})"
    text = repr(x)
    return text if len(text) <= 200 else text[:200] + "..."


def _unfit(text):
    """The dynamic linker's words about the machine: an older C++ library comes first on the path, memory lacks."""
    return any(w in text for w in ("GLIBCXX_", "CXXABI_", "GLIBC_", "GCC_", "cannot open shared object file",
                                   "failed to map segment", "cannot allocate memory", "cannot create"))


class Operator:
    """An operator of the program's own under torch.ops; its only overload is itself."""

    def __init__(self, name, call):
        self._call, self.__name__, self.default = call, name, self

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)


def _functions(table):
    """{name: callable} of a module's table; "space::name" is an operator, "=name" gives a number or a text."""
    by_name = {}
    for i in range(table.n_functions):
        f = table.functions[i]
        by_name.setdefault(f.name.decode(), []).append(f)
    return {name: _callable(name, [Overload(f) for f in entries], entries[0].doc.decode() if entries[0].doc else "")
            for name, entries in by_name.items()}


def load(name, path, is_module=True):
    """Opens the .so, puts its operators under torch.ops, and returns its functions as a module named name. A library
    that is no module needs none, and its path is returned."""
    try:
        so = ctypes.CDLL(path)
    except OSError as e:
        if _unfit(str(e)):
            raise native.DeviceError(f"this machine cannot load what its own compiler made: {e}") from None
        raise ImportError(str(e)) from None
    so.lt_module_open.restype, so.lt_module_open.argtypes = ctypes.POINTER(Module), [ctypes.c_void_p]
    table = so.lt_module_open(native.library.lt_process_api())
    if not table:
        raise native.DeviceError("the extension was built for another version of litetorch")
    m = types.ModuleType(name)
    m.__file__, m.__lt_so__ = path, so
    made = _functions(table.contents)
    for fname in [f for f in made if "::" in f]:
        space, own = fname.split("::", 1)
        setattr(getattr(torch.ops, space), own, Operator(fname, made.pop(fname)))
    if not is_module:
        _libraries.append(so)
        return path
    if not made and not table.contents.doc:
        raise ImportError(f"dynamic module does not define module export function (PyInit_{name})")
    for fname, f in made.items():
        setattr(m, fname.lstrip("="), f() if fname.startswith("=") else f)
    return m


_libraries = []  # what is loaded and no module holds
