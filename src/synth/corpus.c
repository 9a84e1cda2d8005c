/* corpus.c - see corpus.h. Reading order: corpus_make at the end; problems are drawn, their programs and mutants
 * judged, and the lines follow from both. */
#include "synth/corpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "synth/entropy.h"
#include "synth/knowledge.h"
#include "synth/knowledge_public.h"

enum file { F_TRAIN, F_PROMPTS, F_ORACLE, F_HARVEST, F_HELDOUT, F_REJECTED, N_FILES };
static const char *const file_names[N_FILES] = {"train.jsonl",   "prompts.jsonl", "oracle.jsonl",
                                                "harvest.jsonl", "heldout.jsonl", "rejected.jsonl"};

struct corpus {
    const struct corpus_options *o;
    struct problem_source source;
    struct problem *p;
    int n;
    json_t *verdicts;
    struct buf file[N_FILES];
    json_t *families, *strategies, *reasons, *bugs, *classes; /* counters; classes: of prompts */
    struct entropy *entropy; /* of train.jsonl */
    struct corpus_stats stats;
};

/* Appends v as one line; takes v. */
static void corpus_add_line(struct buf *b, json_t *v)
{
    json_line(b, v);
    json_decref(v);
}

/* ---- drawing ---- */

static int corpus_n_mutants(const struct corpus_options *o)
{
    return o->judge ? (int)ceil(o->repairs * o->tasks) : 0;
}

/* Draws n problems of a side, each with 'want' solutions. */
static int corpus_draw_side(struct corpus *c, enum side side, enum heldout split, int n, int want, struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (problem_draw(&c->source, side, split, i, want, side == SIDE_PARENT, &c->p[c->n], e) < 0)
            return -1;
        c->n++;
        if (stop_requested())
            return err_set(e, ERR_STOP, "stopped; the same command starts again");
    }
    return 0;
}

/* Draws the problems of all sides: training, parents of bugs, harvest, prompts, held out. */
static int corpus_draw_all(struct corpus *c, struct err *e)
{
    const struct corpus_options *o = c->o;
    int most = o->tasks + corpus_n_mutants(o) + o->harvest + o->prompts + N_HELD * o->heldout, rc;

    c->p = xcalloc((size_t)most + 1, sizeof *c->p);
    rc = corpus_draw_side(c, SIDE_TRAIN, HELD_SAME, o->tasks, o->per_task, e);
    if (!rc)
        rc = corpus_draw_side(c, SIDE_PARENT, HELD_SAME, corpus_n_mutants(o), 1, e);
    if (!rc)
        rc = corpus_draw_side(c, SIDE_HARVEST, HELD_SAME, o->harvest, o->answers, e);
    if (!rc)
        rc = corpus_draw_side(c, SIDE_PROMPT, HELD_SAME, o->prompts, o->answers, e);
    for (int s = 0; s < N_HELD && !rc; s++)
        rc = corpus_draw_side(c, SIDE_HELD, (enum heldout)s, problem_held(&c->source, (enum heldout)s, o->heldout),
                              1, e);
    return rc;
}

/* ---- judging ---- */

/* A share of the programs, the same whatever else is in the corpus. */
static bool corpus_is_sampled(const struct corpus *c, const struct problem *p, int k)
{
    uint64_t key = p->shape_hash + (uint64_t)k * 0x9e3779b97f4a7c15u;

    if (p->side == SIDE_HELD)
        return true;
    return (double)(key * 0xd6e8feb86659fd93u >> 11) * 0x1p-53 < c->o->verify_share;
}

static struct verify_item corpus_item(const struct problem *p, const char *program)
{
    return (struct verify_item){.name = p->name, .task = p->code, .program = program};
}

/* Lists what is to be judged; where[i] is the place of item i's verdict. Returns how many. */
static int corpus_list_items(struct corpus *c, struct verify_item *items, const json_t ***where)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->p[i].n; k++) {
            struct solution *x = &c->p[i].s[k];
            x->verify = corpus_is_sampled(c, &c->p[i], k);
            if (x->verify)
                where[n] = &x->verdict, items[n++] = corpus_item(&c->p[i], x->code);
            if (x->mutant)
                where[n] = &x->mutant_verdict, items[n++] = corpus_item(&c->p[i], x->mutant);
        }
    return n;
}

