/* reduce.c - schedules of reductions and row statistics: who walks a row, and how partial results meet. */
#include "synth/sched/sched.h"

#define ROWS (1u << NEST_REDUCE | 1u << NEST_ROW)

const struct sched sched_reduce_rows[] = {
    {.name = "thread", .classes = ROWS, .flat = {"row", "j"}, .lane = "0", .stride = "1", .tune = {{{128, 64, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (row >= $n0) return;\n$decode0"
               "%{ $begin for (int j = 0; j < $n1; ++j) { $decode1 $step } $end %} $write }\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);", .about = "one thread walks each row"},
    {.name = "warp", .classes = ROWS, .flat = {"row", "j"}, .lane = "lane", .stride = "32", .tune = {{{128, 256, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (row >= $n0) return;\n$decode0"
               "%{ $begin for (int j = lane; j < $n1; j += 32) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } $end %} $write }\n",
     .launch = "$k<<<($h0 * 32 + $B1) / $B, $B>>>($args);", .about = "one warp for each row, joined by shuffles"},
    {.name = "block", .classes = ROWS, .flat = {"row", "j"}, .lane = "tid", .stride = "$B", .tune = {{{256, 128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem($B) int row = blockIdx.x;\nint tid = threadIdx.x;\n$decode0"
               "%{ $begin for (int j = tid; j < $n1; j += $B) { $decode1 $step } $put(tid) @sync __syncthreads();\n"
               "@tree for (int s = $BH; s > 0; s >>= 1) { if (tid < s) { $get(tid) $merge(tid + s) $put(tid) } "
               "@sync __syncthreads(); } $get(0) @sync __syncthreads(); $end %} $write }\n",
     .launch = "$k<<<$h0, $B>>>($args);", .about = "one block for each row, joined by a tree in shared memory"},
    {.name = "block_shuffle", .classes = ROWS, .flat = {"row", "j"}, .lane = "tid", .stride = "$B", .tune = {{{256,
        128, 512}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem(32) int row = blockIdx.x;\nint tid = threadIdx.x;\nint lane = tid % 32;\nint warp = tid / "
                   "32;\n$decode0"
               "%{ $begin for (int j = tid; j < $n1; j += $B) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } if (lane == 0) { $put(warp) } @sync "
                   "__syncthreads();\n"
               "$get(0) for (int q = 1; q < $B / 32; ++q) { $merge(q) } @sync __syncthreads(); $end %} $write }\n",
     .launch = "$k<<<$h0, $B>>>($args);", .about =
         "one block for each row: shuffles within warps, shared memory between them"},
    {0}};
