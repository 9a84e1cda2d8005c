/* window.c - schedules of windows (pooling): small overlapping neighbourhoods. */
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
    {0}};
