/* kinds_loss.c - losses: one block adds up pairs, or rows, and thread 0 divides. */
#include "synth/surface/kind.h"

#define LOSS(n, s) .name = n, .family = "loss", .say = s, .form = FORM_LOSS
#define ROWS(n, s) .name = n, .family = "loss", .say = s, .form = FORM_ROWLOSS
#define EVERY(v, what) "for (int j = 0; j < m; j++) {\n" what "}\n"
#define ROW_MAX "float best = -INFINITY;\n" EVERY(j, "best = fmaxf(best, x[i * m + j]);\n")
#define ROW_SUM "float sum = 0.0f;\n" EVERY(j, "sum += expf(x[i * m + j] - best);\n")

const struct kind loss_kinds[] = {
    {LOSS("mse_loss", "mean squared error|squared error|MSE loss"),
     .spell = {"torch.mean(($x - $t) ** 2)", "F.mse_loss($x, $t$red)", "nn.MSELoss($redm) : self.$m($x, $t)",
               "(($x - $t) ** 2).mean()", "torch.nn.functional.mse_loss($x, $t$red)",
               "torch.mean(torch.square($x - $t))"},
     .code = "float d = a - b;\nacc += d * d;\n"},
    {LOSS("l1_loss", "mean absolute error|L1 loss"),
     .spell = {"torch.mean(torch.abs($x - $t))", "F.l1_loss($x, $t$red)", "nn.L1Loss($redm) : self.$m($x, $t)",
               "($x - $t).abs().mean()"},
     .code = "acc += fabsf(a - b);\n"},
    {LOSS("smooth_l1_loss", "smooth L1 loss|Huber-like loss"),
     .attr = {{"beta", "float", "1.0 0.5 2.0 0.1", "where the quadratic part ends"}},
     .spell = {"F.smooth_l1_loss($x, $t, beta=$beta$red)", "nn.SmoothL1Loss(beta=$beta$red) : self.$m($x, $t)"},
     .code = "float d = fabsf(a - b);\nacc += d < $beta ? 0.5f * d * d / $beta : d - 0.5f * $beta;\n"},
    {LOSS("smooth_l1_default", "smooth L1 loss|robust regression loss"),
     .spell = {"F.smooth_l1_loss($x, $t$red)", "nn.SmoothL1Loss($redm) : self.$m($x, $t)",
               "torch.nn.functional.smooth_l1_loss($x, $t$red)"},
     .code = "float d = fabsf(a - b);\nacc += d < 1.0f ? 0.5f * d * d : d - 0.5f;\n"},
    {LOSS("huber_loss", "Huber loss"),
     .attr = {{"delta", "float", "1.0 0.5 2.0 1.5", "where the linear part begins"}},
     .spell = {"F.huber_loss($x, $t, delta=$delta$red)", "nn.HuberLoss(delta=$delta$red) : self.$m($x, $t)"},
     .code = "float d = fabsf(a - b);\nacc += d < $delta ? 0.5f * d * d : $delta * (d - 0.5f * $delta);\n"},
    {LOSS("log_cosh_loss", "log-cosh loss"),
     .spell = {"torch.mean(torch.log(torch.cosh($x - $t)))", "torch.log(torch.cosh($x - $t)).mean()"},
     .code = "float d = fabsf(a - b);\nacc += d + log1pf(expf(-2.0f * d)) - 0.69314718f;\n"},
    {LOSS("hinge_loss", "hinge loss|margin loss of a classifier"), .flags = KIND_SIGNS,
     .spell = {"torch.clamp(1 - $x * $t, min=0).mean()", "torch.mean(F.relu(1 - $x * $t))",
               "F.relu(1.0 - $x * $t).mean()", "torch.mean(torch.clamp(1.0 - $t * $x, min=0.0))"},
     .code = "acc += fmaxf(1.0f - a * b, 0.0f);\n"},
    {LOSS("squared_hinge_loss", "squared hinge loss"), .flags = KIND_SIGNS,
     .spell = {"(torch.clamp(1 - $x * $t, min=0) ** 2).mean()", "torch.mean(F.relu(1 - $x * $t) ** 2)"},
     .code = "float d = fmaxf(1.0f - a * b, 0.0f);\nacc += d * d;\n"},
    {LOSS("soft_margin_loss", "soft margin loss|logistic loss"), .flags = KIND_SIGNS,
     .spell = {"F.soft_margin_loss($x, $t)", "nn.SoftMarginLoss() : self.$m($x, $t)",
               "torch.log(1 + torch.exp(-$t * $x)).mean()"},
     .code = "float z = -a * b;\nacc += fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z)));\n"},
    {LOSS("bce_with_logits", "binary cross entropy on logits"), .flags = KIND_BINARY,
     .spell = {"F.binary_cross_entropy_with_logits($x, $t$red)", "nn.BCEWithLogitsLoss($redm) : self.$m($x, $t)"},
     .code = "acc += fmaxf(a, 0.0f) - a * b + log1pf(expf(-fabsf(a)));\n"},
    {LOSS("kl_div", "Kullback-Leibler divergence|KL divergence"), .flags = KIND_DISTRIBUTION | KIND_ROWSUM,
     .spell = {"F.kl_div(torch.log($x), $t, reduction='batchmean')",
               "F.kl_div($x.log(), $t, reduction='batchmean')",
               "torch.sum($t * (torch.log($t) - torch.log($x))) / $x.size(0)",
               "nn.KLDivLoss(reduction='batchmean') : self.$m(torch.log($x), $t)",
               "torch.nn.functional.kl_div($x.log(), $t, reduction='batchmean')"},
     .code = "acc += b * (logf(b) - logf(a));\n"},
    {LOSS("poisson_nll", "Poisson negative log likelihood"), .flags = KIND_BINARY,
     .spell = {"F.poisson_nll_loss($x, $t)", "nn.PoissonNLLLoss() : self.$m($x, $t)",
               "(torch.exp($x) - $t * $x).mean()"},
     .code = "acc += expf(a) - b * a;\n"},
    {ROWS("cross_entropy", "cross entropy|cross-entropy loss for classification|softmax cross entropy"),
     .flags = KIND_CLASSES, .rank = 2,
     .spell = {"F.cross_entropy($x, $t$red)", "nn.CrossEntropyLoss($redm) : self.$m($x, $t)",
               "F.nll_loss(F.log_softmax($x, dim=1), $t$red)", "torch.nn.functional.cross_entropy($x, $t$red)"},
     .code = ROW_MAX ROW_SUM "acc += best + logf(sum) - x[i * m + t[i]];\n"},
    {ROWS("nll_loss", "negative log likelihood"), .flags = KIND_CLASSES, .rank = 2,
     .spell = {"F.nll_loss($x, $t$red)", "nn.NLLLoss($redm) : self.$m($x, $t)"},
     .code = "acc -= x[i * m + t[i]];\n"},
    {ROWS("triplet_margin_loss", "triplet margin loss|triplet loss for embeddings"), .rank = 3,
     .attr = {{"margin", "float", "1.0 0.5 0.3 2.0 0.2", "margin between the pairs"}},
     .spell = {"F.triplet_margin_loss($x, $t, $u, margin=$margin$red)",
               "nn.TripletMarginLoss(margin=$margin$red) : self.$m($x, $t, $u)"},
     .code = "float near = 0.0f;\nfloat far = 0.0f;\n" EVERY(
         j, "float p = x[i * m + j] - t[i * m + j] + 1e-6f;\nfloat q = x[i * m + j] - u[i * m + j] + 1e-6f;\nnear "
            "+= p * p;\nfar += q * q;\n") "acc += fmaxf(sqrtf(near) - sqrtf(far) + $margin, 0.0f);\n"},
    {ROWS("cosine_loss", "one minus the cosine similarity|cosine distance"), .rank = 1,
     .spell = {"(1 - F.cosine_similarity($x, $t, dim=1)).mean()",
               "torch.mean(1 - F.cosine_similarity($x, $t, dim=1))",
               "1 - F.cosine_similarity($x, $t, dim=-1).mean()"},
     .code = "float dot = 0.0f;\nfloat p = 0.0f;\nfloat q = 0.0f;\n" EVERY(
         j, "float a = x[i * m + j];\nfloat b = t[i * m "
            "+ j];\ndot += a * b;\np += a * a;\nq += b "
            "* b;\n") "acc += 1.0f - dot / "
                      "(fmaxf(sqrtf(p), 1e-8f) * "
                      "fmaxf(sqrtf(q), 1e-8f));\n"},
    {0}};
