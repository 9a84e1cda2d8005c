/* bdr.c - see bdr.h. A ring of owned triples. */
#include "objective/bdr.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

void bdr_init(struct bdr *b, size_t cap)
{
    *b = (struct bdr){.cap = cap};
    b->ring = xcalloc(cap ? cap : 1, sizeof *b->ring);
}

void bdr_item_free(struct bdr_item *it)
{
    free(it->prompt_id);
    free(it->response);
    free(it->feedback);
    *it = (struct bdr_item){0};
}

/* The oldest item, now the caller's. */
static struct bdr_item bdr_pop(struct bdr *b)
{
    struct bdr_item it = b->ring[b->head];

    b->ring[b->head] = (struct bdr_item){0};
    b->head = (b->head + 1) % b->cap;
    b->n--;
    return it;
}

/* Frees all items; the notes of groups stay. */
static void bdr_clear(struct bdr *b)
{
    while (b->n) {
        struct bdr_item it = bdr_pop(b);

        bdr_item_free(&it);
    }
    b->head = 0;
}

void bdr_free(struct bdr *b)
{
    bdr_clear(b);
    free(b->ring);
    *b = (struct bdr){0};
}

void bdr_push(struct bdr *b, const char *prompt_id, const char *response, const char *feedback)
{
    if (b->cap == 0)
        return;
    if (b->n == b->cap) {
        struct bdr_item old = bdr_pop(b);

        bdr_item_free(&old);
    }
    b->ring[(b->head + b->n) % b->cap] =
        (struct bdr_item){xstrdup(prompt_id), xstrdup(response), xstrdup(feedback)};
    b->n++;
}

bool bdr_draw(struct bdr *b, double probability, struct rng *r, struct bdr_item *ret)
{
    double u = rng_f64(r);

    if (b->n == 0 || u >= probability)
        return false;
    *ret = bdr_pop(b);
    return true;
}

void bdr_note(struct bdr *b, int passed, int scored)
{
    b->tries[b->noted % BDR_WINDOW] = (struct bdr_tries){passed, scored};
    b->noted++;
}

bool bdr_open(const struct bdr *b, double min)
{
    int passed = 0, scored = 0;

    for (int i = 0; i < BDR_WINDOW && b->noted >= BDR_WINDOW; i++)
        passed += b->tries[i].passed, scored += b->tries[i].scored;
    return scored == 0 || passed >= min * scored;
}

/* The last BDR_WINDOW outcomes, oldest first. New. */
static json_t *bdr_tries_save(const struct bdr *b)
{
    json_t *list = json_array();

    for (int i = b->noted > BDR_WINDOW ? b->noted - BDR_WINDOW : 0; i < b->noted; i++)
        json_array_append_new(list, json_pack("[i,i]", b->tries[i % BDR_WINDOW].passed,
                                              b->tries[i % BDR_WINDOW].scored));
    return list;
}

/* Reads the list of [passed, scored] that bdr_save wrote, one pair a group. */
static void bdr_tries_load(struct bdr *b, const json_t *list)
{
    size_t i;
    const json_t *v;

    b->noted = 0;
    json_array_foreach(list, i, v)
        bdr_note(b, (int)json_integer_value(json_array_get(v, 0)), (int)json_integer_value(json_array_get(v, 1)));
}

json_t *bdr_save(const struct bdr *b)
{
    json_t *items = json_array();

    for (size_t i = 0; i < b->n; i++) {
        const struct bdr_item *it = &b->ring[(b->head + i) % b->cap];
        json_t *o = json_object();

        json_object_set_new(o, "prompt_id", json_string(it->prompt_id));
        json_object_set_new(o, "response", json_string(it->response));
        json_object_set_new(o, "feedback", json_string(it->feedback));
        json_array_append_new(items, o);
    }
    return json_pack("{s:I,s:o,s:o}", "cap", (json_int_t)b->cap, "items", items, "tries", bdr_tries_save(b));
}

int bdr_load(struct bdr *b, const json_t *state, struct err *e)
{
    const json_t *items = json_object_get(state, "items"), *o;
    size_t i;

    if (!json_is_array(items))
        return err_set(e, ERR_INPUT, "retry buffer in the checkpoint has no items; the checkpoint is damaged");
    json_array_foreach(items, i, o)
        if (!json_str(o, "prompt_id", NULL) || !json_str(o, "response", NULL) || !json_str(o, "feedback", NULL))
            return err_set(e, ERR_INPUT, "retry buffer entry %zu is incomplete; the checkpoint is damaged", i);
    bdr_clear(b);
    bdr_tries_load(b, json_object_get(state, "tries"));
    json_array_foreach(items, i, o)
        bdr_push(b, json_str(o, "prompt_id", ""), json_str(o, "response", ""), json_str(o, "feedback", ""));
    return 0;
}
