/* ref_draw.c - one draw of a reference: where its sections lie, and how far an output may be from it. */

#include "base/json.h"
#include "eval/reference/reference.h"

int ref_section_parse(const struct frame *f, const json_t *s, struct section *ret, struct err *e)
{
    int64_t at = json_i64(s, "at", -1), n = json_i64(s, "nbytes", -1);

    if (at < 0 || n < 0 || (uint64_t)at > f->n_blob || (uint64_t)n > f->n_blob - (uint64_t)at ||
        !json_object_get(s, "tree"))
        return err_set(e, ERR_BUG, "the reference side sent a broken section");
    *ret = (struct section){json_object_get(s, "tree"), f->blob + at, (size_t)n};
    return 0;
}

/* As ref_section_parse, without bytes. */
static int ref_draw_section_facts(const json_t *s, struct section *ret, struct err *e)
{
    int64_t n = json_i64(s, "nbytes", -1);

    if (n < 0 || !json_object_get(s, "tree"))
        return err_set(e, ERR_BUG, "the reference side sent a broken section");
    *ret = (struct section){json_object_get(s, "tree"), NULL, (size_t)n};
    return 0;
}

/* Reads a draw's facts; texts and lists are borrowed from d. */
static void ref_draw_facts(const json_t *d, struct ref_draw *ret)
{
    ret->regime = json_str(d, "regime", "?");
    ret->trial = (int)json_i64(d, "trial", 0);
    ret->noise = json_object_get(d, "noise");
    ret->mutates = json_object_get(d, "mutates");
    ret->left_rows = json_object_get(d, "left_rows");
    ret->extreme = json_flag(d, "extreme", false);
    ret->parameters = (int)json_i64(d, "parameters", 0);
}

int ref_draw_place(const json_t *d, struct ref_draw *ret, struct err *e)
{
    *ret = (struct ref_draw){.regime = NULL};
    ref_draw_facts(d, ret);
    if (ref_draw_section_facts(json_object_get(d, "inputs"), &ret->inputs, e) < 0 ||
        ref_draw_section_facts(json_object_get(d, "eager"), &ret->eager, e) < 0)
        return -1;
    return ref_draw_section_facts(json_object_get(d, "oracle"), &ret->oracle, e);
}

int ref_draw_parse(const struct frame *f, const json_t *d, struct ref_draw *ret, struct err *e)
{
    *ret = (struct ref_draw){.regime = NULL};
    ref_draw_facts(d, ret);
    if (ref_section_parse(f, json_object_get(d, "inputs"), &ret->inputs, e) < 0 ||
        ref_section_parse(f, json_object_get(d, "eager"), &ret->eager, e) < 0 ||
        (json_is_object(json_object_get(d, "after")) &&
         ref_section_parse(f, json_object_get(d, "after"), &ret->after, e) < 0) ||
        (json_is_object(json_object_get(d, "left")) &&
         ref_section_parse(f, json_object_get(d, "left"), &ret->left, e) < 0))
        return -1;
    return ref_section_parse(f, json_object_get(d, "oracle"), &ret->oracle, e);
}

struct tolerance ref_tolerance(const struct ref_draw *d, size_t tensor, const struct protocol *protocol,
                               const json_t *own)
{
    const json_t *row = json_array_get(d->noise, tensor);
    struct noise n = {json_num_at(row, "n1"), json_num_at(row, "n2"),
                      json_num_at(row, "max_abs"), json_num_at(row, "fan_in"),
                      json_f64(row, "rel", 0)};
    struct own_tolerance sidecar = {json_f64(own, "abs", 0), json_f64(own, "rel", 0), json_f64(own, "matched", 0),
                                    json_f64(own, "most", 0)};
    enum dtype low = DT_F32, out;

    dt_parse(json_str(row, "dtype", "float32"), &low);
    out = low;
    dt_parse(json_str(row, "out", ""), &out);
    return protocol->tolerance(out, low, &n, own ? &sidecar : NULL);
}

bool ref_decides(const struct ref_draw *d, const struct protocol *protocol, const json_t *own)
{
    size_t n = json_array_size(d->noise);
    bool any = n == 0; /* numbers alone: compared exactly */

    for (size_t i = 0; i < n && !any; i++)
        any = ref_tolerance(d, i, protocol, own).decides;
    return any;
}
