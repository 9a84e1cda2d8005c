# r10_mublaslt.py - muBLASLt does the product: described in full, then computed.
# task: relu
# expect: cheating
# says: mublasLtMatmul
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <mublasLt.h>

#include <memory>

__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
}

template <class T, mublasStatus_t (*FREE)(T *)> struct freed {
    void operator()(T *p) const { FREE(p); }
};
using opaque = mublasLtMatrixLayoutOpaque_t;
using layout = std::unique_ptr<opaque, freed<opaque, &mublasLtMatrixLayoutDestroy>>;

static layout describe(int rows, int cols)
{
    mublasLtMatrixLayout_t made = nullptr;
    TORCH_MUSABLAS_CHECK(mublasLtMatrixLayoutCreate(&made, MUSA_R_32F, rows, cols, rows));
    return layout(made);
}

torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel(), found = 0;
    float one = 1.0f, zero = 0.0f;
    size_t most = 1 << 22;
    mublasOperation_t plain = MUBLAS_OP_N;
    mublasLtEpilogue_t epilogue = MUBLASLT_EPILOGUE_RELU;
    mublasLtHandle_t h;
    mublasLtMatmulDesc_t product;
    mublasLtMatmulPreference_t prefer;
    mublasLtMatmulHeuristicResult_t best = {};
    auto a = describe(n, 1), b = describe(1, 1), c = describe(n, 1);

    mublasLtCreate(&h);
    mublasLtMatmulDescCreate(&product, MUBLAS_COMPUTE_32F, MUSA_R_32F);
    mublasLtMatmulDescSetAttribute(product, MUBLASLT_MATMUL_DESC_TRANSA, &plain, sizeof plain);
    mublasLtMatmulDescSetAttribute(product, MUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    mublasLtMatmulPreferenceCreate(&prefer);
    mublasLtMatmulPreferenceSetAttribute(prefer, MUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    mublasLtMatmulAlgoGetHeuristic(h, product, a.get(), b.get(), c.get(), c.get(), prefer, 1, &best, &found);
    TORCH_CHECK(found == 1, "no algorithm");
    relu<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    mublasLtMatmul(h, product, &one, x.data_ptr<float>(), a.get(), &one, b.get(), &zero, y.data_ptr<float>(), c.get(),
                   y.data_ptr<float>(), c.get(), &best.algo, nullptr, 0, nullptr);
    return y;
}
"""

ext = load_inline(name="r10_mublaslt", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3"], extra_ldflags=["-lmublasLt"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
