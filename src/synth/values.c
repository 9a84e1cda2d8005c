/* values.c - see values.h. */
#include "synth/values.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "synth/interp.h"

static json_t *flat(const struct tensor *t)
{
    json_t *a = json_array();

    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(a, json_num(t->v[i]));
    return a;
}

static json_t *shape_of(const struct graph *g)
{
    json_t *a = json_array();
    int dims[2], rank;

    graph_output_dims(g, dims, &rank);
    for (int i = 0; i < rank; i++)
        json_array_append_new(a, json_integer(dims[i]));
    return a;
}

static json_t *values_of(const struct plan_task *t, enum regime regime)
{
    struct tensor in[GRAPH_INPUTS], out;
    json_t *v = json_pack("{s:s, s:s, s:s, s:[], s:[]}", "task", t->name, "code", t->code, "regime",
        regime_names[regime],
                          "inputs", "parameters");
    struct rng r;

    rng_seed(&r, t->hash, (uint64_t)regime);
    interp_inputs(&t->g, regime, &r, in);
    interp_run(&t->g, in, -1, &out);
    for (int i = 0; i < t->g.n_in; i++) {
        bool parameter = t->g.input[i] == ROLE_WEIGHT || t->g.input[i] == ROLE_BIAS;
        json_array_append_new(json_object_get(v, parameter ? "parameters" : "inputs"), flat(&in[i]));
    }
    json_object_set_new(v, "shape", shape_of(&t->g));
    json_object_set_new(v, "output", flat(&out));
    interp_free(&out, 1);
    interp_free(in, t->g.n_in);
    return v;
}

int values_write(const struct plan *p, const char *path, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, (size_t)4 << 30);
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < N_REGIMES; k++) {
            json_t *v = values_of(&p->task[i], (enum regime)k);
            char *text = json_text(v);
            buf_adds(&b, text);
            buf_addc(&b, '\n');
            free(text);
            json_decref(v);
        }
    rc = file_write(path, b.p, b.n, e);
    buf_free(&b);
    return rc;
}
