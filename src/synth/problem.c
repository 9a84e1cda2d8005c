/* problem.c - see problem.h. Reading order: problem_draw at the end; a graph is drawn until the side takes it, then
 * programs are. Every problem draws from its own random stream. */
#include "synth/problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "synth/ir/ast_mutate.h"
#include "synth/program.h"
#include "synth/surface/kind.h"
#include "synth/surface/surface.h"
#include "synth/surface/surface_mutate.h"
#include "synth/wording.h"
#include "synth/triviality.h"

#define MAX_DRAWS 20000 /* for one problem */
#define KNOWN_ONE_IN 8  /* of graphs that training has: the commonest few would fill it, and be remembered whole */

const char *const side_names[N_SIDES] = {"train", "parent", "harvest", "prompt", "held"};

/* ---- sets ---- */

struct graph_set {
    uint64_t *key;
    size_t cap, n;
};

struct graph_set *graph_set_new(void)
{
    struct graph_set *s = xcalloc(1, sizeof *s);

    s->cap = 1024;
    s->key = xcalloc(s->cap, sizeof *s->key);
    return s;
}

void graph_set_free(struct graph_set *s)
{
    if (s)
        free(s->key);
    free(s);
}

/* Open addressing; zero is never a key. */
static size_t problem_place_of(const struct graph_set *s, uint64_t key)
{
    size_t i = key % s->cap;

    while (s->key[i] && s->key[i] != key)
        i = (i + 1) % s->cap;
    return i;
}

bool graph_set_has(const struct graph_set *s, uint64_t key)
{
    return s->key[problem_place_of(s, key | 1)] != 0;
}

/* Doubles the set and enters its keys anew. */
static void problem_grow(struct graph_set *s)
{
    struct graph_set bigger = {xcalloc(2 * s->cap, sizeof *s->key), 2 * s->cap, s->n};

    for (size_t i = 0; i < s->cap; i++)
        if (s->key[i])
            bigger.key[problem_place_of(&bigger, s->key[i])] = s->key[i];
    free(s->key);
    *s = bigger;
}

bool graph_set_add(struct graph_set *s, uint64_t key)
{
    size_t i;

    if (2 * s->n >= s->cap)
        problem_grow(s);
    i = problem_place_of(s, key |= 1);
    if (s->key[i])
        return false;
    s->key[i] = key, s->n++;
    return true;
}

/* ---- which graphs a side takes ---- */

static enum op_class problem_class_of(const struct problem_options *o, const struct opdef *op)
{
    enum op_class c = heldout_class(op);

    return o->all_taught && c == OP_KNOWN ? OP_TAUGHT : c;
}

/* Taught operators, and those of class c. */
static struct dag_table *problem_table_of(const struct problem_options *o, enum op_class c)
{
    int n;
    const struct opdef *const *row = op_rows(&n);
    uint8_t *allowed = xcalloc((size_t)n, 1);
    struct dag_table *t;

    for (int i = 0; i < n; i++) {
        enum op_class its = problem_class_of(o, row[i]);
        allowed[i] = (!o->ops || o->ops[i]) && (its == OP_TAUGHT || its == c);
    }
    t = dag_table_weighted(allowed, o->weights);
    free(allowed);
    return t;
}

/* Counts the chosen operators by class: taught, known, unseen. */
static void problem_count_classes(struct problem_source *s)
{
    int n;
    const struct opdef *const *row = op_rows(&n);

    for (int i = 0; i < n; i++)
        s->classes[problem_class_of(s->o, row[i])] += !s->o->ops || s->o->ops[i];
}

void problem_source_init(struct problem_source *s, const struct problem_options *o)
{
    *s = (struct problem_source){.o = o, .texts = graph_set_new(), .trained = graph_set_new(),
                                 .prompted = graph_set_new(), .learned = graph_set_new(), .held = graph_set_new(),
                                 .asked = graph_set_new(),
                                 .refused = json_object()};
    for (int c = 0; c < N_OP_CLASSES; c++)
        s->table[c] = problem_table_of(o, (enum op_class)c);
    problem_count_classes(s);
}

void problem_source_free(struct problem_source *s)
{
    for (int c = 0; c < N_OP_CLASSES; c++)
        dag_table_free(s->table[c]);
    graph_set_free(s->texts), graph_set_free(s->trained), graph_set_free(s->prompted), graph_set_free(s->learned);
    graph_set_free(s->held);
    graph_set_free(s->asked);
    free(s->known_prompts);
    json_decref(s->refused);
}

