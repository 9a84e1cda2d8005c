"""The simulated device as a candidate sees it: tensors, torch.cuda, load_inline, findings, the dispatch trace."""
import concurrent.futures
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
sys.path.insert(0, os.path.join(ROOT, "runner"))

import native  # noqa: E402
import sim  # noqa: E402


def build(request):
    tool = os.path.join(BUILD, "tests", "litetorch", "test_build")
    p = subprocess.run([tool, "build"], input=json.dumps(request).encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(p.stdout)


sim.preload()
sim.install(build)

import torch  # noqa: E402
from torch.utils.cpp_extension import load_inline  # noqa: E402

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAException.h>
#include <cub/cub.cuh>
template <typename T>
__global__ void scale(const T *x, T *y, double a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = T(float(x[i]) * float(a));
}
__global__ void past(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = x[i];                                    // line 14
}
__global__ void packed(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> a) {
    a[threadIdx.y][threadIdx.x] = float(a.size(1) * threadIdx.y + threadIdx.x);
}
torch::Tensor run(torch::Tensor x, double a) {
    TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
    TORCH_CHECK_VALUE(a < 100, "a too large: ", a);
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto y = torch::empty_like(x);
    int n = x.numel();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "run", ([&] {
        scale<scalar_t><<<(n + 63) / 64, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), a, n);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
torch::Tensor bad(torch::Tensor x, int64_t k) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    if (k == 0) past<<<(n + 64) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    if (k == 1) y.data_ptr<float>()[0] = 1;                     // line 36
    if (k == 2) return torch::matmul(x, y);                     // line 37
    if (k == 3) return 2.0 * x;                                 // line 38
    if (k == 4) return x.sum({0}, true);                        // line 39
    if (k == 5) throw std::out_of_range("from C++");
    if (k == 6) past<<<1, 2048>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
torch::Tensor views(torch::Tensor x) {
    auto y = x.transpose(0, 1).contiguous().view({-1}).narrow(0, 1, 4).clone();
    return y.to(torch::kInt64).unsqueeze(0).expand({3, 4});
}
torch::Tensor make(std::vector<int64_t> s, std::string kind) {
    auto o = torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA, 0);
    if (kind == "accessor") {
        auto a = torch::zeros({3, 4}, o);
        packed<<<1, dim3(4, 3)>>>(a.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
        return a;
    }
    return kind == "full" ? torch::full(s, 2.5, o) : kind == "ones" ? torch::ones(s, o) : torch::empty(s, o);
}
std::vector<torch::Tensor> many(std::vector<torch::Tensor> ts, c10::optional<torch::Tensor> extra) {
    std::vector<torch::Tensor> r(ts.rbegin(), ts.rend());
    if (extra.has_value()) r.push_back(extra.value());
    return r;
}
std::tuple<torch::Tensor, int64_t, double, bool, std::string> mixed(torch::Tensor x, bool b, at::Scalar s) {
    return {x, x.size(-1), s.toDouble(), b, "text"};
}
__global__ void collectives(const float *x, float *y) {
    using R = cub::BlockReduce<float, 96>;
    using S = cub::BlockScan<float, 96>;
    __shared__ typename R::TempStorage r;
    __shared__ typename S::TempStorage s;
    __shared__ typename cub::WarpReduce<float>::TempStorage w[3];
    float v = x[threadIdx.x], sum = R(r).Sum(v), scan;
    S(s).InclusiveSum(v, scan);
    float warp = cub::WarpReduce<float>(w[threadIdx.x / 32]).Reduce(v, cub::Max());
    y[threadIdx.x] = scan;
    if (threadIdx.x == 0) y[96] = sum;
    if (threadIdx.x % 32 == 0) y[97 + threadIdx.x / 32] = warp;
}
torch::Tensor cubs(torch::Tensor x) {
    auto y = torch::empty({100}, x.options());
    collectives<<<1, 96>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
double item(torch::Tensor x) { return x.item<float>(); }
void fill(torch::Tensor &x, float v) { x.fill_(v); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("run", &run, "scales", py::arg("x"), py::arg("a") = 2.0);
    m.def("bad", &bad);
    m.def("views", &views);
    m.def("make", &make, py::arg("s"), py::arg("kind") = "empty");
    m.def("many", &many, py::arg("ts"), py::arg("extra") = py::none());
    m.def("mixed", &mixed);
    m.def("cubs", &cubs);
    m.def("item", &item);
    m.def("fill", &fill);
    m.def("lambda", [](torch::Tensor x, int n) { return x.dim() + n; });
}
"""
ext = load_inline(name="test_ext", cpp_sources="", cuda_sources=SOURCE)


def findings():
    return sim.take_findings()


def watched(f):
    sim.trace.start()  # torch's operators are seen by the trace
    sim.watch("record")
    try:
        f()
    finally:
        seen = sim.watched()
    return seen


class Watched(unittest.TestCase):
    """What the host hands the device in one call: litetorch/runtime/watch.cc."""

    def test_an_honest_call_leaves_the_same_records(self):
        x = torch.randn(16, device="cuda")
        a = watched(lambda: ext.run(x, 3.0))
        sim.refill(x, torch.randn(16))
        b = watched(lambda: ext.run(x, 3.0))
        self.assertEqual(a, b)
        self.assertEqual([r.split("\t")[0] for r in a["records"]], ["aten", "launch"])
        name, fields = a["records"][1].split("\t")[1], a["records"][1].split("\t")[2:]
        self.assertTrue(name.startswith("scale"))
        self.assertEqual(fields[:3], ["grid:24=1.1.1", "block:24=40.1.1", "shared:8=0"])
        self.assertEqual(fields[3], f"a0:8={x.data_ptr():x}")
        self.assertEqual(fields[4:], ["a1:8=#0+0", "a2:8=4008000000000000", "a3:4=10"])

    def test_arguments_copies_and_reads(self):
        x = torch.ones(4, device="cuda")
        seen = watched(lambda: torch.tensor([1.0, 2.0, 3.0, 4.0]).cuda())
        self.assertIn("3f800000", "".join(seen["records"]).replace("400000003f800000", "3f800000"))
        self.assertEqual(watched(lambda: x[1].item())["read"], 4)

    def test_what_the_host_writes_behind_the_device(self):
        x = torch.ones(64, device="cuda")
        lib = sim.core._lib
        lib.arena_to_host.restype, lib.arena_to_host.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        raw = (ctypes.c_float * 64).from_address(lib.arena_to_host(x.data_ptr()))

        def call():
            ext.run(x, 1.0)
            raw[3] = 5.0
            ext.run(x, 1.0)
            raw[63] = 6.0
        rows = [r.split("\t") for r in watched(call)["records"] if r.startswith("wrote\t")]
        self.assertEqual([r[1:] for r in rows], [[f"device memory at {x.data_ptr():x}", "at8:8=40a000003f800000"],
                                                 [f"device memory at {x.data_ptr():x}", "atf8:8=40c000003f800000"]])


class Tensors(unittest.TestCase):
    def test_device(self):
        x = torch.randn(3, 4, device="cuda")
        self.assertEqual(str(x.device), "cuda:0")
        self.assertTrue(x.is_cuda and x.cuda().is_cuda and x.to("cuda").is_cuda and not x.cpu().is_cuda)
        self.assertIn("cuda:0", repr(x))
        self.assertEqual(x.get_device(), 0)

    def test_results_and_views_stay(self):
        x = torch.arange(12.0).reshape(3, 4).cuda()
        v = x[1:].t()
        self.assertTrue((x + 1).is_cuda and v.is_cuda and x.sum().is_cuda and torch.zeros_like(x).is_cuda)
        v.fill_(7)
        self.assertEqual(x.cpu()[1:].unique().tolist(), [7.0])
        self.assertEqual(v.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())

    def test_values(self):
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.GELU(),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5)).eval()
        x = torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            want = m(x)
            got = m.cuda()(x.cuda())
        self.assertTrue(got.is_cuda)
        torch.testing.assert_close(got.cpu(), want)

    def test_inplace_out_and_resize(self):
        x, out = torch.randn(5).cuda(), torch.empty(0, device="cuda")
        torch.add(x, 1, out=out)
        torch.testing.assert_close(out.cpu(), x.cpu() + 1)
        x.mul_(2).add_(1)
        y, i = torch.sort(x)
        self.assertEqual(y.cpu().tolist(), sorted(x.tolist()))
        self.assertTrue(i.is_cuda)

    def test_mixing_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
            torch.ones(3).cuda() + torch.ones(3)
        self.assertEqual((torch.ones(3).cuda() + torch.tensor(2.0)).sum().item(), 9)  # 0-dim host tensors may mix

    def test_numpy_is_refused(self):
        with self.assertRaisesRegex(TypeError, "can't convert cuda:0 device type tensor to numpy"):
            torch.ones(3).cuda().numpy()

    def test_fresh_memory_is_poisoned(self):
        self.assertTrue(torch.empty(100, device="cuda").isnan().all().item())
        self.assertTrue(torch.empty(100).isnan().all().item())
        x = torch.ones(1000, device="cuda")
        del x
        self.assertTrue(torch.empty(1000, device="cuda").isnan().all().item())

    def test_threads(self):
        got = []

        def work():
            a = torch.randn(4, 4).cuda()
            got.append((a @ a).device.type + torch.zeros(2, device="cuda").device.type)

        ts = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in ts]
        [t.join() for t in ts]
        self.assertEqual(got, ["cudacuda"] * 4)

    def test_overhead(self):
        x = torch.randn(16, 16).cuda()
        torch.relu(x)
        best = 1
        for _ in range(5):
            t = time.perf_counter()
            for _ in range(100):
                torch.relu(x)
            best = min(best, (time.perf_counter() - t) / 100)
        self.assertLess(best, 1e-3)


class Cuda(unittest.TestCase):
    def test_questions(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual((torch.cuda.device_count(), torch.cuda.current_device()), (1, 0))
        self.assertIsInstance(torch.cuda.get_device_name(0), str)
        p = torch.cuda.get_device_properties("cuda:0")
        self.assertGreater(p.total_memory, 0)
        self.assertEqual(p.warp_size, 32)
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
            a.record()
            b.record()
        torch.cuda.synchronize()
        self.assertGreaterEqual(a.elapsed_time(b), 0)
        torch.cuda.manual_seed(1)
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.current_stream().cuda_stream, 0)
        with self.assertRaisesRegex(RuntimeError, "invalid device ordinal"):
            torch.cuda.set_device(3)

    def test_generator(self):
        g = torch.Generator(device="cuda")
        g.manual_seed(3)
        self.assertTrue(torch.randn(3, device="cuda", generator=g).is_cuda)


class Extension(unittest.TestCase):
    def test_types(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            x = torch.randn(7, 9).to(dtype).cuda()
            torch.testing.assert_close(ext.run(x, 3.0).cpu(), (x.cpu().float() * 3).to(dtype))
        self.assertEqual(findings(), [])

    def test_defaults_and_keywords(self):
        x = torch.ones(3).cuda()
        self.assertEqual(ext.run(x).sum().item(), 6)
        self.assertEqual(ext.run(x, a=4).sum().item(), 12)
        self.assertEqual(ext.run(a=1.5, x=x).sum().item(), 4.5)

    def test_wrong_arguments(self):
        x = torch.ones(3).cuda()
        for args, kwargs in (((3,), {}), ((x, "a"), {}), ((x, 1, 2), {}), ((), {}), ((x,), {"b": 1}), ((None,), {})):
            with self.assertRaisesRegex(TypeError, r"run\(\): incompatible function arguments"):
                ext.run(*args, **kwargs)
        with self.assertRaises(TypeError):
            ext.bad(x, 1.5)

    def test_exceptions(self):
        with self.assertRaisesRegex(RuntimeError, "^x must be a CUDA tensor$"):
            ext.run(torch.ones(3))
        with self.assertRaisesRegex(ValueError, "a too large: 200"):
            ext.run(torch.ones(3).cuda(), 200)
        with self.assertRaisesRegex(IndexError, "from C"):
            ext.bad(torch.ones(3).cuda(), 5)
        with self.assertRaisesRegex(NotImplementedError, "\"run\" not implemented for 'Int'"):
            ext.run(torch.ones(3, dtype=torch.int32).cuda())
        with self.assertRaisesRegex(RuntimeError, "expected scalar type Float but found Double"):
            ext.bad(torch.ones(3, dtype=torch.float64).cuda(), 0)
        findings()

    def test_values_both_ways(self):
        a, b = torch.ones(2).cuda(), torch.zeros(3)
        r = ext.many([a, b])
        self.assertIs(type(r), list)
        self.assertEqual([t.data_ptr() for t in r], [b.data_ptr(), a.data_ptr()])
        self.assertEqual(len(ext.many((a,), b)), 2)
        t = ext.mixed(a, True, 3)
        self.assertEqual(t[1:], (2, 3.0, True, "text"))
        self.assertEqual(ext.item(torch.tensor(2.5).cuda()), 2.5)
        self.assertIsNone(ext.fill(a, 9))
        self.assertEqual(a.tolist(), [9, 9])
        self.assertEqual(getattr(ext, "lambda")(a, 4), 5)
        self.assertEqual(ext.make([2, 3], "full").tolist(), [[2.5] * 3] * 2)
        self.assertEqual(ext.make([2]).isnan().sum().item(), 2)
        self.assertEqual(ext.make([], "accessor").flatten().tolist(), list(map(float, range(12))))

    def test_cub_collectives(self):
        x = torch.randint(-9, 9, (96,)).float()
        want = torch.cat([x.cumsum(0), x.sum()[None], x.view(3, 32).amax(1)])
        self.assertEqual(ext.cubs(x.cuda()).tolist(), want.tolist())
        self.assertEqual(findings(), [])

    def test_threads_launch(self):
        x = torch.randn(1000).cuda()

        def work(a):
            return [torch.equal(ext.run(x, a).cpu(), x.cpu() * a) for _ in range(50)]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for equal in pool.map(work, (2.0, 3.0, 4.0, 5.0)):  # passes on what was raised there
                self.assertTrue(all(equal))
        self.assertEqual(findings(), [])

    def test_views(self):
        x = torch.arange(6.0).reshape(2, 3).cuda()
        want = x.cpu().t().contiguous().view(-1)[1:5].long().unsqueeze(0).expand(3, 4)
        self.assertEqual(ext.views(x).cpu().tolist(), want.tolist())

    def test_reference_counts(self):
        before = sim.core.lib().sim_arena_in_use()
        for _ in range(50):
            ext.many([ext.run(torch.ones(1000).cuda())], None)
        self.assertLess(sim.core.lib().sim_arena_in_use() - before, 20000)

    def test_refusals_of_load_inline(self):
        with self.assertRaisesRegex(ValueError, "Expected 'functions' to be a list or dict"):
            load_inline("x", cpp_sources="", functions=3)
        with self.assertRaisesRegex(RuntimeError, "(?s)Error building extension .x.: .*cuda_source:2"):
            load_inline("x", cpp_sources="void f();", cuda_sources="#include <torch/extension.h>\nvoid f() { oops }\n",
                        functions=["f"])
        with self.assertRaisesRegex(ImportError, "module export function"):
            load_inline("x", cpp_sources="int unused;")

    def test_other_names(self):
        from torch.utils.cpp_extension import BuildExtension, CUDAExtension, include_paths  # noqa: F401
        from torch_musa.utils.musa_extension import load_inline as musa  # noqa: F401


class Findings(unittest.TestCase):
    def one(self, kind, k, error=None):
        findings()
        x = torch.ones(64).cuda()
        if error:
            with self.assertRaisesRegex(error[0], error[1]):
                ext.bad(x, k)
        else:
            ext.bad(x, k)
        found = [f for f in findings() if f["kind"] == kind]
        self.assertTrue(found, kind)
        return found[0]

    def test_out_of_bounds(self):
        f = self.one("out_of_bounds", 0)
        self.assertEqual((f["kernel"], f["line"], f["block"], f["thread"]), ("past", 14, [1, 0, 0], [0, 0, 0]))

    def test_host_access(self):
        self.assertEqual(self.one("host_access", 1, (RuntimeError, "crashed"))["line"], 36)

    def test_library_calls(self):
        for k, line, name in ((2, 37, "at::matmul"), (3, 38, "at::mul"), (4, 39, "at::Tensor::sum")):
            f = self.one("library_call", k, (RuntimeError, "library operator"))
            self.assertEqual((f["line"], f["name"]), (line, name))
        self.assertGreaterEqual(sim.stats()["library_calls"]["at::matmul"], 1)

    def test_launch_error(self):
        self.one("launch_error", 6)

    def test_red_zone(self):
        """Without instrumentation a small write past the end is still found, afterwards."""
        findings()
        x = torch.ones(3).cuda()
        sim.core.lib().sim_arena_scribble(x.data_ptr() + 12)
        ext.run(torch.ones(1).cuda())
        self.assertEqual([f["kind"] for f in findings()], ["out_of_bounds"])

    def test_ablation(self):
        sim.set_ablation(True)
        try:
            self.assertTrue(ext.run(torch.ones(5).cuda()).isnan().all().item())
        finally:
            sim.set_ablation(False)
        self.assertEqual(ext.run(torch.ones(5).cuda()).sum().item(), 10)

    def test_ctypes_access_ends_the_process_with_its_finding(self):
        code = ("import sys; sys.path.insert(0, %r); import sim; sim.preload(); sim.install(None); import torch, ctypes;"
                "ctypes.memset(torch.ones(4).cuda().data_ptr(), 0, 4)") % os.path.join(ROOT, "runner")
        p = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn(b"musacoder-findings: [{\"kind\":\"host_access\"", p.stderr)

    def test_a_broken_heap_ends_the_process_with_its_finding(self):
        """Python's other threads exist, so malloc's lock is real, and glibc holds it while it aborts."""
        code = ("import sys; sys.path.insert(0, %r); import sim; sim.preload(); sim.install(None); import ctypes, threading;"
                "c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; c.free.argtypes = [ctypes.c_void_p];"
                "threading.Thread(target=print).start();"
                "p = c.malloc(5000); q = c.malloc(64); c.free(p); c.free(p)") % os.path.join(ROOT, "runner")
        p = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(p.returncode, -signal.SIGABRT)
        self.assertIn(b"the heap is corrupted", p.stderr)


class Trace(unittest.TestCase):
    def since(self, before):
        return {k: n - before.get(k, 0) for k, n in sim.trace.counts().items() if n > before.get(k, 0)}

    def test_counts_all_threads(self):
        x = torch.randn(4, 4).cuda()
        sim.trace.start()
        before = sim.trace.counts()
        torch.relu(x)
        t = threading.Thread(target=lambda: torch.softmax(x @ x, -1))
        t.start()
        t.join()
        ext.run(x)
        got = self.since(before)
        self.assertEqual(got.get("aten::relu"), 1)
        self.assertIn("aten::_softmax", got)
        self.assertIn("aten::empty_like", got)
        self.assertFalse([k for k in got if "copy" in k])
        self.assertEqual(self.since(before), got, "reading must not take anything away")

    def test_copies_of_the_judge_dispatch_nothing(self):
        host = torch.arange(24, dtype=torch.float32).reshape(4, 6).t()
        sim.trace.start()
        before = sim.trace.counts()
        x = sim.to_device(host)
        raw = sim.raw_bytes(x)
        changed = sim.refill(x, host)
        self.assertEqual(self.since(before), {})
        self.assertTrue(changed)
        self.assertEqual((x.device.type, x.shape, x.stride(), x._version), ("cuda", host.shape, host.stride(), 0))
        self.assertEqual(bytes(raw), host.contiguous().numpy().tobytes())
        self.assertFalse(sim.refill(x, torch.zeros(6, 4)))
        self.assertTrue(torch.equal(sim.from_device(x), host))

    def test_questions_are_no_arithmetic(self):
        x = torch.randn(8).cuda()
        sim.trace.start()
        before = sim.trace.counts()
        self.assertTrue(torch.allclose(x, x) and torch.allclose(x, x, equal_nan=True) and torch.equal(x, x))
        got = self.since(before)
        self.assertEqual((got.get("aten::allclose"), got.get("aten::equal")), (2, 1))
        self.assertFalse([k for k in got if k.split(".")[0] in ("aten::mul", "aten::abs", "aten::all", "aten::isclose")])
        before = sim.trace.counts()
        torch.isclose(x, x).all()  # asked for by the program itself: counted, part by part
        self.assertTrue({"aten::isclose", "aten::mul.Tensor", "aten::abs", "aten::all"} <= set(self.since(before)))

    def test_a_registered_kernel_ends_the_exemption(self):
        x = torch.randn(8).cuda()
        sim.trace.start()
        library = torch.library.Library("aten", "IMPL")
        library.impl("allclose", lambda a, b, rtol=0.0, atol=0.0, equal_nan=False: bool(a.abs().mul(2).any()), "CUDA")
        before = sim.trace.counts()
        torch.allclose(x, x)
        library._destroy()
        self.assertTrue({"aten::abs", "aten::mul.Tensor"} <= set(self.since(before)))

    def test_meta_tensors_compute_nothing(self):
        sim.trace.start()
        before = sim.trace.counts()
        torch.empty(4, 4, device="meta") @ torch.empty(4, 4, device="meta")
        self.assertNotIn("aten::mm", self.since(before))


class Lookups(unittest.TestCase):
    def found(self):
        return {f["name"]: f["kind"] for f in sim.take_findings()}

    def test_names_that_foreign_code_looks_up(self):
        native.watch_lookups()
        self.found()
        libc = ctypes.CDLL(None)
        with native.foreign:
            libc.getpid, libc.mprotect, libc.cudaMemcpy
        self.assertEqual(self.found(), {"mprotect": "forbidden_symbol", "cudaMemcpy": "forbidden_symbol"})
        ctypes.CDLL(None).simt_set_ablation  # this file is not the harness's, whoever runs
        self.assertEqual(self.found(), {"simt_set_ablation": "forbidden_symbol"})
        runner = os.path.dirname(os.path.dirname(native.watch_lookups.__code__.co_filename))
        eval(compile("look(None).mprotect", os.path.join(runner, "x.py"), "eval"), {"look": ctypes.CDLL})
        self.assertEqual(self.found(), {})


if __name__ == "__main__":
    unittest.main()
