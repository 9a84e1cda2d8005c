/* checkpoint.c - see checkpoint.h. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

static int write_parts(const char *dir, const struct model *m, const struct optim *o, const json_t *state,
                       struct err *e)
{
    char *optim = path_join(dir, "optim.safetensors"), *js = path_join(dir, "state.json");
    int rc = model_save(m, dir, e);

    if (rc == 0)
        rc = optim_save(o, optim, e);
    if (rc == 0)
        rc = json_write(js, state, e);
    free(optim);
    free(js);
    return rc;
}

/* Everything but 'keep' and the pointer goes: older checkpoints and what a killed writer left. */
static void remove_others(const char *root, const char *keep)
{
    char **names;
    size_t n;

    if (dir_list(root, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], keep) && strcmp(names[i], "latest")) {
            char *p = path_join(root, names[i]);

            dir_remove(p, NULL);
            free(p);
        }
    names_free(names, n);
}

int checkpoint_save(const char *run, int64_t step, const struct model *m, const struct optim *o, const json_t *state,
                    struct err *e)
{
    char name[32], *root = path_join(run, "checkpoint"), *tmp = path_join(root, "unfinished"), *dir, *latest;
    int rc;

    snprintf(name, sizeof name, "%08lld", (long long)step);
    dir = path_join(root, name);
    latest = path_join(root, "latest");
    dir_remove(tmp, NULL);
    rc = dir_make(tmp, e);
    if (rc == 0)
        rc = write_parts(tmp, m, o, state, e);
    if (rc == 0) {
        dir_remove(dir, NULL); // left by a writer that died before it could name it in 'latest'
        if (rename(tmp, dir) < 0)
            rc = err_sys(e, "cannot rename '%s' to '%s'", tmp, dir);
    }
    if (rc == 0)
        rc = file_write(latest, name, strlen(name), e);
    if (rc == 0)
        remove_others(root, name);
    free(root);
    free(tmp);
    free(dir);
    free(latest);
    return rc;
}

char *checkpoint_latest(const char *run)
{
    char *root = path_join(run, "checkpoint"), *latest = path_join(root, "latest"), *dir = NULL;
    struct buf b;

    buf_init(&b, 64);
    if (file_exists(latest) && file_read(latest, &b, NULL) == 0 && b.n)
        dir = path_join(root, b.p);
    if (dir && !file_is_dir(dir)) {
        free(dir);
        dir = NULL;
    }
    buf_free(&b);
    free(root);
    free(latest);
    return dir;
}

struct model *checkpoint_model(const char *folder, const char *start, struct err *e)
{
    struct model *m = model_load(folder ? folder : start, e);

    if (m) {
        free(m->dir);
        m->dir = xstrdup(start);
    }
    return m;
}

int checkpoint_load(const char *folder, struct optim *o, json_t **ret_state, struct err *e)
{
    char *optim = path_join(folder, "optim.safetensors"), *js = path_join(folder, "state.json");
    json_t *state = NULL;
    int rc = optim_load(o, optim, e);

    if (rc == 0 && !(state = json_read(js, e)))
        rc = -1;
    if (rc == 0)
        *ret_state = state;
    free(optim);
    free(js);
    return rc;
}

static bool ignored(const char *key, const char *const *ignore)
{
    for (; ignore && *ignore; ignore++)
        if (!strcmp(*ignore, key))
            return true;
    return false;
}

static const char *first_difference(const json_t *a, const json_t *b, const char *const *ignore)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)a, key, v) {
        const json_t *w = json_object_get(b, key);

        if (!ignored(key, ignore) && (!w || !json_equal(v, w)))
            return key;
    }
    json_object_foreach((json_t *)b, key, v)
        if (!ignored(key, ignore) && !json_object_get(a, key))
            return key;
    return NULL;
}

int run_agrees(const char *run, const json_t *options, const char *const *ignore, struct err *e)
{
    char *path = path_join(run, "options.json");
    const char *key = NULL;
    json_t *old = NULL;
    int rc = 0;

    if (file_exists(path)) {
        old = json_read(path, e);
        if (!old)
            rc = -1;
        else if ((key = first_difference(old, options, ignore)))
            rc = err_set(e, ERR_INPUT, "'%s' was started with another '%s'; give the same options to continue it, or "
                                       "another --out", run, key);
    }
    json_decref(old);
    free(path);
    return rc;
}

int run_claim(const char *run, const json_t *options, const char *const *ignore, struct err *e)
{
    char *path = path_join(run, "options.json");
    int rc = run_agrees(run, options, ignore, e);

    if (rc == 0 && !file_exists(path))
        rc = dir_make(run, e) < 0 ? -1 : json_write(path, options, e);
    free(path);
    return rc;
}
