/* contract.c - schedules of contractions: matrix products, and convolutions as implicit ones. */
#include "synth/sched/sched.h"

#define CONTRACT (1u << NEST_CONTRACT)
#define FLAT {"b", "m", "n", "k"}

/* Sums that are worth splitting, products that are worth tiling. */
static bool contract_long_sum(const struct nest *k)
{
    return nest_extent(k, 3) >= 16;
}

static bool contract_both_sides(const struct nest *k)
{
    return nest_extent(k, 1) >= 4 && nest_extent(k, 2) >= 4;
}

static bool contract_wide(const struct nest *k)
{
    return nest_extent(k, 2) >= 4;
}

/* The factor is a plain load whose fast dimension is the only one of its group. */
static bool contract_along(const struct nest *k, const struct ax *x, int group)
{
    int d[NEST_DIMS];

    for (int g = 1; g < 4; g++)
        if (nest_group(k, g, d) > 1)
            return false;
    return nest_group(k, group, d) == 1 && x->kind == AX_LOAD && !x->let && x->n &&
           ax_is_id(x->kid[x->n - 1], k->dim[d[0]].name) && x->ext[x->n - 1].n == k->dim[d[0]].n &&
           k->in[x->i].t.dtype == DT_F32;
}

/* Both factors lie along the sum: a linear layer. */
static bool contract_dots(const struct nest *k)
{
    return nest_extent(k, 3) >= 4 && contract_along(k, k->a, 3) && contract_along(k, k->b, 3);
}

/* The right factor lies along the columns: a plain matrix product. */
static bool contract_columns(const struct nest *k)
{
    return nest_extent(k, 2) >= 4 && contract_along(k, k->b, 2) && k->a->kind == AX_LOAD && !k->a->let;
}

