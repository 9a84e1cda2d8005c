/* convert.cu - between the type of the activations and fp32. */
#include "nn/ops/cuda/ops.cuh"

template <class T> __global__ void to_f32_kernel(size_t n, const T *from, float *to)
{
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n)
        to[i] = to_float(from[i]);
}

template <class T> __global__ void from_f32_kernel(size_t n, const float *from, T *to)
{
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n)
        to[i] = from_float<T>(from[i]);
}

template <class T> static void to_f32_t(struct nn_queue *q, size_t n, const void *from, float *to)
{
    launch(q, "to_f32", (to_f32_kernel<T>), ceil_div((long)n, 256), 256, 0, n, (const T *)from, to);
}
template <class T> static void from_f32_t(struct nn_queue *q, size_t n, const float *from, void *to)
{
    launch(q, "from_f32", (from_f32_kernel<T>), ceil_div((long)n, 256), 256, 0, n, from, (T *)to);
}

void op_to_f32(struct nn_queue *q, enum nn_dtype dt, size_t n, const void *from, float *to)
{
    by_dtype(dt, to_f32_t, q, n, from, to);
}
void op_from_f32(struct nn_queue *q, enum nn_dtype dt, size_t n, const float *from, void *to)
{
    by_dtype(dt, from_f32_t, q, n, from, to);
}
