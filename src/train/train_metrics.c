/* train_metrics.c - see train_metrics.h. */
#include "train/train_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"

struct keep_ctx {
    const char *stage;
    int64_t from, kept; /* kept: rows of the stage's steps before 'from' */
    struct buf out;
    size_t dropped;
};

/* A callback of jsonl_each: keeps a line that no repeated step will write again. */
static int train_metrics_keep_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct keep_ctx *k = ctx;
    bool own = !strcmp(json_str(v, "stage", ""), k->stage);

    (void)line, (void)e;
    if (own && json_i64(v, "step", 0) >= k->from) {
        k->dropped++;
        return 0;
    }
    k->kept += own && json_i64(v, "step", 0) > 0;
    json_line(&k->out, v);
    return 0;
}

int metrics_open(struct train_metrics *m, const char *run, const char *apart, const char *stage, int64_t from,
                 double spent, struct err *e)
{
    struct keep_ctx k = {.stage = stage, .from = from};
    char *path = path_join(apart ? apart : run, "metrics.jsonl");
    int rc;

    buf_init(&k.out, (size_t)1 << 40);
    rc = apart && !file_is_same(apart, run) ? folder_claim(apart, FOLDER_CURVES, e) : 0;
    if (rc == 0)
        rc = dir_make(apart ? apart : run, e);
    if (rc == 0)
        rc = jsonl_continue(path, train_metrics_keep_line, &k, e);
    if (rc == 0 && k.dropped && k.out.cut)
        rc = err_set(e, ERR_ENV, "'%s' is too large to be written again", path);
    else if (rc == 0 && k.dropped)
        rc = file_write(path, k.out.p, k.out.n, e);
    buf_free(&k.out);
    if (rc == 0 && k.kept + 1 < from) /* a step's row is written before its checkpoint */
        log_warn("'%s' has lost the rows of %lld of the %lld steps before; the curve has a gap", path,
                 (long long)(from - 1 - k.kept), (long long)(from - 1));
    if (rc < 0) {
        free(path);
        return -1;
    }
    *m = (struct train_metrics){path, stage, now_s() - spent};
    return 0;
}

void metrics_close(struct train_metrics *m)
{
    free(m->path);
    *m = (struct train_metrics){0};
}

double metrics_seconds(const struct train_metrics *m)
{
    return now_s() - m->start;
}

json_t *metrics_line(const struct train_metrics *m, int64_t step)
{
    json_t *v = json_object();

    json_object_set_new(v, "stage", json_string(m->stage));
    json_object_set_new(v, "step", json_integer(step));
    json_object_set_new(v, "time_s", json_num(metrics_seconds(m)));
    return v;
}

void metrics_set(json_t *line, const char *name, double value)
{
    json_object_set_new(line, name, json_num(value));
}

int metrics_write(const struct train_metrics *m, json_t *line, struct err *e)
{
    int rc = jsonl_append(m->path, line, e);

    json_decref(line);
    return rc;
}
