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
/* Their names and words are those of constants, too (kinds_map.c): what a value is, __init__ alone says. */
#define PARAM(n, s, a, e, c)                                                                                           \
    {                                                                                                                  \
        .name = n, .family = "math", .say = s, .names = a, .form = FORM_PARAM, .flags = KIND_CHAIN, .spell = {e},      \
        .code = c "[i / inner % ${p}_size];\n"                                                                         \
    }

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
    POOL("max_pool1d", "1D max pooling|max pooling", 1, KIND_CHAIN),
    POOL("max_pool2d", "2D max pooling|max pooling|a max operation", 2, KIND_CHAIN),
    POOL("max_pool3d", "3D max pooling|max pooling|a max operation", 3, KIND_CHAIN),
    POOL("avg_pool1d", "1D average pooling|average pooling", 1, KIND_CHAIN),
    POOL("avg_pool2d", "2D average pooling|average pooling|pooling", 2, KIND_CHAIN),
    POOL("avg_pool3d", "3D average pooling|average pooling|pooling", 3, KIND_CHAIN),
    {.name = "linear",
     .family = "matmul",
     .say = "linear layer|fully connected layer|affine map|matrix multiplication",
     .form = FORM_LINEAR,
     .flags = KIND_CHAIN},
    {.name = "spatial_mean",
     .family = "pooling",
     .say = "global average pooling|mean over the spatial axes|average pooling|mean",
     .form = FORM_SPATIAL,
     .rank = 2,
     .flags = KIND_CHAIN},
    {.name = "spatial_sum",
     .family = "reduction",
     .say = "sum over the spatial axes|sum|summation",
     .form = FORM_SPATIAL,
     .rank = 2,
     .flags = KIND_CHAIN | KIND_ROWSUM},
    {.name = "sample_mean",
     .family = "reduction",
     .say = "mean of each sample|mean",
     .form = FORM_SPATIAL,
     .rank = 1,
     .flags = KIND_CHAIN},
    {.name = "sample_sum",
     .family = "reduction",
     .say = "sum of each sample|sum",
     .form = FORM_SPATIAL,
     .rank = 1,
     .flags = KIND_CHAIN | KIND_ROWSUM},
    PARAM("bias_add", "addition|addition of a bias|a bias term|a sum|addition of a parameter|a learned offset",
          "bias|bias|bias|add_value|offset|constant|sum_weight|sum_tensor|extra_bias|add_bias|shift", "$x + self.$p",
          "v = v + $p"),
    PARAM("bias_add", "addition|a bias|addition of a tensor|summation with a parameter",
          "bias|bias|bias_value|extra_bias|added|sum_value", "$x + self.$p", "v = v + $p"),
    PARAM("bias_subtract", "subtraction|subtraction of a bias|subtraction of a parameter|a learned shift",
          "subtract|subtract_value|value_to_subtract|shift|offset|bias|center", "$x - self.$p", "v = v - $p"),
    PARAM("param_scale", "scaling|multiplication|multiplication by a parameter|a learned factor|a scaling factor",
          "scale|scale|scaling_factor|scale_factor|scaling|multiplier|multiplier|factor|gain|weight|multiply_value|"
          "multiply_weight",
          "$x * self.$p", "v = v * $p"),
    {.name = "residual_add",
     .family = "math",
     .say = "a residual|a skip connection|residual addition|addition",
     .form = FORM_RESIDUAL,
     .flags = KIND_CHAIN,
     .spell = {"$x + $saved"},
     .code = "v = v + other[i];\n"},
    {.name = "residual_multiply",
     .family = "math",
     .say = "a product with an earlier value|gating by an earlier value|multiplication",
     .form = FORM_RESIDUAL,
     .flags = KIND_CHAIN,
     .spell = {"$x * $saved"},
     .code = "v = v * other[i];\n"},
    {0}};
