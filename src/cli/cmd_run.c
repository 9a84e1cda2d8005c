/* cmd_run.c - 'musacoder run RECIPE': from nothing to a report, resumable at every stage. See run.h for the idea.
 * Reading order: cmd_run at the end, run_all, then the table of stage kinds. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/content.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "cli/secret.h"
#include "device/device.h"
#include "eval/eval.h"
#include "nn/budget.h"
#include "nn/engine_device.h"
#include "nn/model.h"
#include "report/report.h"
#include "train/checkpoint.h"
#include "train/recipe.h"

#define MAX_STAGES 32

/* A section of the recipe: which command it configures and which of its options are paths that the run decides. */
struct run_kind {
    const char *section;
    const struct command *command;
    const char *folder;  /* under the run folder; NULL: the section's name */
    const char *paths;   /* "option=what" words; what: run_path_value */
    bool makes_model;    /* folder/model, or the folder itself for init, is the next stage's model */
};

static const struct run_kind kinds[] = {
    {"synth", &cmd_synth, "data", "out=out", false},
    {"public", &cmd_synth, NULL, "out=out", false}, /* records of modules as people write them, beside synth's */
    {"init", &cmd_scratch, NULL, "data=train out=out", true},
    {"sft", &cmd_sft, NULL, "model=model data=train harvest=harvest out=out metrics=metrics stage=stage", true},
    {"diagnose", &cmd_synth_diagnose, NULL, "model=model prompts=prompts out=out", false},
    {"rft", &cmd_rft, NULL, "model=model prompts=prompts data=train+own out=out metrics=metrics stage=stage", true},
    {"rl_single", &cmd_rl, NULL, "model=model prompts=prompts asked=asked out=out metrics=metrics stage=stage", true},
    {"rl_multi", &cmd_rl, NULL, "model=model prompts=prompts asked=asked out=out metrics=metrics stage=stage", true},
    {"control_sft", &cmd_sft, NULL, "model=model data=train+own out=out metrics=metrics stage=stage", true},
    {"control_permuted", &cmd_rl, NULL,
        "model=model prompts=prompts asked=asked out=out metrics=metrics stage=stage", true},
    {"control_rft", &cmd_rft, NULL,
        "model=model prompts=prompts data=train+own out=out metrics=metrics stage=stage", true},
    {"control_oracle", &cmd_sft, NULL, "model=model data=train+own+oracle out=out metrics=metrics stage=stage", true},
    {"bench", &cmd_bench, NULL, "model=model tasks=tasks out=out", false},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

struct recipe_run {
    json_t *recipe;
    char *out;
    struct run_stage stages[MAX_STAGES];
    int n;
    bool anew;
    char *model;     /* made by the latest planned stage */
    bool has_own;    /* sft harvested the model's failures */
    bool has_rft;    /* its groups say which prompts are in reach of RL */
    bool diagnosed;  /* prompts are those of the stage 'diagnose' */
    bool has_public; /* the stage 'public' was planned */
    bool has_synth;  /* 'synth' too: there are data/train.jsonl and data/harvest.jsonl */
    char last_key[65];
    json_t *resolved;
    struct err *e;
};

static const struct run_kind *run_kind_find(const char *section)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i].section, section))
            return &kinds[i];
    return NULL;
}

static void run_section_names(const char **names)
{
    for (size_t i = 0; i < N_KINDS; i++)
        names[i] = kinds[i].section;
    names[N_KINDS] = NULL;
}

/* ---- planning: every option is resolved and checked before the first stage runs ---- */

/* "train+own": the files that there are, with commas between; public records alone where no corpus is made. */
static char *run_data_files(const struct recipe_run *r, const char *what)
{
    static const struct {
        const char *word, *path;
    } files[] = {{"train", "data/train.jsonl"}, {"own", "sft/harvest/own.jsonl"}, {"oracle", "data/oracle.jsonl"}};
    char *words = xstrdup(what), *save = NULL;
    struct buf list;

    buf_init(&list, BUF_MAX_TEXT);
    if (r->has_public)
        buf_addf(&list, "%s/public/data", r->out);
    for (char *w = strtok_r(words, "+", &save); w; w = strtok_r(NULL, "+", &save))
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            if (!strcmp(w, files[i].word) && (strcmp(w, "own") || r->has_own) &&
                (strcmp(w, "train") || r->has_synth || !r->has_public))
                buf_addf(&list, "%s%s/%s", list.n ? "," : "", r->out, files[i].path);
    free(words);
    return buf_detach(&list);
}

/* The path that a stage's option 'what' gets in this run; the caller frees. */
static char *run_path_value(const struct recipe_run *r, const struct run_stage *s, const char *what)
{
    if (!strcmp(what, "out"))
        return xstrdup(s->dir);
    if (!strncmp(what, "train", 5))
        return run_data_files(r, what);
    if (!strcmp(what, "harvest"))
        return r->has_public && !r->has_synth ? xstrdup("") : xasprintf("%s/data/harvest.jsonl", r->out);
    if (!strcmp(what, "prompts"))
        return xasprintf("%s/%s/prompts.jsonl", r->out, r->diagnosed ? "diagnose" : "data");
    if (!strcmp(what, "asked"))
        return r->has_rft ? xasprintf("%s/rft/groups.jsonl", r->out) : xstrdup("");
    if (!strcmp(what, "tasks"))
        return xasprintf("%s/data/tasks/heldout", r->out);
    if (!strcmp(what, "metrics"))
        return xstrdup(r->out);
    if (!strcmp(what, "stage"))
        return xstrdup(s->name);
    return xstrdup(r->model ? r->model : "");
}

/* Numbers of which every stage wants at least one: said now, not after the stages before it. */
static int run_check_counts(const struct run_stage *s, struct err *e)
{
    static const char *const names[] = {"steps", "batch-tokens", "val-every", "save-every", "samples", "group",
                                        "batch-prompts", "epochs", "minibatches", "turns", "vocab", "hidden", "layers",
                                        "heads", "kv-heads", "head-dim", "positions", "tasks", "per-task", "max-keep"};

    for (size_t i = 0; s->command != &cmd_bench && i < sizeof names / sizeof *names; i++) { /* 0 is its default */
        const json_t *v = json_object_get(s->opts.values, names[i]);

        if (json_is_integer(v) && json_integer_value(v) < 1)
            return err_set(e, ERR_INPUT, "%s is %lld; it wants at least 1", names[i],
                           (long long)json_integer_value(v));
    }
    return 0;
}

