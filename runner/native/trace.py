"""ATen dispatch trace: every operator that any thread of this process dispatches, counted at torch's own dispatcher.

start(phase) clears and begins; stop() ends and returns {"aten::add.Tensor": 3, ...}; pause() is a context manager for
the harness's own operators. Counting is done by a RecordFunction callback (litetorch/runtime/trace.cc), which is global: threads that
existed before start(), and threads that the candidate starts, are covered.
"""
import contextlib
import json

import native

phase = None


def start(name="forward"):
    global phase
    phase = name
    native.library.lt_trace_start()


def stop():
    global phase
    phase = None
    return json.loads(native.take_string(native.library.lt_trace_stop()))


@contextlib.contextmanager
def pause():
    before = native.library.lt_trace_pause(1)
    try:
        yield
    finally:
        native.library.lt_trace_pause(before)