/* Has the sampled programs and mutants judged and hands each its verdict. */
static int corpus_judge_all(struct corpus *c, struct err *e)
{
    size_t most = (size_t)c->n * PROBLEM_SOLUTIONS * 2 + 1;
    struct verify_item *items = xcalloc(most, sizeof *items);
    const json_t ***where = xcalloc(most, sizeof *where);
    struct verify_options v = c->o->verify;
    char *log = path_join(c->o->out, "verdicts.log.jsonl");
    int n = corpus_list_items(c, items, where), rc;

    v.log = log;
    rc = c->o->judge(&v, items, n, &c->verdicts, e);
    for (int i = 0; i < n && !rc; i++)
        *where[i] = json_array_get(c->verdicts, (size_t)i);
    free(items), free(where), free(log);
    return rc;
}

static bool corpus_passed(const json_t *verdict)
{
    return !verdict || !strcmp(json_str(verdict, "status", ""), "passed");
}

/* Convicted of something that a repair can be about. */
static bool corpus_is_detected(const json_t *verdict)
{
    const char *category = json_str(verdict, "category", "");

    return !corpus_passed(verdict) && (!strcmp(category, "compile_error") || !strcmp(category, "runtime_error") ||
                                       !strcmp(category, "correctness_error"));
}

/* ---- lines ---- */

/* Writes a line about a program that did not pass, or a bug that nobody noticed. */
static void corpus_reject(struct corpus *c, const struct problem *p, const struct solution *x, bool mutant)
{
    const json_t *v = mutant ? x->mutant_verdict : x->verdict;
    const char *reason = corpus_passed(v) ? "undetected" : json_str(v, "category", "failed");
    char key[128];

    corpus_add_line(&c->file[F_REJECTED],
                    json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s, s:s}", "what", mutant ? "mutant" : "program", "task",
                              p->name, "strategy", x->strategy, "mutation", mutant ? x->bug : NULL,
                              "reason", reason,
                              "feedback", json_str(v, "feedback", ""), "code", mutant ? x->mutant : x->code));
    snprintf(key, sizeof key, "%s: %s", mutant ? "mutant" : "program", reason);
    json_count(c->reasons, key, 1);
    c->stats.rejected++;
}

static json_t *corpus_provenance(const struct corpus *c, const char *parent, const char *mutation)
{
    return json_pack("{s:s, s:I, s:s*, s:s*}", "generator", SYNTH_GENERATOR, "seed",
                     (json_int_t)c->o->problem.seed, "parent", parent, "mutation", mutation);
}

/* A record around a dialogue, which it takes. */
static json_t *corpus_record_of(const struct corpus *c, const struct problem *p, int k, const char *kind,
                                json_t *messages, json_t *from)
{
    const struct solution *x = &p->s[k];
    char *id = xasprintf("%s-%s-%d", kind, p->name, k);
    json_t *v = json_pack(
        "{s:s, s:s, s:o, s:O, s:{s:s, s:s, s:s, s:s, s:i}, s:o, s:o, s:i, s:s}", "id", id, "kind", kind, "messages",
        messages, "task", p->view, "kernel", "lang", c->o->problem.prompt_format.musa ? "musa" : "cuda", "code",
        x->code, "strategy", x->strategy, "fusion", fusion_names[x->level], "kernels", x->kernels, "verdict",
        x->verdict ? record_brief(x->verdict) : json_null(), "provenance", from, "difficulty",
        p->n_nodes + 2 * x->kernels, "split", p->side == SIDE_HELD ? "heldout" : "train");

    free(id);
    return v;
}

/* Writes solution k as a record of kind "generate". */
static void corpus_add_generate(struct corpus *c, const struct problem *p, int k, enum file f)
{
    json_t *m = record_generate(&c->o->problem.prompt_format, json_object_get(p->view, "inputs"), p->code, NULL,
                                p->s[k].code);

    if (f == F_TRAIN)
        entropy_add_messages(c->entropy, m);
    corpus_add_line(&c->file[f], corpus_record_of(c, p, k, f == F_ORACLE ? "oracle" : "generate", m,
                                                  corpus_provenance(c, NULL, NULL)));
    json_count(c->strategies, p->s[k].strategy, 1);
}