/* The options of a stage as flags: paths, and the recipe's seed where the section has none. */
static int run_parse_options(struct recipe_run *r, struct run_stage *s, const struct run_kind *k, struct err *e)
{
    const json_t *section = json_object_get(r->recipe, k->section), *seed = json_object_get(r->recipe, "seed");
    char *argv[32], *words = xstrdup(k->paths), *save = NULL, *seed_text = NULL;
    int argc = 0, rc;

    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(w, '='), *value;

        *eq = 0;
        value = run_path_value(r, s, eq + 1);
        argv[argc++] = xasprintf("--%s=%s", w, value);
        free(value);
    }
    if (seed && !json_object_get(section, "seed")) {
        seed_text = json_is_string(seed) ? xstrdup(json_string_value(seed)) : json_text(seed);
        argv[argc++] = xasprintf("--seed=%s", seed_text);
        free(seed_text);
    }
    rc = opts_parse(s->command->rows, argc, argv, json_is_object(section) ? section : NULL, &s->opts, e);
    if (rc == 0)
        rc = run_check_counts(s, e);
    if (rc == 0 && s->command->check)
        rc = s->command->check(&s->opts, e);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    free(words);
    return rc < 0 ? err_prefix(e, "section '%s'", k->section) : 0;
}

/* What the stage does, without where: the folder may move. Also what the resolved recipe shows. New object. */
static json_t *run_meaning(const struct run_stage *s, const struct run_kind *k)
{
    json_t *v = json_deep_copy(s->opts.values);
    char *words = xstrdup(k->paths), *save = NULL;

    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        *strchr(w, '=') = 0;
        json_object_del(v, w);
    }
    free(words);
    return v;
}

/* How often to save and how many processes work change nothing in the result: a stage may go on with other values. */
static const char *const no_meaning[] = {"save-every", "workers", "jobs", "gpus", "zero"};

/* The stage's key: a hash of all options that change its result. */
static void run_set_key(struct recipe_run *r, struct run_stage *s, const struct run_kind *k, const json_t *what)
{
    json_t *key = json_copy((json_t *)what);
    struct sha256 h;
    char *text;

    for (size_t i = 0; i < sizeof no_meaning / sizeof *no_meaning; i++)
        json_object_del(key, no_meaning[i]);
    text = json_text(key);
    json_decref(key);
    sha256_start(&h);
    sha256_adds(&h, s->name);
    sha256_adds(&h, k->section);
    sha256_adds(&h, text);
    sha256_adds(&h, r->last_key);
    sha256_end(&h, s->key);
    free(text);
}

/* Appends a stage with its options resolved. ERR_INPUT: it cannot be run after those before it. */
static int run_plan_stage(struct recipe_run *r, const struct run_kind *k, const char *name, const char *dir,
                          struct err *e)
{
    struct run_stage *s = &r->stages[r->n];
    json_t *what;

    if (r->n == MAX_STAGES)
        return err_set(e, ERR_INPUT, "more than %d stages", MAX_STAGES);
    if (strstr(k->paths, "model=model") && !r->model)
        return err_set(e, ERR_INPUT, "stage '%s' has no model to start from: name 'init' before it in 'stages', "
                       "or give the recipe 'model: FOLDER'", name);
    s->command = k->command;
    s->name = xstrdup(name);
    s->dir = path_join(r->out, dir);
    r->n++;
    if (run_parse_options(r, s, k, e) < 0)
        return -1;
    what = run_meaning(s, k);
    if (secret_hide(what, e) < 0) {
        json_decref(what);
        return -1;
    }
    run_set_key(r, s, k, what);
    json_object_del(what, "secret"); /* the key tells two secrets apart; what is written down need not */
    json_object_set(r->resolved, k->section, what);
    json_decref(what);
    return 0;
}

/* True where the key's list of words has this one. */
static bool run_has_word(const json_t *recipe, const char *key, const char *word)
{
    const char *list = json_str(recipe, key, ""), *p = list;
    size_t n = strlen(word);

    while ((p = strstr(p, word))) {
        bool starts = p == list || strchr(" ,\t\n", p[-1]), ends = !p[n] || strchr(" ,\t\n", p[n]);

        if (starts && ends)
            return true;
        p += n;
    }
    return false;
}

/* One word of 'stages': the stage, then its benchmark. A benchmark's key ends its own chain. */
static int run_plan_word(const char *word, void *ctx, struct err *e)
{
    struct recipe_run *r = ctx;
    const struct run_kind *k = run_kind_find(word);
    char *bench, *dir;
    int rc;

    if (!strcmp(word, "bench"))
        return err_set(e, ERR_INPUT, "'bench' is no stage of its own; name stages in 'bench-after'");
    if (run_plan_stage(r, k, word, k->folder ? k->folder : word, e) < 0)
        return -1;
    memcpy(r->last_key, r->stages[r->n - 1].key, sizeof r->last_key);
    r->has_public |= !strcmp(word, "public");
    r->has_synth |= !strcmp(word, "synth");
    if (!strcmp(word, "sft"))
        r->has_own = opts_int(&r->stages[r->n - 1].opts, "harvest-tasks") > 0;
    r->diagnosed |= !strcmp(word, "diagnose");
    r->has_rft |= !strcmp(word, "rft");
    if (k->makes_model) {
        free(r->model);
        r->model = strcmp(word, "init") ? path_join(r->stages[r->n - 1].dir, "model")
                                        : xstrdup(r->stages[r->n - 1].dir);
    }
    if (!run_has_word(r->recipe, "bench-after", word))
        return 0;
    bench = xasprintf("bench_%s", word);
    dir = xasprintf("bench/%s", word);
    rc = run_plan_stage(r, run_kind_find("bench"), bench, dir, e);
    free(bench);
    free(dir);
    return rc;
}

