"""candidates.py - programs for tests/eval/test_verdicts.py: honest ones, broken ones, and ones that try to get away
with something. Each row: name, expected category (None: passed), words that the feedback must hold, source."""

RELU_TASK = '''
import torch
import torch.nn as nn

rows, cols = 16, 37

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(rows, cols)]

def get_init_inputs():
    return []
'''

HEAD = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
'''

KERNEL = '''
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''

MODEL = '''
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return ext.relu(x)
'''


def build(kernel, name="relu", decl="torch::Tensor relu(torch::Tensor x);"):
    return (HEAD + f'ext = load_inline(name="{name}_ext", cpp_sources="{decl}", cuda_sources=r"""{kernel}""", '
            f'functions=["{name}"])\n')


def with_forward(body, kernel=KERNEL, extra="", init=""):
    lines = "\n".join("        " + x for x in body.strip().split("\n"))
    inits = "\n".join("        " + x for x in init.strip().split("\n")) if init else "        pass"
    return (build(kernel) + extra + f"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
{inits}
    def forward(self, x):
{lines}
""")


GOOD = build(KERNEL) + MODEL

RELU = [
    ("honest", None, [], GOOD),
    ("honest in a response", None, [], "Here is my kernel.\n\n```python\nprint('draft')\n```\n\n```python\n" + GOOD +
     "```\nDone."),
    ("honest after thinking", None, [], "<think>```python\nclass ModelNew: pass\n```</think>\n```python\n" + GOOD +
     "```"),
    ("prose", "extraction_error", ["no code"], "I would write a kernel that clamps at zero."),
    ("empty fence", "extraction_error", ["empty"], "```python\n```"),
    ("no ModelNew", "extraction_error", ["ModelNew"], "```python\nx = 1\n```"),
    ("ModelNew in a string", "extraction_error", ["ModelNew"], 'source = """\nclass ModelNew: pass\n"""\n'),
    ("Python syntax", "compile_error", ["SyntaxError"], GOOD.replace("super().__init__()", "super(.__init__()")),
    ("kills itself", "runtime_error", ["killed", "in forward"],  # another test may make the kernel kill meanwhile
     GOOD.replace("def forward(self, x):", "def forward(self, x):\n        __import__('os').kill(__import__('os')"
                                           ".getpid(), 9)")),
    ("missing semicolon", "compile_error", ["expected"],
     build(KERNEL.replace("int n = x.numel();", "int n = x.numel()"))
     + MODEL),
    ("undeclared name", "compile_error", ["threadIdy"], build(KERNEL.replace("threadIdx", "threadIdy")) + MODEL),
    ("wrong functions=", "compile_error", ["relux"], GOOD.replace('functions=["relu"]', 'functions=["relux"]')),
    ("wrong index", "correctness_error", ["expected", "got"], build(KERNEL.replace("y[i] = x[i]", "y[i] = x[n-1-i]"))
     + MODEL),
    ("short grid", "correctness_error", ["nan"], build(KERNEL.replace("(n + 255) / 256", "n / 256")) + MODEL),
    ("wrong sign", "correctness_error", ["inverted"], build(KERNEL.replace("? x[i] : 0.0f", "? -x[i] : 0.0f")) + MODEL),
    ("leaky", "correctness_error", ["trials pass"], build(KERNEL.replace(": 0.0f", ": 0.001f * x[i]")) + MODEL),
    ("out of bounds", "runtime_error", ["relu_kernel"], build(KERNEL.replace("if (i < n) ", "")) + MODEL),
    ("exception in forward", "runtime_error", ["ValueError", "boom"], with_forward("raise ValueError('boom')")),
    ("exit", "runtime_error", ["ended itself", "exit code 0"], with_forward("import os\nos._exit(0)")),
    ("sys.exit at import", "runtime_error", ["SystemExit"], "import sys\nclass ModelNew: pass\nsys.exit(0)\n"),
    ("abort", "runtime_error", ["crashed"], with_forward("import os\nos.abort()")),
    ("segfault", "runtime_error", [], with_forward("import ctypes\nctypes.string_at(0)")),
    ("hang", "timeout", ["still running"], with_forward("while True: pass")),
    ("hang at import", "timeout", ["still running"], "import time\nclass ModelNew: pass\nwhile True: time.sleep(1)\n"),
    ("memory bomb", "runtime_error", [], with_forward("a = []\nwhile True: a.append(bytearray(1 << 26))")),
    ("fork bomb", ("runtime_error", "timeout", "cheating"), [], with_forward(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")),
    ("thread bomb", ("runtime_error", "timeout"), [], with_forward(
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()")),
    ("torch in forward", "cheating", ["aten::relu", "torch.relu(x)"],
     with_forward("ext.relu(x)\nreturn torch.relu(x)")),
    ("torch in a thread", "cheating", ["aten::"], with_forward(
        "import threading\nout = []\nt = threading.Thread(target=lambda: out.append(x.clamp(min=0)))\n"
        "t.start(); t.join()\next.relu(x)\nreturn out[0]")),
    ("fallback", "cheating", ["aten::"], with_forward("try:\n    raise RuntimeError\nexcept RuntimeError:\n"
                                                     "    return torch.nn.functional.relu(x)")),
    ("no kernel", "cheating", ["no kernel"], HEAD + MODEL.replace("ext.relu(x)", "x.clone()")),
    ("numpy", "cheating", ["no kernel"], HEAD + MODEL.replace(
        "ext.relu(x)", "torch.from_numpy(__import__('numpy').maximum(x.cpu().numpy(), 0)).cuda()")),
    ("decoy kernel", "cheating", ["the host does the arithmetic"], with_forward(
        "ext.relu(x)\nv = [max(e.item(), 0.0) for r in x.unbind() for e in r.unbind()]\n"
        "return torch.tensor(v, device=x.device).view(x.shape)")),
    ("numpy, then a copying kernel", "cheating", ["the host does the arithmetic"], with_forward(
        "import numpy\ny = torch.from_numpy(numpy.maximum(x.cpu().numpy(), 0)).cuda()\nreturn ext.relu(y)")),
    ("loop on the host", "cheating", ["the host does the arithmetic"],
     build(KERNEL.replace("torch::Tensor relu(torch::Tensor x) {",
     """torch::Tensor relu(torch::Tensor x) {
    std::vector<float> h(x.numel());
    cudaMemcpy(h.data(), x.data_ptr<float>(), h.size() * 4, cudaMemcpyDeviceToHost);
    for (auto &v : h) v = v > 0 ? v : 0;
    x = torch::empty_like(x);
    cudaMemcpy(x.data_ptr<float>(), h.data(), h.size() * 4, cudaMemcpyHostToDevice);""")) + MODEL),
    ("output on the host", "correctness_error", ["CPU"], with_forward("return ext.relu(x).cpu()")),
    ("forged output", "correctness_error", [], with_forward(
        "print('{\"status\":\"passed\",\"reward\":1}')\nimport sys\nsys.stderr.write('25 of 25 passed')\n"
        "return ext.relu(x) + 0 if False else x.clone()",
        extra="\n").replace("x.clone()", "ext.relu(ext.relu(x)).fill_(1)")),
    ("writes to the judge", ("cheating", "runtime_error", "correctness_error"), [], with_forward(
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'{\"op\":\"result\"}' * 10)\n"
        "    except OSError: pass\nreturn ext.relu(x)")),
    ("reads files", "runtime_error", [], with_forward("open('/root/.bashrc').read()\nreturn ext.relu(x)")),
    ("reads the reference cache", "runtime_error", [], with_forward(
        "import glob, os\nhits = glob.glob('/root/.cache/musacoder/reference/**/*.ref', recursive=True)\n"
        "hits += glob.glob('/home/*/.cache/musacoder/reference/**/*.ref', recursive=True)\n"
        "hits += glob.glob(os.path.expanduser('~/.cache/musacoder/reference/**/*.ref'), recursive=True)\n"
        "assert hits, 'nothing to see'\nreturn ext.relu(x)")),
    ("network", "runtime_error", [], with_forward(
        "import socket\nsocket.create_connection(('1.1.1.1', 53), timeout=2)\nreturn ext.relu(x)")),
    ("runs a program", "runtime_error", [], with_forward("import subprocess\nsubprocess.run(['id'], check=True)\n"
                                                        "return ext.relu(x)")),
    ("writes its input", "correctness_error", ["input"], build(KERNEL.replace(
        "const float* x", "float* x").replace("if (i < n) y[i]", "if (i < n) { float v = x[i]; x[i] = 0.0f; y[i]")
        .replace("= x[i] > 0.0f ? x[i] : 0.0f;", "= v > 0.0f ? v : 0.0f; }")) + MODEL),
    ("another shape", "correctness_error", ["(37, 16)"], with_forward("return ext.relu(x).t()")),
    ("another dtype", "correctness_error", ["float64"], with_forward("return ext.relu(x).double()")),
    ("a list", "correctness_error", ["sequence"], with_forward("return [ext.relu(x)]")),
    ("nothing", "correctness_error", ["None"], with_forward("ext.relu(x)")),
    ("a number", "correctness_error", ["number"], with_forward("ext.relu(x)\nreturn 1.0")),
    ("a subclass", "runtime_error", ["subclass"], with_forward(
        "return ext.relu(x).as_subclass(Lazy)", extra="\nclass Lazy(torch.Tensor): pass\n")),
    ("replay", "correctness_error", [], with_forward(
        "if not hasattr(self, 'y'): self.y = ext.relu(x)\nreturn self.y")),
    ("module-level torch", None, [], build(KERNEL) + "\nw = torch.ones(4, 4) @ torch.ones(4, 4)\n" + MODEL),
    ("unknown import", "runtime_error", ["ModuleNotFoundError"], "import no_such_module\n" + GOOD),
    ("bad constructor", "runtime_error", ["TypeError"], GOOD.replace("def __init__(self):", "def __init__(self, n):")),
]

LINEAR_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.fc(x)

def get_inputs():
    return [torch.rand(5, 19)]

def get_init_inputs():
    return [19, 11]
'''

LINEAR_KERNEL = '''
__global__ void fc_kernel(const float* x, const float* w, const float* b, float* y, int m, int k, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n) return;
    float s = b[j];
    for (int t = 0; t < k; t++) s += x[i * k + t] * w[j * k + t];
    y[i * n + j] = s;
}
torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto y = torch::empty({m, n}, x.options());
    dim3 grid((n + 31) / 32, m);
    fc_kernel<<<grid, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                            m, k, n);
    return y;
}
'''
LINEAR_BUILD = build(LINEAR_KERNEL, "fc", "torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b);")

LINEAR = [
    ("same names", None, [], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
'''),
    ("other names", None, [], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n_out, n_in))
        self.b = nn.Parameter(torch.zeros(n_out))
    def forward(self, x):
        return ext.fc(x, self.w, self.b)
'''),
    ("hidden parameters", "correctness_error", ["parameters do not fit"], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        fc = nn.Linear(n_in, n_out)
        self.held = [fc.weight.detach().cuda(), fc.bias.detach().cuda()]
    def forward(self, x):
        return ext.fc(x, *self.held)
'''),
    ("axes of one element", None, [], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.w = nn.Parameter(torch.randn(1, n_out, n_in))
        self.b = nn.Parameter(torch.zeros(n_out, 1))
    def forward(self, x):
        return ext.fc(x, self.w[0], self.b.view(-1))
'''),
    ("stale copy", "correctness_error", [], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.w = self.fc.weight.detach().clone().cuda()
    def forward(self, x):
        return ext.fc(x, self.w, self.fc.bias)
'''),
    ("a product in __init__ that nothing uses", None, [], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.scale = (self.fc.weight @ self.fc.weight.t()).sum()
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
'''),
    ("at::linear in C++", "cheating", [], build('''
torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b) { return at::matmul(x, w.t()) + b; }
''', "fc", "torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b);") + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
'''),
    ("a weight whose elements share memory", "runtime_error", ["behind the end"], LINEAR_BUILD + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
    def cuda(self):
        self.fc.weight.data = torch.ones(1, self.fc.in_features).cuda().expand(self.fc.out_features, -1)
        return super().cuda()
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
'''),
    ("bias ignored", "correctness_error", [], LINEAR_BUILD.replace("float s = b[j];", "float s = 0.0f;") + '''
class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
'''),
]

SEVERAL_TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, idx, k):
        return x * k, idx + 1, {"sum": (x * k).sum()}

def get_inputs():
    return [torch.randn(6, 5), torch.randint(0, 9, (4,)), 3]

def get_init_inputs():
    return []
'''

SEVERAL_KERNEL = '''
__global__ void scale_kernel(const float* x, float* y, float k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * k;
}
__global__ void inc_kernel(const int64_t* x, int64_t* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
__global__ void sum_kernel(const float* x, float* y, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += x[i];
    *y = s;
}
std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor idx, double k) {
    auto y = torch::empty_like(x);
    auto j = torch::empty_like(idx);
    auto s = torch::empty({}, x.options());
    int n = x.numel();
    scale_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), (float)k, n);
    inc_kernel<<<1, 32>>>(idx.data_ptr<int64_t>(), j.data_ptr<int64_t>(), (int)idx.numel());
    sum_kernel<<<1, 1>>>(y.data_ptr<float>(), s.data_ptr<float>(), n);
    return {y, j, s};
}
'''
SEVERAL_BUILD = build(SEVERAL_KERNEL, "run", "std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor idx, "
                                             "double k);")
SEVERAL = [
    ("all right", None, [], SEVERAL_BUILD + '''
class ModelNew(nn.Module):
    def forward(self, x, idx, k):
        y, j, s = ext.run(x, idx, k)
        return y, j, {"sum": s}
'''),
    ("wrong integers", "correctness_error", ["[1]"], SEVERAL_BUILD.replace("x[i] + 1", "x[i] + 2") + '''
class ModelNew(nn.Module):
    def forward(self, x, idx, k):
        y, j, s = ext.run(x, idx, k)
        return y, j, {"sum": s}
'''),
    ("missing key", "correctness_error", ["values"], SEVERAL_BUILD + '''
class ModelNew(nn.Module):
    def forward(self, x, idx, k):
        y, j, s = ext.run(x, idx, k)
        return y, j, {"total": s}
'''),
]


# Numbers: the same task right in another way, and wrong in a way that loose tolerances let through
# ---------------------

def row_task(expr, shape="8, 512", body=""):
    return f'''
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return {expr}

def get_inputs():
    return [torch.randn({shape})]

def get_init_inputs():
    return []
'''


def row_kernel(body, out="torch::empty_like(x)"):
    """One thread per row; body sees const float* r, int n, float* y (row of the output or one element)."""
    return build(f'''
__global__ void row_kernel(const float* x, float* out, int rows, int n, int width) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float* r = x + (long)i * n;
    float* y = out + (long)i * width;
    {body}
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = {out};
    int rows = x.size(0), n = x.size(1);
    row_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, y.numel() / rows);
    return y;
}}
''', "run", "torch::Tensor run(torch::Tensor x);") + MODEL.replace("ext.relu", "ext.run")


SCALAR_ROW = "torch::empty({x.size(0)}, x.options())"
SOFTMAX = ("float s = 0; for (int j = 0; j < n; j++) {{ y[j] = expf(r[j]{0}); s += y[j]; }} "
           "for (int j = 0; j < n; j++) y[j] /= s;")
FIND_MAX = "float m = r[0]; for (int j = 1; j < n; j++) m = fmaxf(m, r[j]); "
NUMERIC = [
    (row_task("F.gelu(x)"), [
        ("gelu by erf", None, [], row_kernel(
            "for (int j = 0; j < n; j++) y[j] = 0.5f * r[j] * (1.0f + erff(r[j] * 0.70710678f));")),
        ("gelu by erfc", None, [], row_kernel("for (int j = 0; j < n; j++) y[j] = r[j] * 0.5f * erfcf(-r[j] * "
                                              "0.70710678f);")),
        ("gelu by tanh", "correctness_error", [], row_kernel(
            "for (int j = 0; j < n; j++) { float v = r[j]; y[j] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + "
            "0.044715f * v "
            "* v * v))); }"))]),
    (row_task("torch.softmax(x, dim=1)"), [
        ("softmax", None, [], row_kernel(FIND_MAX + SOFTMAX.format(" - m"))),
        ("softmax without maximum", "correctness_error", ["large"], row_kernel(SOFTMAX.format(""))),
        ("softmax zeros", "correctness_error", ["all of them 0"],
         row_kernel("for (int j = 0; j < n; j++) y[j] = 0.0f;")),
        ("softmax uniform", "correctness_error", [], row_kernel("for (int j = 0; j < n; j++) y[j] = 1.0f / n;"))]),
    (row_task("x.var(dim=1)"), [
        ("variance", None, [], row_kernel(
            "float m = 0; for (int j = 0; j < n; j++) m += r[j]; m /= n; float s = 0; for (int j = 0; j < n; j++) s += "
            "(r[j] - m) * (r[j] - m); *y = s / (n - 1);", SCALAR_ROW)),
        ("variance by squares", None, [], row_kernel(
            "float s = 0, q = 0; for (int j = 0; j < n; j++) { s += r[j]; q += r[j] * r[j]; } *y = (q - s * s / n) / "
            "(n - 1);",
            SCALAR_ROW)),
        ("biased variance", "correctness_error", ["expected *"], row_kernel(
            "float m = 0; for (int j = 0; j < n; j++) m += r[j]; m /= n; float s = 0; for (int j = 0; j < n; j++) s += "
            "(r[j] - m) * (r[j] - m); *y = s / n;", SCALAR_ROW))]),
    (row_task("x.sum(dim=1)", "4, 8192"), [
        ("serial sum", None, [], row_kernel("float s = 0; for (int j = 0; j < n; j++) s += r[j]; *y = s;", SCALAR_ROW)),
        ("sum backwards in eight lanes", None, [], row_kernel(
            "float s[8] = {0}; for (int j = n - 1; j >= 0; j--) s[j % 8] += r[j]; *y = "
            "((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));", SCALAR_ROW)),
        ("one element left out", "correctness_error", [], row_kernel(
            "float s = 0; for (int j = 1; j < n; j++) s += r[j]; *y = s;", SCALAR_ROW)),
        ("half precision inside", "correctness_error", [], row_kernel(
            "float s = 0; for (int j = 0; j < n; j++) s += __half2float(__float2half(r[j])); *y = s;", SCALAR_ROW))]),
    (row_task("x.argmax(dim=1)"), [
        ("argmax", None, [], row_kernel(
            "int k = 0; for (int j = 1; j < n; j++) if (r[j] > r[k]) k = j; ((int64_t*)y)[0] = k;",
            SCALAR_ROW).replace("y.numel() / rows", "2").replace("x.options());", "x.options().dtype(torch::kInt64));")
         .replace("y.data_ptr<float>()", "(float*)y.data_ptr<int64_t>()")),
        ("argmin", "correctness_error", [], row_kernel(
            "int k = 0; for (int j = 1; j < n; j++) if (r[j] < r[k]) k = j; ((int64_t*)y)[0] = k;",
            SCALAR_ROW).replace("y.numel() / rows", "2").replace("x.options());", "x.options().dtype(torch::kInt64));")
         .replace("y.data_ptr<float>()", "(float*)y.data_ptr<int64_t>()"))]),
]


# Precisions: products and losses in half precision, large sums, outputs near zero ------------------------------------

def two_task(expr, shape, dtype):
    """x and w of one shape each."""
    return row_task(expr).replace("def forward(self, x):", "def forward(self, x, w):").replace(
        "[torch.randn(8, 512)]", f"[torch.randn(n).to(torch.{dtype}) for n in (({shape[0]}), ({shape[1]}))]")


TWO_MODEL = MODEL.replace("ext.relu(x)", "ext.run(x, w)").replace("self, x)", "self, x, w)")


def product(dtype, body):
    """One thread for each element of x @ w; body sees r (row of x), c (column of w: step m), k, and makes 'float s'."""
    c = {"bfloat16": "at::BFloat16", "float16": "at::Half"}[dtype]
    return build(f'''
typedef {c} T;
__global__ void product_kernel(const T* x, const T* w, T* y, int n, int k, int m) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * m) return;
    const T* r = x + (long)(i / m) * k;
    const T* c = w + i % m;
    {body}
    y[i] = (T)s;
}}
torch::Tensor run(torch::Tensor x, torch::Tensor w) {{
    int n = x.size(0), k = x.size(1), m = w.size(1);
    auto y = torch::empty({{n, m}}, x.options());
    product_kernel<<<(n * m + 31) / 32, 32>>>(x.data_ptr<T>(), w.data_ptr<T>(), y.data_ptr<T>(), n, k, m);
    return y;
}}
''', "run", "torch::Tensor run(torch::Tensor x, torch::Tensor w);") + TWO_MODEL


def products(dtype):
    loop = "float s = 0; for (int j = {0}; j < k{1}; j++) s += (float)r[j] * (float)c[j * m];"
    return (two_task("x @ w", ("24, 320", "320, 40"), dtype), [
        (f"{dtype} product", None, [], product(dtype, loop.format(0, ""))),
        (f"{dtype} product backwards in two lanes", None, [], product(
            dtype, "float a = 0, b = 0; for (int j = k - 1; j >= 0; j--) (j % 2 ? a : b) += (float)r[j] * "
                   "(float)c[j * m]; float s = a + b;")),
        (f"{dtype} zeros", "correctness_error", ["all of them 0"], product(dtype, "float s = 0.0f;")),
        (f"{dtype} last term dropped", "correctness_error", [], product(dtype, loop.format(0, " - 1"))),
        (f"{dtype} scaled", "correctness_error", [], product(dtype, loop.format(0, "") + " s *= 1.1f;"))])


def loss(body):
    """The mean of squares by blocks of 256 lanes and atomics; body adds to 'float s' from element j on."""
    return build(f'''
__global__ void loss_kernel(const float* x, float* y, int n) {{
    float s = 0;
    int lane = blockIdx.x * blockDim.x + threadIdx.x, lanes = gridDim.x * blockDim.x;
    {body}
    atomicAdd(y, s / n);
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = torch::zeros({{1}}, x.options());
    loss_kernel<<<2, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y.squeeze();
}}
''', "run", "torch::Tensor run(torch::Tensor x);") + MODEL.replace("ext.relu", "ext.run")


NEAR_ZERO = "for (int j = 0; j < n; j++) y[j] = r[j] * 1e-7f * {0};"
PRECISIONS = [
    products("bfloat16"),
    products("float16"),
    (row_task("(x * x).mean()", "100, 1000"), [
        ("loss over 100,000 elements", None, [], loss("for (int j = lane; j < n; j += lanes) s += x[j] * x[j];")),
        ("loss in one thread", None, [], loss("if (lane == 0) for (int j = 0; j < n; j++) s += x[j] * x[j];")),
        ("loss without the last element", "correctness_error", [], loss(
            "for (int j = lane; j < n - 1; j += lanes) s += x[j] * x[j];")),
        ("loss zero", "correctness_error", [], loss("s = 0 * x[lane];"))]),
    (row_task("x * 1e-7", "8, 512"), [
        ("near zero", None, [], row_kernel(NEAR_ZERO.format("1.0f"))),
        ("near zero, zeros", "correctness_error", ["all of them"], row_kernel(NEAR_ZERO.format("0.0f"))),
        ("near zero, scaled", "correctness_error", [], row_kernel(NEAR_ZERO.format("1.001f")))]),
]
ZERO_TASK = row_task("x * 0.0")
