/* tensor.c - see tensor.h. The bytes may come from a hostile process: every size is checked before use. */
#include "eval/check/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/json.h"

bool tree_is_tensor(const json_t *node)
{
    return json_is_object(node) && !strcmp(json_str(node, "t", ""), "tensor");
}

int tensor_kind(const json_t *node, struct tensor *ret, struct err *e)
{
    struct tensor t = {.n = 1, .data = (const uint8_t *)""};
    const json_t *shape = json_object_get(node, "shape");
    int64_t d;

    if (!tree_is_tensor(node) || dt_parse(json_str(node, "dtype", NULL), &t.dtype) < 0)
        return err_set(e, ERR_INPUT, "not a tensor of a known dtype");
    if (!json_is_array(shape) || json_array_size(shape) > TENSOR_MAX_DIMS)
        return err_set(e, ERR_INPUT, "tensor without a shape, or of too many dimensions");
    t.ndim = (int)json_array_size(shape);
    for (int i = 0; i < t.ndim; i++) {
        d = json_is_integer(json_array_get(shape, (size_t)i))
            ? json_integer_value(json_array_get(shape, (size_t)i)) : -1;
        if (d < 0 || (d > 0 && t.n > INT64_MAX / 32 / d))
            return err_set(e, ERR_INPUT, "tensor with an impossible shape");
        t.shape[i] = d;
        t.n *= d;
    }
    t.n *= dt_components(t.dtype);
    *ret = t;
    return 0;
}

int tensor_parse(const json_t *node, const uint8_t *blob, size_t blob_n, struct tensor *ret, struct err *e)
{
    int64_t offset = json_i64(node, "offset", -1), nbytes = json_i64(node, "nbytes", -1);
    struct tensor t;

    if (tensor_kind(node, &t, e) < 0)
        return -1;
    if (offset < 0 || nbytes != t.n * (int64_t)dt_size(t.dtype) || (uint64_t)offset > blob_n ||
        (uint64_t)nbytes > blob_n - (uint64_t)offset)
        return err_set(e, ERR_INPUT, "tensor whose bytes do not fit its shape");
    t.data = blob ? blob + offset : t.data;
    *ret = t;
    return 0;
}

int64_t tensor_int_at(const struct tensor *t, int64_t i)
{
    const uint8_t *p = t->data + (size_t)i * dt_size(t->dtype);
    int16_t s;
    int32_t w;
    int64_t l;

    switch (t->dtype) {
    case DT_BOOL: return *p != 0;
    case DT_U8: return *p;
    case DT_I8: return (int8_t)*p;
    case DT_I16: memcpy(&s, p, 2); return s;
    case DT_I32: memcpy(&w, p, 4); return w;
    case DT_I64: memcpy(&l, p, 8); return l;
    default: return 0;
    }
}

double tensor_at(const struct tensor *t, int64_t i)
{
    const uint8_t *p = t->data + (size_t)i * dt_size(t->dtype);
    uint16_t h;
    float f;
    double d;

    switch (t->dtype) {
    case DT_F16: memcpy(&h, p, 2); return f16_to_f32(h);
    case DT_BF16: memcpy(&h, p, 2); return bf16_to_f32(h);
    case DT_F8E4: return f8e4_to_f32(*p);
    case DT_F8E5: return f8e5_to_f32(*p);
    case DT_C64:
    case DT_F32: memcpy(&f, p, 4); return f;
    case DT_C128:
    case DT_F64: memcpy(&d, p, 8); return d;
    default: return (double)tensor_int_at(t, i);
    }
}

/* Rounded once: by way of float it could be twice. */
static uint16_t tensor_half_bits(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v), m;
    int e;

    if (isnan(v))
        return 0x7e00;
    if (a >= 65520)
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(a, 24)));
    e = ilogb(a);
    m = nearbyint(ldexp(a, 10 - e)); /* 1024..2048; 2048 carries into the exponent by itself */
    return (uint16_t)(sign | (uint16_t)(((e + 15) << 10) + (int)m - 1024));
}

/* v rounded and clamped to the range of an integer dtype; NaN becomes 0. */
static int64_t tensor_int_value(enum dtype d, double v)
{
    static const double low[] = {0, 0, -0x1p7, -0x1p15, -0x1p31, -0x1p63},
        high[] = {1, 255, 0x1p7, 0x1p15, 0x1p31, 0x1p63};
    bool bits = d == DT_BOOL || d == DT_U8;

    if (isnan(v))
        return 0;
    v = nearbyint(v);
    if (v <= low[d])
        return d == DT_I64 ? INT64_MIN : (int64_t)low[d];
    if (v >= high[d])
        return bits ? (int64_t)high[d] : d == DT_I64 ? INT64_MAX : (int64_t)high[d] - 1;
    return (int64_t)v;
}