int problem_held(const struct problem_source *s, enum heldout split, int n)
{
    if (s->o->public && split == HELD_STYLE)
        return 0;
    return split == HELD_LEARNED && !s->classes[OP_KNOWN] ? 0 : n;
}

static enum op_class problem_class_of_graph(const struct problem_source *s, const struct dag *g)
{
    if (heldout_has_operator(g, OP_UNSEEN))
        return OP_UNSEEN;
    return !s->o->all_taught && heldout_has_operator(g, OP_KNOWN) ? OP_KNOWN : OP_TAUGHT;
}

/* What a problem must have: the class of its operators, the number of its nodes (0: any), whose graph it is. */
struct wanted {
    enum side side;
    enum heldout split;
    enum op_class class;
    int nodes;
    bool prompted; /* of HELD_LEARNED: a graph that a prompt has, in other sizes */
};

/* As many operators as some training task has. */
static int problem_draw_nodes(const struct problem_source *s, struct rng *r)
{
    int all = 0, at, n = 0;

    for (int i = 0; i <= DAG_NODES; i++)
        all += s->trained_nodes[i];
    if (!all)
        return 0;
    for (at = (int)draw_below(r, (uint64_t)all); at >= s->trained_nodes[n]; n++)
        at -= s->trained_nodes[n];
    return n;
}

/* Of the first n prompts the share of known operators is exact to one. */
static bool problem_prompt_is_known(const struct problem_source *s, int index)
{
    double share = s->o->known_share;

    return s->classes[OP_KNOWN] && floor((index + 1) * share) > floor(index * share);
}

/* What task 'index' of a side shall be: its class of operators, and whether it is one of a prompt's graph. */
static struct wanted problem_wanted_of(const struct problem_source *s, enum side side, enum heldout split, int index)
{
    struct wanted w = {side, split, OP_TAUGHT, 0, false};

    if (side == SIDE_PROMPT && problem_prompt_is_known(s, index))
        w.class = OP_KNOWN;
    if (side == SIDE_HELD)
        w.class = split == HELD_LEARNED ? OP_KNOWN : split == HELD_UNSEEN ? OP_UNSEEN : OP_TAUGHT;
    w.prompted = side == SIDE_HELD && split == HELD_LEARNED && index % 2 && s->n_known_prompts;
    return w;
}

/* True where a drawn graph belongs to the wanted side and split. */
static bool problem_belongs(const struct problem_source *s, const struct wanted *w, const struct dag *g)
{
    uint64_t hash = dag_hash(g, false);
    bool graph = heldout_graph(hash), attribute = heldout_has_attribute(g);

    if (problem_class_of_graph(s, g) != w->class || (w->nodes && g->n_nodes != w->nodes))
        return false;
    if (w->side != SIDE_HELD)
        return !graph && !attribute;
    switch (w->split) {
    case HELD_SAME: return graph && !attribute;
    case HELD_ATTRIBUTES: return attribute && graph_set_has(s->trained, hash);
    case HELD_STYLE: return !graph && !attribute;
    case HELD_LEARNED: return (w->prompted ? graph_set_has(s->prompted, hash) : graph) && !attribute;
    case HELD_UNSEEN: return !attribute;
    case N_HELD: break;
    }
    return false;
}

/* Training, prompts and the split 'learned' have each graph, but not as often as it is drawn. */
static bool problem_is_common(const struct problem_source *s, const struct wanted *w, const struct dag *g)
{
    const struct graph_set *had = w->side == SIDE_TRAIN                                ? s->trained
                                  : w->side == SIDE_PROMPT                             ? s->prompted
                                  : w->side == SIDE_HELD && w->split == HELD_LEARNED ? s->learned
                                                                                       : NULL;

    return had && graph_set_has(had, dag_hash(g, false));
}

/* Why a drawn graph is not taken, in a word; NULL: it is. */
static const char *problem_refusal(struct problem_source *s, const struct wanted *w, struct rng *r, struct dag *g)
{
    if (!heldout_spell(g, w->side == SIDE_HELD && w->split == HELD_STYLE, r))
        return "spelling";
    if (!problem_belongs(s, w, g))
        return "another side";
    if (problem_is_common(s, w, g) && draw_below(r, KNOWN_ONE_IN))
        return "a graph that its side has";
    if (graph_set_has(s->texts, dag_hash(g, true)))
        return "repeated";
    return triviality_reason(g, r);
}

