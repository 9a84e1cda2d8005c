"""test_timing.py - the timed loop and the baseline side on the host, driven by a judge that is written here anew."""
import ctypes
import gc
import os
import socket
import struct
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

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
MASK = (1 << 64) - 1
PATIENCE_S = 200  # importing torch's compiler takes a minute on a busy machine


def task(forward, init="pass"):
    return (HEAD + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " + init +
            "\n    def forward(self, *x):\n        return " + forward +
            "\n\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n")


def checksum(tree, blob):
    """The commitment, from the definition in src/eval/timing.h, one word at a time."""
    total, i, k = 0, 0, 0
    def mix(h):
        h = h * 0xBF58476D1CE4E5B9 & MASK
        return (h ^ h >> 32) * 0x94D049BB133111EB & MASK

    def walk(v):
        nonlocal total, i, k
        if isinstance(v, dict) and v.get("t") == "tensor":
            raw = bytes(blob[v["offset"]:v["offset"] + v["nbytes"]])
            for at in range(0, len(raw), 8):
                i += 1
                word = int.from_bytes(raw[at:at + 8].ljust(8, b"\0"), "little")
                total += mix(word ^ i * 0x9E3779B97F4A7C15 & MASK)
        elif isinstance(v, dict) and v["t"] == "dict":
            for _, x in v["v"]:
                walk(x)
        elif isinstance(v, dict):
            for x in v["v"]:
                walk(x)
        elif isinstance(v, (int, float)):
            k += 1
            total += mix(struct.unpack("<Q", struct.pack("<d", float(v)))[0] ^ k * 0x9E3779B97F4A7C15 & MASK)

    walk(tree)
    return total & MASK


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

    def put(self, inputs, slots=0, **more):
        packer = values.Packer()
        head, _ = self.ask({"op": "put", "inputs": packer.tree(list(inputs)), **more}, packer.parts)
        self.ask({"op": "arm", "slots": slots})
        return head

    def message(self):
        raw = b""
        while len(raw) < timing.DONE.size:
            raw += self.sock.recv(timing.DONE.size - len(raw))
        return raw

    def block(self, seeds, mode=timing.COLD, slot=0, which="eager"):
        frame.send(self.sock, {"op": "time", "n": len(seeds), "which": which, "pad_us": 300})
        got = []
        for i, seed in enumerate(seeds):
            magic, index, _, _ = timing.DONE.unpack(self.message())
            if magic == b"MCTE":
                break
            assert magic == b"MCRD" and index == i
            self.sock.sendall(timing.GO.pack(b"MCGO", mode, seed, slot + i, i))
            magic, index, h, ms = timing.DONE.unpack(self.message())
            if magic == b"MCTE":
                break
            assert magic == b"MCTD" and index == i
            got.append((h, ms))
        head, _ = frame.recv(self.sock, timeout=PATIENCE_S)
        return got, head

    def expect(self, seed, oracle=True):
        head, blob = self.ask({"op": "expect", "seed": str(seed), "oracle": oracle})
        head = head["draw"]
        return [values.decode(s["tree"], blob[s["at"]:s["at"] + s["nbytes"]]) for s in (head["eager"], head["oracle"])], head

    def close(self):
        self.sock.close()
        self.thread.join(20)
        self.other.close()