void tensor_put(enum dtype dtype, uint8_t *data, int64_t i, double v)
{
    uint8_t *p = data + (size_t)i * dt_size(dtype);
    uint16_t h;
    float f = (float)v;
    int64_t w;

    switch (dtype) {
    case DT_F16: h = tensor_half_bits(v), memcpy(p, &h, 2); break;
    case DT_BF16: h = isnan(v) ? 0x7fc0 : bf16_from_f32((float)v), memcpy(p, &h, 2); break;
    case DT_F8E4: *p = f8e4_from_f32(f); break;
    case DT_F8E5: *p = f8e5_from_f32(f); break;
    case DT_C64:
    case DT_F32: memcpy(p, &f, 4); break;
    case DT_C128:
    case DT_F64: memcpy(p, &v, 8); break;
    default: w = tensor_int_value(dtype, v), memcpy(p, &w, dt_size(dtype)); break; /* little endian */
    }
}

void tensor_shape_text(const struct tensor *t, char *out, size_t n)
{
    size_t k = (size_t)snprintf(out, n, "(");

    for (int i = 0; i < t->ndim && k < n; i++)
        k += (size_t)snprintf(out + k, n - k, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (k < n)
        snprintf(out + k, n - k, t->ndim == 1 ? ",)" : ")");
}

struct tensor_walk {
    int (*f)(const json_t *, const char *, void *, struct err *);
    void *ctx;
    char path[256];
    int depth;
};

static int tensor_walk(struct tensor_walk *w, const json_t *node, struct err *e);

/* Walks one member with its name added to the path; ERR_INPUT below 32 levels. */
static int tensor_step(struct tensor_walk *w, const json_t *node, struct err *e, const char *fmt, size_t i,
                       const char *key)
{
    size_t keep = strlen(w->path);
    int rc;

    snprintf(w->path + keep, sizeof w->path - keep, fmt, key ? key : "", i);
    rc = ++w->depth > 32 ? err_set(e, ERR_INPUT, "a value nested deeper than 32 levels") : tensor_walk(w, node, e);
    w->depth--;
    w->path[keep] = 0;
    return rc;
}

/* Calls w->f for each leaf of a tree in JSON with its path, such as ['mask'][0]. The first -1 ends the walk. */
static int tensor_walk(struct tensor_walk *w, const json_t *node, struct err *e)
{
    const char *t = json_str(node, "t", "");
    const json_t *v = json_object_get(node, "v"), *item, *key;
    size_t i;
    bool dict = !strcmp(t, "dict");

    if (!dict && strcmp(t, "list") && strcmp(t, "tuple"))
        return w->f(node, w->path, w->ctx, e);
    json_array_foreach(v, i, item) {
        key = dict ? json_array_get(item, 0) : NULL;
        if (dict && tensor_step(w, json_array_get(item, 1), e, "['%.40s']", 0,
                                json_is_string(key) ? json_string_value(key) : "?") < 0)
            return -1;
        if (!dict && tensor_step(w, item, e, "%s[%zu]", i, NULL) < 0)
            return -1;
    }
    return 0;
}

int tree_each(const json_t *tree, int (*f)(const json_t *, const char *, void *, struct err *), void *ctx,
              struct err *e)
{
    struct tensor_walk w = {.f = f, .ctx = ctx};

    return tensor_walk(&w, tree, e);
}

json_t *tree_map(const json_t *tree, json_t *(*f)(const json_t *tensor, void *ctx), void *ctx)
{
    json_t *copy, *v;
    size_t i;

    if (tree_is_tensor(tree))
        return f(tree, ctx);
    if (json_is_array(tree)) {
        copy = json_array();
        json_array_foreach((json_t *)tree, i, v)
            json_array_append_new(copy, tree_map(v, f, ctx));
        return copy;
    }
    if (!json_is_object(tree) || !(v = json_object_get(tree, "v")))
        return json_deep_copy(tree);
    copy = json_copy((json_t *)tree);
    json_object_set_new(copy, "v", tree_map(v, f, ctx));
    return copy;
}
