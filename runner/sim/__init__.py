"""The simulated CUDA device, as a candidate's process sees it.

    preload()            fork server's parent, once, before anything imports torch.utils.cpp_extension
    begin(args)          child, after the jail is closed and before anything else of this package
    install(build)       candidate's child, before its code runs; build(request) -> reply blocks until compiled
    to_device(t)         host tensor -> tensor on cuda:0 (a copy);  from_device(t): back (a copy)
    raw_bytes(t)         the elements in C order;  refill(t, host): new contents in place, address and version kept
    set_ablation(b)      launches become counted no-ops ("recorded": those into a graph, of which there are none)
    set_check(b)         per-access checks on or off (on after install)
    finish()             after forward: waits for the device; raises what it has to say
    explain(error)       -> a finding that says what an exception of the device means, or None
    take_findings()      list of {"kind","message",...} since the last call; kinds in README.md
    stats()              {"launches": {kernel: n}, "threads": n, "library_calls": {name: n}}
    watch(mode), watched() around one call of forward: what the host hands the device (native)
    trace.start(), trace.counts() -> {"aten::op": count}: every ATen operator of every thread since the start

The candidate's tensors on "cuda" are real torch tensors of device cuda:0: the library below (runner/sim/device.cc)
registers the CPU kernels under torch's CUDA dispatch key and keeps their memory in an arena that the host cannot touch.
"""
from .core import (preload, install, to_device, from_device, raw_bytes, refill, set_ablation, set_check,  # noqa: F401
                   take_findings, stats, begin, finish, explain)
from native import trace, watch, watched  # noqa: F401