class Loop(unittest.TestCase):
    def judge(self, forward, inputs, slots=0, init="pass"):
        j = Judge(task(forward, init))
        self.addCleanup(j.close)
        self.head = j.put(inputs, slots)
        return j

    def test_every_call_has_data_of_its_own_and_the_expected_side_knows_it(self):
        j = self.judge("torch.tanh(x[0]) @ x[1]", [torch.randn(5, 7), torch.randn(7, 3)])
        got, head = j.block([11, 12, 11, 1 << 63])
        self.assertEqual(head["op"], "timed")
        self.assertEqual(got[0][0], got[2][0])  # same seed, same data, same output
        self.assertEqual(len({h for h, _ in got}), 3)
        self.assertTrue(all(ms > 0 for _, ms in got))
        (eager, oracle), head = j.expect(12)
        p = values.Packer()
        self.assertEqual(checksum(p.tree(eager), b"".join(p.parts)), got[1][0])
        self.assertEqual(oracle.dtype, torch.float64)
        self.assertTrue(torch.allclose(eager.double(), oracle, atol=1e-5))
        self.assertGreater(head["noise"][0]["n1"], 0)

    def test_a_large_task_is_compared_with_its_own_precision_and_the_noise_of_its_base(self):
        j = self.judge("x[0] @ x[1] * 3", [torch.randn(6, 50), torch.randn(50, 4)])
        (_, oracle), head = j.expect(12)
        told = [dict(head["noise"][0], max_abs=1000.0, n1=2.0, n2=3.0)]
        j.put([torch.randn(6, 50), torch.randn(50, 4)], noise=told)
        self.assertEqual(j.expect(12)[0][1].dtype, torch.float64)  # it is small
        with unittest.mock.patch.object(baseline.reference, "LARGE", 290):
            got, _ = j.block([12])
            (eager, oracle), head = j.expect(12)
            self.assertEqual(head["eager"], head["oracle"])  # the same bytes
            p = values.Packer()
            self.assertEqual(checksum(p.tree(eager), b"".join(p.parts)), got[0][0])
            self.assertAlmostEqual(head["noise"][0]["max_abs"], float(eager.abs().max()))
            self.assertEqual([head["noise"][0][k] for k in ("n1", "n2")], [0.5, 0.75])  # a quarter: no less
            self.assertEqual(head["noise"][0]["fan_in"], told[0]["fan_in"])
            j.put([torch.randn(6, 50), torch.randn(50, 4)], noise=told * 2)
            self.assertEqual(j.expect(12)[0][1].dtype, torch.float64)  # of other outputs
            j.put([torch.randn(6, 50), torch.randn(50, 4)])
            self.assertEqual(j.expect(12)[0][1].dtype, torch.float64)

    def test_noise_follows_the_size_of_answers(self):
        row = {"n1": 1.0, "n2": 2.0, "fan_in": 7.0, "max_abs": 10.0, "dtype": "float32"}
        for top, n1 in ((10.0, 1.0), (5.0, 0.5), (40.0, 4.0), (0.125, 0.25), (0.0, 0.25)):
            new = baseline.noise_here([row], [torch.tensor([0.0, -top])])
            self.assertEqual(new, [dict(row, n1=n1, n2=2 * n1, max_abs=top)])
        for was in (0.0, "inf", "nan"):
            new = baseline.noise_here([dict(row, max_abs=was)], [torch.tensor([3.0])])
            self.assertEqual(new, [dict(row, max_abs=3.0)])

    def test_no_memory_for_the_oracle_is_no_expected_answer(self):
        """Without its noise honest answers would be wrong."""
        full = "(_ for _ in ()).throw(torch.OutOfMemoryError('full'))"
        j = self.judge("x[0] if x[0].dtype == torch.float32 else " + full, [torch.rand(4)])
        self.assertRaisesRegex(RuntimeError, "OutOfMemoryError: full", j.expect, 3)
        j = self.judge("x[0] if x[0].dtype == torch.float32 else x[0].missing", [torch.rand(4)])
        self.assertEqual(j.expect(3)[0][1].dtype, torch.float32)

    def test_commitment_covers_every_byte_of_every_kind_of_output(self):
        outs = ("[x[0].half()[:, 1:], {'a': x[0] > 0, 'b': 3}, (x[0].to(torch.int64), 0.5), x[0].t(), torch.complex(x[0], x[0]), "
                "x[0].to(torch.bfloat16), x[0][:0], None]")
        j = self.judge(outs, [torch.randn(3, 5)])
        got, _ = j.block([5])
        (eager, _), _ = j.expect(5, oracle=False)
        p = values.Packer()
        tree = p.tree(eager)
        blob = b"".join(p.parts)
        self.assertEqual(checksum(tree, blob), got[0][0])
        for at in {0, 1, 17, len(blob) - 57}:  # one bit anywhere else than in padding changes it
            bad = bytearray(blob)
            bad[at] ^= 1
            inside = any(d["offset"] <= at < d["offset"] + d["nbytes"] for d in self.tensors(tree))
            self.assertEqual(checksum(tree, bad) == got[0][0], not inside, at)

    def tensors(self, v):
        if isinstance(v, dict) and v.get("t") == "tensor":
            return [v]
        rows = v["v"] if isinstance(v, dict) else v if isinstance(v, list) else []
        return [t for x in rows for t in self.tensors(x)]

    def test_draw_keeps_zeros_signs_ranges_layouts_and_whole_numbers(self):
        base = [torch.tril(torch.rand(40, 40)), torch.randint(0, 9, (30,)), torch.randint(0, 2, (30,)).float(),
                torch.randn(6, 4).t(), torch.randn(1, 4).expand(5, 4), torch.randn(6, 3, dtype=torch.complex64),
                torch.rand(64).to(torch.bfloat16), torch.rand(())]
        t = timing.Timer("cpu", lambda x: x, lambda x: x)
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

    def test_outputs_are_kept(self):
        seen = []
        t = timing.Timer("cpu", lambda x: x.clone(), lambda x: x)
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(6)]), "fresh": [0]}, b"".join(p.parts))
        t.arm(2, [])

        def model(x):
            seen.append(x * 2)
            return seen[-1]

        hashes = [t.call(model, timing.COLD, s, s)[0] for s in (0, 1, 2)]  # the third is not kept
        for s in (0, 1):
            head, parts = t.reveal(s)
            self.assertEqual(checksum(head["output"], b"".join(parts)), hashes[s])
            self.assertEqual(head["on_host"], [])
        self.assertNotIn(2, t.kept)
        self.assertTrue(torch.equal(values.decode(t.reveal(1)[0]["output"], b"".join(t.reveal(1)[1])), seen[1]))
        self.assertFalse(any(bool(torch.isnan(x).any()) for x in seen))  # host memory is nobody's pool

    def test_room_is_made_before_calls_that_count_and_given_back_after_them(self):
        """A slow side is not warmed up once more before its first call that counts."""
        t, back = timing.Timer("cpu", lambda x: x.clone(), lambda x: x), []
        t.give_back = back.append
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(6)]), "fresh": [0]}, b"".join(p.parts))
        t.arm(0, [])
        t.call(lambda x: x * 2, timing.COLD, 1, MASK >> 32)
        self.assertEqual((t.area, back), (None, []))
        t.arm(2, [])
        self.assertEqual(tuple(t.area.shape), (2, 3))
        at = t.area.data_ptr()
        t.call(lambda x: x * 2, timing.COLD, 1, 1)
        self.assertEqual(t.area.data_ptr(), at)
        t.arm(0, [])
        self.assertEqual((t.area, t.scratch, back), (None, None, [at]))
        t.arm(3, [])  # how large they were is forgotten with them
        self.assertIsNone(t.area)

    def test_a_call_that_raises(self):
        j = self.judge("x[0] if float(x[0].sum()) == 10 else x[0].missing", [torch.arange(1.0, 5.0)])
        got, head = j.block([1, 2])
        self.assertEqual((got, head["op"], head["type"]), ([], "error", "AttributeError"))
        self.assertRaisesRegex(RuntimeError, "AttributeError", j.expect, 3)

    def test_a_block_that_cannot_begin(self):
        j = self.judge("x[0]", [torch.arange(1.0, 5.0)])
        with unittest.mock.patch.object(timing.HostDevice, "begin", side_effect=torch.OutOfMemoryError("the device is full")):
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

    def test_stateful_reference_is_expected_from_its_first_state(self):
        j = self.judge("self.bn(x[0])", [torch.randn(16, 3)], init="self.bn = nn.BatchNorm1d(3)")
        got, _ = j.block([4, 5, 6])
        (eager, _), _ = j.expect(5)
        p = values.Packer()
        self.assertEqual(checksum(p.tree(eager), b"".join(p.parts)), got[1][0])


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
        t = timing.Timer("cpu", lambda x: x.clone(), lambda x: x)
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(64)]), "fresh": [0]}, b"".join(p.parts))
        t.arm(0, [])
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
                           (timing.WARM, [*around[0], *around[1]]),
                           (timing.NULL, [*around[0], ("wipe",), *empty, ("sync",)])):
            del log[:]
            t.call(model, mode, 5, 9, 300)
            self.assertEqual(log[:len(want)], want)
            self.assertNotIn("pad", [name for name, *_ in log[len(want):]])

    def test_a_block_pads_every_call_and_says_how_long_its_host_needed(self):
        t, log = self.timer()
        a, b = socket.socketpair()
        self.addCleanup(a.close)
        self.addCleanup(b.close)
        for i in range(3):  # the judge's messages may lie there before they are waited for
            a.sendall(timing.GO.pack(b"MCGO", timing.COLD, i, 9, i))
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
            a.sendall(timing.GO.pack(b"MCGO", timing.COLD, i, 9, i))
        self.assertTrue(gc.isenabled())
        self.assertRaises(ValueError, t.serve, b, model, {"n": 3, "pad_us": 300})
        self.assertEqual(seen, [(False, 0), (False, 2000)] * 3)
        self.assertTrue(gc.isenabled())  # also after a call that raised


