/* tmpl.c - the kernel templates. Written for reading: what is here is what the model learns to write. */
#include "synth/tmpl.h"

#include <string.h>

#define FLAT {"[i]", "[i % N]", "[i / N]"}
#define RC {"[r * N + j]", "[j]", "[r]"}
#define IRC {"[i]", "[j]", "[r]"}
#define SCALAR {"", "", ""}

/* ---- elementwise ---- */

static const struct tmpl elementwise[] = {
    {"thread", 0, {256, 128, 64}, FLAT,
     "__global__ void k($ptrs, int n$Np) {\n"
     "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (i < n) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        o[i] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty_like(x);\n"
     "int n = x.numel();\n"
     "k<<<(n + $B1) / $B, $B>>>($args, n$Na);\n"},
    {"stride", 0, {256, 128, 64}, FLAT,
     "__global__ void k($ptrs, int n$Np) {\n"
     "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        o[i] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty_like(x);\n"
     "int n = x.numel();\n"
     "k<<<$G, $B>>>($args, n$Na);\n"},
    {"vec4", NEED_PLAIN_OPERANDS, {128, 64, 256}, SCALAR,
     "__device__ float e(float x0$up) {\n"
     "    $pre\n"
     "    return $last;\n"
     "}\n"
     "__global__ void k($ptrs, int n) {\n"
     "    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
     "    if (i + 3 < n) {\n"
     "        float4 v = *(const float4*)(x + i);\n"
     "        $uload\n"
     "        *(float4*)(o + i) = make_float4(e(v.x$ux), e(v.y$uy), e(v.z$uz), e(v.w$uw));\n"
     "    } else {\n"
     "        for (; i < n; i++) o[i] = e(x[i]$ui);\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty_like(x);\n"
     "int n = x.numel();\n"
     "k<<<((n + 3) / 4 + $B1) / $B, $B>>>($args, n);\n"},
    {"grid2d", 0, {32}, IRC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
     "    if (r < M && j < N) {\n"
     "        int i = r * N + j;\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        o[i] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty_like(x);\n"
     "int M = x.size(0), N = x.size(1);\n"
     "dim3 block(32, 8), grid((N + 31) / 32, (M + 7) / 8);\n"
     "k<<<grid, block>>>($args, M, N);\n"},
    {"row", 0, {128, 64, 32}, IRC,
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x;\n"
     "    for (int j = threadIdx.x; j < N; j += blockDim.x) {\n"
     "        int i = r * N + j;\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        o[i] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty_like(x);\n"
     "k<<<x.size(0), $B>>>($args, x.size(1));\n"},
    {0},
};

/* ---- reductions ---- */

#define SHUFFLE(in)                                                                                                    \
    in "for (int d = 16; d > 0; d /= 2) a = $M(a, __shfl_xor_sync(0xffffffff, a, d));\n"
#define TREE(in)                                                                                                       \
    in "s[t] = a;\n" in "__syncthreads();\n" in "for (int d = $H; d > 0; d /= 2) {\n" in                               \
       "    if (t < d) s[t] = $M(s[t], s[t + d]);\n" in "    __syncthreads();\n" in "}\n"
#define ROWS_HOST "int M = x.size(0), N = x.size(1);\nauto o = torch::empty({M}, x.options());\n"

static const struct tmpl row_reduce[] = {
    {"thread", 0, {64, 32, 128}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float a = $init;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            float x0 = x[r * N + j];\n"
     "            $pre\n"
     "            a = $acc;\n"
     "        }\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[r] = $last;\n"
     "    }\n"
     "}\n",
     ROWS_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, RC,
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int j = t; j < N; j += 32) {\n"
     "        float x0 = x[r * N + j];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    if (t == 0) {\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[r] = $last;\n"
     "    }\n"
     "}\n",
     ROWS_HOST "k<<<M, 32>>>($args, N);\n"},
    {"block", 0, {128, 64, 256}, RC,
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float s[$B];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     "        float x0 = x[r * N + j];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     TREE("    ")
     "    if (t == 0) {\n"
     "        a = s[0];\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[r] = $last;\n"
     "    }\n"
     "}\n",
     ROWS_HOST "k<<<M, $B>>>($args, N);\n"},
    {"warps", 0, {128, 64, 256}, RC,
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float s[32];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     "        float x0 = x[r * N + j];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    if (t % 32 == 0) s[t / 32] = a;\n"
     "    __syncthreads();\n"
     "    if (t == 0) {\n"
     "        for (int q = 1; q < $B / 32; q++) a = $M(a, s[q]);\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[r] = $last;\n"
     "    }\n"
     "}\n",
     ROWS_HOST "k<<<M, $B>>>($args, N);\n"},
    {0},
};

