/* model_config.c - config.json of Llama, Qwen2, Qwen3, Qwen3.5 and Qwen3.6 models, as Transformers 4 and 5 write it. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "nn/model.h"
#include "nn/ops/ops.h"

/* Reads an integer of 1 to max. ERR_INPUT: missing, or out of range. */
static int model_config_need_int(const json_t *o, const char *key, int64_t max, int *ret, struct err *e)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_integer(v))
        return err_set(e, ERR_INPUT, "config.json: '%s' is missing or no integer", key);
    if (json_integer_value(v) < 1 || json_integer_value(v) > max)
        return err_set(e, ERR_INPUT, "config.json: '%s' is %lld; it must be 1 to %lld", key,
                       (long long)json_integer_value(v), (long long)max);
    *ret = (int)json_integer_value(v);
    return 0;
}

static bool model_config_is_null(const json_t *v) { return !v || json_is_null(v); }

/* The families: what is not said in config.json. */
static const struct model_config_family {
    const char *type, *prefix, *architecture;
    bool nested;  /* the text model's keys are below text_config */
    bool gated;   /* Qwen3.5: gates, norms of 1 + w, delta layers */
    bool head_norms, qkv_bias;
    int head_dim; /* the default of Transformers' class; 0: hidden_size / num_attention_heads */
    double rotary;
} families[] = {
    {"llama", "model.", "LlamaForCausalLM", false, false, false, false, 0, 1},
    {"qwen2", "model.", "Qwen2ForCausalLM", false, false, false, true, 0, 1},
    {"qwen3", "model.", "Qwen3ForCausalLM", false, false, true, false, 128, 1},
    {"qwen3_5_text", "model.", "Qwen3_5ForCausalLM", false, true, true, false, 256, 0.25},
    {"qwen3_5", "model.language_model.", "Qwen3_5ForConditionalGeneration", true, true, true, false, 256, 0.25},
};

/* The family of "model_type"; NULL with ERR_INPUT for an unknown one. */
static const struct model_config_family *model_config_family_of(const json_t *o, struct err *e)
{
    const char *type = json_str(o, "model_type", "");

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (!strcmp(type, families[i].type))
            return &families[i];
    err_set(e, ERR_INPUT, "config.json: model_type '%s' is not supported; this engine runs 'llama', 'qwen2', 'qwen3', "
                          "'qwen3_5' and 'qwen3_5_text'", type);
    return NULL;
}

const char *model_architecture(const json_t *source)
{
    const struct model_config_family *f = model_config_family_of(source, NULL);

    return f ? f->architecture : NULL;
}

/* 'llama3': all four numbers are needed. */
static int model_config_parse_scaling(const json_t *from, struct model_config *c, struct err *e)
{
    c->rope_factor = json_f64(from, "factor", 0);
    c->rope_low = json_f64(from, "low_freq_factor", 0);
    c->rope_high = json_f64(from, "high_freq_factor", 0);
    if (!(c->rope_factor >= 1) || !(c->rope_low > 0) || !(c->rope_high > c->rope_low) || !isfinite(c->rope_factor) ||
        !isfinite(c->rope_high))
        return err_set(e, ERR_INPUT, "config.json: rope type 'llama3' needs factor (1 or more), low_freq_factor and a "
                                     "higher high_freq_factor");
    return model_config_need_int(from, "original_max_position_embeddings", INT_MAX, &c->rope_positions, e);
}

/* Transformers 4: rope_theta, rope_scaling, partial_rotary_factor; 5: rope_parameters with all of them. In text the
 * three rows of positions of mrope are equal, so its sections say nothing. */
static int model_config_parse_rope(const json_t *o, const struct model_config_family *f, struct model_config *c,
                                   struct err *e)
{
    const json_t *params = json_object_get(o, "rope_parameters"), *scaling = json_object_get(o, "rope_scaling");
    const json_t *from = model_config_is_null(params) ? scaling : params;
    const char *type = json_str(from, "rope_type", json_str(from, "type", "default"));
    double part = json_f64(params, "partial_rotary_factor", json_f64(o, "partial_rotary_factor", f->rotary));

