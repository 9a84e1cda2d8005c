/* layer_norm.c - layers with statistics. */
#include "synth/surface/layer_parts.h"

#include <string.h>

/* ---- norms ---- */

/* Draws an input (batch, channels, ..) of that rank. */
static void norm_draw_channels(struct making *m, int rank)
{
    static const char *const words[] = {NULL,
                                        NULL,
                                        "batch_size num_features",
                                        "batch_size num_features length",
                                        "batch_size num_features height width",
                                        "batch_size num_features depth height width"};
    static const int most[6] = {0, 0, 24, 20, 9, 5};
    const char *names = making_chance(m, 0.5) ? words[rank] : layer_draw_names(m, rank);
    int d[5] = {making_draw(m, 2, 6), 2 * making_draw(m, 1, 6)};

    for (int i = 2; i < rank; i++)
        d[i] = layer_draw_size(m, most[rank]);
    layer_make_input(m, names, rank, d, layer_draw_maker(m));
    m->channels = NULL;
}

/* "num_features" of the constructor, or the number. */
static const char *norm_channels_arg(struct making *m)
{
    const char *value =
        m->n_inputs && m->input[0].rank > 1 && !m->chain ? m->input[0].dim[1] : layer_number(m, m->d[1]);

    if (m->channels)
        return m->channels;
    return making_chance(m, 0.85)
               ? making_arg(m, making_pick(m, "num_features|num_features|num_channels|channels", '|'), "int", value,
                            NULL, "number of channels")
               : layer_number(m, m->d[1]);
}

/* The sizes from a dimension on, as the constructor writes them. */
static const char *norm_tail_of(struct making *m, int from, bool literal)
{
    const char *s = "";

    for (int i = from; i < m->rank; i++)
        s = making_format(m, "%s%s%s", s, i > from ? ", " : "",
                          m->chain || literal ? layer_number(m, m->d[i]) : m->input[0].dim[i]);
    return from == m->rank - 1 && making_chance(m, 0.6)
               ? s
               : making_format(m, "(%s%s)", s, from == m->rank - 1 ? "," : "");
}

/* normalized_shape: the last axis or all but the first. */
static const char *norm_draw_normalized(struct making *m)
{
    int from = m->rank > 2 && making_chance(m, 0.5) && !m->chain ? 1 : m->rank - 1;
    bool argument = making_chance(m, 0.8); /* else numbers: a program has none of the task file's constants */
    const char *value = norm_tail_of(m, from, !argument);

    return argument
               ? making_arg(m, making_pick(m, "normalized_shape|normalized_shape|norm_shape|hidden_size", '|'),
                            *value == '(' ? "tuple" : "int", value, NULL, "shape that is normalised")
               : value;
}

/* Draws the layer's input or checks the one that a chain gives. False: it does not fit. */
static bool norm_shape(struct making *m, const struct kind *k)
{
    bool layer = !strcmp(k->name, "layer_norm"), batch = !strcmp(k->name, "batch_norm"),
         instance = !strcmp(k->name, "instance_norm");

    if (m->rank < 0 && k->rank < 0)
        layer_draw_input(m, layer_draw_rank(m));
    else if (m->rank < 0 && layer)
        layer_draw_input(m, making_draw(m, 2, 4));
    else if (m->rank < 0)
        norm_draw_channels(m, instance ? making_draw(m, 3, 5)
                              : batch  ? making_draw(m, 2, 5)
                                       : making_draw(m, 2, 4));
    if (k->rank < 0)
        return !m->chain;
    if (m->rank < 2 || m->d[1] < 2 || (instance && (m->rank < 3 || m->d[2] < 2)) || (batch && m->d[0] < 2))
        return false;
    return !layer || m->d[m->rank - 1] > 1;
}

/* Sets what the spelling's words stand for. */
static void norm_set(struct making *m, const struct kind *k, struct spelled *s)
{
    static const char *const dims[] = {"", "", "1d", "1d", "2d", "3d"};
    const struct kind_attr *eps = !strcmp(k->name, "group_norm") ? &k->attr[1] : &k->attr[0];

    making_set(m, "bd", dims[m->rank]), making_set(m, "sd", dims[m->rank]);
    if (strstr(k->spell[0], "$shape"))
        making_set(m, "shape", norm_draw_normalized(m));
    if (strstr(k->spell[0], "$channels"))
        making_set(m, "channels", norm_channels_arg(m));
    if (strstr(k->spell[0], "$num_groups")) {
        int groups = layer_draw_groups(m, m->d[1]);
        bool point = m->rank < 3 || m->d[2] < 2;
        const char *g = layer_number(m, point && groups == m->d[1] ? 1 : groups); /* no group of one element */
        making_set(m, "num_groups",
                   making_chance(m, 0.85) ? making_arg(m, "num_groups", "int", making_constant(m, "num_groups", g),
                                                       NULL, k->attr[0].doc)
                                          : g);
    }
    if (layer_mentions(m, s, "momentum"))
        making_set(m, "momentum",
                   layer_bind(m, s, "momentum", "float", making_pick(m, "0.1 0.2 0.05", ' '), "0.1",
                              "weight of new statistics")
                       .init);
    if (eps->name && layer_mentions(m, s, "eps"))
        making_set(m, "eps",
                   layer_bind(m, s, "eps", "float", making_pick(m, eps->values, ' '), "1e-5", eps->doc).init);
}

bool layer_add_norm(struct making *m, const struct kind *k)
{
    struct spelled s;

    if (!norm_shape(m, k))
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    norm_set(m, k, &s);
    if (s.init)
        layer_add_init(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    making_function(m, k->fn ? k->fn : k->name, k->code);
    layer_say_call(m, making_expand(m, k->call));
    return true;
}
