/* layer_map.c - maps, fused where they follow each other: constants, parameters of channels, residuals. */
#include "synth/surface/layer_parts.h"

#include <string.h>

/* How often a parameter is one number. */
#define SHARE_SCALAR_PARAMETERS 0.18
/* How often a module is used again where one of its class is there. */
#define SHARE_USED_AGAIN 0.7

/* ---- maps ---- */

void layer_flush(struct making *m)
{
    static const char text[] =
        "__global__ void $k_kernel(const float* x, float* out, int n%s) {\nauto each = [=](float v, int i) {\n%sreturn "
        "v;\n};\nint i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);\nif (i + 4 <= n) {\nfloat4 v = *(const "
        "float4*)(x + i);\n*(float4*)(out + i) = {each(v.x, i), each(v.y, i + 1), each(v.z, i + 2), each(v.w, i + "
        "3)};\n} else {\nfor (; i < n; i++) {\nout[i] = each(x[i], i);\n}\n}\n}\n\n"
        "torch::Tensor $f(torch::Tensor x%s) {\nauto out = torch::empty_like(x);\nint n = x.numel();\n"
        "$k_kernel<<<(n + 1023) / 1024, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n%s);\nreturn out;\n}\n";
    const char *name;

    if (!m->map.n)
        return;
    name = making_function(m, m->map.name,
                           making_format(m, text, m->map.params.p, m->map.code.p, m->map.hosts.p, m->map.args.p));
    layer_say_call(m, making_format(m, "ops.%s_forward(%s%s)", name, m->map.x, m->map.call.p));
    buf_clear(&m->map.code), buf_clear(&m->map.params), buf_clear(&m->map.hosts), buf_clear(&m->map.args),
        buf_clear(&m->map.call);
    m->map.n = 0;
}

/* A parameter of the fused kernel: a name that is not taken. */
static const char *map_parameter(struct making *m, const char *name)
{
    const char *s = name;

    for (int i = 2; strstr(m->map.params.p, making_format(m, "float %s", s)) ||
                    strstr(m->map.params.p, making_format(m, "float* %s", s));
         i++)
        s = making_format(m, "%s%d", name, i);
    buf_addf(&m->map.params, ", float %s", s);
    buf_addf(&m->map.hosts, ", float %s", s);
    buf_addf(&m->map.args, ", %s", s);
    return s;
}

/* Names the fused kernel after the steps that it has. */
static void map_name(struct making *m, const struct kind *k)
{
    if (!m->map.n)
        m->map.x = making_expand(m, "$x");
    m->map.name = !m->map.n ? k->name : m->map.n < 3 ? making_format(m, "%s_%s", m->map.name, k->name) : m->map.name;
    m->map.n++;
}

/* Its name in texts: a number where it has several. */
static const char *map_attr_key(struct making *m, const struct kind *k, int i)
{
    return strchr(k->attr[i].name, '|') ? layer_number(m, i) : k->attr[i].name;
}

/* The name of a module that __init__ has made before: of the same class, and the same where it has no attributes.
 * NULL: none. */
static const char *map_made_module(struct making *m, const struct kind *k, const struct spelled *s)
{
    const char *made = k->attr[0].name ? making_format(m, " = %.*s", (int)strcspn(s->init, "(") + 1, s->init)
                                       : making_format(m, " = %s\n", s->init);
    const char *end = strstr(m->init.p, made), *from = end;

    if (!end)
        return NULL;
    while (from > m->init.p && from[-1] != '.')
        from--;
    return arena_strndup(&m->a, from, (size_t)(end - from));
}

/* Draws attribute i and how the layer holds it: literal, argument or constant; of a module that is used again it is
 * what the module has. */
static void map_add_attr(struct making *m, const struct kind *k, int i, const struct spelled *s, bool again)
{
    const struct kind_attr *a = &k->attr[i];
    const char *name = making_pick(m, a->name, '|'), *value = making_pick(m, a->values, ' ');
    const char *def = making_chance(m, 0.5) ? value : making_pick(m, a->values, ' ');
    const char *key = map_attr_key(m, k, i);
    struct layer_bound b = !again && layer_mentions(m, s, key)
                               ? layer_bind(m, s, name, a->type, value, def, a->doc)
                               : (struct layer_bound){NULL, making_format(m, "self.%s.%s", s->module, name)};

    if (b.init)
        making_set(m, key, s->init ? b.init : b.seen);
    buf_addf(&m->map.call, ", %s", b.seen);
    making_set(m, making_format(m, "c_%s", key), map_parameter(m, name));
}

/* In code "$name" is the kernel's variable. */
static void map_set_code_names(struct making *m, const struct kind *k)
{
    for (int i = 0; i < KIND_ATTRS && k->attr[i].name; i++) {
        const char *key = map_attr_key(m, k, i);
        making_set(m, key, making_expand(m, making_format(m, "$c_%s", key)));
    }
}

