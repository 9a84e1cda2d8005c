/* checkpoint.c - see checkpoint.h. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/content.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define CONTENT " content" /* behind an input's key: the key of what it holds */

/* An input's path says nothing where what it holds is compared: folders move, and have several names. */
static bool checkpoint_ignored(const json_t *old, const char *key, const char *const *ignore)
{
    char content[40];

    snprintf(content, sizeof content, "%.30s" CONTENT, key);
    if (json_object_get(old, content))
        return true;
    for (; ignore && *ignore; ignore++)
        if (!strcmp(*ignore, key))
            return true;
    return false;
}

/* A hash of what the run trains, by its options.json but for what may change or lie elsewhere. "" without one. */
static void checkpoint_training_of(const char *run, char ret[65])
{
    static const char *const apart[] = {"metrics", "stage", "save-every", "workers", "jobs", "out", "device", "dtype",
                                        "gpus", "zero", "rollout-url", "rollout-parallel", NULL};
    char *path = path_join(run, "options.json"), *text;
    json_t *claim = file_exists(path) ? json_read(path, NULL) : NULL, *own = json_object(), *v;
    const char *key;

    json_object_foreach(claim, key, v)
        if (!checkpoint_ignored(claim, key, apart))
            json_object_set(own, key, v);
    *ret = 0;
    text = json_text(own);
    if (claim)
        sha256_hex(text, strlen(text), ret);
    free(text);
    json_decref(own), json_decref(claim);
    free(path);
}

/* Writes weights, moments and state, which says of which training they are. */
static int checkpoint_write_parts(const char *run, const char *dir, const struct model *m, const struct optim *o,
                                  const json_t *state, struct err *e)
{
    char *optim = path_join(dir, "optim.safetensors"), *js = path_join(dir, "state.json"), training[65];
    json_t *own = json_copy((json_t *)state), *sealed;
    int rc = model_save(m, dir, e);

    checkpoint_training_of(run, training);
    json_object_set_new(own, "training", json_string(training));
    sealed = jsonl_sealed(own);
    if (rc == 0)
        rc = optim_save(o, optim, e);
    if (rc == 0)
        rc = json_write(js, sealed, e);
    json_decref(own), json_decref(sealed);
    free(optim);
    free(js);
    return rc;
}

/* A step, whose name means a whole checkpoint. */
static bool checkpoint_is_step(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits >= 8 && !name[digits];
}

/* Ours by its name: a step, what a killed writer left, or what a new folder took the place of. */
static bool checkpoint_is_ours(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return checkpoint_is_step(name) || !strncmp(name, "unfinished", 10) ||
           (digits >= 8 && !strncmp(name + digits, ".old.", 5));
}

/* Other checkpoints than 'keep' go. */
static void checkpoint_remove_others(const char *root, const char *keep)
{
    char **names;
    size_t n;

    if (dir_list(root, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], keep) && checkpoint_is_ours(names[i])) {
            char *p = path_join(root, names[i]);

            dir_remove(p, NULL);
            free(p);
        }
    names_free(names, n);
}

