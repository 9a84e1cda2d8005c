/* window.c - schedules of windows (pooling): small overlapping neighbourhoods. reduce.c has more that fit. */
#include "synth/sched/sched.h"

#define WINDOW (1u << NEST_WINDOW)

const struct sched sched_window_rows[] = {
    {.name = "thread", .classes = WINDOW, .flat = {"i", NULL}, .lane = "0", .stride = "1", .tune = {{{256, 128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $n0) return;\n$decode0"
               "%{ $begin $loops1 $step $endloops1 $end %} $write }\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);", .about = "one thread for each window"},
    {.name = "stride", .classes = WINDOW, .flat = {"i", NULL}, .lane = "0", .stride = "1", .tune = {{{256, 128}},
        {{16, 8, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "@stride for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $n0; i += gridDim.x * blockDim.x) "
               "{\n$decode0"
               "%{ $begin $loops1 $step $endloops1 $end %} $write }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);", .about = "a fixed grid whose threads stride over the windows"},
    {.name = "coarse", .classes = WINDOW, .flat = {"i", NULL}, .lane = "0", .stride = "1", .tune = {{{128, 64}}, {{4,
        2}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int first = blockIdx.x * $B * $C + threadIdx.x;\nfor (int u = 0; u < $C; ++u) {\nint i = first + u * "
               "$B;\n"
               "@guard if (i < $n0) {\n$decode0 %{ $begin $loops1 $step $endloops1 $end %} $write }\n}\n}\n",
     .launch = "$k<<<($h0 + $B * $C - 1) / ($B * $C), $B>>>($args);",
     .about = "each thread handles several windows, a block apart"},
    {.name = "flat", .classes = WINDOW, .flat = {"i", "j"}, .lane = "0", .stride = "1", .tune = {{{128, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $n0) return;\n$decode0"
               "%{ $begin for (int j = 0; j < $n1; ++j) { $decode1 $step } $end %} $write }\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);",
     .about = "one thread for each window walks its taps in a single loop"},
    {.name = "line", .classes = WINDOW, .flat = {"i", NULL}, .lane = "0", .stride = "1", .tune = {{{64, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "for (int t = threadIdx.x; t < $last0; t += $B) {\nint i = blockIdx.x * $last0 + t;\n$decode0"
               "%{ $begin $loops1 $step $endloops1 $end %} $write }\n}\n",
     .launch = "$k<<<$h0 / $hlast0, $B>>>($args);", .about = "a block for each line of windows"},
    {0}};
