/* surface.c - see surface.h: which layers a task has. write.c says how the files look. */
#include "synth/surface/surface.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "synth/surface/expression.h"
#include "synth/surface/surface_layer.h"
#include "synth/surface/write.h"

static const struct kind *const tables[] = {map_kinds,  reduce_kinds, loss_kinds,
                                            norm_kinds, window_kinds, product_kinds};

/* How often a form is asked for, by itself and in chains. */
static const int alone[N_FORMS] = {
    [FORM_MAP] = 17,  [FORM_REDUCE] = 10, [FORM_ROW] = 11,  [FORM_SCAN] = 8,   [FORM_LOSS] = 8,    [FORM_ROWLOSS] = 5,
    [FORM_NORM] = 11, [FORM_POOL] = 10,   [FORM_CONV] = 19, [FORM_LINEAR] = 1, [FORM_MATMUL] = 14, [FORM_SPATIAL] = 1};
static const int behind[N_FORMS] = {[FORM_MAP] = 44,  [FORM_REDUCE] = 9, [FORM_ROW] = 5,     [FORM_NORM] = 16,
                                    [FORM_POOL] = 26, [FORM_PARAM] = 16, [FORM_SPATIAL] = 5, [FORM_RESIDUAL] = 3};

/* How often a layer is a formula that is written out, by itself and in chains. */
#define SHARE_EXPRESSIONS       0.3
#define SHARE_CHAIN_EXPRESSIONS 0.15
/* How often a step of a chain comes again, as two scalings do. */
#define SHARE_REPEATED 0.15

/* One of the forms, by weights. */
static enum form surface_draw_form(struct making *m, const int weights[N_FORMS])
{
    int total = 0, at, f = 0;

    for (int i = 0; i < N_FORMS; i++)
        total += weights[i];
    at = making_draw(m, 0, total - 1);
    while (at >= weights[f])
        at -= weights[f++];
    return (enum form)f;
}

/* A kind of that form with these flags, of which there must be one, or a formula that is written out. */
static const struct kind *surface_draw_kind(struct making *m, enum form form, unsigned flags)
{
    double share = m->chain ? SHARE_CHAIN_EXPRESSIONS : SHARE_EXPRESSIONS;
    const struct kind *fit[128], *drawn = making_chance(m, share) ? expression_draw_kind(m, form) : NULL;
    int n = 0;

    if (drawn)
        return drawn;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kind *k = tables[t]; k->name; k++)
            if (k->form == form && (k->flags & flags) == flags && n < 128)
                fit[n++] = k;
    return fit[making_draw(m, 0, n - 1)];
}

static const struct kind *surface_find_kind(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kind *k = tables[t]; k->name; k++)
            if (!strcmp(k->name, name))
                return k;
    return NULL;
}

bool surface_is_chain(long index, double share)
{
    return (double)(hash64(&index, sizeof index, 44) % 1000) < 1000 * share;
}

bool surface_stands_alone(const char *kind)
{
    const struct kind *k = surface_find_kind(kind);

    return k && alone[k->form];
}

const char *surface_kind(int i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kind *k = tables[t]; k->name; k++)
            if (!i--)
                return k->name;
    return NULL;
}

/* Draws the program's style: documentation, names, constants, comments. */
static void surface_draw_style(struct making *m)
{
    m->style = (struct making_style){.annotate = making_chance(m, 0.6),
                                     .class_doc = making_chance(m, 0.85),
                                     .class_args = making_chance(m, 0.35),
                                     .init_doc = making_chance(m, 0.25),
                                     .forward_doc = making_chance(m, 0.5),
                                     .constants = making_chance(m, 0.95),
                                     .literal_dims = making_chance(m, 0.12),
                                     .shape_tuple = making_chance(m, 0.12),
                                     .comments = making_chance(m, 0.4),
                                     .newer_super = making_chance(m, 0.3),
                                     .constants_first = making_chance(m, 0.12),
                                     .long_functional = making_chance(m, 0.4),
                                     .long_nn = making_chance(m, 0.15),
                                     .named_steps = making_chance(m, 0.1),
                                     .maker = making_chance(m, 0.7) ? 0 : making_draw(m, 1, 4)};
}

/* A depthwise convolution and a pointwise one. */
static bool surface_draw_separable(struct making *m)
{
    m->chain = true;
    return layer_add(m, surface_find_kind("depthwise_conv2d")) && layer_add(m, surface_find_kind("pointwise_conv2d"));
}

/* True if a residual was drawn before. */
static bool surface_is_used(const struct making *m)
{
    for (int i = 0; i < m->n_kinds; i++)
        if (m->kind[i]->form == FORM_RESIDUAL)
            return true;
    return false;
}

/* Would the result be a constant? Sums of probabilities are, and means of what was normalised. */
static bool surface_is_pointless(const struct making *m, const struct kind *k)
{
    bool reduces = k->form == FORM_REDUCE || k->form == FORM_SPATIAL;

    for (int i = m->n_kinds - 1; i >= 0 && reduces; i--)
        if (m->kind[i]->form == FORM_ROW || m->kind[i]->form == FORM_NORM)
            return true;
        else if (!strcmp(m->kind[i]->family, "activation"))
            return false;
    return false;
}

static bool surface_may_repeat(const struct kind *k)
{
    return k->form == FORM_MAP || k->form == FORM_PARAM || k->form == FORM_POOL || k->form == FORM_REDUCE;
}

