"""candidate.py - the candidate's side: runs foreign code, knows nothing worth stealing.

Runs jailed in a child of the fork server, one process per candidate. The judge sends init inputs, parameters and inputs
as values; it never sends the reference, an expected value or a seed that makes inputs. What this process says about
itself (operators, launches) can convict the candidate but never acquit it: see DESIGN, invariants 1 and 4.

Requests and replies, in frames; every reply has "op":
  load    {"source","init":tree,"seed","mode","dtype"} -> ready {"state":[{name,kind,dtype,shape}],...} | error {"phase",..}
          "source" null: ModelNew of the same program once more, with other arguments; "dtype" null: as constructed
  params  {"values":[{"name","value":tree}],"area":bool} -> ok | error
  areas   {"inputs":spec,"outputs":spec} and two descriptors -> ok | refused {"message","memory"}  shared memory, area.py
  run     {"inputs":tree,"ablation":bool,"same_memory":bool,"area":bool,"watch":mode} -> result {"output":tree,
          "changed":[i],"aliases":[i],"watched",...} | error. area: values lie in the shared memory, outputs go there,
          and inputs as they are after the call go back. watch: device.watch's mode, or absent
  put     {"inputs":tree,"fresh":[leaf],"area":bool} -> ok | error  timing.py says what put, arm, time and reveal are
  arm     {"slots"}                             -> ok | error
  time    {"n","pad_us"}                        -> timed {evidence,"host_us"} | error
  reveal  {"slot","area":bool}                  -> result {"output":tree,"on_host":[i]} | error
In between, this side may ask: build {"request"} -> {"ok",...}, and in load, on a device with a clock, device {} -> {"ok"},
for a share of it. The judge's clock stops meanwhile.
"""
import contextlib
import faulthandler
import importlib
import linecache
import os
import sys
import threading
import types

import torch

import area
import clock
import frame
import integrity
import native
import timing
import values

FILE = "candidate.py"
DEVICE = os.environ.get("MUSACODER_DEVICE") or "front"
device = importlib.import_module(DEVICE)  # runner/cuda
_Tensor, _Parameter, _Module, _copy = torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.Tensor.copy_
# What the harness itself does on a real device is no operator of the candidate's.
quiet = device.trace.pause if getattr(device, "TIMED_ON", None) else contextlib.nullcontext


