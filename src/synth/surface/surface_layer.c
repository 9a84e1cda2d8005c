/* surface_layer.c - see surface_layer.h and layer_parts.h: inputs, attributes, lines. */
#include "synth/surface/layer_parts.h"

#include <string.h>

/* How often a module has a name that tells nothing about its kind, and how often a number behind its name: a model that
 * has seen both copies names instead of guessing them. */
#define SHARE_GENERAL_NAMES  0.12
#define SHARE_NUMBERED_NAMES 0.08

/* ---- inputs ---- */

static const char *const dim_names[6][8] = {
    {0},
    {"n", "size", "length", "num_elements", "dim", "features"},
    {"batch_size dim", "batch_size features", "rows cols", "N D", "batch_size hidden_size",
     "num_samples num_features", "batch_size n", "M N"},
    {"batch_size seq_len dim", "batch_size dim1 dim2", "B T C", "batch_size channels length",
     "batch_size rows cols", "batch_size seq_length hidden_dim"},
    {"batch_size channels height width", "N C H W", "batch_size features dim1 dim2",
     "batch_size num_heads seq_len head_dim", "B C H W"},
    {"batch_size channels depth height width", "N C D H W", "batch_size features dim1 dim2 dim3"}};

const char *layer_draw_names(struct making *m, int rank)
{
    int n = 0;

    while (n < 8 && dim_names[rank][n])
        n++;
    return dim_names[rank][making_draw(m, 0, n - 1)];
}

const char *layer_word(struct making *m, const char *words, int i)
{
    while (i--)
        words = strchr(words, ' ') + 1;
    return arena_strndup(&m->a, words, strcspn(words, " "));
}

int layer_draw_size(struct making *m, int hi)
{
    int v = making_draw(m, hi > 2 ? 2 : 1, hi);

    if (making_chance(m, 0.35))
        while (v & (v - 1))
            v &= v - 1;
    return v;
}

const char *layer_number(struct making *m, int v)
{
    return making_format(m, "%d", v);
}

const char *layer_size_name(struct making *m, const char *name, int v)
{
    return m->style.literal_dims ? layer_number(m, v) : making_constant(m, name, layer_number(m, v));
}

const char *layer_draw_maker(struct making *m)
{
    static const char *const makers[] = {"torch.rand(%s)", "torch.randn(%s)", "torch.randn(%s)",
                                         "torch.rand(%s) * 2 - 1", "torch.randn(%s) * 0.5"};

    return makers[m->style.maker];
}

struct making_input *layer_add_input(struct making *m, const char *name, const char *maker, const char *what)
{
    struct making_input *in = &m->input[m->n_inputs++];

    *in = (struct making_input){.name = name, .maker = maker, .what = what};
    return in;
}

static const char *layer_draw_input_name(struct making *m)
{
    return making_pick(m, "x|x|x|x|x|x|input|inputs|input_tensor|tensor|inp|data", '|');
}

/* The current value becomes an input of these sizes; words: names of its axes. */
struct making_input *layer_make_input(struct making *m, const char *words, int rank, const int d[],
                                      const char *maker)
{
    struct making_input *in = layer_add_input(m, layer_draw_input_name(m), maker, "input tensor");

    in->rank = m->rank = rank;
    for (int i = 0; i < rank; i++) {
        in->dim[i] = layer_size_name(m, layer_word(m, words, i), d[i]);
        m->d[i] = d[i];
    }
    making_set(m, "x", in->name);
    return in;
}

void layer_draw_input(struct making *m, int rank)
{
    static const int most[6] = {1, 3000, 60, 24, 10, 6};
    int d[5];

    for (int i = 0; i < rank; i++)
        d[i] = layer_draw_size(m, most[rank]);
    layer_make_input(m, layer_draw_names(m, rank), rank, d, layer_draw_maker(m));
}

int layer_draw_rank(struct making *m)
{
    static const int ranks[] = {2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 1, 5};

    return ranks[making_draw(m, 0, 12)];
}

struct making_input *layer_copy_input(struct making *m, int of, const char *name, const char *maker,
                                      const char *what)
{
    struct making_input *in = layer_add_input(m, name, maker, what);
    const struct making_input *from = &m->input[of];

    in->rank = from->rank;
    memcpy(in->dim, from->dim, sizeof in->dim);
    return in;
}

/* ---- attributes ---- */

const char *layer_name_module(struct making *m, const char *base)
{
    const char *name = base;

    if (making_chance(m, SHARE_GENERAL_NAMES))
        name = making_pick(m, "layer|op|module|block|stage|body|head|first|second|inner|outer|core|step|unit|branch|"
                              "pre|post|final|mid|main", '|');
    if (making_chance(m, SHARE_NUMBERED_NAMES))
        name = making_format(m, "%s%d", name, making_draw(m, 1, 3));
    m->n_modules++;
    if (strstr(m->init.p, making_format(m, "self.%s ", name)))
        name = making_format(m, "%s_%d", name, m->n_modules);
    return name;
}

