/* model_config.c - config.json of Qwen3 models, as Transformers 4 and 5 write it. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "nn/model.h"
#include "nn/ops/ops.h"

static int need_int(const json_t *o, const char *key, int64_t max, int *ret, struct err *e)
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

static bool is_null(const json_t *v) { return !v || json_is_null(v); }

/* Transformers 4: rope_theta and rope_scaling; 5: rope_parameters {rope_type, rope_theta}. */
static int parse_rope(const json_t *o, struct model_config *c, struct err *e)
{
    const json_t *params = json_object_get(o, "rope_parameters"), *scaling = json_object_get(o, "rope_scaling");
    const json_t *from = is_null(params) ? scaling : params;
    const char *type = json_str(from, "rope_type", json_str(from, "type", "default"));

    if (strcmp(type, "default") != 0)
        return err_set(e, ERR_INPUT, "config.json: rope type '%s' is not supported; only 'default' is", type);
    c->rope_theta = json_f64(params, "rope_theta", json_f64(o, "rope_theta", 10000.0));
    if (!(c->rope_theta > 1) || !isfinite(c->rope_theta))
        return err_set(e, ERR_INPUT, "config.json: 'rope_theta' is %g; it must be above 1", c->rope_theta);
    return 0;
}

static int refuse_unsupported(const json_t *o, struct err *e)
{
    const char *type = json_str(o, "model_type", ""), *act = json_str(o, "hidden_act", "silu");
    const json_t *kinds = json_object_get(o, "layer_types");
    size_t i;
    const json_t *v;

    if (strcmp(type, "qwen3") != 0)
        return err_set(e, ERR_INPUT, "config.json: model_type '%s' is not supported; this engine runs 'qwen3'", type);
    if (json_flag(o, "attention_bias", false))
        return err_set(e, ERR_INPUT, "config.json: attention_bias is not supported");
    if (json_flag(o, "use_sliding_window", false))
        return err_set(e, ERR_INPUT, "config.json: sliding windows are not supported");
    if (strcmp(act, "silu") != 0)
        return err_set(e, ERR_INPUT, "config.json: hidden_act '%s' is not supported; only 'silu' is", act);
    if (json_is_array(kinds))
        json_array_foreach((json_t *)kinds, i, v)
            if (!json_is_string(v) || strcmp(json_string_value(v), "full_attention") != 0)
                return err_set(e, ERR_INPUT, "config.json: layer_types[%zu] is not 'full_attention'", i);
    return 0;
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

int model_config_parse(const json_t *o, struct model_config *ret, struct err *e)
{
    struct model_config c = {0};
    int64_t positions;

    if (!json_is_object(o))
        return err_set(e, ERR_INPUT, "config.json: not a JSON object");
    if (refuse_unsupported(o, e) < 0 || parse_rope(o, &c, e) < 0 ||
        need_int(o, "vocab_size", 1 << 24, &c.vocab_size, e) < 0 ||
        need_int(o, "hidden_size", 1 << 16, &c.hidden_size, e) < 0 ||
        need_int(o, "intermediate_size", 1 << 18, &c.intermediate_size, e) < 0 ||
        need_int(o, "num_hidden_layers", 1024, &c.num_layers, e) < 0 ||
        need_int(o, "num_attention_heads", 1024, &c.num_heads, e) < 0)
        return -1;
    c.num_kv_heads = c.num_heads;
    if (!is_null(json_object_get(o, "num_key_value_heads")) &&
        need_int(o, "num_key_value_heads", 1024, &c.num_kv_heads, e) < 0)
        return -1;
    c.head_dim = is_null(json_object_get(o, "head_dim")) ? 128 : 0; // Qwen3Config's default
    if (!c.head_dim && need_int(o, "head_dim", MAX_HEAD_DIM, &c.head_dim, e) < 0)
        return -1;
    if (c.num_heads % c.num_kv_heads)
        return err_set(e, ERR_INPUT, "config.json: %d heads cannot share %d key-value heads evenly", c.num_heads,
                       c.num_kv_heads);
    if (c.head_dim % 2)
        return err_set(e, ERR_INPUT, "config.json: head_dim %d is odd; rotary positions need pairs", c.head_dim);
    c.rms_norm_eps = json_f64(o, "rms_norm_eps", 1e-6);
    c.initializer_range = json_f64(o, "initializer_range", 0.02);
    positions = json_i64(o, "max_position_embeddings", 32768);
    c.tied = json_flag(o, "tie_word_embeddings", false);
    if (!(c.rms_norm_eps >= 0) || !isfinite(c.rms_norm_eps) || !(c.initializer_range > 0) ||
        !isfinite(c.initializer_range) || positions < 1 || positions > INT_MAX)
        return err_set(e, ERR_INPUT, "config.json: rms_norm_eps, initializer_range or max_position_embeddings is out of range");
    c.max_positions = (int)positions;
    if (model_eos_parse(json_object_get(o, "eos_token_id"), &c, e) < 0)
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
    size_t q = (size_t)c->num_heads * hd, kv = (size_t)c->num_kv_heads * hd;
    size_t layer = 2 * d + 2 * hd + (q + 2 * kv) * d + d * q + 3 * d * f;

    return (size_t)c->num_layers * layer + d + (size_t)c->vocab_size * d * (c->tied ? 1 : 2);
}
