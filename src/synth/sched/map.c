/* map.c - schedules of maps: every output element on its own. */
#include "synth/sched/sched.h"

#define MAP (1u << NEST_MAP)

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
    {0}};
