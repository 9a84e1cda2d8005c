/* layer_map.c - maps, fused where they follow each other: constants, parameters of channels, residuals. */
#include "synth/surface/layer_parts.h"

#include <string.h>

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

    for (int i = 2; strstr(m->map.params.p, making_format(m, "float %s", s)); i++)
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

/* Draws attribute i and how the layer holds it: literal, argument or constant. */
static void map_add_attr(struct making *m, const struct kind *k, int i, const struct spelled *s)
{
    const struct kind_attr *a = &k->attr[i];
    const char *name = making_pick(m, a->name, '|'), *value = making_pick(m, a->values, ' ');
    const char *def = making_chance(m, 0.5) ? value : making_pick(m, a->values, ' ');
    const char *key = map_attr_key(m, k, i);
    struct layer_bound b = layer_mentions(m, s, key)
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

    if (m->rank < 0)
        layer_draw_input(m, layer_draw_rank(m));
    s = layer_draw_spelling(m, k);
    map_name(m, k);
    for (int i = 0; i < KIND_ATTRS && k->attr[i].name; i++)
        map_add_attr(m, k, i, &s);
    if (s.init)
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

/* The parameter's shape as __init__ says it: an argument, or sizes. */
static const char *map_param_shape(struct making *m, const char *name)
{
    const char *ones = "", *lead = making_chance(m, 0.15) && m->rank > 2 ? "1, " : "";
    const char *arg = making_format(m, "%s_shape", name);

    for (int i = 2; i < m->rank; i++)
        ones = making_format(m, "%s, 1", ones);
    if (making_chance(m, 0.25))
        return making_format(m, "%s%s%s", lead, m->channels, ones);
    return making_arg(
        m, arg, "tuple",
        making_constant(m, arg, making_format(m, "(%s%s,%s)", lead, map_channels_value(m), *ones ? ones + 1 : "")),
        NULL, "shape of the parameter");
}

/* A name for a parameter that the module does not have yet. */
static const char *map_param_name(struct making *m, const struct kind *k)
{
    const char *base = making_pick(m, k->say, '|'), *name = base;

    for (int i = 2; strstr(m->init.p, making_format(m, "self.%s ", name)) ||
                    strstr(m->map.params.p, making_format(m, " %s", name));
         i++)
        name = making_format(m, "%s%d", base, i);
    return name;
}

/* A parameter of shape (C,), (C, 1, 1) or (1,) joins the map: its index follows from the value's own sizes. */
bool layer_add_param(struct making *m, const struct kind *k)
{
    bool scalar = k->rank, first = !strstr(m->map.params.p, "int inner") && !scalar;
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
                                     scalar ? "1" : map_param_shape(m, name), making_chance(m, 0.15) ? " * 0.02" : ""));
    layer_say_reference(m, making_expand(m, k->spell[0]));
    map_name(m, k);
    buf_addf(&m->map.params, ", const float* %s%s", name, first ? ", int channels, int inner" : "");
    buf_addf(&m->map.hosts, ", torch::Tensor %s", name);
    buf_addf(&m->map.args, ", %s.data_ptr<float>()%s", name, first ? ", x.size(1), x.stride(1)" : "");
    buf_addf(&m->map.call, ", self.%s", name);
    buf_adds(&m->map.code, making_expand(m, k->code));
    return true;
}

/* ---- residuals ---- */

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
