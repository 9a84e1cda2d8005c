/* knowledge.c - see knowledge.h. */
#include "synth/knowledge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "synth/program.h"

#define MAX_ANSWER 500     /* bytes: an answer is shorter than a program */
#define BROADCAST_ONE_IN 4 /* of maps with a broadcast operand: what they teach is mostly about shapes */

/* The statements of one output: what stands behind the kernel's own guard, or in it. */
static void add_statements(const struct as *x, struct buf *out)
{
    static const struct ast_style plain;

    while (x && !(x->role && !strcmp(x->role, "guard")))
        x = x->next;
    for (x = x && x->body && x->body->kind == AS_RETURN ? x->next : x ? x->body : NULL; x; x = x->next)
        as_print(x, 0, &plain, out);
}

/* The question says all that the answer needs: no number stands in a module alone. */
static bool is_said(const struct dag *g)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const char *init = g->node[n].c.op->spell[g->node[n].spelling].init;
        if (init && (strchr(init, '$') || g->node[n].c.op->n_params))
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

/* Of a map over all elements alike no shape is needed. */
static bool needs_shapes(const struct nest *k)
{
    return k->class != NEST_MAP || k->n_dims != 1;
}

static void add_shapes(const struct dag *g, struct buf *out)
{
    bool first = true;

    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind == VALUE_INPUT) {
            const struct tdesc *t = &g->value[i].t;
            buf_adds(out, first ? "\nShapes: (" : ", (");
            for (int d = 0; d < t->rank; d++)
                buf_addf(out, "%s%d", d ? ", " : "", t->d[d]);
            buf_adds(out, t->rank == 1 ? ",)" : ")");
            first = false;
        }
}

/* One kernel, of which one thread makes one output; its first schedule. */
static bool add_answer(const struct dag *g, struct rng *r, struct arena *a, struct buf *ask, struct buf *out)
{
    struct kernels *k = arena_alloc(a, sizeof *k);
    struct program_style style = {.sizes = SIZES_PARAMS, .terse = true};
    struct err e = ERR_INIT;
    struct afun *f;

    fuse(g, FUSE_ALL, a, k);
    if (k->n != 1 || fuse_schedule(k, NULL) < 0)
        return false;
    if (needs_shapes(&k->k[0].nest)) {
        add_shapes(g, ask);
        if (k->k[0].nest.class == NEST_MAP && draw_below(r, BROADCAST_ONE_IN))
            return false;
    }
    f = program_cuda(g, k, &style, a, &e);
    for (; f; f = f->next)
        if (f->name && strstr(f->type, "__global__"))
            add_statements(f->body, out);
    return out->n > 0 && out->n < MAX_ANSWER;
}

static json_t *record_of(const struct problem_source *s, const struct dag *g, struct rng *r, int index)
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
    if (add_answer(g, r, &a, &ask, &lines) && graph_set_add(s->asked, hash64(ask.p, ask.n, 1))) {
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
        dag_draw(s->table[OP_KNOWN], &r, &l, g);
        if (!heldout_graph(dag_hash(g, false)) && heldout_spell(g, false, &r) && is_said(g) &&
            !heldout_has_attribute(g))
            v = record_of(s, g, &r, index);
    }
    free(g);
    return v;
}