const struct sched sched_contract_rows[] = {
    {.name = "direct", .classes = CONTRACT, .flat = {NULL}, .tune = {{{256, 128, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int i = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (i >= $total) return;\n$decodeout"
               "@identity float a0 = 0.0f;\n$loops3 $product $endloops3 float s0 = a0;\n$store }\n",
     .launch = "$k<<<($total + $B1) / $B, $B>>>($args);",
     .about = "one thread for each output element runs all loops"},
    {.name = "stride", .classes = CONTRACT, .flat = {NULL}, .tune = {{{128, 256}}, {{32, 16, 64}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "@stride for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $total; i += gridDim.x * blockDim.x) "
               "{\n"
               "$decodeout @identity float a0 = 0.0f;\n$loops3 $product $endloops3 float s0 = a0;\n$store }\n}\n",
     .launch = "$k<<<$C, $B>>>($args);", .about = "a fixed grid whose threads stride over the output elements"},
    {.name = "unroll", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 256}}}, .fits = contract_long_sum,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (o >= $n1 * $n2) return;\n"
               "$batch(blockIdx.y) int m = o / $n2;\nint n = o % $n2;\n"
               "@identity float a0 = 0.0f;\n@identity float a1 = 0.0f;\n@identity float a2 = 0.0f;\n"
               "@identity float a3 = 0.0f;\nint k = 0;\n"
               "for (; k + 3 < $n3; k += 4) {\na0 += $A(m, k) * $Bm(k, n);\na1 += $A(m, k + 1) * $Bm(k + 1, n);\n"
               "a2 += $A(m, k + 2) * $Bm(k + 2, n);\na3 += $A(m, k + 3) * $Bm(k + 3, n);\n}\n"
               "@tail for (; k < $n3; ++k) a0 += $A(m, k) * $Bm(k, n);\n"
               "$decode1 $decode2 float s0 = (a0 + a1) + (a2 + a3);\n$store }\n",
     .launch = "dim3 grid(($h1 * $h2 + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "one thread for each output element, four sums at once so that additions overlap"},
    {.name = "coarse", .classes = CONTRACT, .flat = FLAT, .tune = {{{64, 128}}, {{4, 2}}}, .fits = contract_wide,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\nint width = ($n2 + $C - 1) / $C;\n"
               "@guard if (o >= $n1 * width) return;\n$batch(blockIdx.y) int m = o / width;\nint n0 = o % width * $C;\n"
               "float acc[$C];\nfor (int u = 0; u < $C; ++u) acc[u] = 0.0f;\n"
               "for (int k = 0; k < $n3; ++k) {\nfloat left = $A(m, k);\n"
               "for (int u = 0; u < $C; ++u) {\n@guard if (n0 + u < $n2) acc[u] += left * $Bm(k, n0 + "
               "u);\n}\n}\n$decode1 "
               "for (int u = 0; u < $C; ++u) {\nint n = n0 + u;\n@guard if (n < $n2) {\n$decode2 float s0 = acc[u];\n"
               "$store }\n}\n}\n",
     .launch = "dim3 grid(($h1 * (($h2 + $C - 1) / $C) + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "each thread keeps several neighbouring outputs in registers and loads the left factor once for them"},
    {.name = "tile", .classes = CONTRACT, .flat = FLAT, .tune = {{{16, 8, 32}}}, .fits = contract_both_sides,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sa[$B][$B];\n__shared__ float sb[$B][$B];\n"
               "int tx = threadIdx.x;\nint ty = threadIdx.y;\n$batch(blockIdx.z) "
               "int m = blockIdx.y * $B + ty;\nint n = blockIdx.x * $B + tx;\n@identity float a0 = 0.0f;\n"
               "for (int k0 = 0; k0 < $n3; k0 += $B) {\n"
               "@guard sa[ty][tx] = m < $n1 && k0 + tx < $n3 ? $A(m, k0 + tx) : 0.0f;\n"
               "@guard sb[ty][tx] = k0 + ty < $n3 && n < $n2 ? $Bm(k0 + ty, n) : 0.0f;\n@sync __syncthreads();\n"
               "for (int q = 0; q < $B; ++q) a0 += sa[ty][q] * sb[q][tx];\n@sync __syncthreads();\n}\n"
               "@guard if (m < $n1 && n < $n2) { $decode1 $decode2 float s0 = a0; $store }\n}\n",
     .launch = "dim3 block($B, $B);\ndim3 grid(($h2 + $B1) / $B, ($h1 + $B1) / $B, $h0);\n$k<<<grid, block>>>($args);",
     .about = "square tiles of both factors in shared memory, one output element a thread"},
    {.name = "double", .classes = CONTRACT, .flat = FLAT, .tune = {{{16, 8}}}, .fits = contract_both_sides,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sa[2][$B][$B];\n__shared__ float sb[2][$B][$B];\n"
               "int tx = threadIdx.x;\nint ty = threadIdx.y;\n$batch(blockIdx.z) "
               "int m = blockIdx.y * $B + ty;\nint n = blockIdx.x * $B + tx;\n@identity float a0 = 0.0f;\nint now = "
               "0;\n"
               "@guard sa[0][ty][tx] = m < $n1 && tx < $n3 ? $A(m, tx) : 0.0f;\n"
               "@guard sb[0][ty][tx] = ty < $n3 && n < $n2 ? $Bm(ty, n) : 0.0f;\n@sync __syncthreads();\n"
               "for (int k0 = 0; k0 < $n3; k0 += $B) {\nint k1 = k0 + $B;\nif (k1 < $n3) {\n"
               "@guard sa[1 - now][ty][tx] = m < $n1 && k1 + tx < $n3 ? $A(m, k1 + tx) : 0.0f;\n"
               "@guard sb[1 - now][ty][tx] = k1 + ty < $n3 && n < $n2 ? $Bm(k1 + ty, n) : 0.0f;\n}\n"
               "for (int q = 0; q < $B; ++q) a0 += sa[now][ty][q] * sb[now][q][tx];\n@sync __syncthreads();\n"
               "now = 1 - now;\n}\n"
               "@guard if (m < $n1 && n < $n2) { $decode1 $decode2 float s0 = a0; $store }\n}\n",
     .launch = "dim3 block($B, $B);\ndim3 grid(($h2 + $B1) / $B, ($h1 + $B1) / $B, $h0);\n$k<<<grid, block>>>($args);",
     .about = "two sets of shared tiles: the next is loaded while this one is used, one barrier a step"},
    {.name = "register", .classes = CONTRACT, .flat = FLAT, .tune = {{{8, 16}}, {{4, 2}}}, .fits = contract_both_sides,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sa[$B * $C][$B];\n__shared__ float sb[$B][$B * $C];\n"
               "int tx = threadIdx.x;\nint ty = threadIdx.y;\n$batch(blockIdx.z) "
               "int m0 = blockIdx.y * $B * $C;\nint n0 = blockIdx.x * $B * $C;\nfloat acc[$C][$C];\n"
               "for (int u = 0; u < $C; ++u) for (int v = 0; v < $C; ++v) acc[u][v] = 0.0f;\n"
               "for (int k0 = 0; k0 < $n3; k0 += $B) {\nfor (int u = 0; u < $C; ++u) {\n"
               "int ma = m0 + u * $B + ty;\nint nb = n0 + u * $B + tx;\n"
               "@guard sa[u * $B + ty][tx] = ma < $n1 && k0 + tx < $n3 ? $A(ma, k0 + tx) : 0.0f;\n"
               "@guard sb[ty][u * $B + tx] = k0 + ty < $n3 && nb < $n2 ? $Bm(k0 + ty, nb) : 0.0f;\n}\n"
               "@sync __syncthreads();\nfor (int q = 0; q < $B; ++q) {\nfor (int u = 0; u < $C; ++u) {\n"
               "float left = sa[u * $B + ty][q];\n"
               "for (int v = 0; v < $C; ++v) acc[u][v] += left * sb[q][v * $B + tx];\n}\n}\n@sync __syncthreads();\n}\n"
               "for (int u = 0; u < $C; ++u) {\nfor (int v = 0; v < $C; ++v) {\n"
               "int m = m0 + u * $B + ty;\nint n = n0 + v * $B + tx;\n"
               "@guard if (m < $n1 && n < $n2) { $decode1 $decode2 float s0 = acc[u][v]; $store }\n}\n}\n}\n",
     .launch = "dim3 block($B, $B);\ndim3 grid(($h2 + $B * $C - 1) / ($B * $C), ($h1 + $B * $C - 1) / ($B * $C), "
         "$h0);\n"
               "$k<<<grid, block>>>($args);",
     .about = "shared tiles, and a small square of outputs in each thread's registers"},
    {.name = "vector", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 256}}}, .fits = contract_dots,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (o >= $n1 * $n2) return;\n"
               "$batch(blockIdx.y) int m = o / $n2;\nint n = o % $n2;\n@identity float a0 = 0.0f;\n"
               "@guard int wide = $n3 % 4 == 0 && $aligned() ? $n3 : 0;\n"
               "for (int k = 0; k < wide; k += 4) {\nfloat4 p = *(const float4*)&$A(m, k);\n"
               "float4 q = *(const float4*)&$Bm(k, n);\n"
               "a0 += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;\n}\n"
               "@tail for (int k = wide; k < $n3; ++k) a0 += $A(m, k) * $Bm(k, n);\n"
               "$decode1 $decode2 float s0 = a0;\n$store }\n",
     .launch = "dim3 grid(($h1 * $h2 + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "one thread for each output element loads four elements of both factors at once, as float4"},
    {.name = "columns", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 64}}}, .fits = contract_columns,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\nint width = ($n2 + 3) / 4;\n"
               "@guard if (o >= $n1 * width) return;\n$batch(blockIdx.y) int m = o / width;\nint n0 = o % width * 4;\n"
               "float acc[4];\nfor (int u = 0; u < 4; ++u) acc[u] = 0.0f;\n"
               "@guard if ($n2 % 4 == 0 && $aligned()) {\nfor (int k = 0; k < $n3; ++k) {\nfloat left = $A(m, k);\n"
               "float4 q = *(const float4*)&$Bm(k, n0);\nacc[0] += left * q.x;\nacc[1] += left * q.y;\n"
               "acc[2] += left * q.z;\nacc[3] += left * q.w;\n}\n} else {\n"
               "for (int k = 0; k < $n3; ++k) {\nfor (int u = 0; u < 4; ++u) {\n"
               "@guard if (n0 + u < $n2) acc[u] += $A(m, k) * $Bm(k, n0 + u);\n}\n}\n}\n$decode1 "
               "for (int u = 0; u < 4; ++u) {\nint n = n0 + u;\n@guard if (n < $n2) {\n$decode2 float s0 = acc[u];\n"
               "$store }\n}\n}\n",
     .launch = "dim3 grid(($h1 * (($h2 + 3) / 4) + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "each thread keeps four neighbouring columns and loads the right factor for them at once, as float4"},
    {.name = "warp", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 256}}},
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "@guard if (o >= $n1 * $n2) return;\n$batch(blockIdx.y) int m = o / $n2;\nint n = o % $n2;\n"
               "$decode1 $decode2 @identity float a0 = 0.0f;\n"
               "for (int k = lane; k < $n3; k += 32) a0 += $A(m, k) * $Bm(k, n);\n"
               "@warp for (int s = 16; s > 0; s >>= 1) a0 += __shfl_down_sync(0xffffffff, a0, s);\n"
               "@one if (lane == 0) { float s0 = a0; $store }\n}\n",
     .launch = "dim3 grid(($h1 * $h2 * 32 + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "a warp for each output element splits the sum, joined by shuffles"},
    {.name = "shuffle", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 64}}}, .fits = contract_wide,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\nint lane = threadIdx.x % 32;\n"
               "int width = ($n2 + 31) / 32;\n@guard if (warp >= $n1 * width) return;\n$batch(blockIdx.y) "
               "int m = warp / width;\nint n = warp % width * 32 + lane;\n@identity float a0 = 0.0f;\n"
               "for (int k0 = 0; k0 < $n3; k0 += 32) {\n"
               "@guard float left = k0 + lane < $n3 ? $A(m, k0 + lane) : 0.0f;\nfor (int q = 0; q < 32; ++q) {\n"
               "@warp float l = __shfl_sync(0xffffffff, left, q);\n"
               "@guard if (k0 + q < $n3 && n < $n2) a0 += l * $Bm(k0 + q, n);\n}\n}\n"
               "@guard if (n < $n2) { $decode1 $decode2 float s0 = a0; $store }\n}\n",
     .launch = "dim3 grid(($h1 * (($h2 + 31) / 32) * 32 + $B1) / $B, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "a warp owns 32 neighbouring columns of a row; its lanes load the left factor once and pass it round"},
    {.name = "block", .classes = CONTRACT, .flat = FLAT, .tune = {{{64, 128}}}, .fits = contract_long_sum,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "__shared__ float sm[$B];\nint tid = threadIdx.x;\n$batch(blockIdx.z) int m = blockIdx.y;\n"
               "int n = blockIdx.x;\n$decode1 $decode2 @identity float a0 = 0.0f;\n"
               "for (int k = tid; k < $n3; k += $B) a0 += $A(m, k) * $Bm(k, n);\nsm[tid] = a0;\n@sync "
               "__syncthreads();\n"
               "@tree for (int s = $BH; s > 0; s >>= 1) {\nif (tid < s) sm[tid] += sm[tid + s];\n@sync "
               "__syncthreads();\n"
               "}\n@one if (tid == 0) { float s0 = sm[0]; $store }\n}\n",
     .launch = "dim3 grid($h2, $h1, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "a block for each output element splits the sum, joined by a tree in shared memory"},
    {.name = "split", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 64}}, {{4, 2, 8}}}, .fits = contract_long_sum,
     .kernel = "__global__ void $k_part($parampart) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (o >= $n1 * $n2) return;\n"
               "int b = blockIdx.z;\nint m = o / $n2;\nint n = o % $n2;\nint chunk = ($n3 + $C - 1) / $C;\n"
               "int first = blockIdx.y * chunk;\n@guard int last = min(first + chunk, $n3);\n@identity float a0 = "
               "0.0f;\n"
               "for (int k = first; k < last; ++k) a0 += $A(m, k) * $Bm(k, n);\n"
               "part[(b * $C + blockIdx.y) * ($n1 * $n2) + o] = a0;\n}\n\n"
               "__global__ void $k($paramjoin) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (o >= $n1 * $n2) return;\n"
               "int b = blockIdx.y;\n$decodebatch int m = o / $n2;\nint n = o % $n2;\n$decode1 $decode2"
               "@identity float a0 = 0.0f;\nfor (int q = 0; q < $C; ++q) a0 += part[(b * $C + q) * ($n1 * $n2) + o];\n"
               "float s0 = a0;\n$store }\n",
     .launch = "auto part = torch::empty({$C * $total}, $x.options().dtype(torch::kFloat32));\n"
               "dim3 grid(($h1 * $h2 + $B1) / $B, $C, $h0);\n$k_part<<<grid, $B>>>($argpart);\n"
               "dim3 join(($h1 * $h2 + $B1) / $B, $h0);\n$k<<<join, $B>>>($argjoin);",
     .about = "the sum is cut into parts that run side by side; a second kernel adds them up"},
    {.name = "atomic", .classes = CONTRACT, .flat = FLAT, .tune = {{{128, 64}}, {{4, 2, 8}}}, .fits = contract_long_sum,
     .flags = SCHED_ATOMIC,
     .kernel = "__global__ void $k($params) {\n$sizes"
               "int o = blockIdx.x * blockDim.x + threadIdx.x;\n@guard if (o >= $n1 * $n2) return;\n"
               "$batch(blockIdx.z) int m = o / $n2;\nint n = o % $n2;\nint chunk = ($n3 + $C - 1) / $C;\n"
               "int first = blockIdx.y * chunk;\n@guard int last = min(first + chunk, $n3);\n$decode1 $decode2"
               "@identity float a0 = 0.0f;\nfor (int k = first; k < last; ++k) a0 += $A(m, k) * $Bm(k, n);\n"
               "float s0 = a0;\n$add }\n",
     .launch = "dim3 grid(($h1 * $h2 + $B1) / $B, $C, $h0);\n$k<<<grid, $B>>>($args);",
     .about = "the sum is cut into parts that add to the zeroed output atomically"},
    {0}};
