/* asker.c - see asker.h. */
#include "train/asker.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"

enum { SLEEP = 2 }; /* times as many prompts are asked as there are */
enum { REST = 8 };  /* a prompt comes again after a part of that number */

void asker_init(struct asker *a, const struct prompt_set *p, uint64_t seed, bool sleep)
{
    *a = (struct asker){.prompts = p, .seed = seed, .sleep = sleep, .order = xcalloc(p->n, sizeof *a->order),
                        .since = xcalloc(p->n, sizeof *a->since), .asleep = xcalloc(p->n, sizeof *a->asleep)};
    for (size_t i = 0; i < p->n; i++)
        a->since[i] = -SLEEP * (int64_t)p->n;
}

void asker_free(struct asker *a)
{
    free(a->order);
    free(a->since);
    free(a->asleep);
    *a = (struct asker){0};
}

/* Draws the order of this pass over the prompts. */
static void asker_shuffle_pass(struct asker *a)
{
    struct rng r;

    for (size_t i = 0; i < a->prompts->n; i++)
        a->order[i] = (uint32_t)i;
    rng_seed(&r, a->seed, 1000 + (uint64_t)a->drawn / a->prompts->n);
    rng_shuffle(&r, a->order, a->prompts->n, sizeof *a->order);
}

/* True if prompt i may be asked again. */
static bool asker_awake(const struct asker *a, size_t i)
{
    int64_t n = (int64_t)a->prompts->n;

    return !a->sleep || a->asked - a->since[i] >= (a->asleep[i] ? SLEEP * n : n / REST);
}

/* Of the next ones of the passes as many as there are prompts. */
static size_t asker_find(struct asker *a)
{
    size_t oldest = 0;

    for (size_t tries = 0; tries < a->prompts->n; tries++) {
        size_t at = (size_t)a->drawn % a->prompts->n;

        if (at == 0)
            asker_shuffle_pass(a);
        a->drawn++;
        if (asker_awake(a, a->order[at]))
            return a->order[at];
        if (tries == 0 || a->since[a->order[at]] < a->since[oldest])
            oldest = a->order[at];
    }
    return oldest;
}

const struct prompt_item *asker_next(struct asker *a)
{
    size_t i = asker_find(a);

    a->since[i] = ++a->asked;
    return &a->prompts->items[i];
}

void asker_note(struct asker *a, const struct prompt_item *p, int passed, int scored)
{
    size_t i = (size_t)(p - a->prompts->items);

    if (!a->sleep || scored == 1)
        return;
    a->asleep[i] = passed == 0 || passed == scored;
    if (a->asleep[i])
        a->since[i] = a->asked;
}

/* A callback of jsonl_each: notes what RFT saw of a prompt. */
static int asker_note_line(json_t *g, size_t line, void *ctx, struct err *e)
{
    struct asker *a = ctx;
    const struct prompt_item *p = prompt_set_find(a->prompts, json_str(g, "name", ""));

    (void)line, (void)e;
    if (p)
        asker_note(a, p, (int)json_i64(g, "passed", 0), (int)json_i64(g, "scored", 0));
    return 0;
}

int asker_note_file(struct asker *a, const char *path, struct err *e)
{
    return jsonl_each(path, asker_note_line, a, e);
}

int asker_sleeping(const struct asker *a)
{
    int n = 0;

    for (size_t i = 0; i < a->prompts->n; i++)
        n += a->asleep[i] && !asker_awake(a, i);
    return n;
}

json_t *asker_save(const struct asker *a)
{
    json_t *since = json_object(), *asleep = json_array();

    for (size_t i = 0; i < a->prompts->n; i++) {
        const char *id = a->prompts->items[i].id;

        if (a->since[i] >= 0)
            json_object_set_new(since, id, json_integer(a->since[i]));
        if (a->asleep[i])
            json_array_append_new(asleep, json_string(id));
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "drawn", (json_int_t)a->drawn, "asked", (json_int_t)a->asked, "since",
                     since, "asleep", asleep);
}

void asker_load(struct asker *a, const json_t *state)
{
    const json_t *since = json_object_get(state, "since"), *id;
    size_t at;

    a->drawn = json_i64(state, "drawn", 0);
    a->asked = json_i64(state, "asked", 0);
    for (size_t i = 0; i < a->prompts->n; i++) {
        a->asleep[i] = false;
        a->since[i] = json_i64(since, a->prompts->items[i].id, -SLEEP * (int64_t)a->prompts->n);
    }
    json_array_foreach(json_object_get(state, "asleep"), at, id) {
        const struct prompt_item *p = prompt_set_find(a->prompts, json_string_value(id));

        if (p)
            a->asleep[p - a->prompts->items] = true;
    }
    if (a->drawn % (int64_t)a->prompts->n) /* in the middle of a pass: its order again */
        asker_shuffle_pass(a);
}