class Driver:
    """Takes what the driver would: functions are handles in the order in which they are asked for."""

    def __init__(self):
        c, size = ctypes.c_void_p, ctypes.c_size_t
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
        self.cuMemsetD32Async = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint, size, c)(lambda *a: 0)
        self.cuMemcpyDtoH_v2 = ctypes.CFUNCTYPE(ctypes.c_int, c, ctypes.c_uint64, size)(lambda *a: 0)


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
        for name in [b"timing_spin", b"timing_commit", *draws]:
            self.assertIn(b".text." + name + b"\0", text)


class Tamper(unittest.TestCase):
    def test_events_are_not_looked_up_when_foreign_code_could_have_changed_them(self):
        """What Python code can replace: the loop must not read it after import."""
        t = timing.Timer("cpu", lambda x: x.clone(), lambda x: x)
        p = values.Packer()
        t.put_inputs({"inputs": p.tree([torch.rand(64)]), "fresh": [0]}, b"".join(p.parts))
        t.arm(0, [])
        plain = t.call(lambda x: x + 1, timing.COLD, 3, 9)[0]
        import time
        saved = time.perf_counter, torch.Tensor.uniform_, torch.Tensor.copy_, torch.Tensor.mul_
        try:
            time.perf_counter = lambda: 0.0
            torch.Tensor.uniform_ = lambda self, *a, **k: self
            torch.Tensor.copy_ = lambda self, *a, **k: self
            torch.Tensor.mul_ = lambda self, *a, **k: self
            h, ms, _ = t.call(lambda x: x + 1, timing.COLD, 3, 9)
        finally:
            time.perf_counter, torch.Tensor.uniform_, torch.Tensor.copy_, torch.Tensor.mul_ = saved
        self.assertGreater(ms, 0)
        self.assertEqual(h, plain)

    def test_cuda_uses_types_that_python_cannot_change(self):
        event = timing.CudaDevice._Event
        if event is None:
            self.skipTest("this torch has no CUDA")
        with self.assertRaises(TypeError):
            event.elapsed_time = lambda *a: 0


if __name__ == "__main__":
    unittest.main()