class Session:
    def __init__(self, sock):
        self.sock, self.lock = sock, threading.RLock()
        self.launched = {}    # by kernel, before the call that is under way
        self.copies = (0, 0)  # counted by the device so far: to the host, to the device
        self.source, self.module, self.cls, self.model = "", None, None, None
        self.given = None  # the last call's inputs
        self.room = {}     # "inputs", "outputs": areas
        self.shares = True  # the device, with others
        self.clock = clock.Clock()
        self.seal = None   # what the harness rests on, as it was before foreign code ran
        place = getattr(device, "TIMED_ON", None)  # a device with a clock; bound here, before foreign code runs
        self.timer = timing.Timer(place, placed, device.from_device, check_exact) if place else None

    def ask(self, head):
        """The judge, from any thread."""
        with self.lock:
            self.clock.stop()
            frame.send(self.sock, head)
            reply = frame.recv(self.sock)[0]
            self.clock.start()
            return reply

    def on_device(self):
        """A share of it, once in a load: others may be timed there while this process works on the host."""
        with self.lock:
            if not self.shares:
                self.shares = True
                self.ask({"op": "device"})

    def build(self, request):
        """Called by the shim for load_inline and load."""
        return self.ask({"op": "build", "request": request})

    @staticmethod
    def launches():
        return {name: k.get("launches", 0) for name, k in device.stats().get("kernels", {}).items()}

    def evidence(self):
        """Counts that only grow ("trace", "found", "launches") and what happened since the last reply."""
        s = device.stats()
        before, self.copies = self.copies, (s.get("to_host", 0), s.get("to_device", 0))
        replaced = self.seal.broken() if self.seal else []
        return {"replaced": replaced if device.trace.alive() else replaced + ["the record of operators"],
                "launches": {name: k.get("launches", 0) for name, k in s.get("kernels", {}).items()},
                "to_host": self.copies[0] - before[0], "to_device": self.copies[1] - before[1],
                "library_calls": s.get("library_calls", {}), "findings": device.take_findings(),
                "device_short": s.get("device_short", False), "found": s.get("found", 0),
                "captured": s.get("captured", 0), "side_launches": s.get("side_launches", 0),
                "trace": device.trace.counts()}

    # load ---------------------------------------------------------------------------------------------------------

    def load(self, req, blob):
        again, phase, self.model = req["source"] is None, "import", None
        if not again:
            self.source = req["source"]
            device.install(self.build)
        self.seal = self.seal or integrity.Seal()
        device.set_ablation("recorded" if req.get("ablation") else False)
        native.watch_lookups()
        device.trace.start()
        init = values.decode(req["init"], blob)
        if self.timer and not again:
            self.shares = False
            device.before_use(self.on_device)
        try:
            with native.foreign:
                self.cls = self.cls if again else self.import_source()
                phase = "init"
                torch.manual_seed(req["seed"])
                self.model = self.cls(**init) if isinstance(init, dict) else self.cls(*init)
        except BaseException as e:
            self.shares = True  # nobody asks any more
            return self.error(phase, e)
        return self.ready(req["mode"], req.get("dtype"))

    def import_source(self):
        linecache.cache[FILE] = (len(self.source), None, self.source.splitlines(True), FILE)
        self.module = types.ModuleType("candidate")
        self.module.__file__ = FILE
        sys.modules["candidate"] = self.module
        exec(compile(self.source, FILE, "exec"), self.module.__dict__)
        cls = self.module.__dict__.get("ModelNew")
        if not isinstance(cls, type):
            raise MissingModel("the program defines no class ModelNew")
        if not issubclass(cls, torch.nn.Module):
            raise MissingModel("ModelNew is not a subclass of torch.nn.Module")
        return cls

    def ready(self, mode, dtype):
        if not isinstance(self.model, torch.nn.Module):
            self.shares = True
            return self.error("init", TypeError("ModelNew(...) is not a Module"))
        cls = type(self.model)  # by class: a model may keep tables of its own under the names of Module's methods
        self.on_device()
        try:
            if dtype:
                self.model = cls.to(self.model, getattr(torch, dtype))
            self.model = cls.cuda(self.model)
            if mode == "eval":  # else as constructed, like the reference: parts from from_pretrained stay in eval mode
                cls.eval(self.model)
            keep = set(_Module.state_dict(self.model).keys())
            device.finish()
        except BaseException as e:
            return self.error("init", e)
        rows = [(n, "param", p) for n, p in _Module.named_parameters(self.model)]
        rows += [(n, "buffer", b) for n, b in _Module.named_buffers(self.model) if n in keep]
        state = [{"name": n, "kind": k, "dtype": str(t.dtype)[6:], "shape": list(t.shape)} for n, k, t in rows]
        return dict(self.evidence(), op="ready", state=state), []

    def params(self, req, blob):
        """In place: whatever was computed from the old values in __init__ is now stale."""
        here = dict(_Module.named_parameters(self.model))
        here.update(_Module.named_buffers(self.model))
        with torch.no_grad():
            for row in req["values"]:
                with quiet():
                    value, t = placed(values.decode(row["value"], self.source_of(req, blob))), here[row["name"]]
                with timing.may_write(t):
                    _Tensor.copy_(t.data, value)
        return self.has_read(req)

    # run ----------------------------------------------------------------------------------------------------------

    def areas(self, req, fds):
        """Takes the descriptors. What was mapped before is given up."""
        for old in self.room.values():
            old.close()
        self.room = {}
        try:
            self.room = {name: area.open_area(fd, req[name], device) for name, fd in zip(("inputs", "outputs"), fds, strict=True)}
        except Exception as e:  # this machine's, never the candidate's: it has nothing to say here
            return {"op": "refused", "message": f"{type(e).__name__}: {e}"[:300], "memory": values.out_of_memory(e)}, []
        return {"op": "ok"}, []

    def source_of(self, req, blob):
        """Where the tensors of a request's trees lie."""
        return self.room["inputs"].blob if req.get("area") else blob

    def has_read(self, req):
        if req.get("area"):
            self.room["inputs"].settle()
        return {"op": "ok"}, []

    def inputs(self, req, blob):
        """New tensors, or new contents in the last call's tensors: same objects, same addresses, same versions, so that
        nothing but the contents tells two calls apart."""
        with quiet():
            new, old = values.decode(req["inputs"], self.source_of(req, blob)), self.given
            if req.get("same_memory") and old is not None and same_layout(old, new):
                if all(map(refill, values.leaves(old), values.leaves(new))):
                    return old
            self.given = values.map_tensors(new, placed)
        return self.given

    def run(self, req, blob):
        kept = InArea(self.room) if req.get("area") else InFrame()
        given = self.inputs(req, blob)
        kept.before(given)
        device.set_ablation(bool(req.get("ablation")))
        watched = {}
        try:
            with torch.no_grad(), native.foreign:
                out = self.watch(given, req["watch"], watched) if req.get("watch") else self.model(*given)
            check_exact(out)
            self.note_kernels()
            device.finish()
            tree = kept.output(out)
        except BaseException as e:
            return self.error("forward", e)
        head = {"op": "result", "output": tree, "changed": kept.changed(given), "aliases": aliases(out, given),
                "on_host": [i for i, t in enumerate(values.leaves(out)) if not t.is_cuda]}
        return dict(self.evidence(), **head, **watched), kept.parts

    def watch(self, given, mode, ret):
        device.watch(mode)
        try:
            return self.model(*given)
        finally:
            ret["watched"] = device.watched()

    # time ---------------------------------------------------------------------------------------------------------

    def put(self, req, blob):
        with quiet():
            self.timer.put_inputs(req, self.source_of(req, blob))
        return self.has_read(req)

    def arm(self, req, blob):
        self.timer.arm(req["slots"], list(_Module.parameters(self.model)) + list(_Module.buffers(self.model)))
        return {"op": "ok"}, []

    def time(self, req, blob):
        device.set_ablation(False)
        try:
            host_us = self.timer.serve(self.sock, self.model, req)
        except frame.FrameError:
            raise
        except BaseException as e:
            return self.error("forward", e)
        return dict(self.evidence(), op="timed", host_us=host_us), []

    def reveal(self, req, blob):
        return self.timer.reveal(req["slot"], self.room["outputs"] if req.get("area") else None)

    def answer(self, step, req, blob):
        """What foreign code left behind, or memory that ran out, may raise in any step: the judge hears of that too."""
        try:
            return step(req, blob)
        except frame.FrameError:
            raise
        except BaseException as e:
            return self.error(req["op"], e)

    def error(self, phase, e):
        head = {"op": "error", "phase": phase, "missing_model": isinstance(e, MissingModel)}
        head.update(values.describe_error(e, FILE, self.source))
        head = dict(self.evidence(), **head)
        found = device.explain(e)
        if found:
            head["findings"] = head["findings"] + [self.with_kernels(found, head["launches"])]
        return head, []

    def with_kernels(self, found, launches):
        """A fault is seen when the device is waited for: any kernel since the last call may be the one."""
        new = self.new_kernels(launches)
        return dict(found, message=f"{found['message']}; launched in this call: {new}") if new else found

    def new_kernels(self, launches):
        return ", ".join([name for name, n in launches.items() if n > self.launched.get(name, 0)][:4])[:250]

    def note_kernels(self):
        """On our output, where it is read if they never end. Only where a launch does not wait."""
        new = self.new_kernels(self.launches()) if self.timer else None
        if new:
            with contextlib.suppress(OSError):
                os.write(2, f"launched in this call: {new}\n".encode())


