# m14_events_streams_and_properties.py - streams, events and properties of the runtime.
# task: relu
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <musa_runtime.h>
#include "torch_musa/csrc/core/MUSAStream.h"

__global__ void relu(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = fmaxf(0.0f, x[i]);
}

torch::Tensor run(torch::Tensor x)
{
    musaDeviceProp prop;
    musaEvent_t done;
    int device = 0, mps = 0;
    musaGetDevice(&device);
    musaGetDeviceProperties(&prop, device);
    musaDeviceGetAttribute(&mps, musaDevAttrMultiProcessorCount, device);
    TORCH_CHECK(mps == prop.multiProcessorCount && (prop.warpSize == 32 || prop.warpSize == 128), "an odd device");
    auto y = torch::empty_like(x);
    musaStream_t stream = c10::musa::getCurrentMUSAStream();
    musaEventCreateWithFlags(&done, musaEventDisableTiming);
    relu<<<mps < 8 ? mps : 8, 64, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    musaEventRecord(done, stream);
    musaStreamWaitEvent(stream, done, 0);
    musaEventDestroy(done);
    return y;
}
"""

ext = load_inline(name="m14_events_streams_and_properties", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