/* Sizes, dtypes and operators that a graph of this kind may have. */
static struct dag_limits problem_limits_of(const struct problem_source *s, const struct wanted *w)
{
    return (struct dag_limits){.l = {.max_numel = s->o->max_numel, .max_work = (int64_t)s->o->max_numel * 64,
                                     .dtypes = s->o->dtypes, .nice = s->o->prompt_format.style == PROMPT_PLAIN},
                               .min_ops = w->nodes ? w->nodes : 1, .max_ops = w->nodes ? w->nodes : s->o->max_ops,
                               .anchors = 2};
}

/* Draws until the side takes it; 'most' times. */
static bool problem_draw_from(struct problem_source *s, const struct dag_table *t, const struct wanted *w, int most,
                              struct rng *r, struct dag *g)
{
    struct dag_limits l = problem_limits_of(s, w);
    const char *why = "";

    for (int i = 0; i < most && why; i++) {
        /* a small corpus knows few large graphs */
        if (i == most / 4 && w->side == SIDE_HELD && w->split == HELD_ATTRIBUTES)
            l.max_ops = 1;
        dag_draw(t, r, &l, g);
        why = problem_refusal(s, w, r, g);
        if (why)
            json_count(s->refused, why, 1);
    }
    return !why;
}

/* Of the operators of one prompt, drawn once more: its graph, in other sizes, comes soon. */
static bool problem_draw_like_prompt(struct problem_source *s, struct wanted *w, struct rng *r, struct dag *g)
{
    int n;
    const struct opdef *const *row = op_rows(&n);
    uint8_t *allowed = xcalloc((size_t)n, 1);
    const struct prompt_ops *p = &s->known_prompts[draw_below(r, (uint64_t)s->n_known_prompts)];
    struct dag_table *t;
    bool found;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < p->n; k++)
            allowed[i] |= row[i] == p->op[k];
    w->nodes = p->n;
    t = dag_table_new(allowed);
    found = problem_draw_from(s, t, w, MAX_DRAWS / 32, r, g);
    dag_table_free(t);
    free(allowed);
    return found;
}

/* Draws a graph for w; false if none was found within the tries. */
static bool problem_draw_graph(struct problem_source *s, struct wanted *w, struct rng *r, struct dag *g)
{
    for (int i = 0; w->prompted && i < 16; i++)
        if (problem_draw_like_prompt(s, w, r, g))
            return true;
    w->prompted = false; /* a small corpus may have too few prompts */
    w->nodes = w->side == SIDE_PROMPT ? problem_draw_nodes(s, r) : 0;
    return problem_draw_from(s, s->table[w->class], w, MAX_DRAWS, r, g);
}

/* ---- programs ---- */

/* The program of a graph's kernels as a file's text; the caller frees. */
static char *problem_file_text(const struct problem_source *s, const struct dag *g, const struct kernels *k,
                               const struct afun *f, const struct program_style *style)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    program_file(g, k, f, style, &b);
    return record_in_dialect(&s->o->prompt_format, buf_detach(&b));
}

/* True unless p has a solution of that strategy or with that text. */
static bool problem_is_new(const struct problem *p, const char *strategy, const char *code)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->s[i].strategy, strategy) || !strcmp(p->s[i].code, code))
            return false;
    return true;
}

/* Sets x's broken copy and the edit that broke it; no copy where the edit changed nothing. */
static void problem_break_one(const struct problem_source *s, const struct dag *g, const struct kernels *k,
                              const struct afun *f, const struct program_style *style, struct rng *r,
                              struct solution *x)
{
    struct arena a = {0};
    struct afun *copy = ast_clone(&a, f);
    int kind = ast_mutate_any(&a, r, copy);

    if (kind >= 0) {
        x->bug = ast_mutation_name(kind), x->why = ast_mutation_reason(kind);
        x->mutant = problem_file_text(s, g, k, copy, style);
    }
    if (x->mutant && !strcmp(x->mutant, x->code))
        free(x->mutant), x->mutant = NULL;
    arena_free(&a);
}