static void corpus_count_bug(struct corpus *c, const char *name, const char *outcome)
{
    if (!json_object_get(c->bugs, name))
        json_object_set_new(c->bugs, name, json_object());
    json_count(json_object_get(c->bugs, name), outcome, 1);
}

/* Writes the repair record of solution k's bug, where the bug was noticed and its parent passes. */
static void corpus_add_mutant(struct corpus *c, const struct problem *p, int k)
{
    const struct solution *x = &p->s[k];
    const char *category = json_str(x->mutant_verdict, "category", "failed");
    json_t *m, *v;

    if (!x->mutant || !corpus_passed(x->verdict))
        return;
    if (strcmp(json_str(x->mutant_verdict, "status", ""), "infra")) /* a task that cannot be judged convicts no bug */
        corpus_count_bug(c, x->bug, corpus_passed(x->mutant_verdict) ? "undetected" : category);
    if (!corpus_is_detected(x->mutant_verdict)) {
        corpus_reject(c, p, x, true);
        return;
    }
    m = record_repair(&c->o->problem.prompt_format, p->code, x->mutant, json_str(x->mutant_verdict, "feedback", ""),
                      x->why, x->code);
    v = corpus_record_of(c, p, k, "repair", m, corpus_provenance(c, p->name, x->bug));
    json_object_set_new(v, "broken_verdict", record_brief(x->mutant_verdict));
    corpus_add_line(&c->file[F_TRAIN], v);
    c->stats.train++, c->stats.repairs++;
}

/* Writes a problem as a prompt for RL, without an answer. */
static void corpus_add_prompt(struct corpus *c, const struct problem *p)
{
    const struct prompt_format *v = &c->o->problem.prompt_format;
    json_t *m = record_generate(v, json_object_get(p->view, "inputs"), p->code, NULL, "");
    char *truth = xasprintf("tasks/train/%s.py", p->name);

    json_array_remove(m, json_array_size(m) - 1);
    corpus_add_line(&c->file[F_PROMPTS],
                    json_pack("{s:s, s:o, s:s, s:{s:s, s:s}, s:{s:s, s:i, s:s, s:s, s:s, s:O, s:O}}", "data_source",
                              SYNTH_GENERATOR, "prompt", m, "ability", v->musa ? "musa-kernel" : "cuda-kernel",
                              "reward_model", "style", "rule", "ground_truth", truth, "extra_info", "split", "train",
                              "index", c->stats.prompts, "name", p->name, "class", op_class_names[p->class],
                              "task_code", p->code, "families",
                              json_object_get(p->view, "families"), "graph_hash",
                              json_object_get(p->view, "graph_hash")));
    c->stats.prompts++;
    json_count(c->classes, op_class_names[p->class], 1);
    free(truth);
}

/* Writes a problem's solutions that passed into the file of its side. */
static void corpus_add_solutions(struct corpus *c, const struct problem *p)
{
    static const enum file files[N_SIDES] = {F_TRAIN, F_TRAIN, F_HARVEST, F_ORACLE, F_HELDOUT};

    for (int k = 0; k < p->n; k++)
        if (!corpus_passed(p->s[k].verdict)) {
            corpus_reject(c, p, &p->s[k], false);
        } else if (p->side == SIDE_PARENT) {
            corpus_add_mutant(c, p, k);
        } else {
            corpus_add_generate(c, p, k, files[p->side]);
            c->stats.train += p->side == SIDE_TRAIN;
            c->stats.heldout += p->side == SIDE_HELD;
        }
}

/* A task whose only program failed may be a task that cannot be judged: it is not asked. */
static bool corpus_task_stays(const struct problem *p)
{
    for (int k = 0; k < p->n; k++)
        if (corpus_passed(p->s[k].verdict))
            return true;
    return false;
}

