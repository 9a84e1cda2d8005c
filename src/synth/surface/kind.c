/* kind.c - see kind.h: which operator a kind is a variant of. */
#include "synth/surface/kind.h"

#include <string.h>

const char *kind_operator(const char *kind)
{
    static const char *const variants[][2] = {{"softplus_beta", "softplus"},
                                              {"smooth_l1_default", "smooth_l1_loss"},
                                              {"mean_abs_normalize", "mean_abs"},
                                              {"log1p_abs", "log1p"},
                                              {"matvec", "mv"},
                                              {"depthwise_conv1d", "conv1d"},
                                              {"squared_hinge_loss", "hinge_loss"}};

    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (!strcmp(kind, variants[i][0]))
            return variants[i][1];
    return kind;
}
