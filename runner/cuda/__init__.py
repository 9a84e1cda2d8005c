"""A real GPU, as a candidate's process (and the reference's) uses it. The interface:

    preload()            fork server's parent, once: our cpp_extension in place of torch's; CUDA is not touched
    begin(args)          child, after the jail is closed: allocator, context, a first launch. Foreign code comes later
    install(build)       candidate's child, before its code runs; build(request) -> reply blocks until compiled
    to_device(t)         host tensor -> tensor on cuda:0 (a copy);  from_device(t): back (a copy)
    finish()             after forward: waits for the device; raises what it has to say, unchecked launch errors included
    explain(error)       -> a finding that says what an exception of CUDA means, or None
    set_ablation(b)      launches of the candidate's libraries become counted no-ops ("recorded": those into a graph)
    set_check(b)         red zones are looked at after each forward (on after install)
    before_use(f)        f is called once, before the next piece of its memory is given out; None: no longer
    take_findings()      list of {"kind","message",...} since the last call; kinds in README.md
    stats()              {"launches", "kernels": {name: {"launches"}}, "library_calls": {name: n}, ...}
    open_area(fd, spec)  the judge's device memory, mapped (runner/area.py)
    watch(mode), watched() around one call of forward: what the host hands the device (native)
    trace.start(), trace.counts() -> {"aten::op": count}: every ATen operator of every thread since the start
"""
from .core import (preload, begin, install, to_device, from_device, finish, set_ablation, set_check,  # noqa: F401
                   take_findings, stats, memory, set_poison, give_back, before_use)
from .area import open_area  # noqa: F401
from .errors import explain  # noqa: F401
from native import trace, watch, watched  # noqa: F401
TIMED_ON = "cuda:0"  # it has a clock: timing.py's device
