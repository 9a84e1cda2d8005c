/* rft_repairs.c - see rft_repairs.h. */
#include "train/rft_repairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "task/repair_text.h"

/* The judge's words about a sample, answered by the lines that make a sample of 'right' of it. NULL: none is near. */
static json_t *rft_repair_of(const struct rft_options *o, const struct prompt_item *p, const struct rollout_turn *t,
                             int sample, const char *const *right, size_t n)
{
    char *edits = t->kind == OUTCOME_FAILED && t->text ? mend_nearest(t->text, right, n) : NULL;
    json_t *m, *rec;
    char id[256];

    if (!edits)
        return NULL;
    m = json_deep_copy(p->messages);
    prompt_turn(m, o->style, t->text, t->feedback, t->text);
    prompt_say(m, "assistant", edits);
    free(edits);
    snprintf(id, sizeof id, "own-%s-%d", p->id, sample);
    rec = json_pack("{s:s,s:s,s:o,s:{s:s,s:O?,s:O?},s:{s:s,s:s},s:{s:s,s:I,s:s},s:s}", "id", id, "kind", "own",
                    "messages", m, "task", "name", p->id, "graph_hash", json_object_get(p->info, "graph_hash"),
                    "families", json_object_get(p->info, "families"), "broken_verdict", "status", "failed", "category",
                    t->category, "provenance", "generator", "musacoder-rft/1", "seed", (json_int_t)o->seed,
                    "parent", p->id, "split", "train");
    return rec;
}

/* True if an earlier rollout of the group has the same first response. */
static bool rft_said_before(const struct rollout_group *g, int k)
{
    for (int i = 0; i < k; i++)
        if (g->r[i].turns && g->r[i].turn[0].text && !strcmp(g->r[i].turn[0].text, g->r[k].turn[0].text))
            return true;
    return false;
}

json_t *rft_repairs(const struct rft_options *o, const struct prompt_item *p, const struct rollout_group *g)
{
    const char **right = xcalloc((size_t)g->n + 1, sizeof *right);
    json_t *list = json_array(), *rec;
    size_t n = 0;

    for (int k = 0; k < g->n; k++)
        if (g->r[k].passed_turn == 1)
            right[n++] = g->r[k].turn[0].text;
    for (int k = 0; n && o->repairs && k < g->n; k++)
        if (g->r[k].turns && g->r[k].turn[0].text && !rft_said_before(g, k) &&
            (rec = rft_repair_of(o, p, &g->r[k].turn[0], k, right, n)))
            json_array_append_new(list, rec);
    free(right);
    return list;
}
