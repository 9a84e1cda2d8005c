/* contract.c - schedules of contractions: matrix products, and convolutions as implicit ones. */
#include "synth/sched/sched.h"

#define CONTRACT (1u << NEST_CONTRACT)

const struct sched sched_contract_rows[] = {
    {.name = "direct", .classes = CONTRACT, .flat = {NULL}, .tune = {{{256, 128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $total) return;\n$decodeout"
               "@identity float a0 = 0.0f;\n$loops3 $product $endloops3 float s0 = a0;\n$store }\n",
     .launch = "$k<<<($total + $B1) / $B, $B>>>($args);", .about = "one thread for each output element runs all loops"},
    {.name = "tile", .classes = CONTRACT, .flat = {"b", "m", "n", "k"}, .tune = {{{16, 8, 32}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sa[$B][$B];\n__shared__ float sb[$B][$B];\nint tx = threadIdx.x;\nint ty = "
                   "threadIdx.y;\n"
               "$batch(blockIdx.z) int m = blockIdx.y * $B + ty;\nint n = blockIdx.x * $B + tx;\n@identity float a0 = "
                   "0.0f;\n"
               "for (int k0 = 0; k0 < $n3; k0 += $B) {\n"
               "@guard sa[ty][tx] = m < $n1 && k0 + tx < $n3 ? $A(m, k0 + tx) : 0.0f;\n"
               "@guard sb[ty][tx] = k0 + ty < $n3 && n < $n2 ? $Bm(k0 + ty, n) : 0.0f;\n@sync __syncthreads();\n"
               "for (int q = 0; q < $B; ++q) a0 += sa[ty][q] * sb[q][tx];\n@sync __syncthreads();\n}\n"
               "@guard if (m < $n1 && n < $n2) { $decode1 $decode2 float s0 = a0; $store }\n}\n",
     .launch = "dim3 block($B, $B);\ndim3 grid(($h2 + $B1) / $B, ($h1 + $B1) / $B, $h0);\n$k<<<grid, block>>>($args);",
     .about = "square tiles of both factors in shared memory, one output element a thread"},
    {.name = "warp", .classes = CONTRACT, .flat = {"b", "m", "n", "k"}, .tune = {{{128, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (o >= $n1 * $n2) return;\n$batch(blockIdx.y) int m = o / $n2;\nint n = o % $n2;\n$decode1 "
                   "$decode2"
               "@identity float a0 = 0.0f;\nfor (int k = lane; k < $n3; k += 32) a0 += $A(m, k) * $Bm(k, n);\n"
               "@warp for (int s = 16; s > 0; s >>= 1) a0 += __shfl_down_sync(0xffffffff, a0, s);\n"
               "@one if (lane == 0) { float s0 = a0; $store }\n}\n",
     .launch = "dim3 grid(($h1 * $h2 * 32 + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "a warp for each output element splits the sum, joined by shuffles"},
    {0}};