/* The checkpoint of the highest step. NULL: there is none. Owned. */
static char *checkpoint_newest_name(const char *root)
{
    char **names, *newest = NULL;
    size_t n;

    if (dir_list(root, &names, &n, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (checkpoint_is_step(names[i]) && (!newest || strtoll(names[i], NULL, 10) > strtoll(newest, NULL, 10)))
            free(newest), newest = xstrdup(names[i]);
    names_free(names, n);
    return newest;
}

/* The step that 'latest' names; without it, as a stop between the two leaves them, the newest. NULL: there is none.
 * Owned. */
static char *checkpoint_latest_name(const char *root)
{
    char *latest = path_join(root, "latest"), *name = NULL;
    struct buf b;

    buf_init(&b, 64);
    if (!file_exists(latest))
        name = checkpoint_newest_name(root);
    else if (file_read(latest, &b, NULL) == 0)
        name = xstrdup(b.p);
    buf_free(&b);
    free(latest);
    return name;
}

/* Points 'latest' to a checkpoint that is there, and removes the others. */
static int checkpoint_point_to(const char *root, const char *name, struct err *e)
{
    char *latest = path_join(root, "latest");
    int rc = file_write(latest, name, strlen(name), e);

    if (rc == 0)
        checkpoint_remove_others(root, name);
    free(latest);
    return rc;
}

/* Renames a finished checkpoint and points 'latest' to it. */
static int checkpoint_commit(const char *root, const char *work, const char *name, struct err *e)
{
    char *dir = path_join(root, name);
    int rc = folder_commit(work, dir, e) < 0 ? -1 : checkpoint_point_to(root, name, e);

    free(dir);
    return rc;
}

int checkpoint_save(const char *run, int64_t step, const struct model *m, const struct optim *o, const json_t *state,
                    struct err *e)
{
    char name[32], *root = path_join(run, "checkpoint"), *work = path_join(root, "unfinished"),
         *latest = checkpoint_latest_name(root);
    int rc;

    snprintf(name, sizeof name, "%08lld", (long long)step);
    if (latest && !strcmp(latest, name)) { /* the same options and the same step are the same state */
        rc = checkpoint_point_to(root, name, e);
    } else {
        dir_remove(work, NULL);
        rc = dir_make(work, e);
        if (rc == 0)
            rc = checkpoint_write_parts(run, work, m, o, state, e);
        if (rc == 0)
            rc = checkpoint_commit(root, work, name, e);
    }
    free(root);
    free(work);
    free(latest);
    return rc;
}

int checkpoint_latest(const char *run, char **ret, struct err *e)
{
    char *root = path_join(run, "checkpoint"), *name = checkpoint_latest_name(root),
        *dir = name ? path_join(root, name) : NULL;
    int rc = 0;

    if (name && (!name_is_part(name) || !file_is_dir(dir)))
        rc = err_set(e, ERR_INPUT, "'%s/latest' names checkpoint '%s', which is not there; bring it back, or remove "
                     "'%s' to start from the beginning", root, name, root);
    if (rc == 0)
        *ret = dir;
    else
        free(dir);
    free(name);
    free(root);
    return rc;
}

int checkpoint_resume(const char *run, char **ret, struct err *e)
{
    char *root = path_join(run, "checkpoint"), *latest = path_join(root, "latest");
    int rc = checkpoint_latest(run, ret, e);

    if (rc == 0 && *ret && !file_exists(latest))
        rc = checkpoint_point_to(root, path_name(*ret), e);
    free(root), free(latest);
    return rc;
}

/* What cannot be read of a checkpoint, with the remedy. Always -1. */
static int checkpoint_damaged(const char *folder, struct err *e)
{
    char said[sizeof e->msg], *all;

    if (!e || (e->kind != ERR_INPUT && e->kind != ERR_ENV))
        return -1;
    snprintf(said, sizeof said, "%.600s", e->msg);
    all = path_folder(folder);
    err_set(e, e->kind, "%s; the checkpoint is damaged: bring '%s' back, or remove '%s' to start from the beginning",
            said, folder, all);
    free(all);
    return -1;
}

struct model *checkpoint_model(const char *folder, const char *start, struct err *e)
{
    struct model *m = model_load(folder ? folder : start, e);

    if (!m && folder)
        checkpoint_damaged(folder, e);
    if (m) {
        free(m->dir);
        m->dir = xstrdup(start);
    }
    return m;
}

/* Is the state as it was written, by this folder's training? States of older versions do not say. */
static int checkpoint_check_state(const char *folder, const json_t *state, struct err *e)
{
    char *run = path_join(folder, "../.."), *all = path_folder(folder), training[65];
    const char *theirs = json_str(state, "training", "");
    int rc = 0;

    checkpoint_training_of(run, training);
    if (!jsonl_seal_fits(state)) {
        err_set(e, ERR_INPUT, "'%s/state.json' is not what was written", folder);
        rc = checkpoint_damaged(folder, e);
    } else if (*theirs && *training && strcmp(theirs, training)) {
        rc = err_set(e, ERR_INPUT, "'%s' is a checkpoint of another training; bring this one's back, or remove '%s' "
                                   "to start from the beginning", folder, all);
    }
    free(run), free(all);
    return rc;
}

int checkpoint_load(const char *folder, struct optim *o, json_t **ret_state, struct err *e)
{
    char *optim = path_join(folder, "optim.safetensors"), *js = path_join(folder, "state.json");
    json_t *state = json_read(js, e);
    int rc = state ? checkpoint_check_state(folder, state, e) : checkpoint_damaged(folder, e);

    if (rc == 0 && optim_load(o, optim, e) < 0)
        rc = checkpoint_damaged(folder, e);
    if (rc == 0)
        *ret_state = state;
    else
        json_decref(state);
    free(optim);
    free(js);
    return rc;
}

int checkpoint_moments(const char *model, struct optim *o, struct err *e)
{
    char *up = path_join(model, ".."), *folder = NULL, *path = NULL;
    int rc = checkpoint_latest(up, &folder, e);

    if (folder)
        path = path_join(folder, "optim.safetensors");
    if (rc < 0)
        ;
    else if (!path || !file_exists(path))
        rc = err_set(e, ERR_INPUT, "no optimiser state in '%s/checkpoint'; --moments wants the RUN/model of an 'sft', "
                     "'rft' or 'rl' run: leave it out for '%s'", up, model);
    else
        rc = optim_load(o, path, e);
    free(up);
    free(folder);
    free(path);
    return rc;
}

/* The first key whose value differs, but for ignored ones; NULL: none does. */
static const char *checkpoint_first_difference(const json_t *a, const json_t *b, const char *const *ignore)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)a, key, v) {
        const json_t *w = json_object_get(b, key);

        if (!checkpoint_ignored(a, key, ignore) && (!w || !json_equal(v, w)))
            return key;
    }
    json_object_foreach((json_t *)b, key, v)
        if (!checkpoint_ignored(a, key, ignore) && !json_object_get(a, key))
            return key;
    return NULL;
}

