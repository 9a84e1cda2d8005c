/* knowledge.c - see knowledge.h. */
#include "synth/knowledge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "synth/program.h"

/* The statements of one element: what stands behind the kernel's own guard. */
static void add_statements(const struct as *x, struct buf *out)
{
    static const struct ast_style plain;

    while (x && !(x->role && !strcmp(x->role, "guard")))
        x = x->next;
    for (x = x ? x->body : NULL; x; x = x->next)
        as_print(x, 0, &plain, out);
}

/* Maps whose question says all that the answer needs: no number stands in a module alone. */
static bool is_map(const struct dag *g)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const struct opdef *op = g->node[n].c.op;
        const char *init = op->spell[g->node[n].spelling].init;
        if (!op->expr || op->class != NEST_MAP || (init && strchr(init, '$')))
            return false;
    }
    return true;
}

/* The lines of forward() between "def forward" and its end. */
static void add_question(const struct dag *g, struct buf *out)
{
    struct program_style style = {0};
    struct buf task;
    const char *p;

    buf_init(&task, BUF_MAX_TEXT);
    program_task(g, &style, &task);
    for (p = strstr(task.p, "def forward"); p && (p = strchr(p, '\n')) && !strncmp(p + 1, "        ", 8);) {
        p++;
        buf_addf(out, "%.*s\n", (int)(strcspn(p, "\n") - 8), p + 8);
    }
    buf_free(&task);
}

static bool add_answer(const struct dag *g, struct arena *a, struct buf *out)
{
    struct kernels *k = arena_alloc(a, sizeof *k);
    struct program_style style = {.sizes = SIZES_PARAMS};
    struct err e = ERR_INIT;
    struct afun *f;

    fuse(g, FUSE_ALL, a, k);
    if (k->n != 1 || k->k[0].nest.n_dims != 1 || !(k->k[0].s = sched_find(k->k[0].nest.class, "thread")))
        return false; // of several dimensions some input is broadcast, which the question does not say
    for (int t = 0; t < 3; t++)
        k->k[0].tuned[t] = sched_tune(k->k[0].s, t, NULL);
    f = program_cuda(g, k, &style, a, &e);
    for (; f; f = f->next)
        if (f->name && strstr(f->type, "__global__"))
            add_statements(f->body, out);
    return out->n > 0;
}

static json_t *record_of(const struct problem_source *s, const struct dag *g, int index)
{
    const char *language = s->o->voice.musa ? "musa" : "cuda";
    struct arena a = {0};
    struct buf lines, ask, answer;
    json_t *m, *v = NULL;
    char id[64], hash[17];

    buf_init(&lines, BUF_MAX_TEXT), buf_init(&ask, BUF_MAX_TEXT), buf_init(&answer, BUF_MAX_TEXT);
    buf_addf(&ask, "Write these statements in %s.\n```python\n", s->o->voice.musa ? "MUSA" : "CUDA");
    add_question(g, &ask);
    buf_adds(&ask, "```");
    if (add_answer(g, &a, &lines) && graph_set_add(s->asked, hash64(ask.p, ask.n, 1))) {
        buf_addf(&answer, "```%s\n%s```", language, lines.p);
        m = prompt_start(ask.p);
        prompt_say(m, "assistant", answer.p);
        snprintf(hash, sizeof hash, "%016" PRIx64, dag_hash(g, false));
        snprintf(id, sizeof id, "knowledge-%d-%s", index, hash);
        v = json_pack("{s:s, s:s, s:o, s:o, s:n, s:{s:s, s:I, s:s}, s:s}", "id", id, "kind", "knowledge", "messages",
                      m, "task", record_task(g, NULL, "", hash), "verdict", "provenance", "generator",
                      SYNTH_GENERATOR, "seed", (json_int_t)s->o->seed, "evidence", "registry", "split", "train");
    }
    buf_free(&lines), buf_free(&ask), buf_free(&answer);
    arena_free(&a);
    return v;
}

json_t *knowledge_record(const struct problem_source *s, int index)
{
    struct dag_limits l = {.l = {.max_numel = 256, .max_work = 1 << 14, .dtypes = 1u << DT_F32, .nice = true},
                           .min_ops = 1, .max_ops = 4, .anchors = 0};
    struct dag *g = xmalloc(sizeof *g);
    json_t *v = NULL;
    struct rng r;

    rng_seed(&r, s->o->seed, (uint64_t)99 << 48 | (uint64_t)index);
    for (int tries = 0; tries < 2000 && !v; tries++) {
        dag_draw(s->table, &r, &l, g);
        if (!heldout_graph(dag_hash(g, false)) && heldout_spell(g, false, &r) && is_map(g) && !heldout_has_attribute(g))
            v = record_of(s, g, index);
    }
    free(g);
    return v;
}
