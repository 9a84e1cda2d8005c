/* layer_add.c - see layer.h: a function for each form. */
#include "synth/surface/layer_parts.h"

static void layer_note_kind(struct making *m, const struct kind *k)
{
    if (m->n_kinds < MAKING_KINDS)
        m->kind[m->n_kinds++] = k;
}

typedef bool (*adder)(struct making *m, const struct kind *k);

bool layer_add(struct making *m, const struct kind *k)
{
    static const adder by_form[N_FORMS] = {
        [FORM_MAP] = layer_add_map,         [FORM_REDUCE] = layer_add_reduce,    [FORM_ROW] = layer_add_row,
        [FORM_SCAN] = layer_add_row,        [FORM_LOSS] = layer_add_loss,        [FORM_ROWLOSS] = layer_add_rowloss,
        [FORM_NORM] = layer_add_norm,       [FORM_POOL] = layer_add_pool,        [FORM_CONV] = layer_add_conv,
        [FORM_LINEAR] = layer_add_linear,   [FORM_MATMUL] = layer_add_matmul,    [FORM_PARAM] = layer_add_param,
        [FORM_SPATIAL] = layer_add_spatial, [FORM_RESIDUAL] = layer_add_residual};

    m->now = k;
    if (!by_form[k->form](m, k))
        return false;
    layer_note_kind(m, k);
    if (m->chain)
        making_set(m, "x", "x");
    return true;
}
