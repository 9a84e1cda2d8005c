/* map.c - schedules of maps: every output element on its own. */
#include "synth/sched/sched.h"

#define MAP (1u << NEST_MAP)

/* One dimension, walked by every load and by the store. */
static bool map_four_at_once(const struct nest *k)
{
    return k->n_dims == 1 && k->out_t.dtype == DT_F32 && nest_is_pure_map(k) &&
           !ax_uses_outside(k->out, k->dim[0].name) && sched_is_wide(k, k->out);
}

const struct sched sched_map_rows[] = {
    {.name = "thread", .classes = MAP, .flat = {"i"}, .tune = {{{256, 128, 512, 64, 1024}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i < $n0) {\n$decode0 $store }\n}\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);", .about = "one thread for each output element"},
    {.name = "stride", .classes = MAP, .flat = {"i"}, .tune = {{{256, 128, 512}}, {{8, 4, 16, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "@stride for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $n0; i += gridDim.x * blockDim.x) {\n"
               "$decode0 $store }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);", .about = "a fixed grid whose threads stride over the elements"},
    {.name = "coarse", .classes = MAP, .flat = {"i"}, .tune = {{{256, 128}}, {{4, 2, 8}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int first = blockIdx.x * $B * $C + threadIdx.x;\n#pragma unroll\nfor (int u = 0; u < $C; ++u) {\n"
               "int i = first + u * $B;\n@guard if (i < $n0) {\n$decode0 $store }\n}\n}\n",
     .launch = "$k<<<($h0 + $B * $C - 1) / ($B * $C), $B>>>($args);",
     .about = "each thread handles several elements, a block apart, so that loads stay coalesced"},
    {.name = "vector", .classes = MAP, .flat = {"i"}, .tune = {{{256, 128}}}, .fits = map_four_at_once,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
               "@guard if (first + 3 < $n0 && $aligned(out)) {\nint i = first;\n$map4 } else {\n"
               "@tail for (int i = first; i < $n0 && i < first + 4; ++i) {\n$store }\n}\n}\n",
     .launch = "$k<<<(($h0 + 3) / 4 + $B1) / $B, $B>>>($args);",
     .about = "each thread loads, computes and stores four neighbouring elements at once, as float4"},
    {0}};
