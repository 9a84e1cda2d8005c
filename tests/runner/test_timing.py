"""test_timing.py - the timed loop and the baseline side on the host, driven by a judge that is written here anew."""
import ctypes
import gc
import os
import socket
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import torch  # noqa: E402

import baseline  # noqa: E402
import frame  # noqa: E402
import timing  # noqa: E402
import values  # noqa: E402

FORK = "torch"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
MASK = (1 << 64) - 1
PATIENCE_S = 200  # importing torch's compiler takes a minute on a busy machine


def task(forward, init="pass"):
    return (HEAD + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " + init +
            "\n    def forward(self, *x):\n        return " + forward +
            "\n\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n")


class Judge:
    """A judge's end of one baseline, which runs in a thread."""

    def __init__(self, source):
        self.sock, other = socket.socketpair()
        self.thread = threading.Thread(target=baseline.serve, args=(other, None), daemon=True)
        self.other = other
        self.thread.start()
        packer = values.Packer()
        self.ask({"op": "load", "source": source, "init": packer.tree([]), "seed": 0, "mode": "train", "device": "cpu",
                  "tf32": False})

    def ask(self, req, parts=()):
        frame.send(self.sock, req, parts)
        head, blob = frame.recv(self.sock, timeout=PATIENCE_S)
        while head["op"] in ("device", "rest"):  # compiling.py
            if head["op"] == "device":
                frame.send(self.sock, {"op": "go"})
            head, blob = frame.recv(self.sock, timeout=PATIENCE_S)
        if head["op"] == "error":
            raise RuntimeError(f"{head['type']}: {head['message']}")
        return head, blob

    def put(self, inputs):
        packer = values.Packer()
        head, _ = self.ask({"op": "put", "inputs": packer.tree(list(inputs))}, packer.parts)
        self.ask({"op": "arm"})
        return head

    def message(self):
        raw = b""
        while len(raw) < timing.DONE.size:
            raw += self.sock.recv(timing.DONE.size - len(raw))
        return raw

    def block(self, seeds, mode=timing.COLD, which="eager"):
        frame.send(self.sock, {"op": "time", "n": len(seeds), "which": which, "pad_us": 300})
        got = []
        for i, seed in enumerate(seeds):
            magic, index, _, _ = timing.DONE.unpack(self.message())
            if magic == b"MCTE":
                break
            assert magic == b"MCRD" and index == i
            self.sock.sendall(timing.GO.pack(b"MCGO", mode, seed, 0, i))
            magic, index, _, ms = timing.DONE.unpack(self.message())
            if magic == b"MCTE":
                break
            assert magic == b"MCTD" and index == i
            got.append(ms)
        head, _ = frame.recv(self.sock, timeout=PATIENCE_S)
        return got, head

    def close(self):
        self.sock.close()
        self.thread.join(20)
        self.other.close()