    if (!strcmp(type, "llama3") && model_config_parse_scaling(from, c, e) < 0)
        return -1;
    if (strcmp(type, "default") != 0 && strcmp(type, "mrope") != 0 && strcmp(type, "llama3") != 0)
        return err_set(e, ERR_INPUT, "config.json: rope type '%s' is not supported; 'default' and 'llama3' are", type);
    c->rope_theta = json_f64(params, "rope_theta", json_f64(o, "rope_theta", 10000.0));
    if (!(c->rope_theta > 1) || !isfinite(c->rope_theta))
        return err_set(e, ERR_INPUT, "config.json: 'rope_theta' is %g; it must be above 1", c->rope_theta);
    c->rotary_dim = part > 0 && part <= 1 ? (int)(c->head_dim * part) : 0;
    if (c->rotary_dim < 2 || c->rotary_dim % 2)
        return err_set(e, ERR_INPUT,
                       "config.json: partial_rotary_factor %g of head_dim %d is no even number of elements",
                       part, c->head_dim);
    return 0;
}

/* Keys that would change the arithmetic: absent, null or one of the values that this engine computes. */
static int model_config_refuse_unsupported(const json_t *o, const struct model_config_family *f, struct err *e)
{
    static const struct { const char *key, *value, *other; } words[] = {
        {"hidden_act", "silu", "silu"}, {"output_gate_type", "swish", "silu"}, {"mamba_ssm_dtype", "float32",
                                                                                "float32"},
    };
    static const struct { const char *key; bool value, gated_only; } flags[] = {
        {"attention_bias", false, false}, {"mlp_bias", false, false}, {"use_sliding_window", false, false},
        {"attn_output_gate", true, true},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *v = json_str(o, words[i].key, words[i].value);
        if (strcmp(v, words[i].value) && strcmp(v, words[i].other))
            return err_set(e, ERR_INPUT, "config.json: %s '%s' is not supported; only '%s' is", words[i].key, v,
                           words[i].value);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if ((!flags[i].gated_only || f->gated) && json_flag(o, flags[i].key, flags[i].value) != flags[i].value)
            return err_set(e, ERR_INPUT, "config.json: %s %s is not supported", flags[i].key,
                           flags[i].value ? "false" : "true");
    if (!model_config_is_null(json_object_get(o, "quantization_config")))
        return err_set(e, ERR_INPUT, "config.json: quantised weights (quantization_config) are not supported");
    return 0;
}

/* layer_types, or every full_attention_interval-th layer is attention. */
static int model_config_parse_layers(const json_t *o, const struct model_config_family *f, struct model_config *c,
                                     struct err *e)
{
    const json_t *kinds = json_object_get(o, "layer_types");
    int64_t every = json_i64(o, "full_attention_interval", 4);

    if (json_is_array(kinds) && (int)json_array_size(kinds) != c->num_layers)
        return err_set(e, ERR_INPUT, "config.json: layer_types has %zu entries for %d layers", json_array_size(kinds),
                       c->num_layers);
    if (f->gated && every < 1)
        return err_set(e, ERR_INPUT, "config.json: full_attention_interval is %lld", (long long)every);
    for (int i = 0; i < c->num_layers; i++) {
        const json_t *v = json_array_get(kinds, (size_t)i);
        const char *kind = json_is_string(v) ? json_string_value(v) : "";
        bool linear = v ? !strcmp(kind, "linear_attention") : f->gated && (i + 1) % every != 0;
        if (v && (linear ? !f->gated : strcmp(kind, "full_attention") != 0))
            return err_set(e, ERR_INPUT, "config.json: layer_types[%d] '%s' is not supported in '%s'", i, kind,
                           f->type);
        c->linear[i] = linear;
        c->n_linear += linear;
    }
    return 0;
}

/* An integer up to max, or 'otherwise' where the key is absent or null. */
static int model_config_int_or(const json_t *o, const char *key, int64_t max, int otherwise, int *ret, struct err *e)
{
    *ret = otherwise;
    return model_config_is_null(json_object_get(o, key)) ? 0 : model_config_need_int(o, key, max, ret, e);
}

/* Reads the sizes of delta layers, where there are any. */
static int model_config_parse_linear(const json_t *o, struct model_config *c, struct err *e)
{
    if (c->n_linear == 0)
        return 0;
    if (model_config_int_or(o, "linear_num_key_heads", 1024, 16, &c->linear_key_heads, e) < 0 ||
        model_config_int_or(o, "linear_num_value_heads", 1024, 32, &c->linear_value_heads, e) < 0 ||
        model_config_int_or(o, "linear_key_head_dim", MAX_HEAD_DIM, 128, &c->linear_key_dim, e) < 0 ||
        model_config_int_or(o, "linear_value_head_dim", MAX_HEAD_DIM, 128, &c->linear_value_dim, e) < 0 ||
        model_config_int_or(o, "linear_conv_kernel_dim", NN_MAX_TAPS, 4, &c->conv_taps, e) < 0)
        return -1;
    if (c->linear_value_heads % c->linear_key_heads)
        return err_set(e, ERR_INPUT, "config.json: %d value heads cannot share %d key heads evenly",
                       c->linear_value_heads,
                       c->linear_key_heads);
    return c->conv_taps < 2 ? err_set(e, ERR_INPUT, "config.json: linear_conv_kernel_dim 1 is no convolution") : 0;
}

int model_eos_parse(const json_t *v, struct model_config *c, struct err *e)
{
    size_t n = json_is_array(v) ? json_array_size(v) : 1;

    if (!v || json_is_null(v))
        return 0;
    c->n_eos = 0;
    for (size_t i = 0; i < n && c->n_eos < 8; i++) {
        const json_t *x = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_integer(x) || json_integer_value(x) < INT32_MIN || json_integer_value(x) > INT32_MAX)
            return err_set(e, ERR_INPUT, "eos_token_id is neither a token id nor a list of them");
        c->eos[c->n_eos++] = (int32_t)json_integer_value(x);
    }
    return 0;
}

