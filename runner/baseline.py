"""baseline.py - what a candidate is compared with: the task's own Model on the device, eager and compiled.

Runs jailed in a child of the fork server, one per task while its candidates are timed; no candidate's code comes here,
and so it may start compilers, for torch.compile (src/eval/perf/baseline.h says why that is safe). timing.py times its
calls.

Requests and replies, in frames; every reply has "op", "error" when something raised:
  load     {"source","init":tree,"seed","mode","device","tf32":bool}   -> ok
  params   {"values":[{"name","value":tree}]} -> ok
  put      {"inputs":tree}                -> ok {"fresh":[leaf index],"facts":{...}}
  inputs   {"area":spec,"inputs":tree,"kinds","regime"} and a descriptor -> as put: of a streamed task (streamed.py),
  whose
           inputs are never copied. A draw of that regime lies in the area; calls draw others in its place
  arm      {}                             -> ok: blocks follow
  rest     {}                             -> ok: the device has back what torch keeps for later
  time     {"n","which":"eager"|"compile"|"library","pad_us"} -> the block (timing.py), then timed {"host_us"}
  compile  {"mode":"default"|"max-autotune"} -> ok {"seconds","waited_s","asked"} | error. Before that any number of
           {"op":"device"}, answered by go, and {"op":"rest"}: compiling.py
  library  {}                             -> ok {"call": name or "", "eager": eager is that call}
"""
import copy
import importlib
import os
import sys
import time

import torch

import area
import compiling
import frame
import reference
import streamed
import timing
import values

# One call into a vendor's library, or torch's own single kernel, does all of it.
LIBRARY = frozenset(
    """mm addmm bmm baddbmm mv addmv dot convolution _convolution _softmax _log_softmax native_layer_norm
native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training cudnn_batch_norm native_group_norm
max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d _adaptive_avg_pool2d sum mean amax amin cumsum
cumprod sort topk _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable""".split())
# Moves or describes data; does no arithmetic.
PLUMBING = frozenset(
    """view _unsafe_view reshape _reshape_alias alias as_strided expand permute transpose t select slice squeeze
unsqueeze split split_with_sizes unbind unfold detach clone copy_ _to_copy contiguous empty empty_like empty_strided
new_empty zeros zeros_like ones ones_like full full_like fill_ zero_ arange lift_fresh _local_scalar_dense""".split())


# Single calls that could do what a task spells out, with the operators that it would then use: [(name, needed, call)].
# call(inputs, parameters) yields functions of the inputs; the first that gives eager's answers is timed.
F = torch.nn.functional


def over_dims(f):
    return lambda x, p: ((lambda t, *_, d=d: f(t, d)) for d in reversed(range(x[0].dim())))


def pointwise(*fs):
    return lambda x, p: ((lambda t, *_, f=f: f(t)) for f in fs)


def over_last(norm):
    """norm(t, shape, weight and bias among the parameters, eps) over the last one to three dimensions."""
    def calls(x, p):
        for k in range(1, min(3, x[0].dim()) + 1):
            shape = tuple(x[0].shape[-k:])
            fit = [q for q in p if tuple(q.shape) == shape][:2]
            for eps in (1e-5, 1e-6, 1e-8):
                yield lambda t, *_, shape=shape, fit=fit, eps=eps: norm(t, shape, fit, eps)
    return calls


def attention(x, p):
    if len(x) == 3 and all(t.dim() == 4 for t in x):
        for causal in (False, True):
            yield lambda q, k, v, causal=causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def product(x, p):
    if len(x) == 2 and all(t.dim() > 1 for t in x):
        yield torch.matmul


CONTENDERS = [
    ("scaled_dot_product_attention", {"bmm", "_softmax"}, attention),
    ("softmax", {"exp", "div"}, over_dims(torch.softmax)),
    ("log_softmax", {"exp", "log"}, over_dims(torch.log_softmax)),
    ("layer_norm", {"mean", "sub", "div"}, over_last(lambda t, s, p, e: F.layer_norm(t, s, *(p + [None] * 2)[:2], e))),
    ("rms_norm", {"mean", "pow"}, over_last(lambda t, s, p, e: F.rms_norm(t, s, *(p + [None])[:1], e))),
    ("normalize", {"div"}, lambda x,
     p: ((lambda t, *_, n=n, d=d: F.normalize(t, n, d)) for n in (2.0, 1.0) for d in range(x[0].dim()))),
    ("gelu", {"tanh", "mul"}, pointwise(lambda t: F.gelu(t, approximate="tanh"))),
    ("gelu", {"erf", "mul"}, pointwise(F.gelu)),
    ("silu", {"sigmoid", "mul"}, pointwise(F.silu)),
    ("softplus", {"exp", "log"}, pointwise(F.softplus)),
    ("matmul", {"mul", "sum"}, product),
]


