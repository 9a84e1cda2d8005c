"""kernel.py - torch.cuda._compile_kernel: a kernel from its text. NVRTC's source is CUDA source, so it is built like
any other, with a launcher that takes the arguments as words; what is judged is the same.
"""
import struct

import torch

SOURCE = r"""
%(kernel)s
#line 1 "launcher"
#include <cstring>
#include <utility>
namespace lt_raw {
template <class P> P word(int64_t bits)
{
    P p;
    static_assert(sizeof p <= sizeof bits, "a kernel that is compiled by name takes pointers and numbers");
    memcpy(&p, &bits, sizeof p);
    return p;
}
template <class... P, size_t... I>
void launch(void (*kernel)(P...), const std::vector<int64_t> &w, dim3 grid, dim3 block, int64_t shared,
            std::index_sequence<I...>)
{
    TORCH_CHECK(w.size() == sizeof...(P), "the kernel takes ", sizeof...(P), " arguments, not ", w.size());
    kernel<<<grid, block, shared, at::cuda::getCurrentCUDAStream()>>>(word<P>(w[I])...);
}
template <class... P> constexpr std::index_sequence_for<P...> places(void (*)(P...)) { return {}; }
}
void lt_launch(std::vector<int64_t> w, std::vector<int64_t> g, int64_t shared)
{
    lt_raw::launch(%(name)s, w, dim3(g[0], g[1], g[2]), dim3(g[3], g[4], g[5]), shared, lt_raw::places(%(name)s));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void lt_shared(int64_t bytes)
{
    C10_CUDA_CHECK(cudaFuncSetAttribute(%(name)s, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
}
"""
HEAD = "#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAException.h>\n#include <vector>\n"
DECLARED = ("void lt_launch(std::vector<int64_t> w, std::vector<int64_t> g, int64_t shared);\n"
            "void lt_shared(int64_t bytes);")


def word(arg):
    """The bits that torch passes: the address of a tensor, an int, a double."""
    if isinstance(arg, torch.Tensor):
        if not arg.is_cuda:
            raise ValueError("All tensor arguments must be CUDA tensors or pinned CPU tensors")
        return arg.data_ptr()
    if isinstance(arg, int):
        return int(arg)
    if isinstance(arg, float):
        return struct.unpack("<q", struct.pack("<d", arg))[0]
    raise TypeError(f"Unsupported argument type: {type(arg)}")


class Kernel:
    """As torch.cuda._utils._CudaKernel."""

    def __init__(self, library):
        self.library, self.most_shared = library, 48 * 1024

    def __call__(self, grid=(1, 1, 1), block=(1, 1, 1), args=None, shared_mem=0, stream=None):
        words = [word(a) for a in args or []]
        if shared_mem > self.most_shared:
            raise RuntimeError(f"Kernel requires {shared_mem} bytes of shared memory (>= 48KB), but {self.most_shared} "
                               "bytes are configured. Call kernel.set_shared_memory_config(shared_mem) after "
                               "compilation and before launching the kernel.")
        with torch.cuda.stream(stream):
            self.library.lt_launch(words, [*map(int, grid), *map(int, block)], int(shared_mem))

    def set_shared_memory_config(self, shared_mem_bytes):
        self.library.lt_shared(int(shared_mem_bytes))
        self.most_shared = max(self.most_shared, int(shared_mem_bytes))


def compile_kernel(kernel_source, kernel_name, compute_capability=None, cuda_include_dirs=None, nvcc_options=None,
                   **rest):
    """As torch.cuda._compile_kernel of PyTorch 2.11."""
    from native import extension

    text = HEAD + SOURCE % {"kernel": '#line 1 "kernel_source"\n' + kernel_source, "name": kernel_name}
    return Kernel(extension.load_inline(
        name="compiled_kernel", cpp_sources=DECLARED, cuda_sources=text, functions=["lt_launch", "lt_shared"],
        extra_cuda_cflags=[o for o in nvcc_options or [] if o.startswith("-D")], extra_include_paths=cuda_include_dirs))
