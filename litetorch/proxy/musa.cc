/* musa.cc - launches over front.h on the backend 'musa': stubs of the host's half (litetorch/split_musa.h) push their
 * configuration, as nvcc's do, and bring one block of arguments. The rest of the runtime is sim.cc's. */
#include <cuda_runtime.h>

#include "exec/wire.h"
#include "front/front.h"

namespace {

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    bool cooperative;
};
enum { MAX_PUSHED = 16 };
thread_local Configuration pushed[MAX_PUSHED];
thread_local int n_pushed;

unsigned push(const Configuration &c)
{
    if (n_pushed == MAX_PUSHED)
        return 1;
    pushed[n_pushed++] = c;
    return 0;
}

} // namespace

extern "C" {

unsigned lt_musa_push(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    return push({grid, block, shared, stream, false});
}

void lt_musa_launch(const void *stub, const void *args, size_t bytes)
{
    static const wire_attr cooperative = {WIRE_ATTR_COOPERATIVE, {1, 0, 0}};
    struct front_launch l = {};

    if (!n_pushed)
        return;
    const Configuration &c = pushed[--n_pushed];
    l.shown = "a kernel", l.file = "", l.fn = stub;
    l.grid[0] = c.grid.x, l.grid[1] = c.grid.y, l.grid[2] = c.grid.z;
    l.block[0] = c.block.x, l.block[1] = c.block.y, l.block[2] = c.block.z;
    l.shared = c.shared, l.stream = c.stream, l.args = args, l.n_args = bytes;
    if (c.cooperative)
        l.attr = &cooperative, l.attrs = 1;
    front_launch(&l);
}

/* musaLaunchKernel and its kin: a thread of the emulator would call the kernel; here that is its stub, called once. */
void simt_run(const struct simt_launch *l)
{
    if (push({dim3(l->grid.x, l->grid.y, l->grid.z), dim3(l->block.x, l->block.y, l->block.z), l->shared,
              static_cast<cudaStream_t>(l->stream), l->cooperative != 0}) == 0)
        l->body(l->ctx);
}

} // extern "C"