/* Other names than the plain ones; formulas. */
static void problem_reword(const struct problem_source *s, const struct dag *g, struct rng *r, struct arena *a,
                           struct afun *f)
{
    if (s->o->prompt_format.style == PROMPT_PLAIN)
        wording_names(f, wording_draw(r, s->o->prompt_format.wordings));
    if (s->o->prompt_format.formulas)
        wording_explain(g, a, f);
}

/* One more program, if what is drawn is new and short enough. */
static int problem_add_solution(struct problem_source *s, const struct dag *g, const struct program_style *style,
                                struct rng *r, bool mutant, struct problem *p, struct err *e)
{
    struct arena a = {0};
    struct kernels *k = arena_alloc(&a, sizeof *k);
    struct solution x = {.level = (enum fusion)rng_below(r, N_FUSIONS)};
    struct afun *f;

    fuse(g, x.level, &a, k);
    f = NULL;
    if (fuse_schedule(k, r) == 0) {
        if (style->terse)
            fuse_untuned(k);
        f = program_cuda(g, k, style, &a, e);
    }
    if (!f) {
        arena_free(&a);
        return e->kind ? -1 : 0;
    }
    problem_reword(s, g, r, &a, f);
    x.strategy = record_strategy(k);
    x.kernels = k->n;
    x.code = problem_file_text(s, g, k, f, style);
    if (x.code && problem_is_new(p, x.strategy, x.code) &&
        (!s->o->max_program || (int)strlen(x.code) <= s->o->max_program)) {
        if (mutant && !p->n)
            problem_break_one(s, g, k, f, style, r, &x);
        p->s[p->n++] = x;
    } else {
        free(x.code), free(x.strategy);
    }
    arena_free(&a);
    return 0;
}

/* Draws how a program is written; held-out styles for that split alone. */
static void problem_draw_style(const struct problem_options *o, const struct problem *p, struct rng *r,
                               struct program_style *ret)
{
    bool held = p->side == SIDE_HELD && p->split == HELD_STYLE, full = o->prompt_format.style == PROMPT_FULL;

    *ret = (struct program_style){.sizes = full ? (enum size_style)rng_below(r, 3) : SIZES_PARAMS, .terse = !full};
    if (full || wording_draw(r, o->prompt_format.wordings))
        ast_style_draw(r, &ret->c);
    ret->c.bare &= !o->prompt_format.formulas;
    ret->docstring = held || (full && draw_below(r, 3) == 0);
    ret->reuse = held || (full && draw_below(r, 2));
}

/* Draws up to 'want' solutions of different strategies, with broken copies where mutants are wanted. */
static int problem_draw_solutions(struct problem_source *s, const struct dag *g, struct rng *r, int want, bool mutants,
                                  struct problem *p, struct err *e)
{
    struct program_style style;

    problem_draw_style(s->o, p, r, &style);
    for (int i = 0; i < 8 * want && p->n < want; i++)
        if (problem_add_solution(s, g, &style, r, mutants, p, e) < 0)
            return -1;
    return 0;
}

/* Fills p with the graph's task, hashes and view. */
static void problem_describe(struct problem_source *s, const struct dag *g, struct rng *r, struct problem *p)
{
    struct program_style style;
    struct buf task;
    char hash[17];

    problem_draw_style(s->o, p, r, &style);
    buf_init(&task, BUF_MAX_TEXT);
    program_task(g, &style, &task);
    p->code = buf_detach(&task);
    p->hash = dag_hash(g, false), p->shape_hash = dag_hash(g, true);
    p->n_nodes = g->n_nodes;
    snprintf(hash, sizeof hash, "%016" PRIx64, p->hash);
    p->view = record_task(g, p->name, p->code, hash);
}

/* Sets the file's name of task 'index'. */
static void problem_name(struct problem *p, const struct wanted *w, int index)
{
    static const char *const mark[N_SIDES] = {"task", "broken", "own", "prompt", ""};
    const char *part = p->split != HELD_LEARNED ? "" : w->prompted ? "_sizes" : "_graphs";

    if (p->side == SIDE_HELD)
        snprintf(p->name, sizeof p->name, "%s%s_%04d", heldout_names[p->split], part, index);
    else
        snprintf(p->name, sizeof p->name, "%s_%04d", mark[p->side], index);
}

