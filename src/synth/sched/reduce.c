/* reduce.c - schedules of reductions, row statistics and windows: who walks a row, and how partial results meet. */
#include "synth/sched/sched.h"

#define REDUCE (1u << NEST_REDUCE)
#define ROWS (1u << NEST_REDUCE | 1u << NEST_ROW)
#define ALL (1u << NEST_REDUCE | 1u << NEST_ROW | 1u << NEST_WINDOW)
#define FLAT {"row", "j"}

/* True for one statistic of floats, whose order of sums is free. */
static bool reduce_plain_float(const struct nest *k)
{
    const struct stat *s = &k->stat[0];

    return k->n_stats == 1 && s->c != C_ARGMAX && s->c != C_ARGMIN && dtype_is_float(k->out_t.dtype) &&
           (!k->n_in || dtype_is_float(k->in[0].t.dtype)) && nest_extent(k, 1) >= 32;
}

/* Rows that lie together in memory, of which four elements are one load. */
static bool reduce_four_at_once(const struct nest *k)
{
    int d[NEST_DIMS];

    if (nest_group(k, 1, d) != 1 || nest_extent(k, 1) < 16)
        return false;
    for (int i = 0; i < k->n_stats; i++)
        if (k->stat[i].c == C_ARGMAX || k->stat[i].c == C_ARGMIN || k->stat[i].c == C_LOGADDEXP ||
            ax_uses_outside(k->stat[i].elem, k->dim[d[0]].name) || !sched_is_wide(k, k->stat[i].elem))
            return false;
    return k->n_stats > 0;
}

/* Softmax and its like: a maximum, then a sum of exp(x - maximum). */
static bool reduce_online(const struct nest *k)
{
    const struct ax *x;

    if (k->n_stats != 2 || k->stat[0].c != C_MAX || k->stat[1].c != C_SUM || k->stat[0].fin || k->stat[1].fin)
        return false;
    x = k->stat[1].elem;
    return x->kind == AX_CALL && ax_is_id(x->kid[0], "expf") && x->kid[1]->kind == AX_BINARY &&
           x->kid[1]->s[0] == '-' && ax_is_id(x->kid[1]->kid[1], "s0") && ax_equal(x->kid[1]->kid[0], k->stat[0].elem);
}

