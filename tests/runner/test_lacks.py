"""test_lacks.py - what this judge does not have, in a candidate's process: each name of torch's own cpp_extension is
there, or says by itself that it is lacking; packages of other languages; headers that a program wrote; ambiguous tasks.
"""
import importlib.util
import inspect
import os
import sys
import tempfile
import unittest

import torch
import torch.utils.cpp_extension as real  # before the stand-in takes its place

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "runner"))
import native  # noqa: E402
import ops  # noqa: E402
from native import extension, headers, lacks, module  # noqa: E402

FORK = "torch"
NAMES = [n for n in dir(real) if not n.startswith("__")]


class StandIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        extension.put_in_place()

    def test_each_name_works_or_is_lacking(self):
        ours = sys.modules["torch.utils.cpp_extension"]
        self.assertIsNot(ours, real)
        self.assertGreater(len(NAMES), 80)
        for name in NAMES:
            getattr(ours, name)  # AttributeError where it is not there
        for name in ("_jit_compile", "_write_ninja_file", "_run_ninja_build"):
            with self.assertRaises(NotImplementedError) as caught:
                getattr(ours, name)()
            self.assertEqual(lacks.of(caught.exception), (lacks.TORCH, "torch.utils.cpp_extension." + name))
        with self.assertRaises(AttributeError):
            ours.no_such_name

    def test_each_argument_is_torchs_own(self):
        """A program may name any of them; one that cannot be had is lacking, no TypeError."""
        for name in ("load", "load_inline"):
            own, theirs = (list(inspect.signature(getattr(m, name)).parameters) for m in (extension, real))
            self.assertEqual(own[:len(theirs)], theirs, name)
        with self.assertRaises(NotImplementedError) as caught:
            extension.load("k", [], is_standalone=True)
        self.assertEqual(lacks.of(caught.exception)[0], lacks.TORCH)

    def test_torch_musa_can_be_looked_for(self):
        self.assertIsNotNone(importlib.util.find_spec("torch_musa"))
        import torch_musa.utils.musa_extension as musa
        self.assertTrue(callable(musa.load_inline))


class Lacks(unittest.TestCase):
    def test_words_of_a_process_without_a_driver(self):
        for e, code in ((RuntimeError("Found no NVIDIA driver on your system."), lacks.TORCH),
                        (AssertionError("Torch not compiled with CUDA enabled"), lacks.TORCH),
                        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), lacks.LANGUAGE),
                        (ModuleNotFoundError("No module named 'triton.language'", name="triton.language"),
                         lacks.LANGUAGE)):
            self.assertEqual(lacks.of(e)[0], code, e)
        for e in (RuntimeError("shape mismatch"), ModuleNotFoundError("No module named 'fast_relu'", name="fast_relu"),
                  ValueError("Found no NVIDIA driver"), KeyError("triton")):
            self.assertIsNone(lacks.of(e), e)

    def test_what_an_error_came_from(self):
        try:
            try:
                lacks.function("torch.x")()
            except NotImplementedError as e:
                raise KeyError("later") from e
        except KeyError as e:
            self.assertEqual(lacks.of(e), (lacks.TORCH, "torch.x"))

    def test_a_library_that_is_too_old_is_the_machines(self):
        self.assertTrue(module._unfit("libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by module.so)"))
        self.assertFalse(module._unfit("module.so: undefined symbol: _Z3fooi"))
        self.assertTrue(issubclass(native.DeviceError, RuntimeError))