/* Writes the knowledge records. */
static void corpus_add_knowledge(struct corpus *c)
{
    for (int i = 0; i < c->o->knowledge; i++) {
        json_t *v = c->source.o->public ? knowledge_public_record(&c->source, i) : knowledge_record(&c->source, i);
        if (!v)
            break;
        entropy_add_messages(c->entropy, json_object_get(v, "messages"));
        corpus_add_line(&c->file[F_TRAIN], v);
        c->stats.train++, c->stats.knowledge++;
    }
}

/* Writes all problems' lines and counts them. */
static void corpus_add_lines(struct corpus *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct problem *p = &c->p[i];
        const json_t *family = json_array_get(json_object_get(p->view, "families"), (size_t)p->n_nodes - 1);

        corpus_add_solutions(c, p);
        if (!corpus_task_stays(p))
            continue;
        json_count(c->families, json_string_value(family), 1);
        if (p->side == SIDE_PROMPT)
            corpus_add_prompt(c, p);
        c->stats.harvest += p->side == SIDE_HARVEST;
    }
    corpus_add_knowledge(c);
}

/* ---- files ---- */

/* "task_0017.py", "learned_sizes_0003.py": names that problem.c gives. Others are files of the user's. */
static bool corpus_is_task_file(const char *name)
{
    size_t n = strlen(name), word = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

    return n > 8 && word && name[word - 1] == '_' && strspn(name + word, "0123456789") == n - word - 3 &&
           n - word - 3 >= 4 && !strcmp(name + n - 3, ".py");
}

