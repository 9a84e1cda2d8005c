"""test_answers.py - answers of several files: folders, archives, CUDA sources alone, fences with names, and GPU MODE's
custom_kernel, through 'musacoder eval' and the Python client's request; tricks with paths are refused."""
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judges  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))
judges.share_owner()

TASK = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(n))

    def forward(self, x):
        return torch.relu(x) * self.scale

def get_inputs():
    return [torch.randn(9, 40)]

def get_init_inputs():
    return [40]
"""
PLAIN_TASK = TASK.replace("        self.scale = nn.Parameter(torch.rand(n))\n", "").replace("self.scale", "0.5")
KERNEL = """#include <torch/extension.h>
#include "row.cuh"
__global__ void k(const float *x, const float *s, float *y, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = one(x[i]) * s[i % w];
}
torch::Tensor forward(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));
    return y;
}
"""
EXPORT = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &forward); }\n"
HEADER = "__device__ inline float one(float v) { return v > 0 ? v : 0; }\n"
MAIN = """import os
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load
from helper import NAME
here = os.path.dirname(os.path.abspath(__file__))
ext = load(name="k", sources=[os.path.join(here, "src", NAME)])

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(n))

    def forward(self, x):
        return ext.forward(x, self.scale)
"""
FILES = {"candidate.py": MAIN, "helper.py": "NAME = 'kernel.cu'\n", "src/kernel.cu": KERNEL + EXPORT,
         "src/row.cuh": HEADER}
CUSTOM = """from task import input_t, output_t
import torch
from torch.utils.cpp_extension import load_inline
source = r'''
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (x[i] > 0 ? x[i] : 0) * 0.5f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''
ext = load_inline(name="c", cpp_sources="torch::Tensor go(torch::Tensor x);", cuda_sources=source, functions=["go"])

def custom_kernel(data: input_t) -> output_t:
    return ext.go(data)
"""


def judge(task, *paths):
    return subprocess.run([EXE, "eval", "--json", "--trials", "1", "--task", task, *paths], text=True,
                          capture_output=True, timeout=280 * SLOWDOWN)


class Answers(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.task = self.write("task.py", TASK)

    def tearDown(self):
        self.dir.cleanup()

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def folder(self, name, files):
        for path, text in files.items():
            self.write(f"{name}/{path}", text)
        return os.path.join(self.dir.name, name)

    def tar(self, name, entries):
        path = os.path.join(self.dir.name, name)
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as t:
            for entry, text in entries:
                if isinstance(entry, str):
                    entry = tarfile.TarInfo(entry)
                entry.size = len(text)
                t.addfile(entry, io.BytesIO(text.encode()))
        return path

    def test_every_form_passes(self):
        zipped = os.path.join(self.dir.name, "a.zip")
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
            for name, text in FILES.items():
                z.writestr(name, text)
        answer = "The kernel:\n```cuda src/kernel.cu\n" + KERNEL + EXPORT + "```\n```cpp title=\"src/row.cuh\"\n" + \
            HEADER + "```\n```python\n" + MAIN.replace("from helper import NAME\n", "NAME = 'kernel.cu'\n") + "```\n"
        p = judge(self.task, self.folder("whole", FILES), zipped, self.tar("a.tgz", FILES.items()),
                  self.folder("sources", {"kernel.cu": KERNEL, "row.cuh": HEADER}), self.write("answer.md", answer))
        got = [(v["status"], v["feedback"]) for v in map(json.loads, p.stdout.splitlines())]
        self.assertEqual([s for s, _ in got], ["passed"] * 5, (got, p.stderr))

    def test_custom_kernel(self):
        p = judge(self.write("plain.py", PLAIN_TASK), self.write("custom.py", CUSTOM),
                  self.write("wrong.py", CUSTOM.replace("0.5f", "0.4f")))
        got = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual([(v["status"], v["category"]) for v in got],
                         [("passed", None), ("failed", "correctness_error")], p.stderr)

    def refused(self, path, *words):
        p = judge(self.task, path)
        self.assertEqual((p.returncode, json.loads(p.stdout)["category"]), (2, "infra"), p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)

    def test_tricks_are_refused(self):
        link = tarfile.TarInfo("kernel.cu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        main = ("candidate.py", MAIN)
        self.refused(self.tar("up.tar", [main, ("../../kernel.cu", KERNEL)]), "no path")
        self.refused(self.tar("root.tar", [main, ("/tmp/kernel.cu", KERNEL)]), "no path")
        self.refused(self.tar("link.tar", [main, (link, "")]), "kernel.cu", "link")
        self.refused(self.tar("twice.tgz", [main, main]), "two files")
        folder = self.folder("linked", {"candidate.py": MAIN})
        os.symlink("/etc/passwd", os.path.join(folder, "kernel.cu"))
        self.refused(folder, "is a link")
        self.refused(self.folder("none", {"helper.py": "x = 1\n"}), "ModelNew")
        self.refused(self.write("broken.zip", "PK no archive at all, but long enough"), "broken")
        bomb = os.path.join(self.dir.name, "bomb.zip")
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("candidate.py", "#" * (20 << 20))
        self.refused(bomb, "more than")

    def test_bench_takes_them(self):
        """A suite's answers of several files: one that is none fails alone, and a later call judges nothing again."""
        zipped = os.path.join(self.dir.name, "samples/task/0.zip")
        wrong = dict(FILES, **{"src/row.cuh": HEADER.replace(": 0", ": 1")})
        self.folder("samples/task/2", FILES)
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
            for name, text in FILES.items():
                z.writestr(name, text)
        self.tar("samples/task/1.tar.gz", wrong.items())
        self.write("samples/task/3.zip", "PK no archive at all, but long enough")
        self.write("tasks/task.py", TASK)
        argv = [EXE, "bench", "--samples", "samples", "--tasks", "tasks", "--out", "out", "--trials", "1"]
        for again in range(2):
            p = subprocess.run(argv, cwd=self.dir.name, text=True, capture_output=True, timeout=280 * SLOWDOWN)
            self.assertIn(p.returncode, (0, 1), p.stdout + p.stderr)
            with open(os.path.join(self.dir.name, "out/verdicts.jsonl")) as f:
                rows = [json.loads(line) for line in f]
            with open(os.path.join(self.dir.name, "out/samples.jsonl")) as f:
                files = {row["sample"]: os.path.basename(row["file"]) for row in map(json.loads, f)}
            got = {files[row["sample"]]: row["verdict"]["category"] or row["verdict"]["status"] for row in rows}
            self.assertEqual(got, {"0.zip": "passed", "1.tar.gz": "correctness_error", "2": "passed",
                                   "3.zip": "extraction_error"}, p.stderr)
            self.assertEqual(len(rows), 4)


class Request(unittest.TestCase):
    def test_the_client_sends_files(self):
        from musacoder import client
        asked = client.Client()._request([{"task": {"code": TASK}, "files": FILES}])
        self.assertEqual(asked["candidates"], [{"files": FILES}])
        self.assertIn("files", client._lack({"task": {"code": TASK}, "files": {"a.py": 3}}))
        self.assertIsNone(client._lack({"task": {"code": TASK}, "files": FILES}))


if __name__ == "__main__":
    unittest.main()
