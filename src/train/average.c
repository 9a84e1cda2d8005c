/* average.c - see average.h. */
#include "train/average.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "nn/safetensors.h"

void average_init(struct average *a, const struct model *m, int64_t from)
{
    *a = (struct average){.n = m->n_params, .from = from};
}

void average_free(struct average *a)
{
    free(a->sum);
    *a = (struct average){0};
}

int average_add(struct average *a, const struct model *m, int64_t step, struct err *e)
{
    if (step < a->from)
        return 0;
    if (model_fetch(m, e) < 0)
        return -1;
    if (!a->sum)
        a->sum = xcalloc(a->n, sizeof *a->sum);
    for (size_t i = 0; i < a->n; i++)
        a->sum[i] += m->weights[i];
    a->steps++;
    return 0;
}

struct model *average_model(const struct average *a, const char *start, double start_share, struct err *e)
{
    struct model *m = model_load(start, e);
    double each = a->steps ? (1 - start_share) / (double)a->steps : 0;

    if (!m)
        return NULL;
    for (size_t i = 0; i < a->n && a->steps; i++)
        m->weights[i] = (float)(start_share * m->weights[i] + each * a->sum[i]);
    m->version++;
    return m;
}

static char *average_path(const char *run, int64_t step)
{
    return xasprintf("%s/average/%08lld.safetensors", run, (long long)step);
}

/* Writes the running sum of weights and its number of steps. */
static int average_write_sum(const struct average *a, const char *path, struct err *e)
{
    int64_t one = 1, n = a->steps ? (int64_t)a->n : 0;
    struct st_writer *w = st_create(path, e);

    if (!w)
        return -1;
    st_set_metadata(w, "format", "musacoder.average/1");
    if (st_declare(w, "steps", ST_I64, 1, &one, e) < 0 || st_declare(w, "sum", ST_F32, 1, &n, e) < 0 ||
        st_write(w, &a->steps, sizeof a->steps, e) < 0 || st_write(w, a->sum, (size_t)n * sizeof *a->sum, e) < 0) {
        st_abort(w);
        return -1;
    }
    return st_commit(w, e);
}

int average_save(const struct average *a, const char *run, int64_t step, struct err *e)
{
    char *path = average_path(run, step), *dir = path_join(run, "average");
    int rc = dir_make(dir, e) < 0 ? -1 : average_write_sum(a, path, e);

    free(path);
    free(dir);
    return rc;
}

/* Reads a saved sum. ERR_INPUT: it is of another model. */
static int average_read_sum(struct average *a, struct safetensors *s, const char *path, struct err *e)
{
    const struct st_tensor *steps = st_find(s, "steps"), *sum = st_find(s, "sum");

    if (!steps || steps->dtype != ST_I64 || !sum || sum->dtype != ST_F32 || (sum->n && sum->n != a->n))
        return err_set(e, ERR_INPUT, "'%s' is no average of this model's weights; remove the run folder", path);
    memcpy(&a->steps, steps->data, sizeof a->steps);
    if (sum->n) {
        a->sum = xrealloc(a->sum, a->n * sizeof *a->sum);
        memcpy(a->sum, sum->data, sum->nbytes);
    }
    return 0;
}

int average_load(struct average *a, const char *run, int64_t step, struct err *e)
{
    char *path = average_path(run, step);
    struct safetensors *s = st_open(path, e);
    int rc = s ? average_read_sum(a, s, path, e) : -1;

    if (s)
        st_close(s);
    free(path);
    return rc;
}

void average_tidy(const char *run, int64_t step)
{
    char keep[48], *dir = path_join(run, "average"), **names;
    size_t n;

    snprintf(keep, sizeof keep, "%08lld.safetensors", (long long)step);
    if (dir_list(dir, &names, &n, NULL) == 0) {
        for (size_t i = 0; i < n; i++)
            if (strcmp(names[i], keep)) {
                char *path = path_join(dir, names[i]);
                remove(path);
                free(path);
            }
        names_free(names, n);
    }
    free(dir);
}
