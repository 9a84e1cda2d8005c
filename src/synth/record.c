/* record.c - builds the JSON of record.h. Key order is part of the bytes. */
#include "synth/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

static json_t *strings_of_ops(const struct graph *g)
{
    json_t *a = json_array();

    for (int i = 0; i < g->n; i++)
        json_array_append_new(a, json_string(g->node[i].op->name));
    return a;
}

json_t *record_inputs(const struct graph *g)
{
    json_t *a = json_array();

    for (int i = 0; i < g->n_in; i++) {
        int d[2], rank;
        json_t *shape = json_array(), *stride = json_array();

        graph_input_dims(g, i, d, &rank);
        for (int k = 0; k < rank; k++) {
            json_array_append_new(shape, json_integer(d[k]));
            json_array_append_new(stride, json_integer(k + 1 < rank ? d[1] : 1));
        }
        if (g->input[i] == ROLE_WEIGHT || g->input[i] == ROLE_BIAS)
            json_decref(shape), json_decref(stride);
        else
            json_array_append_new(a, json_pack("{s:o, s:s, s:o}", "shape", shape, "dtype", "float32", "stride",
                stride));
    }
    return a;
}

static void hash_text(uint64_t hash, char out[17])
{
    snprintf(out, 17, "%016" PRIx64, hash);
}

static json_t *task_view(const struct plan_task *t)
{
    struct buf text;
    char hash[17];
    json_t *v;

    hash_text(t->hash, hash);
    buf_init(&text, 4096);
    graph_text(&t->g, &text);
    v = json_pack("{s:s, s:s, s:s, s:o, s:[s], s:s, s:o}", "name", t->name, "code", t->code, "graph", text.p, "ops",
                  strings_of_ops(&t->g), "families", t->g.family, "graph_hash", hash, "inputs", record_inputs(&t->g));
    buf_free(&text);
    return v;
}

static const char *split_name(const struct plan_task *t)
{
    return t->side == PLAN_HELDOUT ? "heldout" : "train";
}

static const char *dialect(const struct plan_options *o)
{
    return o->musa ? "musa" : "cuda";
}

char *record_prompt(const struct plan_task *t, const struct plan_options *o)
{
    json_t *inputs = record_inputs(&t->g);
    char *lines = prompt_inputs(inputs), *p = prompt_task(o->style, t->code, dialect(o), lines);

    free(lines);
    json_decref(inputs);
    return p;
}

static char *fenced(const char *code)
{
    return xasprintf("```python\n%s```", code);
}

static char *record_id(const struct plan_task *t, const struct plan_program *q)
{
    return xasprintf("%s-%016" PRIx64 "-%s-%s", t->g.family, t->hash, strrchr(t->name, '_') + 1, q->t->strategy);
}

static json_t *kernel_view(const struct plan_program *q, const struct plan_options *o)
{
    json_t *schedule = json_pack("{s:i}", "block", q->s.block);

    if (strstr(q->t->host, "$G"))
        json_object_set_new(schedule, "grid", json_integer(q->s.grid));
    return json_pack("{s:s, s:s, s:s, s:o}", "lang", dialect(o), "code", q->code, "strategy", q->t->strategy,
                     "schedule", schedule);
}

static json_t *provenance(uint64_t seed, const char *parent, const char *mutation)
{
    json_t *p = json_pack("{s:s, s:i, s:I, s:s?, s:[]}", "generator", SYNTH_GENERATOR, "version", 1, "seed",
                          (json_int_t)seed, "parent", parent, "mutations");

    if (mutation)
        json_array_append_new(json_object_get(p, "mutations"), json_string(mutation));
    return p;
}

json_t *record_stable_verdict(const json_t *verdict)
{
    static const char *const volatile_keys[] = {"stage_ms", "environment", "performance"};
    json_t *v = verdict ? json_deep_copy(verdict) : json_null();
    json_t *compile = json_object_get(v, "compile");

    for (size_t i = 0; i < sizeof volatile_keys / sizeof *volatile_keys; i++)
        json_object_del(v, volatile_keys[i]);
    if (json_is_object(compile))
        json_object_del(compile, "ms"), json_object_del(compile, "cache");
    return v;
}

json_t *record_generate(const struct plan_task *t, const struct plan_program *q, const struct plan_options *o,
                        const json_t *verdict)
{
    char *prompt = record_prompt(t, o), *answer = fenced(q->code), *id = record_id(t, q);
    json_t *messages = prompt_start(prompt), *v;

    prompt_say(messages, "assistant", answer);
    v = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "id", id, "kind", "generate", "messages", messages,
        "task",
                  task_view(t), "kernel", kernel_view(q, o), "verdict", record_stable_verdict(verdict), "provenance",
                  provenance(o->seed, NULL, NULL), "split", split_name(t));
    free(prompt), free(answer), free(id);
    return v;
}

json_t *record_repair(const struct plan_task *t, const struct plan_program *q, const struct plan_options *o,
                      const struct repair *x)
{
    char *prompt = record_prompt(t, o), *broken = fenced(x->code), *answer = fenced(q->code);
    char *parent = record_id(t, q), *id = xasprintf("%s-%s%d", parent, x->mutation, x->round);
    json_t *messages = prompt_start(prompt), *v;

    prompt_turn(messages, o->style, broken, json_str(x->broken_verdict, "feedback", ""));
    prompt_say(messages, "assistant", answer);
    v = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "id", id, "kind", "repair", "messages", messages,
                  "task", task_view(t), "kernel", kernel_view(q, o), "verdict", record_stable_verdict(x->verdict),
                  "broken_verdict", record_stable_verdict(x->broken_verdict), "provenance",
                  provenance(o->seed, parent, x->mutation), "split", split_name(t));
    free(prompt), free(broken), free(answer), free(id), free(parent);
    return v;
}

json_t *record_rl_prompt(const struct plan_task *t, const struct plan_options *o, int index)
{
    char *prompt = record_prompt(t, o), hash[17], truth[160];
    json_t *v;

    hash_text(t->hash, hash);
    snprintf(truth, sizeof truth, "tasks/train/%s.py", t->name);
    v = json_pack("{s:s, s:o, s:s, s:{s:s, s:s}, s:{s:s, s:i, s:s, s:s, s:[s], s:s}}", "data_source", SYNTH_GENERATOR,
                  "prompt", prompt_start(prompt), "ability", "cuda-kernel", "reward_model", "style", "rule",
                  "ground_truth", truth, "extra_info", "split", "train", "index", index, "name", t->name, "task_code",
                  t->code, "families", t->g.family, "graph_hash", hash);
    free(prompt);
    return v;
}