#define COLS_HOST "int M = x.size(0), N = x.size(1);\nauto o = torch::empty({N}, x.options());\n"

static const struct tmpl col_reduce[] = {
    {"thread", 0, {128, 64, 256}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (j < N) {\n"
     "        float a = $init;\n"
     "        for (int r = 0; r < M; r++) {\n"
     "            float x0 = x[r * N + j];\n"
     "            $pre\n"
     "            a = $acc;\n"
     "        }\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[j] = $last;\n"
     "    }\n"
     "}\n",
     COLS_HOST "k<<<(N + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int j = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int r = t; r < M; r += 32) {\n"
     "        float x0 = x[r * N + j];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    if (t == 0) {\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[j] = $last;\n"
     "    }\n"
     "}\n",
     COLS_HOST "k<<<N, 32>>>($args, M, N);\n"},
    {"tile", 0, {32}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    __shared__ float s[8][32];\n"
     "    int t = threadIdx.x, q = threadIdx.y, j = blockIdx.x * 32 + t;\n"
     "    float a = $init;\n"
     "    for (int r = q; r < M && j < N; r += 8) {\n"
     "        float x0 = x[r * N + j];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     "    s[q][t] = a;\n"
     "    __syncthreads();\n"
     "    if (q == 0 && j < N) {\n"
     "        for (int e = 1; e < 8; e++) a = $M(a, s[e][t]);\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[j] = $last;\n"
     "    }\n"
     "}\n",
     COLS_HOST "k<<<(N + 31) / 32, dim3(32, 8)>>>($args, M, N);\n"},
    {0},
};

static const struct tmpl full_reduce[] = {
    {"block", 0, {256, 128, 512}, FLAT,
     "__global__ void k($ptrs, int n) {\n"
     "    __shared__ float s[$B];\n"
     "    int t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int i = t; i < n; i += $B) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     TREE("    ")
     "    if (t == 0) {\n"
     "        a = s[0];\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[0] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty({}, x.options());\n"
     "k<<<1, $B>>>($args, x.numel());\n"},
    {"warps", 0, {256, 128, 512}, FLAT,
     "__global__ void k($ptrs, int n) {\n"
     "    __shared__ float s[32];\n"
     "    int t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int i = t; i < n; i += $B) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    if (t % 32 == 0) s[t / 32] = a;\n"
     "    __syncthreads();\n"
     "    if (t == 0) {\n"
     "        for (int q = 1; q < $B / 32; q++) a = $M(a, s[q]);\n"
     "        float $out = $fin;\n"
     "        $post\n"
     "        o[0] = $last;\n"
     "    }\n"
     "}\n",
     "auto o = torch::empty({}, x.options());\n"
     "k<<<1, $B>>>($args, x.numel());\n"},
    {"twopass", 0, {128, 64, 256}, FLAT,
     "__global__ void k($ptrs, int n) {\n"
     "    __shared__ float s[$B];\n"
     "    int t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int i = blockIdx.x * $B + t; i < n; i += gridDim.x * $B) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     TREE("    ")
     "    if (t == 0) o[blockIdx.x] = s[0];\n"
     "}\n"
     "__global__ void k2(const float* p, float* o, int n) {\n"
     "    float a = $init;\n"
     "    for (int q = 0; q < 4; q++) a = $M(a, p[q]);\n"
     "    float $out = $fin;\n"
     "    $post\n"
     "    o[0] = $last;\n"
     "}\n",
     "auto p = torch::empty({4}, x.options());\n"
     "auto o = torch::empty({}, x.options());\n"
     "k<<<4, $B>>>($inargs, p.data_ptr<float>(), x.numel());\n"
     "k2<<<1, 1>>>(p.data_ptr<float>(), o.data_ptr<float>(), x.numel());\n"},
    {"atomic", NEED_SUM, {128, 64, 256}, FLAT,
     "__global__ void k($ptrs, int n) {\n"
     "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    float a = $init;\n"
     "    if (i < n) {\n"
     "        float x0 = x[i];\n"
     "        $pre\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    if (threadIdx.x % 32 == 0) atomicAdd(o, $fin);\n"
     "}\n",
     "auto o = torch::zeros({}, x.options());\n"
     "int n = x.numel();\n"
     "k<<<(n + $B1) / $B, $B>>>($args, n);\n"},
    {0},
};

/* ---- softmax and norms: statistics per row, then applied ---- */

#define SAME_HOST "int M = x.size(0), N = x.size(1);\nauto o = torch::empty_like(x);\n"
#define APPLY(in)                                                                                                      \
    in "float $v = $P(x[r * N + j]);\n" in "float $out = $apply;\n" in "$post\n" in "o[r * N + j] = $last;\n"
#define XOR(var, op) "    for (int d = 16; d > 0; d /= 2) " var " = " op ";\n"

static const struct tmpl softmax[] = {
    {"thread", 0, {64, 32, 128}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float m = -INFINITY, s = 0.0f;\n"
     "        for (int j = 0; j < N; j++) m = fmaxf(m, $P(x[r * N + j]));\n"
     "        for (int j = 0; j < N; j++) s += expf($P(x[r * N + j]) - m);\n"
     "        for (int j = 0; j < N; j++) {\n"
     APPLY("            ")
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"online", 0, {64, 32, 128}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float m = -INFINITY, s = 0.0f;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            float $v = $P(x[r * N + j]), q = fmaxf(m, $v);\n"
     "            s = s * expf(m - q) + expf($v - q);\n"
     "            m = q;\n"
     "        }\n"
     "        for (int j = 0; j < N; j++) {\n"
     APPLY("            ")
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float m = -INFINITY, s = 0.0f;\n"
     "    for (int j = t; j < N; j += 32) m = fmaxf(m, $P(x[r * N + j]));\n"
     XOR("m", "fmaxf(m, __shfl_xor_sync(0xffffffff, m, d))")
     "    for (int j = t; j < N; j += 32) s += expf($P(x[r * N + j]) - m);\n"
     XOR("s", "s + __shfl_xor_sync(0xffffffff, s, d)")
     "    for (int j = t; j < N; j += 32) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, 32>>>($args, N);\n"},
    {"block", 0, {128, 64, 256}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float u[$B];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float m = -INFINITY, s = 0.0f;\n"
     "    for (int j = t; j < N; j += $B) m = fmaxf(m, $P(x[r * N + j]));\n"
     "    u[t] = m;\n"
     "    __syncthreads();\n"
     "    for (int d = $H; d > 0; d /= 2) {\n"
     "        if (t < d) u[t] = fmaxf(u[t], u[t + d]);\n"
     "        __syncthreads();\n"
     "    }\n"
     "    m = u[0];\n"
     "    __syncthreads();\n"
     "    for (int j = t; j < N; j += $B) s += expf($P(x[r * N + j]) - m);\n"
     "    u[t] = s;\n"
     "    __syncthreads();\n"
     "    for (int d = $H; d > 0; d /= 2) {\n"
     "        if (t < d) u[t] = u[t] + u[t + d];\n"
     "        __syncthreads();\n"
     "    }\n"
     "    s = u[0];\n"
     "    for (int j = t; j < N; j += $B) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, $B>>>($args, N);\n"},
    {0},
};

static const struct tmpl norm[] = {
    {"thread", 0, {64, 32, 128}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float a = $init;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            float $v = $P(x[r * N + j]);\n"
     "            a = $acc;\n"
     "        }\n"
     "        float s = $fin;\n"
     "        for (int j = 0; j < N; j++) {\n"
     APPLY("            ")
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int j = t; j < N; j += 32) {\n"
     "        float $v = $P(x[r * N + j]);\n"
     "        a = $acc;\n"
     "    }\n"
     SHUFFLE("    ")
     "    float s = $fin;\n"
     "    for (int j = t; j < N; j += 32) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, 32>>>($args, N);\n"},
    {"block", 0, {128, 64, 256}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float u[$B];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float a = $init;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     "        float $v = $P(x[r * N + j]);\n"
     "        a = $acc;\n"
     "    }\n"
     "    u[t] = a;\n"
     "    __syncthreads();\n"
     "    for (int d = $H; d > 0; d /= 2) {\n"
     "        if (t < d) u[t] = $M(u[t], u[t + d]);\n"
     "        __syncthreads();\n"
     "    }\n"
     "    a = u[0];\n"
     "    float s = $fin;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, $B>>>($args, N);\n"},
    {0},
};

static const struct tmpl norm2[] = {
    {"thread", 0, {64, 32, 128}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float u = 0.0f, s = 0.0f;\n"
     "        for (int j = 0; j < N; j++) u += $P(x[r * N + j]);\n"
     "        u /= N;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            float v = $P(x[r * N + j]) - u;\n"
     "            s += v * v;\n"
     "        }\n"
     "        s = $fin;\n"
     "        for (int j = 0; j < N; j++) {\n"
     APPLY("            ")
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"welford", 0, {64, 32, 128}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float u = 0.0f, s = 0.0f;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            float v = $P(x[r * N + j]), d = v - u;\n"
     "            u += d / (j + 1);\n"
     "            s += d * (v - u);\n"
     "        }\n"
     "        s = $fin;\n"
     "        for (int j = 0; j < N; j++) {\n"
     APPLY("            ")
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float u = 0.0f, s = 0.0f;\n"
     "    for (int j = t; j < N; j += 32) u += $P(x[r * N + j]);\n"
     XOR("u", "u + __shfl_xor_sync(0xffffffff, u, d)")
     "    u /= N;\n"
     "    for (int j = t; j < N; j += 32) {\n"
     "        float v = $P(x[r * N + j]) - u;\n"
     "        s += v * v;\n"
     "    }\n"
     XOR("s", "s + __shfl_xor_sync(0xffffffff, s, d)")
     "    s = $fin;\n"
     "    for (int j = t; j < N; j += 32) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, 32>>>($args, N);\n"},
    {"block", 0, {128, 64, 256}, RC,
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float p[$B], q[$B];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float u = 0.0f, s = 0.0f;\n"
     "    for (int j = t; j < N; j += $B) u += $P(x[r * N + j]);\n"
     "    p[t] = u;\n"
     "    __syncthreads();\n"
     "    for (int d = $H; d > 0; d /= 2) {\n"
     "        if (t < d) p[t] += p[t + d];\n"
     "        __syncthreads();\n"
     "    }\n"
     "    u = p[0] / N;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     "        float v = $P(x[r * N + j]) - u;\n"
     "        s += v * v;\n"
     "    }\n"
     "    q[t] = s;\n"
     "    __syncthreads();\n"
     "    for (int d = $H; d > 0; d /= 2) {\n"
     "        if (t < d) q[t] += q[t + d];\n"
     "        __syncthreads();\n"
     "    }\n"
     "    s = q[0];\n"
     "    s = $fin;\n"
     "    for (int j = t; j < N; j += $B) {\n"
     APPLY("        ")
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, $B>>>($args, N);\n"},
    {0},
};

/* ---- matrix products ---- */

#define MATMUL_HOST                                                                                                    \
    "int M = x.size($dM), K = x.size($dK), N = $Y0.size($dN);\n"                                                       \
    "auto o = torch::empty({M, N}, x.options());\n"
#define STORE(in) in "$post\n" in "o[r * N + j] = $last;\n"

static const struct tmpl matmul[] = {
    {"naive", 0, {16}, RC,
     "__global__ void k($ptrs, int M, int N, int K) {\n"
     "    int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
     "    if (r < M && j < N) {\n"
     "        float $out = 0.0f;\n"
     "        for (int q = 0; q < K; q++) $out += $A * $Y;\n"
     STORE("        ")
     "    }\n"
     "}\n",
     MATMUL_HOST "dim3 block(16, 16), grid((N + 15) / 16, (M + 15) / 16);\n"
                 "k<<<grid, block>>>($args, M, N, K);\n"},
    {"tile", 0, {16, 8}, RC,
     "__global__ void k($ptrs, int M, int N, int K) {\n"
     "    __shared__ float s[$B][$B], u[$B][$B];\n"
     "    int tx = threadIdx.x, ty = threadIdx.y;\n"
     "    int j = blockIdx.x * $B + tx, r = blockIdx.y * $B + ty;\n"
     "    float $out = 0.0f;\n"
     "    for (int p = 0; p < K; p += $B) {\n"
     "        int q = p + tx;\n"
     "        s[ty][tx] = r < M && q < K ? $A : 0.0f;\n"
     "        q = p + ty;\n"
     "        u[ty][tx] = q < K && j < N ? $Y : 0.0f;\n"
     "        __syncthreads();\n"
     "        for (int e = 0; e < $B; e++) $out += s[ty][e] * u[e][tx];\n"
     "        __syncthreads();\n"
     "    }\n"
     "    if (r < M && j < N) {\n"
     STORE("        ")
     "    }\n"
     "}\n",
     MATMUL_HOST "dim3 block($B, $B), grid((N + $B1) / $B, (M + $B1) / $B);\n"
                 "k<<<grid, block>>>($args, M, N, K);\n"},
    {"register", 0, {4, 2, 8}, RC,
     "__global__ void k($ptrs, int M, int N, int K) {\n"
     "    int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    int p = (blockIdx.y * blockDim.y + threadIdx.y) * $B;\n"
     "    if (j < N) {\n"
     "        float a[$B] = {0.0f};\n"
     "        for (int q = 0; q < K; q++)\n"
     "            for (int r = p; r < p + $B && r < M; r++) a[r - p] += $A * $Y;\n"
     "        for (int r = p; r < p + $B && r < M; r++) {\n"
     "            float $out = a[r - p];\n"
     STORE("            ")
     "        }\n"
     "    }\n"
     "}\n",
     MATMUL_HOST "dim3 block(16, 4), grid((N + 15) / 16, (M + 4 * $B - 1) / (4 * $B));\n"
                 "k<<<grid, block>>>($args, M, N, K);\n"},
    {"warp", 0, {32}, RC,
     "__global__ void k($ptrs, int M, int N, int K) {\n"
     "    int j = blockIdx.x, r = blockIdx.y, t = threadIdx.x;\n"
     "    float $out = 0.0f;\n"
     "    for (int q = t; q < K; q += 32) $out += $A * $Y;\n"
     "    for (int d = 16; d > 0; d /= 2) $out += __shfl_xor_sync(0xffffffff, $out, d);\n"
     "    if (t == 0) {\n"
     STORE("        ")
     "    }\n"
     "}\n",
     MATMUL_HOST "k<<<dim3(N, M), 32>>>($args, M, N, K);\n"},
    {0},
};

/* ---- copies: (r, j) runs over the output, which is $R by $C ---- */

#define COPY_HOST "int M = x.size(0), N = x.size(1);\nauto o = torch::empty({$R, $C}, x.options());\n"
#define MOVE(in) in "float x0 = x[$apply];\n" in "$pre\n" in "float $out = $v;\n" in "$post\n" in "o[r * $C + j] = $last;\n"

static const struct tmpl copy[] = {
    {"flat", 0, {256, 128, 64}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (i < M * N) {\n"
     "        int r = i / $C, j = i % $C;\n"
     MOVE("        ")
     "    }\n"
     "}\n",
     COPY_HOST "k<<<(M * N + $B1) / $B, $B>>>($args, M, N);\n"},
    {"grid2d", 0, {32}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
     "    if (r < $R && j < $C) {\n"
     MOVE("        ")
     "    }\n"
     "}\n",
     COPY_HOST "dim3 block(32, 8), grid(($C + 31) / 32, ($R + 7) / 8);\n"
               "k<<<grid, block>>>($args, M, N);\n"},
    {"tile", NEED_TRANSPOSE, {32}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    __shared__ float s[32][33];\n"
     "    int tx = threadIdx.x, ty = threadIdx.y, p = blockIdx.x * 32, q = blockIdx.y * 32;\n"
     "    for (int e = ty; e < 32; e += 8)\n"
     "        if (q + e < M && p + tx < N) s[e][tx] = x[(q + e) * N + p + tx];\n"
     "    __syncthreads();\n"
     "    for (int e = ty; e < 32; e += 8)\n"
     "        if (p + e < N && q + tx < M) {\n"
     "            float x0 = s[tx][e];\n"
     "            $pre\n"
     "            float $out = $v;\n"
     "            $post\n"
     "            o[(p + e) * M + q + tx] = $last;\n"
     "        }\n"
     "}\n",
     COPY_HOST "dim3 block(32, 8), grid((N + 31) / 32, (M + 31) / 32);\n"
               "k<<<grid, block>>>($args, M, N);\n"},
    {"row", 0, {64, 128, 32}, RC,
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x;\n"
     "    for (int j = threadIdx.x; j < $C; j += blockDim.x) {\n"
     MOVE("        ")
     "    }\n"
     "}\n",
     COPY_HOST "k<<<$R, $B>>>($args, M, N);\n"},
    {0},
};

/* ---- scans along rows; $apply is what is stored, $J the column visited at step j ---- */

static const struct tmpl scan[] = {
    {"thread", 0, {64, 32, 128}, {"[i]", "[$J]", "[r]"},
     "__global__ void k($ptrs, int M, int N) {\n"
     "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    if (r < M) {\n"
     "        float a = $init;\n"
     "        for (int j = 0; j < N; j++) {\n"
     "            int i = r * N + $J;\n"
     "            float x0 = x[i];\n"
     "            $pre\n"
     "            a = $acc;\n"
     "            float $out = $apply;\n"
     "            $post\n"
     "            o[i] = $last;\n"
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<(M + $B1) / $B, $B>>>($args, M, N);\n"},
    {"warp", 0, {32}, {"[i]", "[$J]", "[r]"},
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float c = $init;\n"
     "    for (int p = 0; p < N; p += 32) {\n"
     "        int j = p + t, i = r * N + $J;\n"
     "        float $v = j < N ? $P(x[i]) : $init, a = $v;\n"
     "        for (int d = 1; d < 32; d *= 2) {\n"
     "            float u = __shfl_up_sync(0xffffffff, a, d);\n"
     "            if (t >= d) a = $M(a, u);\n"
     "        }\n"
     "        a = $M(a, c);\n"
     "        c = __shfl_sync(0xffffffff, a, 31);\n"
     "        if (j < N) {\n"
     "            float $out = $apply;\n"
     "            $post\n"
     "            o[i] = $last;\n"
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, 32>>>($args, N);\n"},
    {"hillis", 0, {128, 64, 256}, {"[i]", "[$J]", "[r]"},
     "$prefn\n"
     "__global__ void k($ptrs, int N) {\n"
     "    __shared__ float s[$B];\n"
     "    int r = blockIdx.x, t = threadIdx.x;\n"
     "    float c = $init;\n"
     "    for (int p = 0; p < N; p += $B) {\n"
     "        int j = p + t, i = r * N + $J;\n"
     "        float $v = j < N ? $P(x[i]) : $init, a = $v;\n"
     "        for (int d = 1; d < $B; d *= 2) {\n"
     "            s[t] = a;\n"
     "            __syncthreads();\n"
     "            if (t >= d) a = $M(a, s[t - d]);\n"
     "            __syncthreads();\n"
     "        }\n"
     "        a = $M(a, c);\n"
     "        s[t] = a;\n"
     "        __syncthreads();\n"
     "        c = s[$B1];\n"
     "        __syncthreads();\n"
     "        if (j < N) {\n"
     "            float $out = $apply;\n"
     "            $post\n"
     "            o[i] = $last;\n"
     "        }\n"
     "    }\n"
     "}\n",
     SAME_HOST "k<<<M, $B>>>($args, N);\n"},
    {0},
};

static const struct tmpl *const groups[] = {
    [ANCHOR_NONE] = elementwise,        [ANCHOR_ROW_REDUCE] = row_reduce, [ANCHOR_COL_REDUCE] = col_reduce,
    [ANCHOR_FULL_REDUCE] = full_reduce, [ANCHOR_SOFTMAX] = softmax,       [ANCHOR_NORM] = norm,
    [ANCHOR_NORM2] = norm2,             [ANCHOR_MATMUL] = matmul,         [ANCHOR_LINEAR] = matmul,
    [ANCHOR_COPY] = copy,               [ANCHOR_SCAN] = scan,
};

const struct tmpl *tmpl_group(enum anchor a)
{
    return groups[a];
}

static bool plain_operands(const struct graph *g)
{
    return g->n_in == 1 || (g->n_in == 2 && g->input[1] == ROLE_FULL);
}

static bool is_plain_sum(const struct graph *g)
{
    const struct op *op = g->node[g->anchor].op;

    return g->anchor == g->n - 1 && !strcmp(op->text.merge, "$a + $b") && strcmp(op->text.fin, "sqrtf(a)");
}

static bool fits(const struct tmpl *t, const struct graph *g)
{
    bool transposes = g->anchor >= 0 && g->node[g->anchor].op->flags & OP_TRANSPOSES;

    return !(t->needs & NEED_PLAIN_OPERANDS && !plain_operands(g)) && !(t->needs & NEED_SUM && !is_plain_sum(g)) &&
           !(t->needs & NEED_TRANSPOSE && !transposes);
}

int tmpl_for(const struct graph *g, const struct tmpl **ret, int max)
{
    int n = 0;

    for (const struct tmpl *t = groups[graph_anchor(g)]; t->strategy && n < max; t++)
        if (fits(t, g))
            ret[n++] = t;
    return n;
}
