/* knowledge.c - see knowledge.h. */
#include "synth/knowledge.h"

#include <inttypes.h>

#include "base/json.h"
#include "synth/record.h"

#define LONGEST 8

static bool all_known(const struct graph *g, const bool *known)
{
    for (int i = 0; i < g->n; i++)
        if (!known[g->node[i].op - ops])
            return false;
    return true;
}

static json_t *record_of(const struct graph *g, const struct plan_options *o, int index)
{
    static const char *const flat[3] = {"[i]", "[j]", "[r]"};
    struct buf ask, answer;
    json_t *messages, *names = json_array(), *v;
    char id[64];

    buf_init(&ask, BUF_MAX_TEXT);
    buf_init(&answer, BUF_MAX_TEXT);
    buf_addf(&ask, "Write these statements in %s.\n```python\n", o->musa ? "MUSA" : "CUDA");
    buf_addf(&answer, "```%s\n", o->musa ? "musa" : "cuda");
    emit_statements(g, flat, &ask, &answer);
    buf_adds(&ask, "```");
    buf_adds(&answer, "```");
    messages = prompt_start(ask.p);
    prompt_say(messages, "assistant", answer.p);
    for (int i = 0; i < g->n; i++)
        json_array_append_new(names, json_string(g->node[i].op->name));
    snprintf(id, sizeof id, "knowledge-%016" PRIx64 "-%04d", graph_hash(g), index);
    v = json_pack("{s:s, s:s, s:o, s:{s:o}, s:{s:s, s:i, s:I, s:s}, s:s}", "id", id, "kind", "knowledge", "messages",
                  messages, "task", "ops", names, "provenance", "generator", SYNTH_GENERATOR, "version", 1, "seed",
                  (json_int_t)o->seed, "evidence", "registry", "split", "train");
    buf_free(&ask);
    buf_free(&answer);
    return v;
}

json_t *knowledge_record(const struct plan_options *o, const bool *known, int index)
{
    struct gen_options go = o->gen;
    struct graph g;
    struct rng r;

    go.max_ops = LONGEST;
    rng_seed(&r, o->seed, (uint64_t)99 << 32 | (uint64_t)index);
    for (int tries = 0; tries < 200; tries++) {
        gen_graph(&r, family_index("chain"), &go, &g);
        if (!graph_held_out(graph_hash(&g)) && all_known(&g, known))
            return record_of(&g, o, index);
    }
    return NULL;
}
