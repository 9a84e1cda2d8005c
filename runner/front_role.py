"""front_role.py - a candidate's process without a device: imports foreign code, constructs it, calls it.

Runs jailed in a child of the fork server. What it wants of a device it asks an executor for (runner/front); the judge
lays parameters and inputs there itself and looks at outputs there. This process learns addresses, shapes and dtypes.
Nothing that it says acquits a candidate: the judge replays what was asked for, without it
(docs/internals/executor.md).

Requests and replies, in frames; every reply has "op" and "notes" (litetorch/front/front.h):
  attach  {} and two descriptors                    -> ok   the executor's, before load
  load    {"source","init":tree,"seed","mode","dtype","operators"}
                                                     -> ready {"state":[{"name","kind",desc}]} | error {"phase",..}
          "source" null: ModelNew of the same program once more, with other arguments; "dtype" null: as constructed
          "beside": true: the model that was there stays, for calls with "other": true
  call    {"inputs":tree}                           -> result {"output":tree} | error
          "hold": true: the answer is held until a call without it
Tensors in trees are {"t":"tensor","dtype","shape","strides","address","bytes"}; one that is not on the device has
"address" null. In between, this side may ask: build {"request"} -> {"ok",...}.
"""
import faulthandler
import io
import linecache
import os
import sys
import threading
import types

import torch

import bundle
import clock
import frame
import native
import values
from native import lacks

FILE = "candidate.py"
_Tensor, _Parameter, _Module = torch.Tensor, torch.nn.Parameter, torch.nn.Module


class MissingModel(Exception):
    pass


class TaskNames(types.ModuleType):
    """What 'from task import input_t, output_t' of a GPU MODE submission finds: names for annotations alone."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return object


def model_around(function):
    """GPU MODE's form of a program, custom_kernel(data), as a model; data is the one argument, or all as a tuple."""
    class ModelNew(_Module):
        def __init__(self, *args, **kwargs):
            super().__init__()

        def forward(self, *data):
            return function(data[0] if len(data) == 1 else data)
    return ModelNew


class Descriptions(values.Packer):
    """A value as a tree in which tensors are where they are."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def tensor(self, t):
        host = {"t": "tensor", "dtype": str(t.dtype)[6:], "shape": list(t.shape), "strides": [], "address": None}
        return self.device.describe(t) or host


def decode(tree, device):
    """The value of a tree of the judge's: tensors lie on the device already."""
    if isinstance(tree, dict) and tree["t"] == "tensor":
        return device.tensor(tree)
    if isinstance(tree, dict) and tree["t"] in ("list", "tuple"):
        return (list if tree["t"] == "list" else tuple)(decode(x, device) for x in tree["v"])
    if isinstance(tree, dict) and tree["t"] == "dict":
        return {k: decode(x, device) for k, x in tree["v"]}
    return values.decode(tree, b"")


def check_exact(v):
    """Only plain tensors: a subclass could compute when it is looked at."""
    if isinstance(v, _Tensor):
        if type(v) not in (_Tensor, _Parameter):
            raise TypeError(f"forward returns a tensor subclass ({type(v).__name__}); return a plain torch.Tensor")
    elif isinstance(v, (list, tuple)):
        for x in v:
            check_exact(x)
    elif isinstance(v, dict):
        for x in v.values():
            check_exact(x)
    elif not (v is None or isinstance(v, (bool, int, float, str))):
        raise TypeError(f"forward returns {type(v).__name__}; return a torch.Tensor")