/* ---- running ---- */

/* Runs the stage's command with its stdout put aside. */
static int run_call_command(void *ctx, struct err *e)
{
    struct run_stage *s = ctx;
    int keep = dup(1), null = open("/dev/null", O_WRONLY | O_CLOEXEC), rc;

    fflush(stdout);
    if (null >= 0)
        dup2(null, 1); /* a stage's own stdout (paths, tables) is not this command's */
    rc = s->command->run(&s->opts, e);
    fflush(stdout);
    if (keep >= 0) {
        dup2(keep, 1);
        close(keep);
    }
    if (null >= 0)
        close(null);
    if (rc < 0)
        return -1;
    if (rc == EXIT_UNFIT)
        log_warn("'%s' could not judge some samples; its table is incomplete", s->command->name);
    return rc == EXIT_OK || rc == EXIT_FAILED || rc == EXIT_UNFIT ? 0
                                              : err_set(e, ERR_ENV, "'%s' ended with code %d", s->command->name, rc);
}

/* The options that markers knew before every row of paths counted: their order is part of the digest. */
static const char *const first_inputs[] = {"model", "data", "prompts", "harvest", "asked", "tasks", "from"};

/* True for an option that was part of the digest before every row of paths counted. */
static bool run_is_first_input(const char *name)
{
    for (size_t i = 0; i < sizeof first_inputs / sizeof *first_inputs; i++)
        if (!strcmp(first_inputs[i], name))
            return true;
    return false;
}

/* Adds the contents of the file or folder that an option names. */
static int run_digest_input(const struct run_stage *s, const char *name, struct sha256 *h, struct err *e)
{
    const char *spec = json_str(s->opts.values, name, NULL); /* synth's 'tasks' is a number */
    bool model = !strcmp(name, "model");
    char digest[65] = "";
    int rc = 0;

    if (!spec)
        return 0;
    if (*spec && model)
        rc = model_check_folder(spec, e);
    if ((model || !strcmp(name, "from") ? content_digest_model : !strcmp(name, "data") ? content_digest_records
         : content_digest)(spec, digest, rc == 0 ? e : NULL) < 0)
        rc = -1;
    sha256_adds(h, name);
    sha256_adds(h, digest);
    return rc;
}

/* What the stage would read now. ERR_INPUT where something is absent or no model. */
static int run_digest_inputs(const struct run_stage *s, char ret[65], struct err *e)
{
    struct sha256 h;
    int rc = 0;

    sha256_start(&h);
    for (size_t i = 0; i < sizeof first_inputs / sizeof *first_inputs && rc == 0; i++)
        rc = run_digest_input(s, first_inputs[i], &h, e);
    for (const struct opt *row = s->command->rows; row->name && rc == 0; row++)
        if (row->type == OPT_PATHS && !run_is_first_input(row->name))
            rc = run_digest_input(s, row->name, &h, e);
    sha256_end(&h, ret);
    return rc;
}

/* Gone, or emptied to the last file: what was done there is not there. */
static bool run_folder_is_gone(const char *dir)
{
    return rmdir(dir) == 0 || !file_is_dir(dir);
}

/* Why the stage must run anew, in words; NULL: it was done. */
static const char *run_why_anew(const struct run_marker *m, const struct run_stage *s, const char *inputs)
{
    if (strcmp(m->key, s->key))
        return "options changed";
    if (run_folder_is_gone(s->dir))
        return "its folder is gone";
    return *m->inputs && strcmp(m->inputs, inputs) ? "what it reads has changed" : NULL;
}

/* What a user has put into the stage's folder, or edited there, would go with it, and so would all of another folder
 * that a link leads to. */
static int run_check_foreign(const struct run_stage *s, struct err *e)
{
    char *path;
    int rc;

    if (stamp_check_links(s->dir, e) < 0)
        return err_prefix(e, "stage '%s' would start anew", s->name);
    if (!(path = run_model_foreign(s->dir)))
        path = run_stage_foreign(s->dir);
    rc = path ? err_set(e, ERR_INPUT, "stage '%s' would start anew, and '%s' is not of it; move it away", s->name,
                        path) : 0;
    free(path);
    return rc;
}

/* Empties the stage's folder if it is ours: its name is no proof. Until it is empty no stage is done there. */
static int run_begin_anew(const struct recipe_run *r, const struct run_stage *s, struct run_marker *m, struct err *e)
{
    if (stamp_check_links(s->dir, e) < 0 || folder_claim(s->dir, FOLDER_STAGE, e) < 0)
        return -1;
    if (!*m->key && !r->anew && folder_holds_results(s->dir))
        return err_set(e, ERR_INPUT, "'%s/stages/%s.json' is gone, which says how '%s' was made; bring it back, or "
                                     "give --anew to make it again", r->out, s->name, s->dir);
    if (run_check_foreign(s, e) < 0)
        return -1;
    *m = (struct run_marker){.key = RUN_EMPTYING};
    if (run_marker_write(r->out, s->name, m, e) < 0 || folder_empty(s->dir, e) < 0)
        return -1;
    memcpy(m->key, s->key, sizeof m->key);
    return run_marker_write(r->out, s->name, m, e);
}

/* Hours of work do not go because an option was mistyped. */
static int run_may_begin_anew(const struct recipe_run *r, const struct run_stage *s, const struct run_marker *m,
                              const char *why, struct err *e)
{
    char took[32];

    if (r->anew || m->seconds <= RUN_DEAR_S)
        return 0;
    format_duration(m->seconds, took, sizeof took);
    return err_set(e, ERR_INPUT, "stage '%s' has taken %s and would start anew, as %s; give --anew, or another --out "
                                 "to keep what is there", s->name, took, why);
}