bool layer_add_map(struct making *m, const struct kind *k)
{
    struct spelled s;
    const char *made = NULL;

    if (m->rank < 0)
        layer_draw_input(m, layer_draw_rank(m));
    s = layer_draw_spelling(m, k);
    if (s.init && making_chance(m, SHARE_USED_AGAIN) && (made = map_made_module(m, k, &s)))
        s.module = made, making_set(m, "m", made);
    map_name(m, k);
    for (int i = 0; i < KIND_ATTRS && k->attr[i].name; i++)
        map_add_attr(m, k, i, &s, made != NULL);
    if (s.init && !made)
        layer_add_init(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    map_set_code_names(m, k);
    buf_adds(&m->map.code, making_expand(m, k->code));
    return true;
}

/* The channels as the file's constants say them: "out_channels", or the number. */
static const char *map_channels_value(struct making *m)
{
    for (int i = 0; i < m->n_args; i++)
        if (!strcmp(m->arg[i].name, m->channels))
            return m->arg[i].value;
    return m->channels;
}

/* The parameter's shape as __init__ says it: an argument, mostly named after the parameter, or sizes. */
static const char *map_param_shape(struct making *m, const char *name, bool scalar)
{
    bool short_one = scalar && making_chance(m, 0.8);
    const char *ones = "", *lead = making_chance(m, 0.15) && m->rank > 2 && !short_one ? "1, " : "";
    const char *arg = making_chance(m, 0.8) ? making_format(m, "%s_shape", name)
                                            : making_pick(m, "bias_shape|param_shape|weight_shape|scale_shape", '|');

    for (int i = 2; i < m->rank && !short_one; i++)
        ones = making_format(m, "%s, 1", ones);
    if (making_chance(m, 0.25))
        return making_format(m, "%s%s%s", lead, scalar ? "1" : m->channels, ones);
    return making_arg(m, arg, "tuple",
                      making_constant(m, arg, making_format(m, "(%s%s,%s)", lead, scalar ? "1" : map_channels_value(m),
                                                            *ones ? ones + 1 : "")),
                      short_one && making_chance(m, 0.3) ? "(1,)" : NULL, "shape of the parameter");
}

/* A name for a parameter that the module does not have yet. */
static const char *map_param_name(struct making *m, const struct kind *k)
{
    const char *base = making_pick(m, k->names, '|'), *name = base;

    for (int i = 2; strstr(m->init.p, making_format(m, "self.%s ", name)) ||
                    strstr(m->map.params.p, making_format(m, " %s", name));
         i++)
        name = making_format(m, "%s%d", base, i);
    return name;
}

/* A parameter of shape (C,), (C, 1, 1) or (1,) joins the map: its index follows from the value's sizes and its own. */
bool layer_add_param(struct making *m, const struct kind *k)
{
    bool scalar = making_chance(m, SHARE_SCALAR_PARAMETERS), first = !strstr(m->map.params.p, "int inner");
    const char *name, *value;

    if (m->rank < 2 || m->d[1] < 2 || !m->channels)
        return false;
    name = map_param_name(m, k);
    value = making_pick(m, "0.5 1.5 2.0 0.1", ' ');
    making_set(m, "p", name);
    if (scalar && making_chance(m, 0.5))
        layer_add_init(m, making_format(m, "self.%s = nn.Parameter(torch.tensor(%s))", name,
                                        making_arg(m, name, "float", value, NULL, "start of the parameter")));
    else
        layer_add_init(m,
                       making_format(m, "self.%s = nn.Parameter(%s(%s)%s)", name,
                                     making_pick(m, "torch.randn|torch.randn|torch.rand|torch.ones", '|'),
                                     map_param_shape(m, name, scalar), making_chance(m, 0.15) ? " * 0.02" : ""));
    layer_say_reference(m, making_expand(m, k->spell[0]));
    map_name(m, k);
    buf_addf(&m->map.params, ", const float* %s, int %s_size%s", name, name, first ? ", int inner" : "");
    buf_addf(&m->map.hosts, ", torch::Tensor %s", name);
    buf_addf(&m->map.args, ", %s.data_ptr<float>(), %s.numel()%s", name, name, first ? ", x.stride(1)" : "");
    buf_addf(&m->map.call, ", self.%s", name);
    buf_adds(&m->map.code, making_expand(m, k->code));
    return true;
}

/* ---- residuals ---- */

bool layer_save_input(struct making *m)
{
    const char *name = making_pick(m, "add_input|other|residual|skip|y", '|');
    struct making_input *in;

    if (m->n_inputs == MAKING_INPUTS || m->rank < 2)
        return false;
    layer_flush(m);
    in = layer_add_input(m, name, layer_draw_maker(m), "second input");
    in->rank = m->rank;
    for (int i = 0; i < m->rank; i++)
        in->dim[i] = layer_number(m, m->d[i]);
    m->saved = name, m->saved_rank = m->rank;
    memcpy(m->saved_d, m->d, sizeof m->d);
    return true;
}

void layer_save(struct making *m)
{
    const char *name = making_pick(m, "original_x|residual|identity|skip|x_in", '|');

    layer_flush(m);
    buf_addf(&m->forward, "        %s = %s\n", name, making_pick(m, "x|x.clone()|x.clone().detach()|x", '|'));
    buf_addf(&m->answer, "        %s = x\n", name);
    m->saved = name, m->saved_rank = m->rank;
    memcpy(m->saved_d, m->d, sizeof m->d);
}

/* The value that was put aside joins the map. */
bool layer_add_residual(struct making *m, const struct kind *k)
{
    if (!m->saved || m->saved_rank != m->rank || memcmp(m->saved_d, m->d, sizeof *m->d * (size_t)m->rank) ||
        strstr(m->map.params.p, "* other"))
        return false;
    making_set(m, "saved", m->saved);
    layer_say_reference(m, making_expand(m, k->spell[0]));
    map_name(m, k);
    buf_adds(&m->map.params, ", const float* other"), buf_adds(&m->map.hosts, ", torch::Tensor other");
    buf_adds(&m->map.args, ", other.data_ptr<float>()"), buf_addf(&m->map.call, ", %s", m->saved);
    buf_adds(&m->map.code, k->code);
    return true;
}