class Loop(unittest.TestCase):
    def judge(self, forward, inputs, init="pass"):
        j = Judge(task(forward, init))
        self.addCleanup(j.close)
        self.head = j.put(inputs)
        return j

    def test_a_block(self):
        j = self.judge("torch.tanh(x[0]) @ x[1]", [torch.randn(5, 7), torch.randn(7, 3)])
        got, head = j.block([11, 12, 11, 1 << 63])
        self.assertEqual((head["op"], len(got)), ("timed", 4))
        self.assertTrue(all(ms > 0 for ms in got))
        self.assertGreater(head["host_us"], 0)
        self.assertEqual(len(j.block([1, 2], mode=timing.NULL)[0]), 2)

    def test_draw_keeps_zeros_signs_ranges_layouts_and_whole_numbers(self):
        base = [torch.tril(torch.rand(40, 40)), torch.randint(0, 9, (30,)), torch.randint(0, 2, (30,)).float(),
                torch.randn(6, 4).t(), torch.randn(1, 4).expand(5, 4), torch.randn(6, 3, dtype=torch.complex64),
                torch.rand(64).to(torch.bfloat16), torch.rand(())]
        t = timing.Timer("cpu", lambda x: x)
        p = values.Packer()
        j = self.judge("x[0]", base)
        self.assertEqual(self.head["fresh"], [0, 3, 4, 5, 6, 7])
        t.put_inputs({"inputs": p.tree(base), "fresh": self.head["fresh"]}, b"".join(p.parts))
        seen = []
        for seed in (1, 2):
            with torch.no_grad():
                t.draw(seed)
            seen.append([x.clone() for x in t.given])
            for k, (x, b) in enumerate(zip(t.given, base)):
                self.assertEqual((x.shape, x.stride(), x.dtype), (b.shape, b.stride(), b.dtype))
                if k in (1, 2):
                    self.assertTrue(torch.equal(x, b))
                elif not x.is_complex():
                    self.assertTrue(torch.equal(x == 0, b == 0) and torch.equal(x < 0, b < 0))
                    self.assertTrue(bool((x.abs() <= b.abs()).all()) and bool((x.abs() >= 0.24 * b.abs()).all()))
        for k in (0, 3, 4, 5, 6):
            differ = (seen[0][k] != seen[1][k]) | (base[k] == 0)
            self.assertGreater(differ.float().mean(), 0.9, k)

    def test_equal_seeds_are_equal_data(self):
        t, seen = timing.Timer("cpu", lambda x: x.clone()), []
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(6)]), "fresh": [0]}, b"".join(p.parts))
        t.arm([])
        for seed in (7, 8, 7):
            t.call(lambda x: seen.append(x.clone()) or x, timing.COLD, seed)
        self.assertTrue(torch.equal(seen[0], seen[2]) and not torch.equal(seen[0], seen[1]))

    def test_a_call_that_raises(self):
        j = self.judge("x[0] if float(x[0].sum()) == 10 else x[0].missing", [torch.arange(1.0, 5.0)])
        got, head = j.block([1, 2])
        self.assertEqual((got, head["op"], head["type"]), ([], "error", "AttributeError"))

    def test_a_block_that_cannot_begin(self):
        j = self.judge("x[0]", [torch.arange(1.0, 5.0)])
        with unittest.mock.patch.object(timing.HostDevice, "begin",
                                        side_effect=torch.OutOfMemoryError("the device is full")):
            got, head = j.block([1, 2])
        self.assertEqual((got, head["op"], head["type"], head["memory"]), ([], "error", "OutOfMemoryError", True))
        self.assertEqual(len(j.block([1, 2])[0]), 2)

    def test_facts(self):
        def facts(forward, inputs, init="pass"):
            self.judge(forward, inputs, init=init)
            return self.head["facts"]

        f = facts("x[0] @ x[1]", [torch.randn(8, 16), torch.randn(16, 4)])
        self.assertEqual((f["flops"], f["one_library_call"], f["bytes_read"], f["bytes_written"]),
                         (2 * 8 * 16 * 4, True, 4 * (128 + 64), 4 * 32))
        f = facts("torch.relu(x[0] @ x[1])", [torch.randn(8, 16), torch.randn(16, 4)])
        self.assertFalse(f["one_library_call"])
        self.assertTrue(facts("torch.softmax(x[0], -1)", [torch.randn(8, 16)])["one_library_call"])
        self.assertFalse(facts("x[0].t()", [torch.randn(8, 16)])["one_library_call"])
        f = facts("self.c(x[0])", [torch.randn(2, 3, 8, 8)], init="self.c = nn.Conv2d(3, 4, 3)")
        self.assertEqual((f["flops"], f["one_library_call"]), (2 * 2 * 4 * 6 * 6 * 27, True))
        self.assertEqual(f["bytes_read"], 4 * (2 * 3 * 64 + 4 * 27 + 4))
        f = facts("x[0] + x[1]", [torch.randn(1, 64).expand(8, 64), torch.randn(8, 64)])
        self.assertEqual(f["bytes_read"], 4 * (64 + 512))  # an expanded row is read once

    def test_compiled_baseline_fails_by_name(self):
        j = self.judge("x[0] + 1", [torch.rand(4)])
        with self.assertRaisesRegex(RuntimeError, "RuntimeError|Error"):
            j.ask({"op": "compile", "mode": "no such mode"})
        self.assertEqual(j.block([1])[1]["op"], "timed")  # and eager goes on


class Host(timing.HostDevice):
    """Writes down what is asked of the device, in order."""

    def __init__(self, log):
        for name in ("begin", "pad", "wipe", "sync", "empty_kernel"):
            setattr(self, name, lambda *args, name=name: log.append((name, *args)))
        self.log = log

    def record(self, which):
        self.log.append(("record", which))
        return super().record(which)