/* A recipe of another name, or another seed of a stage that has begun, is another run, and no change of this one. */
static int run_check_same(const struct recipe_run *r, struct err *e)
{
    char *path = path_join(r->out, "recipe.yaml");
    json_t *old = file_exists(path) && !r->anew ? json_read(path, NULL) : NULL;
    const char *was = json_str(old, "name", NULL), *is = json_str(r->recipe, "name", NULL);
    struct run_marker m;
    int rc = 0;

    if (was && is && strcmp(was, is))
        rc = err_set(e, ERR_INPUT, "'%s' is the run of the recipe '%s', and this one is '%s'; name another --out, or "
                                   "give --anew to replace it", r->out, was, is);
    for (int i = 0; i < r->n && rc == 0; i++) {
        const struct run_stage *s = &r->stages[i];
        const char *section = !strncmp(s->name, "bench_", 6) ? "bench" : s->name;
        const json_t *before = json_object_get(json_object_get(old, section), "seed");

        if (before && run_marker_read(r->out, s->name, &m, e) == 0 && *m.key &&
            !json_equal(before, json_object_get(s->opts.values, "seed")))
            rc = err_set(e, ERR_INPUT, "'%s' holds a run of another seed, of which stage '%s' would start anew; name "
                                       "another --out, or give --anew to replace it", r->out, s->name);
    }
    json_decref(old);
    free(path);
    return rc;
}

/* Is the path the stage's folder, or in it? */
static bool run_lies_in(const struct run_stage *s, const char *path)
{
    char *dir = path_real(s->dir), *real = path_real(path);
    bool in = !strcmp(dir, real) || path_is_below(dir, real);

    free(dir), free(real);
    return in;
}

/* Is it the model that the stage makes? */
static bool run_makes_model(const struct run_stage *s, const char *path)
{
    char *model = path_join(s->dir, "model");
    bool makes = file_is_same(model, path) || file_is_same(s->dir, path);

    free(model);
    return makes;
}

/* What stage i reads goes where its own stage, or one that this run makes anew before it, is emptied. */
static int run_check_own_input(const struct recipe_run *r, int i, const char *name, const char *path, struct err *e)
{
    for (int j = 0; j < r->n && file_exists(path); j++) {
        const struct run_stage *s = &r->stages[j];

        if (run_lies_in(s, path) && (j >= i || (!strcmp(name, "model") && !run_makes_model(s, path))))
            return err_set(e, ERR_INPUT, "'%s' of stage '%s' lies in '%s', which this run empties; copy it to a folder "
                                         "of its own, or name another --out", path, r->stages[i].name, s->dir);
    }
    return 0;
}

static int run_check_own_inputs(const struct recipe_run *r, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < r->n && rc == 0; i++)
        for (const struct opt *row = r->stages[i].command->rows; row->name && rc == 0; row++) {
            const char *spec = row->type == OPT_PATHS ? opts_str(&r->stages[i].opts, row->name) : NULL;
            char *list = spec ? xstrdup(spec) : NULL, *save = NULL;

            for (char *p = list ? strtok_r(list, ",", &save) : NULL; p && rc == 0; p = strtok_r(NULL, ",", &save))
                rc = run_check_own_input(r, i, row->name, p, e);
            free(list);
        }
    return rc;
}

/* Which option of a stage is another than in the recipe of the run before, as far as that says it. */
static void run_tell_changed(const struct run_stage *s, const json_t *old)
{
    const json_t *was = json_object_get(old, !strncmp(s->name, "bench_", 6) ? "bench" : s->name), *v;
    const char *key;

    json_object_foreach((json_t *)was, key, v)
        if (!json_equal(v, json_object_get(s->opts.values, key))) {
            log_info("%s: '%s' is another than in the run before", s->name, key);
            return;
        }
    for (const struct opt *row = s->command->rows; was && row->name; row++)
        if (row->def && !json_object_get(was, row->name)) {
            log_info("%s: the run before knew no '%s', which is new in this version of musacoder", s->name, row->name);
            return;
        }
}

/* Before the first stage runs, which may be one that took no time and that the others are made of. */
static int run_check_loss(const struct recipe_run *r, struct err *e)
{
    char *path = path_join(r->out, "recipe.yaml");
    json_t *old = file_exists(path) ? json_read(path, NULL) : NULL;
    struct run_marker m;
    int rc = 0;

    for (int i = 0; i < r->n && rc == 0; i++) {
        const struct run_stage *s = &r->stages[i];

        if ((rc = run_marker_read(r->out, s->name, &m, e)) < 0 || !*m.key || !strcmp(m.key, s->key))
            continue;
        run_tell_changed(s, old);
        rc = run_may_begin_anew(r, s, &m, "options changed", e) < 0 ? -1 : run_check_foreign(s, e);
    }
    json_decref(old);
    free(path);
    return rc;
}

/* Later stages are made of what goes: what is left of another seed or of other options is no part of this run. The last
 * goes first, so that none is left whose input is gone. */
static int run_empty_later(const struct recipe_run *r, const struct run_stage *s, struct err *e)
{
    static const char *const ends[] = {"summary.json", "report.html"};
    struct run_marker m;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *path = path_join(r->out, ends[i]);

        unlink(path);
        free(path);
    }
    for (const struct run_stage *later = &r->stages[r->n - 1]; later > s; later--)
        if (run_marker_read(r->out, later->name, &m, e) < 0 ||
            (*m.key && strcmp(m.key, later->key) && run_begin_anew(r, later, &m, e) < 0))
            return -1;
    return 0;
}

static bool run_is_training(const struct run_stage *s)
{
    return s->command == &cmd_sft || s->command == &cmd_rft || s->command == &cmd_rl;
}

/* What tells this stage's result from another run's: a hash of a benchmark's table, of the model that 'init' makes, of
 * what a training says of its model, or of a listing. "" where that is not there. */
static void run_result_of(const void *stage, char ret[65])
{
    const struct run_stage *s = stage;
    char *path = path_join(s->dir, s->command == &cmd_bench ? "bench.json" : LISTING_NAME);
    struct err ignored = ERR_INIT;

    *ret = 0;
    if (run_is_training(s))
        run_model_digest(s->dir, ret);
    else if (s->command == &cmd_scratch ? content_digest_model(s->dir, ret, &ignored) < 0
                                        : content_hash_file(path, ret, &ignored) < 0)
        *ret = 0;
    free(path);
}