/* "bn" for "batch_norm": the first letters of a norm's words; "in" is a word of Python's. */
static const char *layer_short_name(struct making *m, const char *name)
{
    return *name == 'i' ? "inst_norm" : making_format(m, "%cn", *name);
}

/* What people call a module of this kind. */
static const char *layer_usual_name(struct making *m, const struct kind *k)
{
    if (k->form == FORM_LOSS || k->form == FORM_ROWLOSS)
        return making_pick(m, "loss_fn|criterion|loss", '|');
    if (k->form == FORM_MAP && making_chance(m, 0.4))
        return making_pick(m, "act|activation|act_fn", '|');
    if (k->form == FORM_NORM && making_chance(m, 0.5))
        return making_chance(m, 0.5) ? "norm" : layer_short_name(m, k->name);
    return k->name;
}

struct spelled layer_draw_spelling(struct making *m, const struct kind *k)
{
    struct spelled s = {0};
    int n = 0;
    const char *text, *colon;

    while (n < KIND_SPELLINGS && k->spell[n])
        n++;
    text = k->spell[making_draw(m, 0, n - 1)];
    if (!strncmp(text, "nn.", 3) && (colon = strstr(text, " : "))) {
        s.init = arena_strndup(&m->a, text, (size_t)(colon - text));
        s.call = colon + 3;
        s.module = layer_name_module(m, layer_usual_name(m, k));
        making_set(m, "m", s.module);
    } else {
        s.call = text;
    }
    return s;
}

void layer_add_init(struct making *m, const char *text)
{
    buf_addf(&m->init, "        %s\n", text);
}

struct layer_bound layer_bind(struct making *m, const struct spelled *s, const char *name, const char *type,
                              const char *value, const char *def, const char *doc)
{
    struct layer_bound b = {value, value};
    double p = s->init ? 0.6 : 0.55;

    if (making_chance(m, p))
        b.init = making_arg(m, name, type, value, making_chance(m, 0.5) ? def : NULL, doc);
    if (s->init) {
        b.seen = making_format(m, "self.%s.%s", s->module, name);
    } else if (b.init != value) {
        b.seen = making_format(m, "self.%s", b.init);
        layer_add_init(m, making_format(m, "self.%s = %s", b.init, b.init));
    }
    return b;
}

bool layer_mentions(struct making *m, const struct spelled *s, const char *name)
{
    const char *text = s->init ? s->init : s->call;

    return strstr(text, making_format(m, "$%s", name)) || strstr(text, making_format(m, "${%s}", name));
}

/* ---- lines ---- */

/* "norm = x.norm(); x / norm": statements, then the value. */
void layer_say_reference(struct making *m, const char *text)
{
    const char *end;

    m->before = "";
    while ((end = strstr(text, "; "))) {
        m->before = making_format(m, "%s        %.*s\n", m->before, (int)(end - text), text);
        text = end + 2;
    }
    m->expression = text;
    buf_addf(&m->forward, "%s        x = %s", m->before, text);
    if (m->style.comments && m->now && m->chain && *m->now->say && making_chance(m, 0.3))
        buf_addf(&m->forward, "  # %s", making_pick(m, m->now->say, '|'));
    buf_addc(&m->forward, '\n');
}

void layer_say_call(struct making *m, const char *call)
{
    m->call = call;
    buf_addf(&m->answer, "        x = %s\n", call);
}

void layer_draw_image(struct making *m, int axes, int channels)
{
    static const char *const words[4][3] = {{0},
                                            {"length", "sequence_length", "L"},
                                            {"height width", "H W", "height width"},
                                            {"depth height width", "D H W", "depth height width"}};
    static const int most[4] = {0, 32, 12, 7}, least[4] = {0, 6, 4, 3};
    int d[5] = {making_draw(m, 1, 4), channels};
    bool square = making_chance(m, 0.5);

    for (int i = 0; i < axes; i++)
        d[2 + i] = square && i ? d[2] : making_draw(m, least[axes], most[axes]);
    layer_make_input(m,
                     making_format(m, "%s %s %s", making_pick(m, "batch_size|batch_size|batch_size|N|batch", '|'),
                                   making_pick(m, "in_channels|in_channels|channels", '|'),
                                   words[axes][making_draw(m, 0, 2)]),
                     axes + 2, d, layer_draw_maker(m));
}

int layer_draw_groups(struct making *m, int channels)
{
    int g;

    do
        g = making_draw(m, 1, channels > 8 ? 8 : channels);
    while (channels % g);
    return g;
}
