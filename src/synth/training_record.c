/* training_record.c - see training_record.h. */
#include "synth/training_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "task/repair_text.h"
#include "translate/musa.h"

static const char *const dtype_names[] = {"float32", "float16", "bfloat16", "int64"};

/* An input's shape, stride and dtype. New. */
static json_t *training_record_input_of(const struct tdesc *t)
{
    json_t *shape = json_array(), *stride = json_array();
    int64_t s = tdesc_numel(t);

    for (int d = 0; d < t->rank; d++) {
        s /= t->d[d];
        json_array_append_new(shape, json_integer(t->d[d]));
        json_array_append_new(stride, json_integer(s));
    }
    return json_pack("{s:o, s:s, s:o}", "shape", shape, "dtype", dtype_names[t->dtype], "stride", stride);
}

json_t *record_inputs(const struct dag *g)
{
    json_t *a = json_array();

    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind == VALUE_INPUT)
            json_array_append_new(a, training_record_input_of(&g->value[i].t));
    return a;
}

json_t *record_task(const struct dag *g, const char *name, const char *code, const char *hash)
{
    json_t *ops = json_array(), *families = json_array();

    for (int n = 0; n < g->n_nodes; n++) {
        json_array_append_new(ops, json_string(g->node[n].c.op->name));
        json_array_append_new(families, json_string(g->node[n].c.op->family));
    }
    return json_pack("{s:s*, s:s, s:o, s:o, s:s, s:o}", "name", name, "code", code, "ops", ops, "families", families,
                     "graph_hash", hash, "inputs", record_inputs(g));
}

json_t *record_brief(const json_t *verdict)
{
    return json_pack("{s:s, s:s?, s:s}", "status", json_str(verdict, "status", "infra"), "category",
                     json_str(verdict, "category", NULL), "backend", json_str(verdict, "backend", "sim"));
}

char *record_strategy(const struct kernels *k)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < k->n; i++)
        buf_addf(&b, "%s%s:%s", i ? " " : "", nest_class_names[k->k[i].nest.class], k->k[i].s->name);
    return buf_detach(&b);
}

static const char *training_record_language(const struct prompt_format *v)
{
    return v->musa ? "musa" : "cuda";
}

json_t *record_kernel(const struct kernels *k, enum fusion level, const char *code, const struct prompt_format *v)
{
    char *strategy = record_strategy(k);
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:i}", "lang", training_record_language(v), "code", code, "strategy",
                          strategy, "fusion", fusion_names[level], "kernels", k->n);

    free(strategy);
    return j;
}

/* A task is asked in the same words whenever it is asked. */
static json_t *training_record_asked(const struct prompt_format *v, enum prompt_style style, const json_t *inputs,
                                     const char *task)
{
    int wording = v->wordings > 1 ? (int)(hash64(task, strlen(task), 44) % (unsigned)v->wordings) : 0;
    char *lines = inputs ? prompt_inputs(inputs) : NULL;
    char *prompt = prompt_task_worded(style, wording, task, training_record_language(v), lines);
    json_t *m = prompt_start(prompt);

    free(lines), free(prompt);
    return m;
}

json_t *record_generate(const struct prompt_format *v, const json_t *inputs, const char *task, const char *reason,
                        const char *program)
{
    json_t *m = training_record_asked(v, reason ? PROMPT_FULL : v->style, inputs, task);
    char *answer = xasprintf("%s%s```python\n%s```", reason ? reason : "", reason ? "\n" : "", program);

    prompt_say(m, "assistant", answer);
    free(answer);
    return m;
}

json_t *record_repair(const struct prompt_format *v, const char *task, const char *broken, const char *feedback,
                      const char *why, const char *program)
{
    json_t *m = training_record_asked(v, v->style, NULL, task);
    char *shown = xasprintf("```python\n%s```", broken), *answer = NULL;

    if (v->edits)
        answer = mend_edits(broken, program, MEND_LINES);
    if (!answer)
        answer = repair_text_answer(broken, program, why, feedback);
    prompt_turn(m, v->style, shown, feedback, v->edits ? shown : NULL);
    prompt_say(m, "assistant", answer);
    free(shown), free(answer);
    return m;
}

json_t *record_review(const char *task, const char *program, const char *answer)
{
    char *question = xasprintf("Is this program right for the task?\n\n```python\n%s```\n\n```python\n%s```", task,
                               program);
    json_t *m = prompt_start(question);

    prompt_say(m, "assistant", answer);
    free(question);
    return m;
}

char *record_in_dialect(const struct prompt_format *v, char *program)
{
    struct musa_options to_musa = {.to = TO_MUSA, .lang = MUSA_PYTHON};
    struct musa_result r;
    char *s = NULL;

    if (!v->musa)
        return program;
    if (musa_translate(program, strlen(program), &to_musa, &r, NULL) == 0 && !r.refused)
        s = xstrdup(r.out.p);
    musa_result_free(&r);
    free(program);
    return s;
}

json_t *record_rewrite(const char *task, const char *slow, const char *speed, const char *answer, const char *fast)
{
    char *question = xasprintf("This program is right for the task, but slow: %s. Make it faster.\n\n"
                               "```python\n%s```\n\n```python\n%s```", speed, task, slow);
    char *said = xasprintf("%s\n\n```python\n%s```", answer, fast);
    json_t *m = prompt_start(question);

    prompt_say(m, "assistant", said);
    free(question), free(said);
    return m;
}
