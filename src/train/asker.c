/* asker.c - see asker.h. */
#include "train/asker.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"

void asker_init(struct asker *a, const struct prompt_set *p, uint64_t seed, bool sleep)
{
    *a = (struct asker){.prompts = p, .seed = seed, .sleep = sleep, .order = xcalloc(p->n, sizeof *a->order),
                        .until = xcalloc(p->n, sizeof *a->until), .failed = xcalloc(p->n, sizeof *a->failed)};
}

void asker_free(struct asker *a)
{
    free(a->order);
    free(a->until);
    free(a->failed);
    *a = (struct asker){0};
}

static void asker_shuffle_pass(struct asker *a)
{
    struct rng r;

    for (size_t i = 0; i < a->prompts->n; i++)
        a->order[i] = (uint32_t)i;
    rng_seed(&r, a->seed, 1000 + (uint64_t)a->drawn / a->prompts->n);
    rng_shuffle(&r, a->order, a->prompts->n, sizeof *a->order);
}

/* Of the prompt that was drawn last. */
static int64_t asker_pass_of(const struct asker *a)
{
    return a->drawn ? (a->drawn - 1) / (int64_t)a->prompts->n : 0;
}

const struct prompt_item *asker_next(struct asker *a)
{
    for (;;) {
        size_t at = (size_t)a->drawn % a->prompts->n;

        if (at == 0)
            asker_shuffle_pass(a);
        a->drawn++;
        if (a->until[a->order[at]] <= asker_pass_of(a))
            return &a->prompts->items[a->order[at]];
    }
}

void asker_note(struct asker *a, const struct prompt_item *p, int passed, int scored)
{
    size_t i = (size_t)(p - a->prompts->items);

    if (!a->sleep || scored < 2)
        return;
    a->failed[i] = passed ? 0 : a->failed[i] + 1;
    if (passed == scored || a->failed[i] == 2) {
        a->until[i] = asker_pass_of(a) + 2;
        a->failed[i] = 0;
    }
}

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
        n += a->until[i] > asker_pass_of(a);
    return n;
}

json_t *asker_save(const struct asker *a)
{
    json_t *asleep = json_object(), *failed = json_object();

    for (size_t i = 0; i < a->prompts->n; i++) {
        const char *id = a->prompts->items[i].id;

        if (a->until[i] > asker_pass_of(a))
            json_object_set_new(asleep, id, json_integer(a->until[i]));
        if (a->failed[i])
            json_object_set_new(failed, id, json_integer(a->failed[i]));
    }
    return json_pack("{s:I, s:o, s:o}", "drawn", (json_int_t)a->drawn, "asleep", asleep, "failed", failed);
}

void asker_load(struct asker *a, const json_t *state)
{
    a->drawn = json_i64(state, "drawn", 0);
    for (size_t i = 0; i < a->prompts->n; i++) {
        const char *id = a->prompts->items[i].id;

        a->until[i] = json_i64(json_object_get(state, "asleep"), id, 0);
        a->failed[i] = (uint8_t)json_i64(json_object_get(state, "failed"), id, 0);
    }
    if (a->drawn % (int64_t)a->prompts->n) // in the middle of a pass: its order again
        asker_shuffle_pass(a);
}