/* A kind that may stand behind the last one. */
static const struct kind *surface_draw_follower(struct making *m)
{
    const struct kind *k = m->kind[making_draw(m, 0, m->n_kinds - 1)];

    if (surface_may_repeat(k) && !surface_is_pointless(m, k) && making_chance(m, SHARE_REPEATED))
        return k;
    if (m->rank == 2 && making_chance(m, 0.04))
        return surface_find_kind("linear");
    do
        k = surface_draw_kind(m, surface_draw_form(m, behind), KIND_CHAIN);
    while (surface_is_pointless(m, k));
    return k;
}

static bool surface_draw_maps(struct making *m)
{
    for (int i = making_draw(m, 2, 4); i; i--)
        layer_add(m, surface_draw_kind(m, FORM_MAP, 0));
    return true;
}

/* A convolution or a product, and what follows. false: another try. */
static bool surface_draw_chain(struct making *m)
{
    static const char *const first[] = {
        "conv2d",           "conv2d",           "conv2d", "conv2d", "conv3d", "conv3d", "conv_transpose2d",
        "conv_transpose2d", "conv_transpose3d", "linear", "linear", "linear", "linear"};
    int length = making_chance(m, 0.35) ? making_draw(m, 4, 6) : making_draw(m, 1, 4);

    m->chain = true;
    if (making_chance(m, 0.12))
        return surface_draw_maps(m);
    if (!layer_add(m, surface_find_kind(first[making_draw(m, 0, 12)])))
        return false;
    if (making_chance(m, 0.12))
        layer_save(m);
    else if (making_chance(m, 0.05))
        layer_save_input(m);
    for (int tries = 0; m->n_kinds <= length && tries < 40 && m->rank > 1; tries++)
        layer_add(m, surface_draw_follower(m));
    if (m->saved && !surface_is_used(m))
        return layer_add(m, surface_draw_kind(m, FORM_RESIDUAL, KIND_CHAIN));
    return m->n_kinds > 1;
}

/* Prepares a making with empty texts; surface_finish frees them. */
static void surface_start(struct making *m, struct rng *r)
{
    *m = (struct making){.r = r, .rank = -1};
    buf_init(&m->init, BUF_MAX_TEXT), buf_init(&m->forward, BUF_MAX_TEXT), buf_init(&m->answer, BUF_MAX_TEXT);
    buf_init(&m->map.code, BUF_MAX_TEXT), buf_init(&m->map.params, BUF_MAX_TEXT), buf_init(&m->map.args, BUF_MAX_TEXT);
    buf_init(&m->map.call, BUF_MAX_TEXT), buf_init(&m->map.hosts, BUF_MAX_TEXT);
}

static void surface_finish(struct making *m)
{
    buf_free(&m->init), buf_free(&m->forward), buf_free(&m->answer);
    buf_free(&m->map.code), buf_free(&m->map.params), buf_free(&m->map.args), buf_free(&m->map.call),
        buf_free(&m->map.hosts);
    arena_free(&m->a);
}

/* An argument that nothing uses, as real modules have them. */
static void surface_add_unused(struct making *m)
{
    const char *name = making_pick(m, "num_classes num_features features hidden_dim size", ' ');
    const char *value = making_pick(m, "10 16 32 64 100", ' ');

    for (int i = 0; i < m->n_args; i++)
        if (!strcmp(m->arg[i].name, name))
            return;
    name = making_arg(m, name, "int", value, making_chance(m, 0.4) ? value : NULL, "kept for later");
    if (making_chance(m, 0.5))
        buf_addf(&m->init, "        self.%s = %s\n", name, name);
}

/* false if the first layer could not be drawn: another try. */
static bool surface_draw_layers(struct making *m, const struct surface_limits *l)
{
    surface_draw_style(m);
    if (l->only)
        return layer_add(m, surface_find_kind(l->only));
    if (making_chance(m, l->chains))
        return surface_draw_chain(m);
    if (making_chance(m, 0.02))
        return surface_draw_separable(m);
    if (!layer_add(m, surface_draw_kind(m, surface_draw_form(m, alone), 0)))
        return false;
    if (making_chance(m, 0.06))
        surface_add_unused(m);
    return true;
}

void surface_draw(uint64_t seed, uint64_t index, const struct surface_limits *l, struct surface *ret)
{
    struct rng r;
    struct making m;

    rng_seed(&r, seed, index);
    surface_start(&m, &r);
    while (!surface_draw_layers(&m, l))
        surface_finish(&m), surface_start(&m, &r);
    layer_flush(&m);
    *ret = (struct surface){
        .task = write_task(&m), .program = write_program(&m), .n_ops = m.n_kinds, .n_kernels = m.n_functions};
    for (int i = 0; i < m.n_kinds; i++)
        ret->op[i] = m.kind[i]->name, ret->family[i] = m.kind[i]->family;
    surface_finish(&m);
}

void surface_free(struct surface *s)
{
    free(s->task), free(s->program);
    *s = (struct surface){0};
}

uint64_t surface_hash(const struct surface *s)
{
    uint64_t h = 14695981039346656037u;

    for (int i = 0; i < s->n_ops; i++)
        for (const char *c = s->op[i]; *c; c++)
            h = (h ^ (unsigned char)*c) * 1099511628211u;
    return h;
}