/* Runs a stage's command and notes its time. */
static int run_command_of(struct recipe_run *r, struct run_stage *s, struct run_marker *m, struct err *e)
{
    char took[32];

    if (stop_requested())
        return err_set(e, ERR_STOP, "stopped before '%s'; run again to continue", s->name);
    log_info("== %s", s->name);
    folder_enter_stage(s->dir);
    if (run_timed(r->out, s->name, m, run_call_command, run_result_of, s, e) < 0)
        return e->kind == ERR_STOP ? err_set(e, ERR_STOP, "stopped in '%s'; the same command continues", s->name)
                                   : err_prefix(e, "%s", s->name);
    format_duration(m->seconds, took, sizeof took);
    log_info("%s: done in %s", s->name, took);
    return 0;
}

/* Does the stage's folder, and what it collected below, hold what its command listed there? */
static bool run_results_hold(const struct run_stage *s)
{
    char *harvest = path_join(s->dir, "harvest");
    bool hold = listing_holds(s->dir) && listing_holds(harvest);

    free(harvest);
    return hold;
}

/* What the stages behind a finished one read of it. Its command, given again, makes it from its own records. */
static bool run_result_is_whole(const struct run_stage *s, const struct run_marker *m)
{
    bool model = run_is_training(s);
    char *path = path_join(s->dir, s->command == &cmd_bench ? "bench.json" : model ? "model" : ""), now[65];
    struct err ignored = ERR_INIT;
    bool whole = file_exists(path) && run_results_hold(s);

    if (whole && model)
        whole = model_check_folder(path, &ignored) == 0 && !run_model_is_changed(s->dir);

    run_result_of(s, now);
    free(path);
    return whole && (!*m->result || !strcmp(now, m->result));
}

/* Runs a stage, unless its marker says that it was done with these options and inputs. */
static int run_stage(struct recipe_run *r, struct run_stage *s, struct err *e)
{
    struct run_marker m;
    const char *why;
    char inputs[65];

    if (run_marker_read(r->out, s->name, &m, e) < 0)
        return -1;
    /* nothing that is there goes for what cannot be made */
    if (opts_check_inputs(&s->opts, e) < 0 || run_digest_inputs(s, inputs, e) < 0)
        return err_prefix(e, "stage '%s'", s->name);
    if ((why = run_why_anew(&m, s, inputs))) {
        if (run_may_begin_anew(r, s, &m, why, e) < 0 || run_check_foreign(s, e) < 0)
            return -1;
        if (*m.key)
            log_info("%s: %s, starting anew", s->name, why);
        if ((*m.key && run_empty_later(r, s, e) < 0) || run_begin_anew(r, s, &m, e) < 0)
            return -1;
    }
    if (m.done && run_result_is_whole(s, &m)) {
        log_info("%s: done before", s->name);
        return 0;
    }
    if (m.done)
        log_warn("%s: its result is gone or damaged; the stage goes on from what is there", s->name);
    m.done = false;
    memcpy(m.inputs, inputs, sizeof m.inputs);
    return run_command_of(r, s, &m, e);
}

/* ---- the end: summary, report, table ---- */

/* The seconds of all finished stages, by their markers. */
static double run_total_seconds(const struct recipe_run *r)
{
    double sum = 0;

    for (int i = 0; i < r->n; i++) {
        struct run_marker m;

        run_marker_read(r->out, r->stages[i].name, &m, NULL);
        sum += m.seconds;
    }
    return sum;
}

/* The run's results for summary.json, new; NULL with e. */
static json_t *run_summary_of(const struct recipe_run *r, struct err *e)
{
    json_t *list = json_array(), *tasks = NULL, *v;

    for (int i = 0; i < r->n; i++) {
        const struct run_stage *s = &r->stages[i];
        char *path;
        json_t *b, *row;

        if (strncmp(s->name, "bench_", 6))
            continue;
        path = path_join(s->dir, "bench.json");
        b = json_read(path, e);
        free(path);
        if (!b) {
            json_decref(list);
            json_decref(tasks);
            return NULL;
        }
        row = json_pack("{s:s}", "name", s->name + 6);
        json_object_set(row, "pass_at_8", json_object_get(b, "pass_at_8"));
        json_object_set(row, "avg_at_8", json_object_get(b, "avg_at_8"));
        json_object_set(row, "k", json_object_get(b, "k"));
        json_object_set(row, "samples", json_object_get(b, "samples"));
        json_object_set(row, "whole_pass_rate", json_object_get(b, "whole_pass_rate"));
        json_object_set(row, "families", json_object_get(b, "families"));
        json_array_append_new(list, row);
        json_decref(tasks);
        tasks = json_incref(json_object_get(b, "tasks"));
        json_decref(b);
    }
    v = json_object();
    json_object_set_new(v, "held_out_tasks", tasks ? tasks : json_integer(0));
    json_object_set_new(v, "seconds", json_real(run_total_seconds(r)));
    json_object_set_new(v, "stages", list);
    return v;
}

/* Avg@k of each family, or split, of tasks; where there are few enough for a line. */
static void run_print_families(const json_t *row, bool head)
{
    const char *name;
    json_t *f, *families = json_object_get(row, "families");

    if (json_object_size(families) > 1 && json_object_size(families) < 7)
        json_object_foreach(families, name, f) {
            int width = strlen(name) > 11 ? (int)strlen(name) : 11;
            if (head)
                printf(" %*s", width, name);
            else
                printf(" %*.1f%%", width - 1, 100 * json_f64(f, "avg_at_8", 0));
        }
    putchar('\n');
}

/* A command that runs as it stands: with the first held-out task there is. */
static void run_print_generate(const struct recipe_run *r)
{
    char *dir = path_join(r->out, "data/tasks/heldout"), **names = NULL;
    struct err ignored = ERR_INIT;
    size_t n = 0;

    if (r->model && file_is_dir(dir) && dir_list(dir, &names, &n, &ignored) == 0) {
        if (n)
            printf("      %s generate --model %s --file %s/%s\n", program_invocation_name, r->model, dir, names[0]);
        names_free(names, n);
    }
    free(dir);
}

