"""test_candidate.py - the candidate's side answers every request: what raises is an error with a reason, never a
process that died. The device is the simulated one, with the host's clock in place of one of its own."""

import os
import socket
import sys
import threading
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "runner"))
PATIENCE_S = 60 * float(os.environ.get("TEST_SLOWDOWN", 1))

import sim  # noqa: E402

sim.preload()
sim.TIMED_ON = "cpu"
sim.before_use = lambda f: None

import torch  # noqa: E402

import candidate  # noqa: E402
import frame  # noqa: E402
import values  # noqa: E402

PROGRAM = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4))
    def forward(self, x):
        %s
        return x * 2
"""


class Judge:
    def __init__(self, forward="pass"):
        self.sock, self.other = socket.socketpair()
        self.thread = threading.Thread(target=candidate.serve, args=(self.other, None), daemon=True)
        self.thread.start()
        self.asked = self.ask({"op": "load", "source": PROGRAM % forward, "init": values.Packer().tree([]), "seed": 0,
                               "mode": "eval", "dtype": None})
        self.ready = self.ask({"ok": True})

    def ask(self, req, *tensors):
        p = values.Packer()
        for name, t in zip(("inputs",), tensors):
            req[name] = p.tree([t])
        frame.send(self.sock, req, p.parts)
        return frame.recv(self.sock, timeout=PATIENCE_S)[0]

    def params(self, name):
        p = values.Packer()
        frame.send(self.sock, {"op": "params", "values": [{"name": name, "value": p.tree(torch.zeros(4))}]}, p.parts)
        return frame.recv(self.sock, timeout=PATIENCE_S)[0]

    def close(self):
        self.sock.close()
        self.thread.join(20)
        self.other.close()


class Late:
    """An area of a device, which reads later than it says."""

    def __init__(self, blob):
        self.bytes, self.did = blob, []

    @property
    def blob(self):
        self.did.append("read")
        return memoryview(self.bytes)

    def settle(self):
        self.did.append("settled")


class Answers(unittest.TestCase):
    def judge(self, forward="pass"):
        j = Judge(forward)
        self.addCleanup(j.close)
        self.assertEqual(j.ready["op"], "ready")
        return j

    def error(self, head, kind, phase, memory=False):
        got = (head["op"], head.get("type"), head["phase"], head["memory"])
        self.assertEqual(got, ("error", kind, phase, memory), head)
        for name in ("trace", "launches", "findings", "replaced", "device_short", "found"):  # what the judge looks at
            self.assertIn(name, head)

    def test_what_lies_in_an_area_has_been_read_when_there_is_an_answer(self):
        made, was = [], candidate.Session
        with unittest.mock.patch.object(candidate, "Session", lambda sock: made.append(was(sock)) or made[0]):
            j = self.judge()
        p = values.Packer()
        tree = p.tree(torch.full((4,), 3.0))
        late = made[0].room["inputs"] = Late(b"".join(p.parts))
        for req in ({"op": "params", "values": [{"name": "w", "value": tree}]}, {"op": "put", "fresh": [], "inputs": p.tree([])}):
            late.did.clear()
            self.assertEqual(j.ask(dict(req, area=True))["op"], "ok")
            self.assertEqual(late.did, ["read", "settled"], req["op"])
        made[0].room.clear()
        self.assertEqual(j.ask({"op": "run"}, torch.ones(4))["op"], "result")

    def test_the_device_is_asked_for_when_the_model_is_constructed(self):
        did, send, cuda = [], frame.send, torch.nn.Module.cuda

        def sends(sock, head, *parts):
            if threading.current_thread() is not threading.main_thread():
                did.append(head["op"])
            send(sock, head, *parts)

        def moves(model):
            did.append(type(model).__name__)
            return cuda(model)

        patch = unittest.mock.patch.object
        with patch(frame, "send", sends), patch(torch.nn.Module, "cuda", moves):
            j = self.judge()
        self.assertEqual((j.asked, did), ({"op": "device"}, ["device", "ModelNew", "ready"]))

    def test_the_device_is_asked_for_before_its_first_use_and_once(self):
        told, patch = [], unittest.mock.patch.object
        with patch(candidate.device, "before_use", told.append):
            with patch(torch, "ones", lambda n: (told[-1](), told[-1](), torch.zeros(n))[-1]):
                self.assertEqual(self.judge().asked, {"op": "device"})

    def test_everything_is_answered_in_turn(self):
        j = self.judge()
        self.assertEqual(j.params("w")["op"], "ok")
        self.assertEqual(j.ask({"op": "run"}, torch.ones(4))["op"], "result")
        self.assertEqual(j.ask({"op": "put", "fresh": [0]}, torch.ones(4))["op"], "ok")
        self.assertEqual(j.ask({"op": "arm", "slots": 1})["op"], "ok")

    def test_memory_that_runs_out(self):
        j, was = self.judge(), candidate.device.to_device

        def full(t):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 MiB.")

        candidate.device.to_device = full
        self.addCleanup(setattr, candidate.device, "to_device", was)
        for head, phase in ((j.ask({"op": "put", "fresh": [0]}, torch.ones(4)), "put"), (j.params("w"), "params"),
                            (j.ask({"op": "run"}, torch.ones(4)), "run")):
            self.error(head, "OutOfMemoryError", phase, memory=True)
            self.assertIn("7 MiB", head["message"])
        candidate.device.to_device = was
        self.assertEqual(j.ask({"op": "put", "fresh": [0]}, torch.ones(4))["op"], "ok")  # and it goes on

    def test_what_foreign_code_left_behind(self):
        j = self.judge("del self._parameters")
        self.assertEqual(j.ask({"op": "run"}, torch.ones(4))["op"], "result")
        self.assertEqual(j.ask({"op": "put", "fresh": [0]}, torch.ones(4))["op"], "ok")
        self.error(j.ask({"op": "arm", "slots": 1}), "AttributeError", "arm")
        self.error(j.params("w"), "AttributeError", "params")
        self.error(j.ask({"op": "reveal", "slot": 3}), "KeyError", "reveal")

    def test_whether_operators_are_recorded_is_said(self):
        library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
        by_address = f"__import__('ctypes').CDLL({library!r})._ZN2at20enableRecordFunctionEb(0)"
        j = self.judge("None if x[0] > 0 else " + by_address)
        self.assertEqual(j.ask({"op": "run"}, torch.ones(4))["replaced"], [])
        self.assertEqual(j.ask({"op": "run"}, -torch.ones(4))["replaced"], ["the record of operators"])

    def test_names_that_end_the_record_are_gone(self):
        j = self.judge("torch.autograd._enable_record_function(False); torch._C._autograd._clear_callbacks()")
        head = j.ask({"op": "run"}, torch.ones(4))
        self.assertEqual([f["name"] for f in head["findings"]], ["_enable_record_function", "_clear_callbacks"])
        self.assertEqual((head["replaced"], head["trace"]["aten::mul.Tensor"] > 0), ([], True))


if __name__ == "__main__":
    unittest.main()