def packer_for(kind=values.Packer):
    return kind(device.from_device, getattr(device, "raw_bytes", None))


class InFrame:
    """One call's values as bytes of the frames."""

    def __init__(self):
        self.parts = []

    def before(self, given):
        self.old = packer_for()
        self.old.tree(given)

    def output(self, out):
        p = packer_for()
        tree = p.tree(out)
        self.parts = p.parts
        return tree

    def changed(self, given):
        new = packer_for()
        new.tree(given)
        return [i for i, (a, b) in enumerate(zip(self.old.parts, new.parts)) if a != b]


class InArea:
    """One call's values in shared memory: the judge poisons it before, and looks at it when the reply is there."""

    def __init__(self, room):
        self.room, self.parts = room, []

    def before(self, given):
        self.given = packer_for(values.Collector)
        self.given.tree(given)

    def output(self, out):
        p = packer_for(values.Collector)
        tree = p.tree(out)
        p.write(self.room["outputs"])
        return tree

    def changed(self, given):
        """The judge compares; what it cannot compare is said here."""
        astray = self.given.write(self.room["inputs"])
        self.room["inputs"].settle()
        return astray


def placed(t):
    return t if t.is_cuda else device.to_device(t)


def refill(t, new):
    """New contents in place; the version stays as it is."""
    if hasattr(device, "refill"):
        return device.refill(t, new)
    _copy(t.data, new)  # .data has a version counter of its own
    return True


class MissingModel(Exception):
    pass


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


def same_layout(a, b):
    """Two values that differ in the contents of their tensors at most."""
    if isinstance(a, _Tensor):
        return (type(b) is type(a) and (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
                and all(s > 0 or n <= 1 for s, n in zip(a.stride(), a.shape)))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_layout, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same_layout(a[k], b[k]) for k in a)
    return a == b


def storage_of(t):
    return t.untyped_storage()._cdata


def aliases(out, given):
    stores = {storage_of(t) for t in values.leaves(given)}
    return [i for i, t in enumerate(values.leaves(out)) if t.numel() and storage_of(t) in stores]


def serve(sock, args):
    torch.set_num_threads(1)
    s = Session(sock)
    faulthandler.enable(file=2, all_threads=False)  # a crash says where it was
    steps = {"load": s.load, "params": s.params, "run": s.run, "put": s.put, "arm": s.arm, "time": s.time, "reveal": s.reveal}
    while True:
        try:
            req, blob, fds = frame.recv_fds(sock)
        except frame.Closed:
            return
        timed = req["op"] in ("load", "params", "run", "areas")
        if timed:
            s.clock.start(req.get("timeout_s") if s.clock.left is None else None)
        head, parts = s.areas(req, fds) if req["op"] == "areas" else s.answer(steps[req["op"]], req, blob)
        if timed:
            s.clock.stop()
        frame.send(sock, head, parts)