/* g: NULL of a task that is no graph, whose operators are not drawn again. */
static void problem_remember_prompt(struct problem_source *s, const struct problem *p, const struct dag *g)
{
    struct prompt_ops *ops;

    graph_set_add(s->prompted, p->hash);
    if (p->class != OP_KNOWN)
        return;
    s->known_prompts = xrealloc(s->known_prompts, (size_t)(s->n_known_prompts + 1) * sizeof *ops);
    ops = &s->known_prompts[s->n_known_prompts++];
    ops->n = g ? g->n_nodes : 0;
    for (int n = 0; n < ops->n; n++)
        ops->op[n] = g->node[n].c.op;
}

/* Enters the graph among those that no later task may repeat. */
static void problem_remember(struct problem_source *s, const struct problem *p, const struct dag *g)
{
    graph_set_add(s->texts, p->shape_hash);
    if (p->side == SIDE_TRAIN) {
        graph_set_add(s->trained, p->hash);
        s->trained_nodes[p->n_nodes]++;
    } else if (p->side == SIDE_PROMPT) {
        problem_remember_prompt(s, p, g);
    } else if (p->side == SIDE_HELD) {
        graph_set_add(s->held, p->hash);
        if (p->split == HELD_LEARNED)
            graph_set_add(s->learned, p->hash);
    }
}

static int problem_no_more(enum side side, enum heldout split, int index, struct err *e)
{
    return err_set(e, ERR_INPUT, "no further %s task ('%s') after %d; raise --max-ops, --max-elements or "
                   "--max-program, allow more operators with --ops, or ask for fewer tasks", side_names[side],
                   side == SIDE_HELD ? heldout_names[split] : side_names[side], index);
}

/* ---- tasks as people write them: their list of operators stands for the graph ---- */

/* Of an unseen operator beside a known one it is none. */
static enum op_class problem_class_of_surface(const struct problem_source *s, const struct surface *f)
{
    bool has[N_OP_CLASSES] = {false};

    for (int i = 0; i < f->n_ops; i++)
        has[heldout_name_class(kind_operator(f->op[i]))] = true;
    if (s->o->all_taught)
        has[OP_KNOWN] = false;
    if (has[OP_UNSEEN])
        return has[OP_KNOWN] ? N_OP_CLASSES : OP_UNSEEN;
    return has[OP_KNOWN] ? OP_KNOWN : OP_TAUGHT;
}

/* Of prompts the share of chains is larger: single operators are soon right or wrong in every sample, and then teach
 * RL nothing. */
#define SHARE_CHAINS_PROMPTS 0.75

/* The share of chains among the tasks of this kind, 0 to 1. */
static double problem_chain_share(const struct problem_source *s, const struct wanted *w, int index)
{
    bool held = w->side == SIDE_HELD;
    double share = w->side == SIDE_PROMPT ? SHARE_CHAINS_PROMPTS : SURFACE_CHAINS;

    if (s->o->max_ops < 2 || (held && w->split == HELD_ATTRIBUTES) || (held && w->prompted))
        return 0;
    if (held && w->split != HELD_UNSEEN)
        return 1;
    return surface_is_chain(index, share);
}

/* A held-out graph is asked once, while there are others. */
static bool problem_surface_is_new(const struct problem_source *s, const struct wanted *w, const struct surface *f,
                                   uint64_t tries)
{
    return w->side != SIDE_HELD || f->n_ops < 2 || tries > MAX_DRAWS / 4 || !graph_set_has(s->held, surface_hash(f));
}

/* Chains are held out by what they are made of, single operators by their sizes and names: as texts. */
static bool problem_surface_belongs(const struct problem_source *s, const struct wanted *w, const struct surface *f)
{
    bool chain = f->n_ops > 1, graph = chain && heldout_graph(surface_hash(f));

    if (problem_class_of_surface(s, f) != w->class)
        return false;
    if (w->side != SIDE_HELD)
        return !graph;
    switch (w->split) {
    case HELD_SAME: return graph;
    case HELD_ATTRIBUTES: return !chain;
    case HELD_LEARNED: return w->prompted ? !chain : graph;
    case HELD_UNSEEN: return true;
    case HELD_STYLE:
    case N_HELD: break;
    }
    return false;
}