class Session:
    def __init__(self, sock, device):
        self.sock, self.device, self.lock = sock, device, threading.RLock()
        self.source, self.cls, self.model, self.kept = "", None, None, None
        self.other, self.held = None, []
        self.clock = clock.Clock()

    def build(self, request):
        """Called by the shim for load_inline and load, from any thread."""
        with self.lock:
            self.clock.stop()
            frame.send(self.sock, {"op": "build", "request": request})
            reply = frame.recv(self.sock)[0]
            self.clock.start()
            return reply

    def reply(self, **head):
        return dict(head, notes=self.device.notes())

    def error(self, phase, e):
        lack = lacks.of(e)
        if lack:
            self.device.lack(*lack)
        return self.reply(op="error", phase=phase, missing_model=isinstance(e, MissingModel),
                          infra=isinstance(e, native.DeviceError),
                          **values.describe_error(e, FILE, self.source))

    def attach(self, req, blob, fds):
        self.device.attach(*fds)
        self.device.install(self.build)
        return self.reply(op="ok")

    # construction -------------------------------------------------------------------------------------------------

    def load(self, req, blob, fds):
        self.other = self.model if req.get("beside") else None
        phase, self.model, self.kept = "import", None, None
        init = values.decode(req["init"], blob)
        try:
            if req["source"] is not None:
                self.source = req["source"].lstrip("\ufeff")
                self.cls = self.import_source()
            phase = "init"
            self.device.allow_operators(req.get("operators", False))
            torch.default_generator.manual_seed(req["seed"])  # torch.manual_seed formats its stack for other devices
            self.model = self.cls(**init) if isinstance(init, dict) else self.cls(*init)
            return self.ready(req["mode"], req.get("dtype"))
        except BaseException as e:
            return self.error(phase, e)

    def import_source(self):
        linecache.cache[FILE] = (len(self.source), None, self.source.splitlines(True), FILE)
        module = types.ModuleType("candidate")
        folder = bundle.lay(self.source)
        module.__file__ = os.path.join(folder, FILE) if folder else FILE
        sys.modules["candidate"] = module
        if not (folder and os.path.exists(os.path.join(folder, "task.py"))):  # an answer's own comes first
            sys.modules.setdefault("task", TaskNames("task"))
        exec(compile(self.source, FILE, "exec"), module.__dict__)
        cls = module.__dict__.get("ModelNew")
        if cls is None and callable(module.__dict__.get("custom_kernel")):
            cls = model_around(module.__dict__["custom_kernel"])
        if not isinstance(cls, type):
            raise MissingModel("the program defines no class ModelNew")
        if not issubclass(cls, _Module):
            raise MissingModel("ModelNew is not a subclass of torch.nn.Module")
        return cls

    def ready(self, mode, dtype):
        if not isinstance(self.model, _Module):
            raise TypeError("ModelNew(...) is not a Module")
        cls = type(self.model)  # by class: a model may keep tables of its own under the names of Module's methods
        if dtype:
            self.model = cls.to(self.model, getattr(torch, dtype))
        self.model = cls.cuda(self.model)
        if mode == "eval":  # else as constructed, like the reference: parts from from_pretrained stay in eval mode
            cls.eval(self.model)
        keep = set(_Module.state_dict(self.model).keys())
        rows = [(n, "param", p) for n, p in _Module.named_parameters(self.model)]
        rows += [(n, "buffer" if n in keep else "constant", b) for n, b in _Module.named_buffers(self.model)]
        describe = Descriptions(self.device).tensor
        return self.reply(op="ready", state=[dict(describe(t), name=n, kind=k) for n, k, t in rows])

    # calls --------------------------------------------------------------------------------------------------------

    def call(self, req, blob, fds):
        self.kept = None
        if not req.get("hold"):
            self.held.clear()
        try:
            given = decode(req["inputs"], self.device)
            self.device.forward(True)
            try:
                with torch.no_grad():
                    self.kept = (self.other if req.get("other") else self.model)(*given)
            finally:
                self.device.forward(False)
            check_exact(self.kept)
            if req.get("hold"):
                self.held.append(self.kept)
            return self.reply(op="result", output=Descriptions(self.device).tree(self.kept))
        except BaseException as e:
            return self.error("forward", e)


class Marked(io.RawIOBase):
    """Descriptor 1 with a mark and a length before each piece: the program's print, apart from other output."""

    def writable(self):
        return True

    def fileno(self):
        return 1

    def write(self, data):
        data = bytes(data)
        for at in range(0, len(data), 65535):
            piece = data[at:at + 65535]
            os.write(1, b"\x1e%04x" % len(piece) + piece)
        return len(data)


def serve(sock, args):
    import front

    sys.stdout = io.TextIOWrapper(io.BufferedWriter(Marked()), "utf-8", "replace", line_buffering=True)
    front.mark_printed()
    torch.set_num_threads(1)
    s = Session(sock, front)
    faulthandler.enable(file=2, all_threads=False)  # a crash says where it was
    steps = {"attach": s.attach, "load": s.load, "call": s.call}
    for req, blob, fds in frame.requests(sock, frame.recv_fds):
        s.clock.start(req.get("left_s"))
        head = steps[req["op"]](req, blob, fds)
        front.flush_printed()
        s.clock.stop()
        frame.send(sock, head, [])