/* ---- the folder of a run ---- */

/* Options that name inputs. What they hold goes into the claim as "KEY content". */
static const char *const inputs[] = {"model", "data", "prompts", "harvest", "asked"};
/* Adds a hash of each input's content to the claim. */
static int checkpoint_add_contents(json_t *claim, struct err *e)
{
    char key[32], digest[65];

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *spec = json_str(claim, inputs[i], NULL);

        if (!spec || !*spec)
            continue;
        if ((!strcmp(inputs[i], "model") ? content_digest_model : !strcmp(inputs[i], "data") ? content_digest_records
             : content_digest)(spec, digest, e) < 0)
            return -1;
        snprintf(key, sizeof key, "%s" CONTENT, inputs[i]);
        json_object_set_new(claim, key, json_string(digest));
    }
    return 0;
}

/* Runs that an older version began know no contents: theirs are taken as they are. */
static void checkpoint_drop_unknown(json_t *claim, const json_t *old)
{
    char key[32];

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        snprintf(key, sizeof key, "%s" CONTENT, inputs[i]);
        if (!json_object_get(old, key))
            json_object_del(claim, key);
    }
}

/* ERR_INPUT: the run was started with another value of key, or without it, or with it alone. Always -1. */
static int checkpoint_refuse_other(const char *run, const char *key, bool then, bool now, struct err *e)
{
    const char *content = strstr(key, CONTENT);

    if (then != now)
        return err_set(e, ERR_INPUT, "'%s' was started %s '%s'; %s, or, where another version of musacoder started it, "
                       "continue with that one, or name another --out", run, then ? "with" : "without", key,
                       then ? "give it again" : "leave it out");

    if (content)
        return err_set(e, ERR_INPUT, "what '%s' was started with as '%.*s' has changed since; bring it back, or name "
                       "another --out", run, (int)(content - key), key);
    return err_set(e, ERR_INPUT, "'%s' was started with another '%s'; give the same options to continue it, or "
                   "another --out", run, key);
}

/* ERR_INPUT where the run's claim differs from ours, but for ignored keys. */
static int checkpoint_agree(const struct run_folder *f, const char *path, const char *const *ignore, struct err *e)
{
    json_t *old = json_read(path, e);
    const char *key;
    int rc = old ? 0 : -1;

    if (!old && e)
        err_set(e, ERR_INPUT, "'%s' is damaged, and says no longer what this run was started with; bring it back, or "
                              "remove '%s' to start from the beginning", path, f->path);
    if (old) {
        checkpoint_drop_unknown(f->claim, old);
        if ((key = checkpoint_first_difference(old, f->claim, ignore)))
            rc = checkpoint_refuse_other(f->path, key, json_object_get(old, key), json_object_get(f->claim, key), e);
    }
    json_decref(old);
    return rc;
}