/* A share that nothing was measured for, such as that of whole programs where none was whole, is a dash. */
static void run_print_share(const json_t *row, const char *key)
{
    const json_t *x = json_object_get(row, key);
    double p = x && !json_is_null(x) ? json_num_value(x) : NAN;

    if (isnan(p))
        printf(" %8s", "-");
    else
        printf(" %7.1f%%", 100 * p);
}

/* Nothing where no stage was measured; each number once. */
static void run_print_stages(const json_t *stages)
{
    const json_t *row, *first = json_array_get(stages, 0);
    int k = (int)json_i64(first, "k", 8), samples = (int)json_i64(first, "samples", k);
    size_t i;

    if (!first)
        return;
    printf("\n%-16s   Pass@%d", "stage", k);
    if (samples > 1)
        printf("%*sAvg@%d", samples > 9 ? 3 : 4, "", samples);
    printf(" of whole");
    run_print_families(first, true);
    json_array_foreach(stages, i, row) {
        printf("%-16s", json_str(row, "name", ""));
        run_print_share(row, "pass_at_8");
        if (samples > 1)
            run_print_share(row, "avg_at_8");
        run_print_share(row, "whole_pass_rate");
        run_print_families(row, false);
    }
    puts("of whole: the share that passes of the answers that were not cut off; then Avg of each family of tasks");
}

/* Prints the results' table and what to do next. */
static void run_print_end(const struct recipe_run *r, const json_t *sum)
{
    int64_t held = json_i64(sum, "held_out_tasks", 0);
    char took[32];

    run_print_stages(json_object_get(sum, "stages"));
    format_duration(json_f64(sum, "seconds", 0), took, sizeof took);
    putchar('\n');
    if (held)
        printf("%lld held-out tasks; ", (long long)held);
    printf("%s in all\n\nnext: open %s/report.html (curves, kernels, verdicts)\n", took, r->out);
    run_print_generate(r);
    printf("      %s/recipe.yaml is what ran; copy it, change numbers, '%s run' it\n", r->out,
           program_invocation_name);
}


/* Makes or enters the run's folder and locks it until the process ends. */
static int run_claim_folder(const struct recipe_run *r, struct err *e)
{
    int lock; /* held until the process ends */

    return folder_take(r->out, "this run", "musacoder run", &lock, e);
}

/* Fifteen digits: 0.28 stays 0.28 and still reads back as the same number. JSON is YAML. */
#define RECIPE_DUMP (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

/* Writes a text of the run itself, and lists it: what somebody has written into it stays as NAME.edited. */
static int run_write_listed(const struct recipe_run *r, const char *name, const char *text, struct err *e)
{
    struct listing *l;
    int rc = text ? listing_begin(r->out, NULL, &l, e) : -1;

    if (rc < 0)
        return -1;
    if ((rc = listing_write(l, name, text, strlen(text), e)) == 0)
        rc = listing_end(l, true, NULL, e);
    listing_free(l);
    return rc;
}

/* The recipe as it will be run: every section with its defaults. New. */
static json_t *run_resolved_recipe(const struct recipe_run *r)
{
    const char *const keys[] = {"name", "model", "seed", "stages", "bench-after"};
    json_t *v = json_object();

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(v, keys[i], json_object_get(r->recipe, keys[i]));
    json_object_update(v, r->resolved);
    return v;
}

/* Writes the resolved recipe into the run's folder. */
static int run_write_resolved(struct recipe_run *r, struct err *e)
{
    char *stages = path_join(r->out, "stages"), *text;
    json_t *v = run_resolved_recipe(r);
    int rc = dir_make(stages, e);

    text = json_dumps(v, RECIPE_DUMP);
    if (rc == 0)
        rc = run_write_listed(r, "recipe.yaml", text, e);
    json_decref(v);
    free(text), free(stages);
    return rc;
}

static int run_write_summary(const struct recipe_run *r, const json_t *sum, struct err *e)
{
    char *text = json_file_text("summary.json", sum, e);
    int rc = run_write_listed(r, "summary.json", text, e);

    free(text);
    return rc;
}

/* Writes summary.json and the report. */
static int run_finish(struct recipe_run *r, struct err *e)
{
    double start = now_s();
    json_t *sum = run_summary_of(r, e);
    int rc = sum ? run_write_summary(r, sum, e) : -1;

    if (rc == 0)
        rc = report_write(r->out, e);
    if (rc == 0) { /* the report shows the summary, so the summary's time can hold the report only now */
        json_object_set_new(sum, "seconds", json_real(json_f64(sum, "seconds", 0) + now_s() - start));
        rc = run_write_summary(r, sum, e);
    }
    if (rc == 0)
        run_print_end(r, sum);
    json_decref(sum);
    return rc;
}

/* "base:NAME" is a folder that 'make base' has put into the data folder. A plan does without. */
static int run_find_base(json_t *recipe, bool plan_only, struct err *e)
{
    const char *model = json_str(recipe, "model", "");
    char *name, *path;
    int rc = 0;

    if (strncmp(model, "base:", 5))
        return 0;
    name = path_join("models", model + 5);
    path = path_data(name);
    if (!plan_only && !file_is_dir(path))
        rc = err_set(e, ERR_INPUT, "there is no '%s'; 'make base' fetches it", path);
    else
        json_object_set_new(recipe, "model", json_string(path));
    free(name), free(path);
    return rc;
}

/* The model that the first stage starts from, where no stage makes one. Another one makes other stages of the rest. */
static int run_base_model(struct recipe_run *r, struct err *e)
{
    const json_t *model = json_object_get(r->recipe, "model");
    char *models;
    struct sha256 h;
    size_t n;

    if (!model)
        return 0;
    if (!json_is_string(model))
        return err_set(e, ERR_INPUT, "'model' is not the name of a model folder");
    r->model = xstrdup(json_string_value(model));
    models = path_data("models"); /* where 'base:NAME' lies says nothing: the run folder may move */
    n = strlen(models);
    sha256_start(&h);
    sha256_adds(&h, strncmp(r->model, models, n) ? r->model : r->model + n);
    sha256_end(&h, r->last_key);
    free(models);
    return 0;
}

