/* scan.c - schedules of scans: running sums and products along an axis, forwards or backwards. */
#include "synth/sched/sched.h"

#define SCAN (1u << NEST_SCAN)
#define FLAT {"row", "j"}

const struct sched sched_scan_rows[] = {
    {.name = "thread", .classes = SCAN, .flat = FLAT, .tune = {{{64, 128, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (row >= $n0) return;\n$decode0 $scanbegin "
               "for (int q = 0; q < $n1; ++q) {\nint j = $J(q);\n$element $before @combine a0 = $mergev(a0; "
               "e0);\n$after }\n}\n",
     .launch = "$k<<<($h0 + $B1) / $B, $B>>>($args);", .about
         = "one thread walks each row and keeps the running value"},
    {.name = "warp", .classes = SCAN, .flat = FLAT, .tune = {{{128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (row >= $n0) return;\n$decode0 @identity float carry = $identity;\n"
               "for (int q0 = 0; q0 < $n1; q0 += 32) {\nint q = q0 + lane;\nint j = $J(q);\n@identity float v = "
               "$identity;\n"
               "@guard if (q < $n1) {\n$element v = e0;\n}\n"
               "@warp for (int s = 1; s < 32; s <<= 1) {\nfloat t = __shfl_up_sync(0xffffffff, v, s);\n"
               "if (lane >= s) v = $mergev(t; v);\n}\n$exclusive(lane) "
               "@guard if (q < $n1) {\n$running }\n"
               "carry = $mergev(carry; __shfl_sync(0xffffffff, v, 31));\n}\n}\n",
     .launch = "$k<<<($h0 * 32 + $B1) / $B, $B>>>($args);",
     .about = "a warp scans 32 elements by shuffles and carries the total on to the next 32"},
    {.name = "hillis", .classes = SCAN, .flat = FLAT, .tune = {{{128, 64, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sm[$B];\nint row = blockIdx.x;\nint tid = threadIdx.x;\n$decode0 "
               "@identity float carry = $identity;\n"
               "for (int q0 = 0; q0 < $n1; q0 += $B) {\nint q = q0 + tid;\nint j = $J(q);\n@identity float v = "
               "$identity;\n"
               "@guard if (q < $n1) {\n$element v = e0;\n}\nsm[tid] = v;\n@sync __syncthreads();\n"
               "for (int s = 1; s < $B; s <<= 1) {\nfloat t = tid >= s ? sm[tid - s] : $identity;\n@sync "
               "__syncthreads();\n"
               "sm[tid] = $mergev(t; sm[tid]);\n@sync __syncthreads();\n}\nv = sm[tid];\n$exclusivesm "
               "@guard if (q < $n1) {\n$running }\n"
               "carry = $mergev(carry; sm[$B1]);\n@sync __syncthreads();\n}\n}\n",
     .launch = "$k<<<$h0, $B>>>($args);",
     .about = "a block scans $B elements in shared memory, doubling the distance each step, and carries the total on"},
    {.name = "serial_chunks", .classes = SCAN, .flat = FLAT, .tune = {{{64, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sm[$B];\nint row = blockIdx.x;\nint tid = threadIdx.x;\n$decode0 "
               "int chunk = ($n1 + $B1) / $B;\n@guard int first = min(tid * chunk, $n1);\n"
               "@guard int last = min(first + chunk, $n1);\n"
               "@identity float total = $identity;\nfor (int q = first; q < last; ++q) {\nint j = $J(q);\n$element "
               "total = $mergev(total; e0);\n}\nsm[tid] = total;\n@sync __syncthreads();\n@identity float a0 = "
               "$identity;\n"
               "for (int t = 0; t < tid; ++t) a0 = $mergev(a0; sm[t]);\n"
               "for (int q = first; q < last; ++q) {\nint j = $J(q);\n$element $before "
               "@combine a0 = $mergev(a0; e0);\n$after }\n}\n",
     .launch = "$k<<<$h0, $B>>>($args);",
     .about = "each thread of a block totals a chunk, adds the totals in front of it, and walks its chunk once more"},
    {0}};