int run_open(const char *run, const json_t *options, const char *const *ignore, struct run_folder *ret, struct err *e)
{
    struct run_folder f = {.path = xstrdup(run), .claim = json_deep_copy(options), .lock = -1};
    static const char *const made[] = {"checkpoint", "chunks", NULL};
    char *path = path_join(run, "options.json");
    int rc = checkpoint_add_contents(f.claim, e) < 0 ? -1 : folder_check_claim(run, "options.json", made, e);

    if (rc == 0 && file_exists(path))
        rc = folder_take(run, "this training", "musacoder", &f.lock, e) < 0 ? -1
                                                                            : checkpoint_agree(&f, path, ignore, e);
    free(path);
    if (rc < 0)
        run_close(&f);
    else
        *ret = f;
    return rc;
}

int run_claim(struct run_folder *f, struct err *e)
{
    char *path = path_join(f->path, "options.json");
    int rc = 0;

    if (f->lock < 0) {
        rc = folder_take(f->path, "this training", "musacoder", &f->lock, e);
        if (rc == 0 && file_exists(path))
            rc = err_set(e, ERR_INPUT, "'%s' was started by another process meanwhile; run again to continue it",
                         f->path);
        if (rc == 0)
            rc = json_write(path, f->claim, e);
    }
    free(path);
    return rc;
}

void run_close(struct run_folder *f)
{
    if (f->path && f->lock >= 0)
        close(f->lock);
    free(f->path);
    json_decref(f->claim);
    *f = (struct run_folder){.lock = -1};
}

/* ---- the model of a run ---- */

/* Bytes; -1: it is not there. */
static int64_t checkpoint_file_size(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    struct stat st;
    int64_t size = stat(path, &st) == 0 ? (int64_t)st.st_size : -1;

    free(path);
    return size;
}

/* {name: SHA-256} of the files of a model folder. New; NULL on error. */
static json_t *checkpoint_list_model(const char *model, struct err *e)
{
    json_t *files = json_object();
    char **names, hash[65];
    size_t n;
    int rc = 0;

    if (dir_list(model, &names, &n, e) < 0) {
        json_decref(files);
        return NULL;
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(model, names[i]);

        if ((rc = content_hash_file(path, hash, e)) == 0)
            json_object_set_new(files, names[i], json_string(hash));
        free(path);
    }
    names_free(names, n);
    if (rc < 0)
        json_decref(files), files = NULL;
    return files;
}

/* Is the file what was saved? noted: its SHA-256; its size alone in marks of older versions. */
static bool checkpoint_file_holds(const char *model, const char *name, const json_t *noted)
{
    char *path = path_join(model, name), hash[65] = "";
    struct err ignored = ERR_INIT;
    bool holds;

    if (json_is_integer(noted))
        holds = json_integer_value(noted) == checkpoint_file_size(model, name);
    else
        holds = content_hash_file(path, hash, &ignored) == 0 && !strcmp(hash, json_string_value(noted));
    free(path);
    return holds;
}

/* CHECKPOINT/model-saved.json lists what was written into the run's model; it is written after that. */
static bool checkpoint_is_saved(const char *mark, const char *model)
{
    json_t *files = file_exists(mark) ? json_read(mark, NULL) : NULL, *noted;
    bool saved = json_object_size(files) > 0;
    const char *name;

    json_object_foreach(files, name, noted)
        saved = saved && checkpoint_file_holds(model, name, noted);
    json_decref(files);
    return saved;
}

/* The weights of another number of parts are not to lie beside the new ones. */
static bool checkpoint_is_weights(const char *name)
{
    int end = 0;

    sscanf(name, "model-%*5[0-9]-of-%*5[0-9].safetensors%n", &end);
    return !strcmp(name, "model.safetensors") || !strcmp(name, "model.safetensors.index.json") ||
           (end && !name[end]);
}

