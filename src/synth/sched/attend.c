/* attend.c - schedules of attention and of scatters. */
#include "synth/sched/sched.h"

#define ATTEND (1u << NEST_ATTEND)

static bool attend_short_rows(const struct nest *k)
{
    return nest_extent(k, 2) <= 2048;
}

/* Of a single key no loop is left, and with it the scope that parts the two passes' names. */
static bool attend_several_keys(const struct nest *k)
{
    return nest_extent(k, 2) > 1;
}

const struct sched sched_attend_rows[] = {
    {.name = "online", .classes = ATTEND, .flat = {NULL}, .tune = {{{64, 128}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $total) return;\n$decodeout"
               "@identity float top = -INFINITY;\n@identity float sum = 0.0f;\n@identity float acc = 0.0f;\n"
               "$loops2 $score float hi = fmaxf(top, p);\n@rescale float old = expf(top - hi);\nfloat w = expf(p - "
               "hi);\n"
               "sum = sum * old + w;\n@combine acc = acc * old + w * $value;\ntop = hi;\n$endloops2 float s0 = acc / "
               "sum;\n"
               "$store }\n",
     .launch = "$k<<<($total + $B1) / $B, $B>>>($args);",
     .about = "one thread for each output element walks the keys once, rescaling when the maximum grows"},
    {.name = "two_pass", .classes = ATTEND, .flat = {NULL}, .tune = {{{64, 128}}}, .fits = attend_several_keys,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $total) return;\n$decodeout"
               "@identity float top = -INFINITY;\n$loops2 $score top = fmaxf(top, p);\n$endloops2 "
               "@identity float sum = 0.0f;\n@identity float acc = 0.0f;\n$loops2 $score float w = expf(p - top);\n"
               "sum += w;\n@combine acc += w * $value;\n$endloops2 float s0 = acc / sum;\n$store }\n",
     .launch = "$k<<<($total + $B1) / $B, $B>>>($args);",
     .about = "one thread for each output element: first the maximum of the scores, then the weighted sum"},
    {.name = "row", .classes = ATTEND, .flat = {"b", "qi", "j", NULL, "col"}, .tune = {{{64, 128}}},
     .fits = attend_short_rows,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float p_row[$N2];\n__shared__ float sm[$B];\nint tid = threadIdx.x;\n"
               "$batch(blockIdx.y) int qi = blockIdx.x;\n$decode1 @identity float top = -INFINITY;\n"
               "for (int j = tid; j < $n2; j += $B) {\n$decode2 $score p_row[j] = p;\ntop = fmaxf(top, "
               "p);\n}\nsm[tid] = top;\n"
               "@sync __syncthreads();\n@tree for (int s = $BH; s > 0; s >>= 1) {\n"
               "if (tid < s) sm[tid] = fmaxf(sm[tid], sm[tid + s]);\n@sync __syncthreads();\n}\ntop = sm[0];\n"
               "@sync __syncthreads();\n@identity float sum = 0.0f;\nfor (int j = tid; j < $n2; j += $B) {\n"
               "float w = expf(p_row[j] - top);\np_row[j] = w;\nsum += w;\n}\nsm[tid] = sum;\n@sync __syncthreads();\n"
               "@tree for (int s = $BH; s > 0; s >>= 1) {\nif (tid < s) sm[tid] += sm[tid + s];\n@sync "
               "__syncthreads();\n}\n"
               "sum = sm[0];\nfor (int col = tid; col < $n4; col += $B) {\n$decode4 @identity float acc = 0.0f;\n"
               "for (int j = 0; j < $n2; ++j) {\n$decode2 @combine acc += p_row[j] * $value;\n}\nfloat s0 = acc / "
               "sum;\n$store }\n}\n",
     .launch = "dim3 grid($h1, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "a block for each query keeps the row of scores in shared memory"},
    {.name = "atomic", .classes = 1u << NEST_SCATTER, .flat = {"i"}, .tune = {{{128, 256, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $n0) return;\n$decode0 $scatter }\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);",
     .about = "one thread for each source element adds it to its place atomically"},
    {.name = "stride", .classes = 1u << NEST_SCATTER, .flat = {"i"}, .tune = {{{128, 256, 64}}, {{8, 16}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "@stride for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $n0; i += gridDim.x * blockDim.x) {\n"
               "$decode0 $scatter }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);",
     .about = "a fixed grid whose threads stride over the source elements and add them atomically"},
    {0}};
