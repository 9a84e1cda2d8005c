"""torch's "cuda" in a process without a device (litetorch/front).

    preload()            fork server's parent, once, before anything imports torch.utils.cpp_extension
    attach(area, bell)   candidate's child: the executor's descriptors; before any tensor of the device
    install(build)       candidate's child, before its code runs; build(request) -> reply blocks until compiled
    allow_operators(how) torch's arithmetic within a forward is noted and refused (0), not refused (1), or refused after
                       the first few operators (2)
    forward(on)          from here on a call of forward runs: torch's arithmetic is refused by name
    mark_printed()     candidate's child: what its host code prints is marked as its print is; flush_printed() after
                       each step
    notes()              what this process has to say about itself, since the last call: [{"kind","name",...}]
    lack(code, name)     this judge does not have it; the judge is told
    tensor(desc)         a tensor over memory that the judge has laid: {"dtype","shape","strides","address"}
    describe(t)          the same of a tensor, or None: it is not a plain one on the device
"""
from .core import (allow_operators, attach, begin, describe, flush_printed, forward, install, lack,  # noqa: F401
                   mark_printed, notes, preload, tensor)