/* Reads the sizes that all models have. ERR_INPUT: one is missing or impossible. */
static int model_config_parse_sizes(const json_t *o, const struct model_config_family *f, struct model_config *c,
                                    struct err *e)
{
    int64_t positions = json_i64(o, "max_position_embeddings", 32768);

    if (model_config_need_int(o, "vocab_size", 1 << 24, &c->vocab_size, e) < 0 ||
        model_config_need_int(o, "hidden_size", 1 << 16, &c->hidden_size, e) < 0 ||
        model_config_need_int(o, "intermediate_size", 1 << 18, &c->intermediate_size, e) < 0 ||
        model_config_need_int(o, "num_hidden_layers", MODEL_MAX_LAYERS, &c->num_layers, e) < 0 ||
        model_config_need_int(o, "num_attention_heads", 1024, &c->num_heads, e) < 0 ||
        model_config_int_or(o, "num_key_value_heads", 1024, c->num_heads, &c->num_kv_heads, e) < 0 ||
        model_config_int_or(o, "head_dim", MAX_HEAD_DIM, f->head_dim ? f->head_dim : c->hidden_size / c->num_heads,
                            &c->head_dim, e) < 0)
        return -1;
    if (c->head_dim < 1 || c->head_dim > MAX_HEAD_DIM)
        return err_set(e, ERR_INPUT, "config.json: hidden_size %d over %d heads makes heads of %d elements; they must "
                                     "have 1 to %d", c->hidden_size, c->num_heads, c->head_dim, MAX_HEAD_DIM);
    if (c->num_heads % c->num_kv_heads)
        return err_set(e, ERR_INPUT, "config.json: %d heads cannot share %d key-value heads evenly", c->num_heads,
                       c->num_kv_heads);
    if (c->head_dim % 2)
        return err_set(e, ERR_INPUT, "config.json: head_dim %d is odd; rotary positions need pairs", c->head_dim);
    c->rms_norm_eps = json_f64(o, "rms_norm_eps", 1e-6);
    c->initializer_range = json_f64(o, "initializer_range", 0.02);
    if (!(c->rms_norm_eps >= 0) || !isfinite(c->rms_norm_eps) || !(c->initializer_range > 0) ||
        !isfinite(c->initializer_range) || positions < 1 || positions > INT_MAX)
        return err_set(e, ERR_INPUT,
                       "config.json: rms_norm_eps, initializer_range or max_position_embeddings is out of "
                                     "range");
    c->max_positions = (int)positions;
    return 0;
}