class Headers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.write("a.h", '#pragma once\n#include "b.h"\nint a;')
        self.write("b.h", "int b;")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as f:
            f.write(text)

    def put(self, text):
        return headers.put_in([text], [self.folder.name], "cuda_source")[0]

    def test_text_and_lines(self):
        got = self.put('first\n#include "a.h"\nthird')
        self.assertEqual(got, 'first\n#line 1 "a.h"\n#pragma once\n#line 1 "b.h"\nint b;\n#line 3 "a.h"\nint a;\n'
                              '#line 3 "cuda_source"\nthird')

    def test_once(self):
        self.assertEqual(self.put('#include "a.h"\n#include <a.h>\n').count("int a;"), 1)

    def test_beside_another_folder(self):
        os.mkdir(os.path.join(self.folder.name, "sub"))
        self.write("sub/c.h", '#include "../b.h"\n#include "./../a.h"')
        got = self.put('#include "sub/c.h"\n#include "a.h"')
        self.assertEqual((got.count("int a;"), got.count("int b;")), (1, 2))

    def test_what_is_not_there_stays(self):
        for text in ("#include <vector>\n", '#include "../a.h"\n', '#include "/etc/passwd"\n', "// a.h\n"):
            self.assertEqual(self.put(text), text)


class Ambiguous(unittest.TestCase):
    def found(self, f):
        with ops.Ambiguous() as a:
            f()
        return a.found

    def test_writes(self):
        x, twice, once = torch.zeros(4, 2), torch.tensor([1, 1]), torch.tensor([1, 2])
        rows, same = torch.tensor([[1.0, 2], [3, 4]]), torch.ones(2, 2)
        self.assertEqual(self.found(lambda: x.index_copy(0, twice, rows)), "index_copy")
        self.assertIsNone(self.found(lambda: x.index_copy(0, once, rows)))
        self.assertIsNone(self.found(lambda: x.index_copy(0, twice, same)))
        self.assertIsNone(self.found(lambda: x.index_add(0, twice, rows)))
        index = torch.tensor([[1, 0], [1, 2]])
        self.assertEqual(self.found(lambda: x.scatter(0, index, rows)), "scatter")
        self.assertIsNone(self.found(lambda: x.scatter(0, index, 5.0)))
        self.assertIsNone(self.found(lambda: x.scatter(1, torch.tensor([[0, 1], [1, 0]]), rows)))
        self.assertIsNone(self.found(lambda: x.scatter_add(0, index, rows)))
        self.assertIsNotNone(self.found(lambda: x.index_put((twice,), rows)))
        self.assertIsNone(self.found(lambda: x.index_put((twice,), rows, accumulate=True)))
        self.assertIsNone(self.found(lambda: x.clone().__setitem__(x > 0, 1.0)))


class Asserted(unittest.TestCase):
    """What a kernel of PyTorch on a card would assert is an exception before it runs."""

    def refused(self, call):
        with self.assertRaisesRegex(RuntimeError, "a value out of range"), ops.Asserted():
            call()

    def test_out_of_range(self):
        x, i = torch.rand(4, 5), torch.tensor([0, 4, 2])
        f = torch.nn.functional
        for call in (lambda: f.binary_cross_entropy(x + 1, x), lambda: f.binary_cross_entropy(x, x - 1),
                     lambda: x.index_select(1, i + 1), lambda: x[:, i + 1], lambda: f.embedding(i, x[:3]),
                     lambda: f.cross_entropy(x, torch.tensor([0, 5, 1, 1])), lambda: x.gather(1, i[1:2, None]
                     .expand(4, 1) + 1), lambda: x.index_put((i + 2,), torch.ones(3, 5))):
            self.refused(call)

    def test_in_range(self):
        x, i = torch.rand(4, 5), torch.tensor([0, 4, 2])
        f = torch.nn.functional
        with ops.Asserted():
            f.binary_cross_entropy(x, x)
            f.cross_entropy(x, torch.tensor([0, 4, 1, -100]))
            f.embedding(i, x.t())
            self.assertTrue(torch.equal(x[:, -i - 1], x.flip(1)[:, i]))
            self.assertEqual(x[torch.tensor([True, False, True, True]), :].shape, (3, 5))

    def test_who_watches_sees_the_task_alone(self):
        x = torch.rand(4, 5)

        def call():
            with ops.Asserted():
                torch.nn.functional.binary_cross_entropy(x, x)

        self.assertEqual(set(ops.record(call)[0]), {"aten::binary_cross_entropy"})


if __name__ == "__main__":
    unittest.main()
