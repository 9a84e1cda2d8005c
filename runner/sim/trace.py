"""ATen dispatch trace: every operator that any thread of this process dispatches, counted at torch's own dispatcher.

start(phase) clears and begins; stop() ends and returns {"aten::add.Tensor": 3, ...}; pause() is a context manager for
the harness's own operators. Counting is done by a RecordFunction callback in device.cc, which is global: threads that
existed before start(), and threads that the candidate starts, are covered.
"""
import contextlib
import json

from . import core

phase = None


def start(name="forward"):
    global phase
    phase = name
    core.lib().sim_trace_start()


def stop():
    global phase
    phase = None
    return json.loads(core.take_string(core.lib().sim_trace_stop()))


@contextlib.contextmanager
def pause():
    before = core.lib().sim_trace_pause(1)
    try:
        yield
    finally:
        core.lib().sim_trace_pause(before)