/* The fields of a record that say what a public task is made of. New. */
static json_t *problem_surface_view(const struct surface *f, const char *hash)
{
    json_t *ops = json_array(), *families = json_array();

    for (int i = 0; i < f->n_ops; i++)
        json_array_append_new(ops, json_string(f->op[i])), json_array_append_new(families, json_string(f->family[i]));
    return json_pack("{s:s, s:o, s:o, s:s}", "code", f->task, "ops", ops, "families", families, "graph_hash", hash);
}

/* A bug in its only program, which stays as it is where none fits. */
static void problem_surface_break(const struct problem_source *s, int index, struct solution *x)
{
    const struct surface_mutation *m;
    struct rng r;

    rng_seed(&r, s->o->seed, (uint64_t)SIDE_PARENT << 48 | (uint64_t)index);
    if ((x->mutant = surface_mutate(x->code, &r, &m)))
        x->bug = m->name, x->why = m->reason;
}

/* Takes f's texts. */
static void problem_surface(struct problem_source *s, struct surface *f, const struct wanted *w, int index,
                            struct problem *p)
{
    char hash[17];

    snprintf(hash, sizeof hash, "%016" PRIx64, surface_hash(f));
    *p = (struct problem){.side = w->side, .split = w->split, .class = w->class, .hash = surface_hash(f),
                          .shape_hash = hash64(f->task, strlen(f->task), 7), .n_nodes = f->n_ops,
                          .view = problem_surface_view(f, hash), .n = 1};
    p->code = f->task;
    p->s[0] = (struct solution){.code = f->program, .strategy = xstrdup("generic"), .kernels = f->n_kernels};
    f->task = f->program = NULL;
    if (w->side == SIDE_PARENT)
        problem_surface_break(s, index, &p->s[0]);
    problem_name(p, w, index);
    json_object_set_new(p->view, "name", json_string(p->name));
    problem_remember(s, p, NULL);
}

/* Draws a problem of public style; *ret is owned. ERR_INPUT: no draw fits. */
static int problem_draw_surface(struct problem_source *s, const struct wanted *w, int index, struct problem *ret,
                                struct err *e)
{
    const struct surface_limits l = {.chains = problem_chain_share(s, w, index)};
    uint64_t seed = s->o->seed ^ (uint64_t)(w->side + 1) << 56 ^ (uint64_t)w->split << 48;

    for (uint64_t i = 0; i < MAX_DRAWS; i++) {
        struct surface f;
        bool fits;

        surface_draw(seed, (uint64_t)index + (i << 32), &l, &f);
        f.program = record_in_dialect(&s->o->prompt_format, f.program);
        fits = f.program && problem_surface_belongs(s, w, &f) && problem_surface_is_new(s, w, &f, i) &&
            !graph_set_has(s->texts, hash64(f.task, strlen(f.task), 7)) &&
               (!s->o->max_program || (int)strlen(f.program) <= s->o->max_program);
        if (fits)
            problem_surface(s, &f, w, index, ret);
        surface_free(&f);
        if (fits)
            return 0;
    }
    return problem_no_more(w->side, w->split, index, e);
}

int problem_draw(struct problem_source *s, enum side side, enum heldout split, int index, int want, bool mutants,
                 struct problem *ret, struct err *e)
{
    struct dag *g;
    struct problem p = {.side = side, .split = split};
    struct wanted w = problem_wanted_of(s, side, split, index);
    struct rng r;
    int rc = 0;

    if (s->o->public)
        return problem_draw_surface(s, &w, index, ret, e);
    g = xmalloc(sizeof *g);
    rng_seed(&r, s->o->seed, (uint64_t)side << 48 | (uint64_t)split << 40 | (uint64_t)index);
    for (int i = 0; i < 64 && !p.n && !rc; i++) {
        if (!problem_draw_graph(s, &w, &r, g))
            break;
        rc = problem_draw_solutions(s, g, &r, want < PROBLEM_SOLUTIONS ? want : PROBLEM_SOLUTIONS, mutants, &p, e);
        if (!p.n)
            json_count(s->refused, "program too long", 1);
    }
    if (!rc && !p.n)
        rc = problem_no_more(side, split, index, e);
    if (!rc) {
        p.class = w.class;
        problem_name(&p, &w, index);
        problem_describe(s, g, &r, &p);
        problem_remember(s, &p, g);
        *ret = p;
    }
    free(g);
    return rc;
}

void problem_free(struct problem *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->s[i].code), free(p->s[i].strategy), free(p->s[i].mutant);
    free(p->code);
    json_decref(p->view);
}
