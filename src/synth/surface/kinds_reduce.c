/* kinds_reduce.c - one axis reduced, normalised or scanned: each thread walks one row[j * inner]. */
#include "synth/surface/kind.h"

#define RED(n, s) .name = n, .family = "reduction", .say = s, .form = FORM_REDUCE
#define ROW(n, f, s) .name = n, .family = f, .say = s, .form = FORM_ROW
#define SCAN(n, s) .name = n, .family = "scan", .say = s, .form = FORM_SCAN
#define LOOP "for (int j = 0; j < n; j++) {\n"
#define DIM                            \
    {                                  \
        {                              \
            "dim", "int", NULL, "axis" \
        }                              \
    }
#define SUM_OF(e) "float sum = 0.0f;\n" LOOP "float v = row[j * inner];\nsum += " e ";\n}\n"
#define MAX_OF "float best = -INFINITY;\n" LOOP "best = fmaxf(best, row[j * inner]);\n}\n"
#define EACH(e) LOOP "y[j * inner] = " e ";\n}\n"
#define MEAN_VAR                                                                                   \
    "float mean = 0.0f;\n" LOOP "mean += row[j * inner];\n}\nmean /= n;\nfloat var = 0.0f;\n" LOOP \
    "float d = row[j * inner] - mean;\nvar += d * d;\n}\n"
#define ARG(op, first) \
    "int best = 0;\n" LOOP "if (row[j * inner] " op " row[best * inner]) {\nbest = j;\n}\n}\nout[i] = best;\n"