/* A file of the model that is not as it was saved is somebody's: it goes on as NAME.edited. */
static int checkpoint_keep_edits(const char *mark, const char *model, struct err *e)
{
    json_t *files = mark && file_exists(mark) ? json_read(mark, NULL) : NULL, *noted;
    const char *name;
    int rc = 0;

    json_object_foreach(files, name, noted) {
        char *path = path_join(model, name), *kept;

        if (rc == 0 && file_exists(path) && !checkpoint_file_holds(model, name, noted) &&
            (rc = file_keep_aside(path, &kept, e)) == 0) {
            log_warn("'%s' was changed after it was saved: it is written anew, and the changed one is '%s'", path,
                     kept);
            free(kept);
        }
        free(path);
    }
    json_decref(files);
    return rc;
}

/* Replaces the run's model folder in one step; files that are not ours stay. */
static int checkpoint_replace_model(const char *run, const struct model *m, const char *model, const char *mark,
                                    struct err *e)
{
    char *work = path_join(run, "model.unfinished");
    json_t *files = NULL;
    int rc = dir_remove(work, e);

    if (rc == 0 && (model_save(m, work, e) < 0 || !(files = checkpoint_list_model(work, e))))
        rc = -1;
    if (rc == 0)
        rc = checkpoint_keep_edits(mark, model, e);
    if (rc == 0 && (folder_keep(model, work, checkpoint_is_weights, e) < 0 || folder_commit(work, model, e) < 0))
        rc = -1;
    if (rc == 0 && mark)
        rc = json_write(mark, files, e);
    json_decref(files);
    free(work);
    return rc;
}

/* The mark of the run's latest checkpoint; NULL: there is no checkpoint. Owned. */
static char *checkpoint_mark_of(const char *run)
{
    char *latest = NULL, *mark;

    checkpoint_latest(run, &latest, NULL);
    mark = latest ? path_join(latest, "model-saved.json") : NULL;
    free(latest);
    return mark;
}

void run_model_digest(const char *run, char ret[65])
{
    char *mark = checkpoint_mark_of(run);

    if (!mark || sha256_file(mark, ret) < 0)
        *ret = 0;
    free(mark);
}

bool run_model_is_changed(const char *run)
{
    char *mark = checkpoint_mark_of(run), *model = path_join(run, "model");
    json_t *files = mark && file_exists(mark) ? json_read(mark, NULL) : NULL, *noted;
    bool changed = false;
    const char *name;

    json_object_foreach(files, name, noted)
        changed |= !checkpoint_file_holds(model, name, noted);
    json_decref(files);
    free(mark), free(model);
    return changed;
}

char *run_model_foreign(const char *run)
{
    char *mark = checkpoint_mark_of(run), *model = path_join(run, "model"), **names, *found = NULL;
    json_t *files = mark && file_exists(mark) ? json_read(mark, NULL) : NULL, *noted;
    size_t n;

    if (dir_list(model, &names, &n, NULL) == 0) {
        for (size_t i = 0; i < n && !found; i++) {
            noted = json_object_get(files, names[i]);
            if (files ? !noted || !checkpoint_file_holds(model, names[i], noted) : !content_is_of_model(names[i]))
                found = path_join(model, names[i]);
        }
        names_free(names, n);
    }
    json_decref(files);
    free(mark), free(model);
    return found;
}

bool run_model_is_saved(const char *run)
{
    char *model = path_join(run, "model"), *mark = checkpoint_mark_of(run);
    bool saved = mark && checkpoint_is_saved(mark, model);

    free(model);
    free(mark);
    return saved;
}

/* The former model, where a stop came while it was removed. */
static void checkpoint_sweep_model(const char *run)
{
    char *work = path_join(run, "model.unfinished");

    dir_remove(work, NULL);
    free(work);
}

int run_save_model(const char *run, const struct model *m, struct err *e)
{
    char *model = path_join(run, "model"), *latest = NULL, *mark;
    int rc = checkpoint_latest(run, &latest, e);

    mark = latest ? path_join(latest, "model-saved.json") : NULL;
    if (rc == 0 && !(mark && checkpoint_is_saved(mark, model)))
        rc = checkpoint_replace_model(run, m, model, mark, e);
    else
        checkpoint_sweep_model(run);
    free(model);
    free(latest);
    free(mark);
    return rc;
}
