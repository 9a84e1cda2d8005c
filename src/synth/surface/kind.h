/* kind.h - a layer that people write, as one row: how PyTorch spells it, and the plain generic kernel that computes
 * it.
 *
 * Texts have holes: $x the value it is applied to, $m its module's name, $k its kernel's name without "_kernel", $f
 * its host function's, and each attribute by its name: in a spelling as the constructor's argument or a number, in
 * a call as what forward() can see, in code as a variable. No code bakes a size in: hosts read sizes from tensors
 * when they run. */
#ifndef MC_SYNTH_SURFACE_KIND_H
#define MC_SYNTH_SURFACE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#define KIND_ATTRS 4
#define KIND_SPELLINGS 6

/* What a kind's code is, and which inputs it wants. */
enum form {
    FORM_MAP,      /* statements that change "v" */
    FORM_REDUCE,   /* from "row[j * inner]", j below n, to "out[i]": one axis goes */
    FORM_ROW,      /* the same to "y[j * inner]": an axis stays */
    FORM_SCAN,     /* as FORM_ROW */
    FORM_LOSS,     /* statements that add a pair "a", "b" to "acc" */
    FORM_ROWLOSS,  /* statements that add row i of several tensors to "acc" */
    FORM_NORM,     /* whole text: layers with statistics */
    FORM_POOL,     /* whole text: windows */
    FORM_CONV,     /* whole text: convolutions */
    FORM_LINEAR,   /* whole text: nn.Linear */
    FORM_MATMUL,   /* whole text: products of two inputs */
    FORM_WHOLE,    /* whole text: the whole tensor's statistic */
    FORM_PARAM,    /* a map with a parameter, of one number or of one for each channel */
    FORM_RESIDUAL, /* a map that reads the value put aside */
    FORM_SPATIAL,  /* means over all axes from the third on */
    N_FORMS
};

enum {
    KIND_INT = 1,           /* the result is int64 */
    KIND_POSITIVE = 2,      /* wants inputs above 0 */
    KIND_CHAIN = 4,         /* occurs in chains */
    KIND_BEST = 8,          /* of reductions: torch.max(..)[0], which gives values and indices */
    KIND_DISTRIBUTION = 16, /* operands are distributions along the last axis */
    KIND_SIGNS = 32,        /* the target is -1 or 1 */
    KIND_BINARY = 64,       /* the target is 0 to 1 */
    KIND_CLASSES = 128,     /* the target is a class for each row */
    KIND_ROWSUM = 256,      /* divides by rows, not by elements */
    KIND_MASK = 512,        /* a second operand: a mask */
    KIND_TRANSPOSED = 1024,
    KIND_DEPTHWISE = 2048,
    KIND_POINTWISE = 4096
};

struct kind_attr {
    const char *name, *type, *values,
        *doc; /* values: alternatives parted by blanks; the first is PyTorch's default */
};

struct kind {
    const char *name, *family, *say; /* say: noun phrases, parted by '|' */
    const char *names;               /* of a parameter: what its attribute may be called, parted by '|' */
    enum form form;
    unsigned flags;
    int rank; /* spatial axes of convolutions and poolings */
    struct kind_attr attr[KIND_ATTRS];
    const char *spell[KIND_SPELLINGS]; /* "F.relu($x)", or "nn.ReLU() : $m($x)" of a module */
    const char *code, *call;
    const char *fn; /* what its functions are called; NULL: as the kind */
};

/* The tables; each ends with a row without a name. */
extern const struct kind map_kinds[], reduce_kinds[], loss_kinds[], norm_kinds[], window_kinds[], product_kinds[];

/* The operator of the registry (heldout.h) that a kind is a variant of, for the class that it is in; else its own
 * name. */
const char *kind_operator(const char *kind);

#endif