#define LONGEST_UNKNOWN 2048 /* tokens of an answer, before there are data */
#define CARD ((size_t)141000000000) /* the largest that training was measured on */

/* Bytes of the smallest GPU here; where there is none, of the largest that training was measured on. */
static size_t run_card_bytes(void)
{
    struct device_info *d = NULL;
    size_t least = 0;
    int n = 0;

    if (device_list("cuda", &d, &n, NULL) < 0)
        return CARD;
    for (int i = 0; i < n; i++)
        least = !least || d[i].memory < least ? d[i].memory : least;
    free(d);
    return least ? least : CARD;
}

/* Tells how much of a card's memory a stage will need. */
static void run_tell_budget(const struct run_stage *s, const struct model_config *c, size_t card)
{
    struct train_limits l = {.max_tokens = (int)opts_int(&s->opts, "micro-tokens")};
    bool samples = opts_has(&s->opts, "max-prompt");
    int64_t most = samples ? opts_int(&s->opts, "max-new") : 0; /* 0: what SFT will find in the data */
    int len = samples ? (int)(opts_int(&s->opts, "max-prompt") + (most ? most : LONGEST_UNKNOWN)) : 0;
    int64_t zero = json_i64(s->opts.values, "zero", 0);
    int parts = zero > 0 ? (int)json_i64(s->opts.values, "gpus", 1) : 1;
    struct model_budget b = model_budget(c, opts_str(&s->opts, "dtype"), &l, len, parts, zero > 1);
    char *lead = xasprintf("# %s: ", s->name);
    struct buf out;

    buf_init(&out, 4000);
    model_budget_tell(c, &b, lead, card, &out);
    fputs(out.p, stdout);
    buf_free(&out);
    free(lead);
}

/* Which records the stages read, which the run decides: as comments behind the resolved recipe. */
static void run_tell_data(const struct recipe_run *r)
{
    for (int i = 0; i < r->n; i++)
        if (opts_has(&r->stages[i].opts, "data"))
            printf("# %s: reads %s\n", r->stages[i].name, opts_str(&r->stages[i].opts, "data"));
}

/* The config.json of a model folder; where the folder is not there yet, the shape of a model of that name, which comes
 * with the program: recipes/smollm2-135m-instruct.json. Owned. */
static char *run_shape_file(const char *model)
{
    char *path = path_ends(model, ".json") ? xstrdup(model) : path_join(model, "config.json");
    char *name = xasprintf("recipes/%s.json", path_name(model)), *shape;

    for (char *p = name + strlen("recipes/"); *p; p++)
        *p = (char)tolower((unsigned char)*p);
    shape = path_share(name);
    if (*model && !file_exists(path) && file_exists(shape)) {
        printf("# '%s' is not there yet; its shape is that of %s\n", model, name);
        free(path);
        path = xstrdup(shape);
    }
    free(name);
    free(shape);
    return path;
}

/* What the stages that train on a device need of it, as comments behind the resolved recipe. */
static int run_tell_budgets(struct recipe_run *r, struct err *e)
{
    const char *model = json_str(r->recipe, "model", "");
    char *path = run_shape_file(model);
    struct model_config c;
    int rc = 0;

    if (*model && !file_exists(path)) {
        printf("# no budget: '%s' is not there; --set model=FILE takes a config.json alone\n", path);
    } else if (*model && (rc = model_config_read(path, &c, e)) == 0) {
        for (int i = 0; i < r->n; i++)
            if (json_object_get(r->stages[i].opts.values, "micro-tokens") &&
                strcmp(opts_str(&r->stages[i].opts, "device"), "cpu"))
                run_tell_budget(&r->stages[i], &c, run_card_bytes());
        model_config_free(&c);
    }
    free(path);
    return rc;
}

/* Can this machine do what the stages ask for? Said before the first of them runs. */
static int run_check_machine(const struct recipe_run *r, struct err *e)
{
    for (int i = 0; i < r->n; i++) {
        const struct opts *o = &r->stages[i].opts;
        const char *backend = opts_has(o, "backend") ? opts_str(o, "backend") : NULL;
        const char *device = opts_has(o, "device") ? opts_str(o, "device") : "cpu";

        if ((backend && !opts_has(o, "queue") && eval_backend_check(backend, e) < 0) ||
            (strcmp(device, "cpu") && nn_device_check(device, e) < 0))
            return err_prefix(e, "stage '%s'", r->stages[i].name);
    }
    return 0;
}

/* Plans all stages, then runs them, or prints the plan alone. */
static int run_all(struct recipe_run *r, bool plan_only, struct err *e)
{
    const char *base = json_str(r->recipe, "model", NULL);
    char *log;
    int rc;

    if (run_base_model(r, e) < 0 || recipe_each_word(r->recipe, "stages", run_plan_word, r, e) < 0)
        return -1;
    if (r->n == 0)
        return err_set(e, ERR_INPUT, "the recipe has no stages");
    if (plan_only) {
        json_t *v = run_resolved_recipe(r);
        json_dumpf(v, stdout, RECIPE_DUMP);
        json_decref(v);
        puts("");
        run_tell_data(r);
        return run_tell_budgets(r, e);
    }
    if ((base && model_check_folder(base, e) < 0) || run_check_machine(r, e) < 0 || run_claim_folder(r, e) < 0 ||
        run_check_own_inputs(r, e) < 0 || run_check_same(r, e) < 0 || run_check_loss(r, e) < 0 ||
        run_write_resolved(r, e) < 0)
        return -1;
    log = path_join(r->out, "run.log");
    rc = stamp_check_links(log, e);
    if (rc == 0)
        log_tee(log);
    free(log);
    if (rc < 0)
        return -1;
    for (int i = 0; i < r->n; i++)
        if (run_stage(r, &r->stages[i], e) < 0)
            return -1;
    return run_finish(r, e);
}

