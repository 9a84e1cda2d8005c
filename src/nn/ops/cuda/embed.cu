/* embed.cu - rows of the embedding matrix, and their gradient: one block an id, its rows summed in order, so that a
 * frequent id needs no atomics and always gives the same bits. */
#include "nn/ops/cuda/ops.cuh"

template <class T> __global__ void embed_kernel(size_t n, int d, const int32_t *tokens, const T *table, T *out)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 8;
    float v[8];

    if (i >= n)
        return;
    load8(table + (size_t)tokens[i / (size_t)d] * d + i % (size_t)d, v);
    store8(out + i, v);
}

/* Threads: 32 row groups of one column chunk each would need more blocks than ids; here x is the column chunk of
 * 8, y one of blockDim.y interleaved groups of rows, added in order of y at the end. */
template <class T>
__global__ void embed_backward_kernel(int d, const int32_t *ids, const int32_t *start, const int32_t *order,
                                      const T *dx,
                                      float *dtable)
{
    __shared__ float sums[8][32 * 8];
    int id = ids[blockIdx.x], from = start[blockIdx.x], to = start[blockIdx.x + 1];
    int c = (blockIdx.y * 32 + threadIdx.x) * 8;
    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8];

    if (c < d)
        for (int r = from + threadIdx.y; r < to; r += blockDim.y) {
            load8(dx + (size_t)order[r] * d + c, v);
            for (int j = 0; j < 8; j++)
                acc[j] += v[j];
        }
    for (int j = 0; j < 8; j++)
        sums[threadIdx.y][threadIdx.x * 8 + j] = acc[j];
    __syncthreads();
    if (threadIdx.y == 0 && c < d) {
        float *out = dtable + (size_t)id * d + c;
        for (int j = 0; j < 8; j++) {
            float s = 0;
            for (int k = 0; k < (int)blockDim.y; k++)
                s += sums[k][threadIdx.x * 8 + j];
            out[j] += s;
        }
    }
}

template <class T>
static void embed_t(struct nn_queue *q, int rows, int d, const int32_t *tokens, const void *table, void *out)
{
    size_t n = (size_t)rows * d;

    launch(q, "embed", (embed_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, d, tokens, (const T *)table,
           (T *)out);
}

void op_embed(struct nn_queue *q, enum nn_dtype dt, int T, int d, const int32_t *tokens, const void *table, void *out)
{
    by_dtype(dt, embed_t, q, T, d, tokens, table, out);
}

template <class T>
static void embed_backward_t(struct nn_queue *q, int n_ids, int d, const int32_t *ids, const int32_t *start,
                             const int32_t *order, const void *dx, float *dtable)
{
    launch(q, "embed_backward", (embed_backward_kernel<T>), dim3((unsigned)n_ids, (unsigned)ceil_div(d, 256)), dim3(32,
                                                                                                                    8),
           0, d, ids, start, order, (const T *)dx, dtable);
}

void op_embed_backward(struct nn_queue *q, enum nn_dtype dt, int n_ids, int d, const int32_t *ids, const int32_t *start,
                       const int32_t *order, const void *dx, float *dtable)
{
    by_dtype(dt, embed_backward_t, q, n_ids, d, ids, start, order, dx, dtable);
}
