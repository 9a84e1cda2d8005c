/* kinds_window.c - convolutions, poolings, linear layers, and what stands behind them in chains. */
#include "synth/surface/kind.h"

#define CONV(n, s, d, f)                                                                                               \
    {                                                                                                                  \
        .name = n, .family = "convolution", .say = s, .form = FORM_CONV, .rank = d, .flags = f                         \
    }
#define POOL(n, s, d, f)                                                                                               \
    {                                                                                                                  \
        .name = n, .family = "pooling", .say = s, .form = FORM_POOL, .rank = d, .flags = f                             \
    }
#define PARAM(n, s, e, c)                                                                                              \
    {                                                                                                                  \
        .name = n, .family = "math", .say = s, .form = FORM_PARAM, .flags = KIND_CHAIN, .spell = {e}, .code = c        \
    }
#define AT "[i / inner % channels];\n"

const struct kind window_kinds[] = {
    CONV("conv1d", "1D convolution|convolution over a sequence", 1, 0),
    CONV("conv2d", "2D convolution|convolution over an image", 2, KIND_CHAIN),
    CONV("conv3d", "3D convolution|convolution over a volume", 3, KIND_CHAIN),
    CONV("depthwise_conv2d", "depthwise 2D convolution|a convolution of each channel by itself", 2, KIND_DEPTHWISE),
    CONV("depthwise_conv1d", "depthwise 1D convolution", 1, KIND_DEPTHWISE),
    CONV("pointwise_conv2d", "pointwise convolution|1x1 convolution", 2, KIND_POINTWISE),
    CONV("conv_transpose1d", "transposed 1D convolution", 1, KIND_TRANSPOSED),
    CONV("conv_transpose2d", "transposed 2D convolution|2D deconvolution", 2, KIND_TRANSPOSED | KIND_CHAIN),
    CONV("conv_transpose3d", "transposed 3D convolution|3D deconvolution", 3, KIND_TRANSPOSED | KIND_CHAIN),
    POOL("max_pool1d", "1D max pooling", 1, 0),
    POOL("max_pool2d", "2D max pooling|max pooling", 2, KIND_CHAIN),
    POOL("max_pool3d", "3D max pooling", 3, KIND_CHAIN),
    POOL("avg_pool1d", "1D average pooling", 1, 0),
    POOL("avg_pool2d", "2D average pooling|average pooling", 2, KIND_CHAIN),
    POOL("avg_pool3d", "3D average pooling", 3, KIND_CHAIN),
    {.name = "linear",
     .family = "matmul",
     .say = "linear layer|fully connected layer|affine map",
     .form = FORM_LINEAR,
     .flags = KIND_CHAIN},
    {.name = "spatial_mean",
     .family = "pooling",
     .say = "global average pooling|mean over the spatial axes",
     .form = FORM_SPATIAL,
     .rank = 2,
     .flags = KIND_CHAIN},
    {.name = "spatial_sum",
     .family = "reduction",
     .say = "sum over the spatial axes",
     .form = FORM_SPATIAL,
     .rank = 2,
     .flags = KIND_CHAIN | KIND_ROWSUM},
    {.name = "sample_mean",
     .family = "reduction",
     .say = "mean of each sample",
     .form = FORM_SPATIAL,
     .rank = 1,
     .flags = KIND_CHAIN},
    PARAM("bias_add", "bias|extra_bias|add_bias|add_value|offset|constant", "$x + self.$p", "v = v + $p" AT),
    PARAM("bias_add", "bias|bias|extra_bias|add_bias|sum_weight", "$x + self.$p", "v = v + $p" AT),
    PARAM("bias_subtract", "subtract|shift|subtract_value|center", "$x - self.$p", "v = v - $p" AT),
    PARAM("param_scale", "scale|multiplier|gain|weight|scaling_factor|factor", "$x * self.$p", "v = v * $p" AT),
    {.name = "scalar_scale",
     .family = "math",
     .say = "scale|scaling|factor|multiplier",
     .form = FORM_PARAM,
     .flags = KIND_CHAIN,
     .rank = 1,
     .spell = {"$x * self.$p"},
     .code = "v = v * $p[0];\n"},
    {.name = "residual_add",
     .family = "math",
     .say = "a residual|a skip connection",
     .form = FORM_RESIDUAL,
     .flags = KIND_CHAIN,
     .spell = {"$x + $saved"},
     .code = "v = v + other[i];\n"},
    {.name = "residual_multiply",
     .family = "math",
     .say = "a product with an earlier value|gating by an earlier value",
     .form = FORM_RESIDUAL,
     .flags = KIND_CHAIN,
     .spell = {"$x * $saved"},
     .code = "v = v * other[i];\n"},
    {0}};