const struct sched sched_reduce_rows[] = {
    {.name = "thread", .classes = ROWS, .flat = FLAT, .lane = "0", .stride = "1", .tune = {{{128, 64, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (row >= $n0) return;\n$decode0"
               "%{ $begin for (int j = 0; j < $n1; ++j) { $decode1 $step } $end %} $write }\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);", .about = "one thread walks each row"},
    {.name = "stride", .classes = ROWS, .flat = FLAT, .lane = "0", .stride = "1", .tune = {{{64, 128}}, {{8, 16, 4}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "@stride for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < $n0; row += gridDim.x * "
               "blockDim.x) {\n"
               "$decode0 %{ $begin for (int j = 0; j < $n1; ++j) { $decode1 $step } $end %} $write }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);", .about = "a fixed grid whose threads stride over the rows"},
    {.name = "warp", .classes = ALL, .flat = FLAT, .lane = "lane", .stride = "32", .tune = {{{128, 256, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (row >= $n0) return;\n$decode0"
               "%{ $begin for (int j = lane; j < $n1; j += 32) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } $end %} $write }\n",
     .launch = "$k<<<($h0 * 32 + $B1) / $B, $B>>>($args);", .about = "one warp for each row, joined by shuffles"},
    {.name = "subwarp", .classes = ALL, .flat = FLAT, .lane = "lane", .stride = "$C", .tune = {{{128, 64}}, {{8, 4,
        16}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int at = (blockIdx.x * blockDim.x + threadIdx.x) / $C;\nint lane = threadIdx.x % $C;\n"
               "bool live = at < $n0;\n@guard int row = live ? at : $n0 - 1;\n$decode0"
               "%{ $begin for (int j = lane; j < $n1; j += $C) { $decode1 $step } "
               "@warp for (int s = $C / 2; s > 0; s >>= 1) { $shflx(s) } $end %} @guard if (live) { $write }\n}\n",
     .launch = "$k<<<($h0 * $C + $B1) / $B, $B>>>($args);", .about = "$C lanes for each row, joined by shuffles"},
    {.name = "rows", .classes = ROWS, .flat = FLAT, .lane = "lane", .stride = "32", .tune = {{{8, 4}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = blockIdx.x * $B + threadIdx.y;\nint lane = threadIdx.x;\n@guard if (row >= $n0) "
               "return;\n$decode0"
               "%{ $begin for (int j = lane; j < $n1; j += 32) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } $end %} $write }\n",
     .launch = "dim3 block(32, $B);\n$k<<<($h0 + $B1) / $B, block>>>($args);",
     .about = "a block of several rows, a warp for each, joined by shuffles"},
    {.name = "block", .classes = ALL, .flat = FLAT, .lane = "tid", .stride = "$B", .tune = {{{256, 128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem($B) int row = blockIdx.x;\nint tid = threadIdx.x;\n$decode0"
               "%{ $begin for (int j = tid; j < $n1; j += $B) { $decode1 $step } $put(tid) @sync __syncthreads();\n"
               "@tree for (int s = $BH; s > 0; s >>= 1) { if (tid < s) { $get(tid) $merge(tid + s) $put(tid) } "
               "@sync __syncthreads(); } $get(0) @sync __syncthreads(); $end %} $write }\n",
     .launch = "$k<<<$h0, $B>>>($args);", .about = "one block for each row, joined by a tree in shared memory"},
    {.name = "block_shuffle", .classes = ROWS, .flat = FLAT, .lane = "tid", .stride = "$B", .tune = {{{256, 128, 512}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem(32) int row = blockIdx.x;\nint tid = threadIdx.x;\nint lane = tid % 32;\nint warp = tid / 32;\n"
               "$decode0 %{ $begin for (int j = tid; j < $n1; j += $B) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } if (lane == 0) { $put(warp) } "
               "@sync __syncthreads();\n"
               "$get(0) for (int q = 1; q < $B / 32; ++q) { $merge(q) } @sync __syncthreads(); $end %} $write }\n",
     .launch = "$k<<<$h0, $B>>>($args);",
     .about = "one block for each row: shuffles within warps, shared memory between them"},
    {.name = "persistent", .classes = ROWS, .flat = FLAT, .lane = "tid", .stride = "$B", .tune = {{{128, 64}}, {{8,
        16}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem($B) int tid = threadIdx.x;\n"
               "@stride for (int row = blockIdx.x; row < $n0; row += gridDim.x) {\n$decode0"
               "%{ $begin for (int j = tid; j < $n1; j += $B) { $decode1 $step } $put(tid) @sync __syncthreads();\n"
               "@tree for (int s = $BH; s > 0; s >>= 1) { if (tid < s) { $get(tid) $merge(tid + s) $put(tid) } "
               "@sync __syncthreads(); } $get(0) @sync __syncthreads(); $end %} $write }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);", .about = "a few blocks that take one row after the other"},
    {.name = "column", .classes = ROWS, .flat = FLAT, .lane = "ty", .stride = "$C", .tune = {{{32}}, {{8, 4}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem($B * $C) int tx = threadIdx.x;\nint ty = threadIdx.y;\nint at = blockIdx.x * $B + tx;\n"
               "bool live = at < $n0;\n@guard int row = live ? at : $n0 - 1;\n$decode0"
               "%{ $begin for (int j = ty; j < $n1; j += $C) { $decode1 $step } $put(ty * $B + tx) "
               "@sync __syncthreads();\n$get(tx) for (int q = 1; q < $C; ++q) { $merge(q * $B + tx) } "
               "@sync __syncthreads(); $end %} @guard if (live) { $write }\n}\n",
     .launch = "dim3 block($B, $C);\n$k<<<($h0 + $B1) / $B, block>>>($args);",
     .about = "neighbouring threads take neighbouring rows, so that loads across rows are coalesced; $C share each "
         "row"},
    {.name = "online", .classes = ROWS, .flat = FLAT, .lane = "lane", .stride = "32", .tune = {{{128, 256}}}, .fits
        = reduce_online,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (row >= $n0) return;\n$decode0 @identity float a0 = -INFINITY;\n@identity float a1 = 0.0f;\n"
               "for (int j = lane; j < $n1; j += 32) {\n$decodefirst $element "
               "float hi = fmaxf(a0, e0);\n@rescale a1 = a1 * expf(a0 - hi) + expf(e0 - hi);\na0 = hi;\n}\n"
               "@warp for (int s = 16; s > 0; s >>= 1) {\nfloat m = __shfl_xor_sync(0xffffffff, a0, s);\n"
               "float l = __shfl_xor_sync(0xffffffff, a1, s);\nfloat hi = fmaxf(a0, m);\n"
               "@rescale a1 = hi == -INFINITY ? 0.0f : a1 * expf(a0 - hi) + l * expf(m - hi);\na0 = hi;\n}\n"
               "float s0 = a0;\nfloat s1 = a1;\n$write }\n",
     .launch = "$k<<<($h0 * 32 + $B1) / $B, $B>>>($args);",
     .about = "a warp for each row finds maximum and sum in one pass, rescaling the sum when the maximum grows"},
    {.name = "vector", .classes = ROWS, .flat = FLAT, .lane = "lane", .stride = "32", .fits = reduce_four_at_once,
     .tune = {{{128, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (row >= $n0) return;\n$decode0"
               "@guard int wide = $n1 % 4 == 0 && $aligned() ? $n1 : 0;\n"
               "%{ $begin for (int j = lane * 4; j < wide; j += 128) { $step4 } "
               "@tail for (int j = wide + lane; j < $n1; j += 32) { $decode1 $step } "
               "@warp for (int s = 16; s > 0; s >>= 1) { $shflx(s) } $end %} $write }\n",
     .launch = "$k<<<($h0 * 32 + $B1) / $B, $B>>>($args);",
     .about = "one warp for each row loads four elements at once, as float4, and joins by shuffles"},
    {.name = "two_stage", .classes = REDUCE, .flat = FLAT, .lane = "0", .stride = "1", .fits = reduce_plain_float,
     .tune = {{{128, 64}}, {{4, 8}}},
     .kernel = "__global__ void $k_part($parampart) {\n$sizes"
               "$smem($B) int row = blockIdx.x;\nint tid = threadIdx.x;\nint chunk = ($n1 + $C - 1) / $C;\n"
               "int first = blockIdx.y * chunk;\n@guard int last = min(first + chunk, $n1);\n$decode0"
               "%{ $begin for (int j = first + tid; j < last; j += $B) { $decode1 $step } $put(tid) "
               "@sync __syncthreads();\n@tree for (int s = $BH; s > 0; s >>= 1) { if (tid < s) { $get(tid) "
               "$merge(tid + s) $put(tid) } @sync __syncthreads(); } %} @one if (tid == 0) part[row * $C + "
               "blockIdx.y] = sm[0];\n}\n"
               "__global__ void $k($paramjoin) {\n$sizes"
               "int row = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (row >= $n0) return;\n$decode0"
               "%{ $begin for (int q = 0; q < $C; ++q) { $mergepart(part[row * $C + q]) } $end %} $write }\n",
     .launch = "auto part = torch::empty({$h0 * $C}, $x.options().dtype(torch::kFloat32));\n"
               "dim3 grid($h0, $C);\n$k_part<<<grid, $B>>>($argpart);\n"
               "$k<<<($h0 + $B1) / $B, $B>>>($argjoin);",
     .about = "each row is cut into parts for several blocks; a second kernel joins the partial results"},
    {.name = "atomic", .classes = REDUCE, .flat = FLAT, .lane = "0", .stride = "1", .fits = reduce_plain_float,
     .tune = {{{128, 64}}, {{4, 8}}}, .flags = SCHED_ATOMIC,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "$smem($B) int row = blockIdx.x;\nint tid = threadIdx.x;\nint chunk = ($n1 + $C - 1) / $C;\n"
               "int first = blockIdx.y * chunk;\n@guard int last = min(first + chunk, $n1);\n$decode0"
               "%{ $begin for (int j = first + tid; j < last; j += $B) { $decode1 $step } $put(tid) "
               "@sync __syncthreads();\n@tree for (int s = $BH; s > 0; s >>= 1) { if (tid < s) { $get(tid) "
               "$merge(tid + s) $put(tid) } @sync __syncthreads(); } %} @one if (tid == 0) { float s0 = sm[0]; $add "
               "}\n}\n",
     .launch = "dim3 grid($h0, $C);\n$k<<<grid, $B>>>($args);",
     .about = "each row is cut into parts for several blocks, which add to the zeroed output atomically"},
    {0}};