int model_config_parse(const json_t *o, struct model_config *ret, struct err *e)
{
    struct model_config c = {0};
    const struct model_config_family *f;
    const json_t *text;

    if (!json_is_object(o))
        return err_set(e, ERR_INPUT, "config.json: not a JSON object");
    if (!(f = model_config_family_of(o, e)))
        return -1;
    text = f->nested ? json_object_get(o, "text_config") : o;
    if (!json_is_object(text))
        return err_set(e, ERR_INPUT, "config.json: '%s' needs a text_config", f->type);
    c.output_gate = c.centred_norms = f->gated;
    c.head_norms = f->head_norms;
    c.qkv_bias = f->qkv_bias;
    snprintf(c.prefix, sizeof c.prefix, "%s", f->prefix);
    if (model_config_refuse_unsupported(o, f, e) < 0 || model_config_refuse_unsupported(text, f, e) < 0 ||
        model_config_parse_sizes(text, f, &c, e) < 0 ||
        model_config_parse_rope(text, f, &c, e) < 0 || model_config_parse_layers(text, f, &c, e) < 0 ||
        model_config_parse_linear(text, &c, e) < 0)
        return -1;
    c.tied = json_flag(o, "tie_word_embeddings", json_flag(text, "tie_word_embeddings", false));
    if (model_eos_parse(json_object_get(text, "eos_token_id"), &c, e) < 0 ||
        model_eos_parse(json_object_get(o, "eos_token_id"), &c, e) < 0)
        return err_prefix(e, "config.json");
    c.source = json_deep_copy(o);
    *ret = c;
    return 0;
}

int model_config_read(const char *path, struct model_config *ret, struct err *e)
{
    json_t *o = json_read(path, e);
    int rc;

    if (!o)
        return -1;
    rc = model_config_parse(o, ret, e);
    json_decref(o);
    return rc < 0 ? err_prefix(e, "'%s'", path) : 0;
}

void model_config_free(struct model_config *c)
{
    if (c->source)
        json_decref(c->source);
    c->source = NULL;
}

size_t model_config_params(const struct model_config *c)
{
    size_t d = (size_t)c->hidden_size, f = (size_t)c->intermediate_size, hd = (size_t)c->head_dim;
    size_t q = (size_t)c->num_heads * hd, kv = (size_t)c->num_kv_heads * hd, linear = (size_t)c->n_linear;
    size_t keys = (size_t)c->linear_key_heads * (size_t)c->linear_key_dim, heads = (size_t)c->linear_value_heads;
    size_t values = heads * (size_t)c->linear_value_dim, conv = 2 * keys + values;
    size_t in = (c->output_gate ? 2 : 1) * q + 2 * kv;
    size_t attention = (c->head_norms ? 2 * hd : 0) + (c->qkv_bias ? in : 0) + in * d + d * q;
    size_t delta = (conv + values + 2 * heads) * d + conv * (size_t)c->conv_taps + 2 * heads +
                   (size_t)c->linear_value_dim + values * d;
    size_t layers = (size_t)c->num_layers * (2 * d + 3 * d * f) + ((size_t)c->num_layers - linear) * attention +
                    linear * delta;

    return layers + d + (size_t)c->vocab_size * d * (c->tied ? 1 : 2);
}