/* Removes the task files of an earlier corpus from a folder, if it is there. */
static int corpus_remove_tasks(const char *dir, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (!file_is_dir(dir))
        return 0;
    if (dir_list(dir, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(dir, names[i]);

        if (corpus_is_task_file(names[i]) && unlink(path) < 0)
            rc = err_sys(e, "cannot remove '%s'", path);
        free(path);
    }
    names_free(names, n);
    return rc;
}

/* Writes the tasks' files anew. known: a listing takes an earlier corpus's tasks away, and not their names. */
static int corpus_write_tasks(const struct corpus *c, struct listing *l, bool known, struct err *e)
{
    static const char *const dirs[] = {"tasks/train", "tasks/heldout"};
    int rc = 0;

    for (int i = 0; i < 2 && !rc; i++) {
        char *dir = path_join(c->o->out, dirs[i]), *above = path_folder(dir);
        if (stamp_check_plain(above, e) < 0 || stamp_check_plain(dir, e) < 0)
            rc = -1;
        else
            rc = !known && corpus_remove_tasks(dir, e) < 0 ? -1 : dir_make(dir, e);
        free(dir), free(above);
    }
    for (int i = 0; i < c->n && !rc; i++) {
        const struct problem *p = &c->p[i];
        char *name = xasprintf("%s/%s.py", dirs[p->side == SIDE_HELD], p->name);
        if (corpus_task_stays(p) && (p->side == SIDE_HELD || p->side == SIDE_PROMPT || p->side == SIDE_TRAIN))
            rc = listing_write(l, name, p->code, strlen(p->code), e);
        free(name);
    }
    return rc;
}

/* Writes the collected lines of one file. ERR_INPUT: they are too many. */
static int corpus_write_lines(const struct corpus *c, struct listing *l, enum file f, struct err *e)
{
    const struct buf *b = &c->file[f];

    return b->cut ? err_set(e, ERR_INPUT, "'%s/%s' would exceed %zu bytes; use --records for so many", c->o->out,
                            file_names[f], b->max)
                  : listing_write(l, file_names[f], b->p, b->n, e);
}

/* How many broken programs were made, and how many of them the judge did not detect. New. */
static json_t *corpus_mutation_stats(const struct corpus *c)
{
    double made = 0, undetected = 0;
    const char *name, *outcome;
    json_t *row, *k;

    json_object_foreach(c->bugs, name, row)
        json_object_foreach(row, outcome, k) {
            made += (double)json_integer_value(k);
            undetected += strcmp(outcome, "undetected") ? 0 : (double)json_integer_value(k);
        }
    return json_pack("{s:i, s:i, s:o, s:O}", "mutants", (int)made, "undetected", (int)undetected, "kill_score",
                     made ? json_real((made - undetected) / made) : json_null(), "kinds", c->bugs);
}

/* The content of stats.json. New. */
static json_t *corpus_stats_of(const struct corpus *c)
{
    const struct corpus_stats *n = &c->stats;

    return json_pack("{s:s, s:I, s:b, s:s, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i}, s:o, s:O, s:O, s:O, s:O, s:O, s:o}",
                     "generator", SYNTH_GENERATOR, "seed", (json_int_t)c->o->problem.seed, "verified",
                     c->o->judge != NULL, "style", prompt_style_name(c->o->problem.prompt_format.style), "records",
                     "train", n->train, "repairs", n->repairs, "knowledge", n->knowledge, "heldout", n->heldout,
                     "prompts", n->prompts, "harvest", n->harvest, "rejected", n->rejected, "entropy",
                     entropy_json(c->entropy), "prompt_classes", c->classes,
                     "draws_refused", c->source.refused,
                     "families", c->families, "strategies", c->strategies, "rejected", c->reasons, "mutations",
                     corpus_mutation_stats(c));
}

/* Nothing of it is lost: its verdicts are kept, so that its command makes it again. */
static void corpus_tell_former(const struct corpus *c)
{
    char *path = path_join(c->o->out, file_names[F_TRAIN]), was[65], now[65];
    const struct buf *b = &c->file[F_TRAIN];
    struct err changed = ERR_INIT;

    sha256_hex(b->p ? b->p : "", b->n, now);
    if (listing_names(path) && listing_check(path, &changed) == 0 && sha256_file(path, was) == 0 && strcmp(was, now))
        log_warn("'%s' holds a corpus of other options, which this one replaces; its command makes it again",
                 c->o->out);
    free(path);
}

/* Writes the tasks, the files of records, and stats.json. */
static int corpus_write_files(const struct corpus *c, struct err *e)
{
    json_t *v = corpus_stats_of(c);
    bool known = listing_is_there(c->o->out);
    struct listing *l;
    int rc;

    corpus_tell_former(c);
    rc = listing_begin(c->o->out, NULL, &l, e);
    if (!rc)
        rc = corpus_write_tasks(c, l, known, e);
    for (int f = 0; f < N_FILES && !rc; f++)
        rc = corpus_write_lines(c, l, (enum file)f, e);
    if (!rc)
        rc = listing_write_json(l, "stats.json", v, e);
    if (!rc)
        rc = listing_end(l, false, NULL, e);
    json_decref(v);
    listing_free(l);
    return rc;
}

static void corpus_init(struct corpus *c, const struct corpus_options *o)
{
    *c = (struct corpus){.o = o};
    for (int f = 0; f < N_FILES; f++)
        buf_init(&c->file[f], (size_t)4 << 30);
    c->families = json_object(), c->strategies = json_object();
    c->reasons = json_object(), c->bugs = json_object(), c->classes = json_object();
    c->entropy = entropy_new();
    problem_source_init(&c->source, &o->problem);
}

static void corpus_free(struct corpus *c)
{
    for (int i = 0; i < c->n; i++)
        problem_free(&c->p[i]);
    free(c->p);
    for (int f = 0; f < N_FILES; f++)
        buf_free(&c->file[f]);
    json_decref(c->verdicts);
    json_decref(c->families), json_decref(c->strategies), json_decref(c->reasons), json_decref(c->bugs);
    json_decref(c->classes);
    entropy_free(c->entropy);
    problem_source_free(&c->source);
}

/* Draws, judges and writes a corpus; see corpus.h. */
int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e)
{
    struct corpus c;
    int rc, lock = -1;

    corpus_init(&c, o);
    rc = folder_claim(o->out, "this corpus", e) < 0 ? -1 : folder_check_other(o->out, "options.json", "stats", e);
    if (!rc)
        rc = folder_lock(o->out, "musacoder synth", &lock, e);
    if (!rc)
        rc = corpus_draw_all(&c, e);
    if (!rc && o->judge)
        rc = corpus_judge_all(&c, e);
    if (!rc) {
        corpus_add_lines(&c);
        rc = corpus_write_files(&c, e);
    }
    if (!rc)
        *ret = c.stats;
    if (lock >= 0)
        close(lock);
    corpus_free(&c);
    return rc;
}