class Benchmarked:
    """Convolutions by the fastest algorithm that cuDNN finds, instead of the one that it guesses."""

    def __init__(self, model):
        self.model, self.set = model, torch._C._set_cudnn_benchmark

    def __call__(self, *inputs):
        self.set(True)
        try:
            return self.model(*inputs)
        finally:
            self.set(False)


class Trace(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the ATen operators of one forward."""

    def __init__(self):
        super().__init__()
        self.ops = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[-1]
        self.ops[name] = self.ops.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


def compute_ops(ops):
    return {k: n for k, n in ops.items() if k not in PLUMBING}


def one_library_call(ops):
    heavy = compute_ops(ops)
    return sum(heavy.values()) == 1 and next(iter(heavy)) in LIBRARY


def storage_bytes(tensors):
    """Bytes that the tensors' layouts span, each storage once: what must be read at least, or written. Inputs that
    lie in one area are storages of their own."""
    seen = {}
    for t in tensors:
        key = t.untyped_storage()._cdata if not hasattr(t, "laid_apart") else t.data_ptr()
        span = (1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride()))) * t.element_size() if t.numel() else 0
        seen[key] = max(seen.get(key, 0), min(span, t.numel() * t.element_size()))
    return sum(seen.values())


def clone(t):
    """A copy with the same layout."""
    if not t.numel():
        return t.clone()
    extent = 1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride()))
    return torch.as_strided(t, (extent,), (1,)).clone().as_strided(t.shape, t.stride())


def run(model, inputs, own=clone):
    m = copy.deepcopy(model)
    with torch.no_grad():
        return m(*values.map_tensors(inputs, own))


class InPlace(timing.Timer):
    """The calls of a streamed task: their data are drawn where the inputs lie, and no output is kept."""

    def take(self, views, kinds, regime, tree):
        self.views, at = views, iter(views)
        self.given = values.map_tensors(tree, lambda t: next(at))
        for t in views:
            t.laid_apart = True
        self.drawn = streamed.Fresh(views, kinds, regime)

    def draw(self, seed):
        self.drawn.draw(seed)


class Baseline:
    def __init__(self, sock):
        self.sock, self.compiled, self.library_call, self.ops = sock, None, None, {}
        self.own = clone  # what forward gets of an input that it may write to

    def load(self, req, blob):
        self.device = req["device"]
        if self.device.startswith("cuda") and not req["tf32"]:  # else as torch comes
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        task = reference.load(req["source"])
        model = reference.construct(task, values.decode(req["init"], blob), req["seed"])
        self.model = (model.to(getattr(torch, req["dtype"])) if req.get("dtype") else model).to(self.device)
        self.model.train(req["mode"] == "train")
        self.timer = timing.Timer(self.device, lambda t: t.to(self.device))
        self.pristine = copy.deepcopy(self.model)
        return {}, []

    def params(self, req, blob):
        here = dict(self.model.named_parameters())
        here.update(self.model.named_buffers())
        with torch.no_grad():
            for row in req["values"]:
                here[row["name"]].copy_(values.decode(row["value"], blob))
        self.pristine = copy.deepcopy(self.model)
        return {}, []

    # facts ------------------------------------------------------------------------------------------------------------

    def put(self, req, blob):
        base = values.leaves(values.decode(req["inputs"], blob))
        fresh = [k for k, t in enumerate(base) if (t.is_floating_point() or t.is_complex()) and t.numel() and
                 not (t.is_floating_point() and reference.keeps_distribution(t))]
        self.timer.put_inputs({"inputs": req["inputs"], "fresh": fresh}, blob)
        return {"fresh": fresh, "facts": self.facts()}, []

    def inputs(self, req, fds):
        """As put, of a streamed task."""
        self.room = area.open_area(fds[0], req["area"],
                                   importlib.import_module(os.environ.get("MUSACODER_DEVICE") or "front"))
        reference.PLACE = torch.device(self.device)
        self.timer = InPlace(self.device, None)
        self.own = lambda t: t  # the reference does not write to its inputs
        self.pristine = self.model  # no answer is compared with another one's
        self.timer.take(streamed.views_of(self.room, req["inputs"]), req["kinds"], req["regime"],
                        streamed.hollow(req["inputs"]))
        return {"fresh": self.timer.drawn.leaves(), "facts": self.facts()}, []

    def rest(self, req, blob):
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        return {}, []

    def facts(self):
        from torch.utils.flop_counter import FlopCounterMode

        inputs, state = values.map_tensors(self.timer.given,
                                           self.own), list(self.model.parameters()) + list(self.model.buffers())
        m, flops = self.pristine, FlopCounterMode(display=False)
        m = m if m is self.model else copy.deepcopy(m)
        with torch.no_grad(), flops, Trace() as trace:
            out = m(*inputs)
        outs, self.ops = values.leaves(out), trace.ops
        _, dtype = reference.unit(values.leaves(inputs) + list(self.model.parameters()) + outs)
        return {"ops": trace.ops, "one_library_call": one_library_call(trace.ops), "flops": flops.get_total_flops(),
                "dtype": dtype, "bytes_read": storage_bytes(values.leaves(inputs) + state),
                "bytes_written": storage_bytes(outs),
                "output_bytes": sum(t.numel() * t.element_size() for t in outs)}

    # time -------------------------------------------------------------------------------------------------------------

    def arm(self, req, blob):
        self.timer.arm(list(self.model.parameters()) + list(self.model.buffers()))
        return {}, []

    def time(self, req, blob):
        model = {"compile": self.compiled, "library": self.library_call}.get(req["which"], self.model)
        host_us = self.timer.serve(self.sock, model, req)
        return {"op": "timed", "host_us": host_us}, []

    def compile(self, req, blob):
        """In this process: compile workers would outlive a block, and the jail counts processes. What is made goes to
        the jail's own /tmp and ends with this process; the judge keeps the quotient of the times."""
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        config = sys.modules.get("torch._inductor.config")
        if config is not None:  # imported with something else, before the variable was there
            config.compile_threads = 1
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            os.environ.setdefault(name, "/tmp/" + name.lower())
        shim = sys.modules.get("torch.utils.cpp_extension")
        if shim is not None and not getattr(shim, "__file__", "").endswith("torch/utils/cpp_extension.py"):
            del sys.modules["torch.utils.cpp_extension"]
        start = time.monotonic()
        mode = req["mode"]
        turn = compiling.Turn(self.sock, self.timer.device.sync)
        try:
            with compiling.asking(turn, self.model, mode):
                f = torch.compile(self.model, **({} if mode == "default" else {"mode": mode}))
                with torch.no_grad():
                    for _ in range(3):
                        f(*self.timer.given)
        finally:  # the judge takes the device back with the answer
            self.timer.device.sync()
        self.compiled = f
        return {"seconds": time.monotonic() - start - turn.waited_s, "waited_s": turn.waited_s, "asked": turn.asked}, []

    def library(self, req, blob):
        """What one call of a vendor's library needs for the task, if there is one."""
        if one_library_call(self.ops):
            name = next(iter(compute_ops(self.ops)))
            if "convolution" not in name or not self.device.startswith("cuda"):
                return {"call": name, "eager": True}, []
            self.library_call = Benchmarked(self.model)
            with torch.no_grad():
                self.library_call(*self.timer.given)
            return {"call": name + ", cuDNN's fastest", "eager": False}, []
        x = self.timer.given
        if x and all(isinstance(t, torch.Tensor) for t in x) and x[0].is_floating_point():
            for name, needed, calls in CONTENDERS:
                if needed <= set(self.ops):
                    for f in calls(x, list(self.model.parameters())):
                        if self.agrees(f):
                            self.library_call = f
                            return {"call": name, "eager": False}, []
        return {"call": "", "eager": False}, []

    def agrees(self, f):
        """Eager's answers on two draws, within a thousandth of the largest."""
        with torch.no_grad():
            for seed in (1, 2):
                self.timer.draw(seed)
                want = run(self.pristine, self.timer.given, self.own)
                try:
                    got = f(*values.map_tensors(self.timer.given, self.own))
                except (RuntimeError, TypeError, IndexError, ValueError):
                    return False
                if not isinstance(want, torch.Tensor) or got.shape != want.shape or got.dtype != want.dtype:
                    return False
                if not streamed.near(got, want, 1e-3):
                    return False
        return True


def one_line(e):
    text = [line.strip() for line in str(e).splitlines() if line.strip()]
    if text and text[0].endswith(":"):  # "backend='inductor' raised:"
        text[0] += " " + " ".join(text[1:2])
    return {"op": "error", "type": type(e).__name__, "message": text[0][:300] if text else "",
            "memory": values.out_of_memory(e)}


def serve(sock, args):
    torch.set_num_threads(1)
    b = Baseline(sock)
    steps = {"load": b.load, "params": b.params, "put": b.put, "arm": b.arm, "time": b.time, "compile": b.compile,
             "library": b.library,
             "rest": b.rest}
    for req, blob, fds in frame.requests(sock, frame.recv_fds):
        try:
            head, parts = b.inputs(req, fds) if req["op"] == "inputs" else steps[req["op"]](req, blob)
            head = dict({"op": "ok"}, **head)
        except frame.FrameError:
            raise
        except Exception as e:
            head, parts = one_line(e), []
        frame.send(sock, reference.scrub(head), parts)
