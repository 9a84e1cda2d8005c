/* mudnn.h as MUSA programs include it: operators can be made and described; Run is refused by the operator's name. */
#pragma once
#include "litetorch/musa.h"

#include "litetorch/library.h"

namespace musa {
namespace dnn {
enum class Status { SUCCESS = 0 };
struct Handle {
    template <class... A> explicit Handle(A &&...) {}
    template <class... A> Status SetStream(A &&...) { return Status::SUCCESS; }
};
struct Tensor {
    enum class Type { FLOAT, HALF, BFLOAT16, INT32, INT64, INT8, DOUBLE };
    enum class Format { NCHW, NHWC, UNKNOWN };
    template <class... A> Status SetType(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetAddr(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetFormat(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetNdInfo(A &&...) { return Status::SUCCESS; }
};
struct operation {
    template <class... A> Status SetMode(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetAlpha(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetBeta(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetTranspose(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetDim(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetNdInfo(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetAxis(A &&...) { return Status::SUCCESS; }
    template <class... A> Status SetComputeMode(A &&...) { return Status::SUCCESS; }
};
#define LT_MUDNN(NAME)                                                                                         \
    struct NAME : operation {                                                                                  \
        template <class... A> Status Run(A &&...) { return LT_LIBRARY_CALL(Status, "mudnn" #NAME); }           \
    };
LT_MUDNN(MatMul)
LT_MUDNN(BatchMatMul)
LT_MUDNN(Convolution)
LT_MUDNN(Softmax)
LT_MUDNN(Pooling)
LT_MUDNN(BatchNorm)
LT_MUDNN(LayerNorm)
LT_MUDNN(RMSNorm)
LT_MUDNN(GroupNorm)
LT_MUDNN(Unary)
LT_MUDNN(Binary)
LT_MUDNN(Ternary)
LT_MUDNN(Reduce)
LT_MUDNN(Concat)
LT_MUDNN(Permute)
LT_MUDNN(Fill)
LT_MUDNN(Scatter)
LT_MUDNN(Gather)
LT_MUDNN(Sort)
LT_MUDNN(TopK)
LT_MUDNN(Cum)
LT_MUDNN(Interpolate)
LT_MUDNN(ScaledDotProductAttention)
#undef LT_MUDNN
} // namespace dnn
} // namespace musa
