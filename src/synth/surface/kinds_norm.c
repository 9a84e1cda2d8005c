/* kinds_norm.c - layers with statistics, and norms of whole tensors: a block for each row, group or channel. */
#include "synth/surface/kind.h"

#define NORM(n, s) .name = n, .family = "norm", .say = s, .form = FORM_NORM
#define LOOP       "for (int j = threadIdx.x; j < n; j += blockDim.x) {\n"
/* "$k_sum" adds up what the threads of a block have; a block walks a row, a group or a channel, a warp short ones. */
#define SUM                                                                                                            \
    "__device__ float $k_sum(float v) {\n__shared__ float sums[256];\nsums[threadIdx.x] = v;\n__syncthreads();\n"      \
    "for (int s = blockDim.x / 2; s > 0; s /= 2) {\nif (threadIdx.x < s) {\n"                                          \
    "sums[threadIdx.x] += sums[threadIdx.x + s];\n}\n__syncthreads();\n}\nv = sums[0];\n__syncthreads();\n"           \
    "return v;\n}\n\n"
#define STATS(load)                                                                                                    \
    "float sum = 0.0f;\n" LOOP "sum += " load ";\n}\nfloat mean = $k_sum(sum) / n;\nsum = "                            \
    "0.0f;\n" LOOP "float d = " load " - mean;\nsum += d * d;\n}\nfloat scale = rsqrtf($k_sum(sum) / n + eps);\n"
#define THREADS(count) "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < " count ") {\n"
#define BLOCK          "int i = blockIdx.x;\n"
#define ROWS           BLOCK "const float* row = x + i * n;\nfloat* y = out + i * n;\n"
#define LAUNCH(count)  "$k_kernel<<<(" count " + 255) / 256, 256>>>("
#define ROW_BLOCKS(n)  "$k_kernel<<<" n ", n < 1024 ? 32 : 256>>>("
#define XW             "x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), "
#define XOUT           "x.data_ptr<float>(), out.data_ptr<float>(), "
#define EPS                                                                                                            \
    {                                                                                                                  \
        "eps", "float", "1e-5 1e-5 1e-5 1e-3 1e-6", "added to the variance"                                            \
    }
#define BLOCK_SUM(each)                                                                                                \
    "__shared__ float sums[256];\nfloat acc = 0.0f;\n"                                                                 \
    "for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {\n" each "}\n"                         \
    "sums[threadIdx.x] = acc;\n__syncthreads();\nfor (int s = 128; s > 0; s /= 2) {\nif (threadIdx.x < s) {\n"         \
    "sums[threadIdx.x] += sums[threadIdx.x + s];\n}\n__syncthreads();\n}\n"

#define BLOCKS "int blocks = std::min((n + 255) / 256, 1024);\n"

