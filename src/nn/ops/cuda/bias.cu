/* bias.cu - one vector added to every row of a product: rows begin as it, and the product is added to them with its one
 * rounding; backward sums the rows of a gradient, in an order that does not depend on the device. */
#include "nn/ops/cuda/ops.cuh"

#define WARPS 8

template <class T> __global__ void bias_rows_kernel(size_t chunks, int n, const T *b, T *y, int ld)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, wide = (size_t)n / 8;
    float v[8];

    if (i >= chunks)
        return;
    load8(b + i % wide * 8, v);
    store8(y + i / wide * ld + i % wide * 8, v);
}

template <class T>
static void bias_rows_t(struct nn_queue *q, int rows, int n, const void *b, void *y, int ld)
{
    size_t chunks = (size_t)rows * (size_t)(n / 8);

    launch(q, "bias_rows", bias_rows_kernel<T>, ceil_div((long)chunks, 256), 256, 0, chunks, n, (const T *)b, (T *)y,
           ld);
}

void op_bias_rows(struct nn_queue *q, enum nn_dtype dt, int T, int n, const void *b, void *y, int ld)
{
    by_dtype(dt, bias_rows_t, q, T, n, b, y, ld);
}

/* A block has 256 columns, a lane eight of them; its warps take rows in turn, and so do blocks of one column. */
template <class T>
__global__ void bias_backward_kernel(int rows, int n, const T *dy, int ld, float *partial)
{
    __shared__ float sums[WARPS][256];
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32, c = blockIdx.y * 256 + lane * 8;
    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8];

    if (c < n)
        for (int r = blockIdx.x * WARPS + warp; r < rows; r += gridDim.x * WARPS) {
            load8(dy + (size_t)r * ld + c, v);
            for (int j = 0; j < 8; j++)
                acc[j] += v[j];
        }
    for (int j = 0; j < 8; j++)
        sums[warp][lane * 8 + j] = acc[j];
    __syncthreads();
    c = blockIdx.y * 256 + threadIdx.x;
    if (c < n) {
        float s = 0;
        for (int k = 0; k < WARPS; k++)
            s += sums[k][threadIdx.x];
        partial[(size_t)blockIdx.x * n + c] = s;
    }
}

template <class T> static void bias_backward_t(struct nn_queue *q, int rows, int n, const void *dy, int ld, float *db)
{
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div(rows, WARPS));

    launch(q, "bias_backward", bias_backward_kernel<T>, dim3((unsigned)blocks, (unsigned)ceil_div(n, 256)), 256, 0,
           rows, n, (const T *)dy, ld, q->scratch);
    add_partials(q, blocks, n, q->scratch, db);
}

void op_bias_backward(struct nn_queue *q, enum nn_dtype dt, int T, int n, const void *dy, int ld, float *db)
{
    if (T > 0)
        by_dtype(dt, bias_backward_t, q, T, n, dy, ld, db);
}