class Order(unittest.TestCase):
    def timer(self):
        log = []
        t = timing.Timer("cpu", lambda x: x.clone())
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(64)]), "fresh": [0]}, b"".join(p.parts))
        t.arm([])
        t.device, draw = Host(log), t.draw
        t.draw = lambda seed: (log.append(("draw",)), draw(seed))
        return t, log

    def test_the_device_is_busy_before_the_data_are_drawn_and_never_after(self):
        """What runs beside the stream then finds the data of the call before."""
        t, log = self.timer()
        model = lambda x: (log.append(("forward",)), x + 1)[1]  # noqa: E731
        around = [("pad", 300), ("draw",)], [("record", 0), ("forward",), ("record", 1)]
        empty = ("record", 0), ("empty_kernel",), ("record", 1)
        for mode, want in ((timing.COLD, [*around[0], ("wipe",), *around[1], ("sync",)]),
                           (timing.NULL, [*around[0], ("wipe",), *empty, ("sync",)])):
            del log[:]
            t.call(model, mode, 5, 300)
            self.assertEqual(log[:len(want)], want)
            self.assertNotIn("pad", [name for name, *_ in log[len(want):]])

    def test_a_block_pads_every_call_and_says_how_long_its_host_needed(self):
        t, log = self.timer()
        a, b = socket.socketpair()
        self.addCleanup(a.close)
        self.addCleanup(b.close)
        for i in range(3):  # the judge's messages may lie there before they are waited for
            a.sendall(timing.GO.pack(b"MCGO", timing.COLD, i, 0, i))
        naps = [0.0, 0.02, 0.02]
        host_us = t.serve(b, lambda x: (__import__("time").sleep(naps.pop()), x + 1)[1], {"n": 3, "pad_us": 700})
        self.assertEqual([e for e in log if e[0] == "pad"], [("pad", 700)] * 3)
        self.assertTrue(20e3 <= host_us < 10e6, host_us)  # the median of the calls

    def test_garbage_is_collected_between_calls_and_not_in_them(self):
        t, log = self.timer()
        a, b = socket.socketpair()
        self.addCleanup(a.close)
        self.addCleanup(b.close)

        class Loop:
            alive = 0

            def __init__(self):
                self.me = self
                Loop.alive += 1

            def __del__(self):
                Loop.alive -= 1

        seen = []

        def model(x):
            seen.append((gc.isenabled(), Loop.alive))
            for _ in range(2000):  # would collect several times, were it on
                Loop()
            seen.append((gc.isenabled(), Loop.alive))
            if len(seen) > 4:
                raise ValueError("no more")
            return x + 1

        for i in range(3):
            a.sendall(timing.GO.pack(b"MCGO", timing.COLD, i, 0, i))
        self.assertTrue(gc.isenabled())
        self.assertRaises(ValueError, t.serve, b, model, {"n": 3, "pad_us": 300})
        self.assertEqual(seen, [(False, 0), (False, 2000)] * 3)
        self.assertTrue(gc.isenabled())  # also after a call that raised


class Driver:
    """Takes what the driver would: functions are handles in the order in which they are asked for."""

    def __init__(self):
        c = ctypes.c_void_p
        self.names, self.launched = [], []

        def function(ret, module, name):
            self.names.append(name.decode())
            ctypes.c_void_p.from_address(ret).value = len(self.names)
            return 0

        def launch(f, *args):
            pointers = ctypes.cast(args[8], ctypes.POINTER(ctypes.c_void_p))
            value = ctypes.c_uint64.from_address(pointers[0]).value
            self.launched.append((self.names[f - 1], args[:6], args[7], value))
            return 0

        self.cuModuleLoadData = ctypes.CFUNCTYPE(ctypes.c_int, c, ctypes.c_char_p)(lambda m, text: 0)
        self.cuModuleGetFunction = ctypes.CFUNCTYPE(ctypes.c_int, c, c, ctypes.c_char_p)(function)
        self.cuLaunchKernel = ctypes.CFUNCTYPE(ctypes.c_int, c, *[ctypes.c_uint] * 7, c, c, c)(launch)


class Image(unittest.TestCase):
    def test_a_pad_is_one_thread_on_the_legacy_stream_for_that_long(self):
        d, driver = timing.CudaDevice(), Driver()
        d.kernels = timing.Kernels(driver, b"image", "cpu")
        for us in (300, 1000):
            d.pad(us)
        self.assertEqual(driver.launched, [("timing_spin", (1,) * 6, None, us * 1000) for us in (300, 1000)])

    def test_without_an_image_a_pad_is_torchs_sleep_for_about_as_long(self):
        d, naps, sleep = timing.CudaDevice(), [], timing.CudaDevice._sleep
        d.kernels, timing.CudaDevice._sleep = None, staticmethod(naps.append)
        try:
            d.pad(300)
        finally:
            timing.CudaDevice._sleep = staticmethod(sleep) if sleep else None
        self.assertTrue(len(naps) == 1 and 300e-6 * 1.4e9 < naps[0] < 300e-6 * 2.5e9 and isinstance(naps[0], int))

    def test_it_has_every_kernel_that_the_loop_launches(self):
        text = timing.image()
        if text is None:
            self.skipTest("built without nvcc")
        draws = [b"timing_draw_" + n.encode() for n in timing.Kernels.DRAW.values()]
        for name in [b"timing_spin", *draws]:
            self.assertIn(b".text." + name + b"\0", text)


if __name__ == "__main__":
    unittest.main()