const struct kind reduce_kinds[] = {
    {RED("sum", "sum over a dimension|reduction by summation|sum"), .flags = KIND_CHAIN, .attr = DIM,
     .spell = {"torch.sum($x, dim=$dim$keep)", "$x.sum(dim=$dim$keep)", "torch.sum($x, $dim$keep)"},
     .code = SUM_OF("v") "out[i] = sum;\n"},
    {RED("mean", "mean over a dimension|average along an axis|mean"), .flags = KIND_CHAIN, .attr = DIM,
     .spell = {"torch.mean($x, dim=$dim$keep)", "$x.mean(dim=$dim$keep)", "torch.mean($x, $dim$keep)"},
     .code = SUM_OF("v") "out[i] = sum / n;\n"},
    {RED("max", "maximum over a dimension|max reduction|maximum"), .flags = KIND_CHAIN, .attr = DIM,
     .spell = {"torch.max($x, dim=$dim$keep)[0]", "torch.amax($x, dim=$dim$keep)", "$x.max(dim=$dim$keep).values",
               "$x.max(dim=$dim$keep)[0]"},
     .code = MAX_OF "out[i] = best;\n"},
    {RED("min", "minimum over a dimension|min reduction|minimum"), .flags = KIND_CHAIN, .attr = DIM,
     .spell = {"torch.min($x, dim=$dim$keep)[0]", "torch.amin($x, dim=$dim$keep)", "$x.min(dim=$dim$keep).values",
               "$x.min(dim=$dim$keep)[0]"},
     .code = "float best = INFINITY;\n" LOOP "best = fminf(best, row[j * inner]);\n}\nout[i] = best;\n"},
    {RED("argmax", "index of the maximum|argmax over a dimension"), .flags = KIND_INT, .attr = DIM,
     .spell = {"torch.argmax($x, dim=$dim$keep)", "$x.argmax(dim=$dim$keep)", "torch.argmax($x, $dim$keep)"},
     .code = ARG(">", )},
    {RED("argmin", "index of the minimum|argmin over a dimension"), .flags = KIND_INT, .attr = DIM,
     .spell = {"torch.argmin($x, dim=$dim$keep)", "$x.argmin(dim=$dim$keep)", "torch.argmin($x, $dim$keep)"},
     .code = ARG("<", )},
    {RED("prod", "product over a dimension|product of the elements along an axis"), .attr = DIM,
     .spell = {"torch.prod($x, dim=$dim$keep)", "$x.prod(dim=$dim$keep)"},
     .code = "float product = 1.0f;\n" LOOP "product *= row[j * inner];\n}\nout[i] = product;\n"},
    {RED("logsumexp", "log-sum-exp|logsumexp over a dimension"), .flags = KIND_CHAIN, .attr = DIM,
     .spell = {"torch.logsumexp($x, dim=$dim$keep)", "$x.logsumexp(dim=$dim$keep)"},
     .code = MAX_OF SUM_OF("expf(v - best)") "out[i] = best + logf(sum);\n"},
    {RED("l2_norm", "Euclidean norm along an axis|L2 norm over a dimension"), .attr = DIM,
     .spell = {"torch.norm($x, p=2, dim=$dim$keep)", "torch.linalg.vector_norm($x, dim=$dim$keep)",
               "$x.norm(dim=$dim$keep)", "torch.sqrt(torch.sum($x ** 2, dim=$dim$keep))"},
     .code = SUM_OF("v * v") "out[i] = sqrtf(sum);\n"},
    {RED("l1_norm", "sum of magnitudes|L1 norm over a dimension"), .attr = DIM,
     .spell = {"torch.norm($x, p=1, dim=$dim$keep)", "torch.sum(torch.abs($x), dim=$dim$keep)",
               "$x.abs().sum(dim=$dim$keep)"},
     .code = SUM_OF("fabsf(v)") "out[i] = sum;\n"},
    {RED("mean_square", "mean square|average power"), .attr = DIM,
     .spell = {"torch.mean($x ** 2, dim=$dim$keep)", "$x.pow(2).mean(dim=$dim$keep)",
               "torch.mean(torch.square($x), dim=$dim$keep)"},
     .code = SUM_OF("v * v") "out[i] = sum / n;\n"},
    {RED("var", "variance over a dimension|sample variance"), .attr = DIM,
     .spell = {"torch.var($x, dim=$dim$keep)", "$x.var(dim=$dim$keep)"},
     .code = MEAN_VAR "out[i] = var / (n - 1);\n"},
    {RED("var_biased", "biased variance|population variance"), .attr = DIM,
     .spell = {"torch.var($x, dim=$dim, unbiased=False$keep)", "$x.var(dim=$dim, unbiased=False$keep)"},
     .code = MEAN_VAR "out[i] = var / n;\n"},
    {RED("std", "standard deviation|sample standard deviation over a dimension"), .attr = DIM,
     .spell = {"torch.std($x, dim=$dim$keep)", "$x.std(dim=$dim$keep)"},
     .code = MEAN_VAR "out[i] = sqrtf(var / (n - 1));\n"},
    {ROW("softmax", "softmax", "softmax|softmax over a dimension|normalised exponentials"), .flags = KIND_CHAIN,
     .attr = DIM,
     .spell = {"torch.softmax($x, dim=$dim)", "F.softmax($x, dim=$dim)", "nn.Softmax(dim=$dim) : self.$m($x)",
               "$x.softmax(dim=$dim)"},
     .code = MAX_OF SUM_OF("expf(v - best)") EACH("expf(row[j * inner] - best) / sum")},
    {ROW("log_softmax", "softmax", "log-softmax|logarithm of the softmax|log probabilities"), .flags = KIND_CHAIN,
     .attr = DIM,
     .spell = {"torch.log_softmax($x, dim=$dim)", "F.log_softmax($x, dim=$dim)",
               "nn.LogSoftmax(dim=$dim) : self.$m($x)"},
     .code = MAX_OF SUM_OF("expf(v - best)") EACH("row[j * inner] - best - logf(sum)")},
    {ROW("softmin", "softmax", "softmin|softmax of the negative"), .attr = DIM,
     .spell = {"F.softmin($x, dim=$dim)", "nn.Softmin(dim=$dim) : self.$m($x)", "torch.softmax(-$x, dim=$dim)"},
     .code = "float best = INFINITY;\n" LOOP "best = fminf(best, row[j * inner]);\n}\n" SUM_OF("expf(best - v)")
         EACH("expf(best - row[j * inner]) / sum")},
    {ROW("l2_normalize", "norm", "L2 normalisation|scaling to unit length"), .attr = DIM,
     .spell = {"$x / torch.norm($x, p=2, dim=$dim, keepdim=True)", "$x / $x.norm(dim=$dim, keepdim=True)",
               "$x / torch.linalg.vector_norm($x, dim=$dim, keepdim=True)",
               "$x / torch.sqrt(torch.sum($x * $x, dim=$dim, keepdim=True))"},
     .code = SUM_OF("v * v") "float norm = sqrtf(sum);\n" EACH("row[j * inner] / norm")},
    {ROW("normalize", "norm", "F.normalize|normalisation to unit length, with a floor"), .attr = DIM,
     .spell = {"F.normalize($x, dim=$dim)", "F.normalize($x, p=2, dim=$dim)",
               "F.normalize($x, p=2.0, dim=$dim, eps=1e-12)"},
     .code = SUM_OF("v * v") "float norm = fmaxf(sqrtf(sum), 1e-12f);\n" EACH("row[j * inner] / norm")},
    {ROW("l1_normalize", "norm", "L1 normalisation|division by the sum of magnitudes"), .attr = DIM,
     .spell = {"$x / torch.sum(torch.abs($x), dim=$dim, keepdim=True)", "$x / $x.abs().sum(dim=$dim, keepdim=True)",
               "$x / torch.norm($x, p=1, dim=$dim, keepdim=True)"},
     .code = SUM_OF("fabsf(v)") EACH("row[j * inner] / sum")},
    {ROW("mean_abs_normalize", "norm", "division by the mean magnitude|mean-magnitude scaling"), .attr = DIM,
     .spell = {"$x / $x.abs().mean(dim=$dim, keepdim=True)", "$x / torch.abs($x).mean($dim, keepdim=True)",
               "torch.div($x, torch.mean($x.abs(), dim=$dim, keepdim=True))"},
     .code = SUM_OF("fabsf(v)") "float mean = sum / n;\n" EACH("row[j * inner] / mean")},
    {ROW("rms_normalize", "norm", "RMS normalisation|division by the root mean square"),
     .attr = {{"dim", "int", NULL, "axis"}, {"eps", "float", "1e-5 1e-6 1e-8 1e-3", "added for numerical safety"}},
     .spell = {"$x / torch.sqrt(torch.mean($x ** 2, dim=$dim, keepdim=True) + $eps)",
               "$x * torch.rsqrt($x.pow(2).mean($dim, keepdim=True) + $eps)",
               "$x / torch.sqrt($x.pow(2).mean(dim=$dim, keepdim=True) + $eps)"},
     .code = SUM_OF("v * v") "float rms = sqrtf(sum / n + $eps);\n" EACH("row[j * inner] / rms")},
    {ROW("center", "norm", "centring|subtraction of the mean"), .attr = DIM,
     .spell = {"$x - torch.mean($x, dim=$dim, keepdim=True)", "$x - $x.mean(dim=$dim, keepdim=True)"},
     .code = SUM_OF("v") "float mean = sum / n;\n" EACH("row[j * inner] - mean")},
    {SCAN("cumsum", "cumulative sum|prefix sum|running total"), .attr = DIM,
     .spell = {"torch.cumsum($x, dim=$dim)", "$x.cumsum(dim=$dim)", "torch.cumsum($x, $dim)"},
     .code = "float sum = 0.0f;\n" LOOP "sum += row[j * inner];\ny[j * inner] = sum;\n}\n"},
    {SCAN("cumprod", "cumulative product|running product"), .attr = DIM,
     .spell = {"torch.cumprod($x, dim=$dim)", "$x.cumprod(dim=$dim)", "torch.cumprod($x, $dim)"},
     .code = "float product = 1.0f;\n" LOOP "product *= row[j * inner];\ny[j * inner] = product;\n}\n"},
    {SCAN("cummax", "running maximum|cumulative maximum"), .attr = DIM,
     .spell = {"torch.cummax($x, dim=$dim)[0]", "torch.cummax($x, dim=$dim).values"},
     .code = "float best = -INFINITY;\n" LOOP "best = fmaxf(best, row[j * inner]);\ny[j * inner] = best;\n}\n"},
    {SCAN("cummin", "running minimum|cumulative minimum"), .attr = DIM,
     .spell = {"torch.cummin($x, dim=$dim)[0]", "torch.cummin($x, dim=$dim).values"},
     .code = "float best = INFINITY;\n" LOOP "best = fminf(best, row[j * inner]);\ny[j * inner] = best;\n}\n"},
    {SCAN("reverse_cumsum", "cumulative sum from the end|reverse prefix sum|suffix sum"), .attr = DIM,
     .spell = {"torch.flip(torch.cumsum(torch.flip($x, [$dim]), dim=$dim), [$dim])",
               "$x.flip($dim).cumsum($dim).flip($dim)",
               "torch.flip($x, dims=(${dim},)).cumsum(dim=$dim).flip(dims=(${dim},))",
               "torch.cumsum($x.flip(dims=[$dim]), dim=$dim).flip(dims=[$dim])"},
     .code =
         "float sum = 0.0f;\nfor (int j = n - 1; j >= 0; j--) {\nsum += row[j * inner];\ny[j * inner] = sum;\n}\n"},
    {SCAN("exclusive_cumsum", "exclusive prefix sum|cumulative sum that leaves the current element out"),
     .attr = DIM,
     .spell = {"torch.cumsum($x, dim=$dim) - $x", "$x.cumsum(dim=$dim) - $x",
               "torch.cat([torch.zeros_like($x.narrow($dim, 0, 1)), torch.cumsum($x, dim=$dim).narrow($dim, 0, "
               "$x.size($dim) - 1)], dim=$dim)",
               "torch.cat((torch.zeros_like($x.select($dim, 0)).unsqueeze($dim), torch.cumsum($x, "
               "dim=$dim).narrow($dim, 0, $x.shape[$dim] - 1)), dim=$dim)"},
     .code = "float sum = 0.0f;\n" LOOP "y[j * inner] = sum;\nsum += row[j * inner];\n}\n"},
    {SCAN("masked_cumsum", "cumulative sum of the elements that a mask keeps|masked prefix sum"),
     .flags = KIND_MASK, .attr = DIM,
     .spell = {"torch.cumsum($x * mask, dim=$dim)", "($x * mask).cumsum(dim=$dim)",
               "torch.cumsum($x.masked_fill(~mask, 0.0), dim=$dim)",
               "torch.cumsum(torch.where(mask, $x, torch.zeros_like($x)), dim=$dim)"},
     .code =
         "float sum = 0.0f;\n" LOOP "if (keep[j * inner]) {\nsum += row[j * inner];\n}\ny[j * inner] = sum;\n}\n"},
    {0}};