/* Applies --set SECTION.KEY=VALUE.. to the recipe. */
static int run_apply_sets(json_t *recipe, const char *list, const char *const *sections, struct err *e)
{
    char *copy = xstrdup(list), *save = NULL;
    int rc = 0;

    for (char *w = strtok_r(copy, "\n", &save); w && rc == 0; w = strtok_r(NULL, "\n", &save))
        rc = recipe_set(recipe, w, sections, e);
    free(copy);
    return rc;
}

static void run_free(struct recipe_run *r)
{
    for (int i = 0; i < r->n; i++) {
        free(r->stages[i].name);
        free(r->stages[i].dir);
        if (r->stages[i].opts.values)
            opts_free(&r->stages[i].opts);
    }
    json_decref(r->recipe);
    json_decref(r->resolved);
    free(r->model);
    free(r->out);
}

static const struct opt rows[] = {
    {"run", "out", OPT_OUT_FOLDER, NULL, "run folder (default: runs/NAME of the recipe)"},
    {"run", "set", OPT_LIST, NULL, "KEY=VALUE or SECTION.KEY=VALUE instead of the recipe's; may be repeated"},
    SECRET_ROW("run"),
    {"run", "anew", OPT_BOOL, "false",
     "start stages anew that took more than ten minutes, are of another seed, or of another recipe"},
    {"run", "plan", OPT_BOOL, "false",
     "print the resolved recipe, a recipe itself (YAML), with comments on what training needs of a GPU, and stop"},
    {0},
};

/* A recipe comes from anybody: its name is a folder below runs/ and nothing else. */
static int run_choose_folder(struct recipe_run *r, const struct opts *o, struct err *e)
{
    char *stem = path_stem(o->args[0]);
    const char *name = json_str(r->recipe, "name", stem);
    int rc = 0;

    if (opts_has(o, "out"))
        r->out = xstrdup(opts_str(o, "out"));
    else if (!name_is_part(name))
        rc = err_set(e, ERR_INPUT, "the recipe's name '%s' is no name of a folder; change it, or give --out", name);
    else
        r->out = path_join("runs", name);
    if (rc == 0 && strchr(r->out, ',')) /* commas part the paths of what a stage reads */
        rc = err_set(e, ERR_INPUT, "the run folder '%s' has a comma in its name; give --out without one", r->out);
    free(stem);
    return rc;
}

/* A file, else a recipe that comes with the program, as 'quickstart' or 'recipes/quickstart.yaml'. Caller frees. */
static char *run_find_recipe(const char *given)
{
    bool name = !strpbrk(given, "/.");
    char *shipped = name ? xasprintf("recipes/%s.yaml", given) : xstrdup(given), *found = NULL;

    if (access(given, F_OK) != 0 && !strncmp(shipped, "recipes/", 8) && !strstr(shipped, ".."))
        found = path_share(shipped);
    free(shipped);
    return found ? found : xstrdup(given);
}

#define RECIPES_SHOWN 40

static const char *run_recipe_name(const void *names, int i)
{
    return ((char *const *)names)[i];
}

/* A name that no recipe has: the nearest one, and all of them. */
static void run_refuse_name(const char *given, struct err *e)
{
    char *folder = path_share("recipes"), **files = NULL, *names[RECIPES_SHOWN + 1] = {0};
    const char *near;
    struct buf all;
    size_t n = 0, found = 0;

    buf_init(&all, BUF_MAX_TEXT);
    if (folder && dir_list(folder, &files, &n, NULL) == 0)
        for (size_t i = 0; i < n && found < RECIPES_SHOWN; i++)
            if (strstr(files[i], ".yaml")) {
                names[found] = path_stem(files[i]);
                buf_addf(&all, " %s", names[found++]);
            }
    near = nearest_word(given, run_recipe_name, names);
    err_set(e, ERR_INPUT, "no recipe '%s'%s%s%s; name a file, or one of%s", given, near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "", all.p ? all.p : " none");
    names_free(files, n);
    for (size_t i = 0; i < found; i++)
        free(names[i]);
    buf_free(&all);
    free(folder);
}

/* The recipe of a file, or of one of ours by its name. New; NULL with e. */
static json_t *run_read_recipe(const char *given, const char *const *sections, struct err *e)
{
    char *path = run_find_recipe(given);
    json_t *recipe = NULL;

    if (!strpbrk(given, "/.") && !file_exists(path))
        run_refuse_name(given, e);
    else
        recipe = recipe_read(path, sections, e);
    free(path);
    return recipe;
}

/* The command; an exit code, or -1 with e. */
static int run_command(const struct opts *o, struct err *e)
{
    const char *sections[N_KINDS + 1];
    struct recipe_run r = {.resolved = json_object(), .anew = opts_bool(o, "anew")};
    int rc = 0;

    run_section_names(sections);
    if (o->n_args != 1)
        rc = err_set(e, ERR_INPUT, "one recipe is needed: a file, or the name of one of ours, such as quickstart");
    if (rc == 0)
        rc = secret_use(o, e);
    if (rc == 0 && !(r.recipe = run_read_recipe(o->args[0], sections, e)))
        rc = -1;
    if (rc == 0 && opts_has(o, "set"))
        rc = run_apply_sets(r.recipe, opts_str(o, "set"), sections, e);
    if (rc == 0)
        rc = run_find_base(r.recipe, opts_bool(o, "plan"), e);
    if (rc == 0) {
        rc = run_choose_folder(&r, o, e);
        if (rc == 0)
            rc = run_all(&r, opts_bool(o, "plan"), e);
    }
    run_free(&r);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_run = {
    "run", "a recipe: from nothing to a trained model and a report", "RECIPE [--out RUN] [--set KEY=VALUE]...",
    "RECIPE is a file, or the name of a recipe that comes with the program: quickstart, smoke, kernelbench, ..\n\n"
    "Runs the stages of a recipe, each in its own folder of RUN, and ends with RUN/summary.json and a table. Ctrl-C "
    "at\n"
    "any moment is safe: the same command continues where it stopped. A stage whose options changed, and those after\n"
    "it, start anew in emptied folders; where that would lose more than ten minutes, --anew is needed.\n",
    rows, run_command, 1};