const struct kind norm_kinds[] = {
    {NORM("layer_norm", "layer normalisation|LayerNorm"), .flags = KIND_CHAIN, .attr = {EPS},
     .spell = {"nn.LayerNorm($shape) : self.$m($x)", "nn.LayerNorm($shape, eps=$eps) : self.$m($x)",
               "nn.LayerNorm(normalized_shape=$shape) : self.$m($x)"},
     .code = SUM
     "__global__ void $k_kernel(const float* x, const float* w, const float* b, float* out, int n, float eps) {\n" ROWS
         STATS("row[j]") LOOP
     "y[j] = (row[j] - mean) * scale * w[j] + b[j];\n}\n}\n\n"
     "torch::Tensor $f(torch::Tensor x, torch::Tensor w, torch::Tensor b, float eps) {\nauto out = "
     "torch::empty_like(x);\n"
     "int n = w.numel();\nint rows = x.numel() / n;\n" ROW_BLOCKS("rows") XW "n, eps);\nreturn out;\n}\n",
     .call = "ops.$f($x, self.$m.weight, self.$m.bias, self.$m.eps)"},
    {NORM("group_norm", "group normalisation|GroupNorm"), .flags = KIND_CHAIN,
     .attr = {{"num_groups", "int", NULL, "groups that channels are parted into"}, EPS},
     .spell = {"nn.GroupNorm($num_groups, $channels) : self.$m($x)",
               "nn.GroupNorm(num_groups=$num_groups, num_channels=$channels) : self.$m($x)",
               "nn.GroupNorm($num_groups, $channels, eps=$eps) : self.$m($x)"},
     .code = SUM "__global__ void $k_kernel(const float* x, const float* w, const float* b, float* out, int "
                 "n, int groups, int channels, int inner, float eps) {\n" ROWS STATS("row[j]") LOOP
     "int c = i % groups * (channels / groups) + j / inner;\n"
     "y[j] = (row[j] - mean) * scale * w[c] + b[c];\n}\n}\n\n"
     "torch::Tensor $f(torch::Tensor x, torch::Tensor w, torch::Tensor b, int groups, float eps) {\nauto out = "
     "torch::empty_like(x);\n"
     "int rows = x.size(0) * groups;\nint n = x.numel() / rows;\n" ROW_BLOCKS("rows") XW
     "n, groups, x.size(1), x.stride(1), eps);\nreturn out;\n}\n",
     .call = "ops.$f($x, self.$m.weight, self.$m.bias, self.$m.num_groups, self.$m.eps)"},
    {NORM("batch_norm", "batch normalisation|BatchNorm"), .flags = KIND_CHAIN, .attr = {EPS},
     .spell = {"nn.BatchNorm$bd($channels, eps=$eps, momentum=$momentum) : self.$m($x)",
               "nn.BatchNorm$bd($channels) : self.$m($x)", "nn.BatchNorm$bd(num_features=$channels) : self.$m($x)",
               "nn.BatchNorm$bd($channels, eps=$eps) : self.$m($x)"},
     .code =
         SUM "__global__ void $k_kernel(const float* x, const float* w, const float* b, float* out, int channels, "
             "int n, int inner, float eps) {\n" BLOCK STATS("x[(j / inner * channels + i) * inner + j % inner]") LOOP
     "int at = (j / inner * channels + i) * inner + j % inner;\nout[at] = (x[at] - mean) * scale * w[i] + "
     "b[i];\n}\n}\n\n"
     "torch::Tensor $f(torch::Tensor x, torch::Tensor w, torch::Tensor b, float eps) {\nauto out = "
     "torch::empty_like(x);\n"
     "int channels = x.size(1);\nint n = x.numel() / channels;\n" ROW_BLOCKS("channels") XW
     "channels, n, x.stride(1), eps);\nreturn out;\n}\n",
     .call = "ops.$f($x, self.$m.weight, self.$m.bias, self.$m.eps)"},
    {NORM("instance_norm", "instance normalisation|InstanceNorm"), .flags = KIND_CHAIN, .attr = {EPS},
     .spell = {"nn.InstanceNorm$sd($channels) : self.$m($x)",
               "nn.InstanceNorm$sd(num_features=$channels) : self.$m($x)",
               "nn.InstanceNorm$sd($channels, eps=$eps) : self.$m($x)"},
     .code = SUM "__global__ void $k_kernel(const float* x, float* out, int n, float eps) {\n" ROWS STATS("row[j]") LOOP
     "y[j] = (row[j] - mean) * scale;\n}\n}\n\n"
     "torch::Tensor $f(torch::Tensor x, float eps) {\nauto out = "
     "torch::empty_like(x);\nint rows = x.size(0) * x.size(1);\n"
     "int n = x.numel() / rows;\n" ROW_BLOCKS("rows") XOUT "n, eps);\nreturn out;\n}\n",
     .call = "ops.$f($x, self.$m.eps)"},
    {NORM("frobenius_normalize", "Frobenius normalisation|division by the Frobenius norm"), .rank = -1,
     .spell = {"norm = torch.norm($x); $x / norm", "$x / torch.norm($x)", "$x / torch.norm($x, p='fro')",
               "$x / $x.norm()", "$x / torch.sqrt(torch.sum($x ** 2))", "$x / torch.linalg.vector_norm($x)"},
     .code = "__global__ void sum_squares_kernel(const float* x, float* total, int n) {\n" BLOCK_SUM(
         "acc += x[i] * x[i];\n") "if (threadIdx.x == 0) {\natomicAdd(total, sums[0]);\n}\n}\n\n"
                                  "__global__ void $k_kernel(const float* x, const float* total, float* out, int "
                                  "n) {\n" THREADS(
                                      "n") "out[i] = x[i] / sqrtf(total[0]);\n}\n}\n\n"
                                           "torch::Tensor $f(torch::Tensor x) {\nauto out = "
                                           "torch::empty_like(x);\nauto total = torch::zeros({1}, x.options());\n"
                                           "int n = x.numel();\n" BLOCKS
                                           "sum_squares_kernel<<<blocks, 256>>>(x.data_ptr<float>(), "
                                           "total.data_ptr<float>(), n);\n" LAUNCH(
                                               "n") "x.data_ptr<float>(), total.data_ptr<float>(), "
                                                    "out.data_ptr<float>(), n);\nreturn out;\n}\n",
     .call = "ops.$f($x)"},
    {.name = "total_sum",
     .family = "reduction",
     .say = "sum of all elements|total",
     .form = FORM_NORM,
     .rank = -1,
     .spell = {"torch.sum($x)", "$x.sum()"},
     .code = "__global__ void $k_kernel(const float* x, float* out, int n) {\n" BLOCK_SUM(
         "acc += x[i];\n") "if (threadIdx.x == 0) {\natomicAdd(out, sums[0]);\n}\n}\n\n"
                           "torch::Tensor $f(torch::Tensor x) {\nauto out = torch::zeros({}, x.options());\nint n "
                           "= x.numel();\n" BLOCKS "$k_kernel<<<blocks, 256>>>(" XOUT "n);\nreturn out;\n}\n",
     .call = "ops.$f($x)"},
    {.name = "total_mean",
     .family = "reduction",
     .say = "mean of all elements|overall average",
     .form = FORM_NORM,
     .rank = -1,
     .spell = {"torch.mean($x)", "$x.mean()"},
     .code = "__global__ void $k_kernel(const float* x, float* out, int n) {\n" BLOCK_SUM(
         "acc += x[i];\n") "if (threadIdx.x == 0) {\natomicAdd(out, sums[0] / n);\n}\n}\n\n"
                           "torch::Tensor $f(torch::Tensor x) {\nauto out = torch::zeros({}, x.options());\nint n "
                           "= x.numel();\n" BLOCKS "$k_kernel<<<blocks, 256>>>(" XOUT "n);\nreturn out;\n}\n",
     .call = "ops.$f($x)"},
    {0}};
