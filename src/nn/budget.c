/* budget.c - see budget.h. */
#include "nn/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/dev_model.h"

/* A model without weights: what the planner asks of one. */
static struct model budget_outline(const struct model_config *c, struct dev_model *g, const char *dtype)
{
    struct model m = {.config = *c, .dev = g};

    m.layers = xcalloc((size_t)c->num_layers, sizeof *m.layers);
    for (int i = 0; i < c->num_layers; i++)
        m.layers[i].mix = c->linear[i] ? MIX_DELTA : MIX_ATTENTION;
    *g = (struct dev_model){.dt = dtype && !strcmp(dtype, "fp32") ? NN_F32 : NN_BF16, .dims = model_dims(&m)};
    return m;
}

/* Bytes of the gradients that one bucket has at a time (dev_parts.c): an embedding, or a layer that is a quarter larger
 * than their mean. */
static size_t budget_window(const struct model_config *c)
{
    size_t words = (size_t)c->vocab_size * (size_t)c->hidden_size, layers = model_config_params(c) - words;
    size_t layer = (c->tied ? layers : layers - words) / (size_t)c->num_layers * 5 / 4;

    return 4 * (words > layer ? words : layer);
}

struct model_budget model_budget(const struct model_config *c, const char *dtype, const struct train_limits *limits,
                                 int max_len, int parts, bool divided)
{
    struct dev_model g;
    struct model m = budget_outline(c, &g, dtype);
    size_t n = model_config_params(c), shares = parts > 1 ? (size_t)parts : 1;
    size_t whole = n * (g.dt == NN_BF16 ? 6 : 4), read = n * (g.dt == NN_BF16 ? 2 : 4);
    bool apart = divided && shares > 1;
    struct model_budget b = {.weights = apart ? read + n * 4 / shares : whole,
                             .gradients = apart ? n * 4 / shares + budget_window(c) : n * 4,
                             .moments = n * 8 / shares,
                             .step = dev_step_bytes(&m, limits, false),
                             .step_again = dev_step_bytes(&m, limits, true)};

    for (int i = 0; i < c->num_layers && max_len; i++)
        b.sequence += layer_kind_of(&m, i)->state_bytes(&g.dims, g.dt, max_len);
    free(m.layers);
    return b;
}

/* Bytes that training keeps: weights, gradients, moments. */
static size_t budget_state_of(const struct model_budget *b) { return b->weights + b->gradients + b->moments; }

/* with one sequence */
static size_t model_budget_sum(const struct model_budget *b) { return budget_state_of(b) + b->step + b->sequence; }

static double budget_gb(size_t bytes) { return (double)bytes / 1e9; }

void model_budget_tell(const struct model_config *c, const struct model_budget *b, const char *lead, size_t card,
                       struct buf *out)
{
    size_t n = model_config_params(c), sum = model_budget_sum(b), again = sum - b->step + b->step_again;
    size_t shared = n * 2 + n * 16 / 8 + budget_window(c); /* over eight, operands whole */

    buf_addf(out, "%s%.2f billion weights: weights %.1f GB, gradients %.1f, moments %.1f, a step %.1f", lead,
             (double)n / 1e9, budget_gb(b->weights), budget_gb(b->gradients), budget_gb(b->moments),
             budget_gb(b->step));
    if (b->sequence)
        buf_addf(out, ", a sequence %.2f", budget_gb(b->sequence));
    buf_addf(out, "\n%stogether %.1f GB on each GPU; a card has %.1f GB: it %s\n", lead, budget_gb(sum),
             budget_gb(card), sum <= card ? "fits" : "does not fit");
    if (sum <= card)
        return;
    buf_addf(out, "%swith every layer run again on the way back a step is %.1f GB, together %.1f GB: it %s\n", lead,
             budget_gb(b->step_again), budget_gb(again), again <= card ? "fits, and the engine does so by itself"
             : "does not fit");
    if (again <= card)
        return;
    if (budget_state_of(b) <= card)
        buf_addf(out, "%sfewer micro-tokens make the step smaller\n", lead);
    else
        buf_addf(out, "%swith the moments in eight parts ('gpus: 8', 'zero: 1' of sft) the state is %.1f GB on each; "
                 "with fp32 weights and gradients in parts too ('zero: 2') %.1f GB\n", lead,
                 budget_gb(b->weights + b->gradients + n), budget_gb(shared));
}
