/* format.c - see format.h. */
#include "task/formats/format.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

#define FORMAT_MAX_DEPTH 12

static const struct format *const formats[] = {&format_gpumode, &format_definition, &format_robust, &format_cases,
                                               &format_leetgpu, &format_computeeval, &format_kernelbook, &format_plain};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* The reader of a file; NULL: it is no task. only: the name of one reader, or NULL. ERR_INPUT: no such reader. */
static int format_find(const char *path, const char *only, const struct format **ret, struct err *e)
{
    bool known = !only;

    *ret = NULL;
    for (size_t i = 0; i < N_FORMATS; i++) {
        bool this = !only || !strcmp(only, formats[i]->name);
        known = known || this;
        if (!*ret && this && formats[i]->is(path))
            *ret = formats[i];
    }
    return known ? 0 : err_set(e, ERR_INPUT, "no format '%s'; 'musacoder tasks -h' lists them", only);
}

static void format_task_free(struct format_task *t)
{
    buf_free(&t->code);
    json_decref(t->sidecar);
    *t = (struct format_task){0};
}

/* One file by its reader. published: as in struct format_task, which the caller frees; untouched on failure. */
static int format_read(const struct format *f, const char *path, int most, bool published, struct format_task *ret,
                       struct err *e)
{
    struct format_task t = {.sidecar = json_pack("{s:s}", "format", f->name), .published = published};
    int rc;

    buf_init(&t.code, BUF_MAX_TEXT);
    rc = f->read(path, most < 1 ? 1 : most, &t, e);
    if (rc < 0)
        format_task_free(&t);
    else
        *ret = t;
    return rc;
}

/* ---- walking ---- */

struct format_walk {
    const char *only;
    int most;
    bool published;
    format_take *take;
    void *ctx;
};

/* Gives one file's task, or why it was refused, to the caller; a file of no format is passed over. */
static int format_visit_file(const struct format_walk *w, const char *path, struct err *e)
{
    struct err why = ERR_INIT;
    const struct format *f;
    struct format_task t;
    int rc;

    if (format_find(path, w->only, &f, e) < 0)
        return -1;
    if (!f)
        return 0;
    if (format_read(f, path, w->most, w->published, &t, &why) < 0)
        return w->take(path, f, NULL, why.msg, w->ctx, e);
    rc = w->take(path, f, &t, NULL, w->ctx, e);
    format_task_free(&t);
    return rc;
}

/* Visits a file, or a folder with what is below; links are not followed. */
static int format_visit(const struct format_walk *w, const char *path, int depth, struct err *e)
{
    char **names;
    struct stat st;
    size_t n;
    int rc = 0;

    if (!file_is_dir(path))
        return format_visit_file(w, path, e);
    if (depth > FORMAT_MAX_DEPTH)
        return 0;
    if (dir_list(path, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *sub = path_join(path, names[i]);
        if (lstat(sub, &st) == 0 && !S_ISLNK(st.st_mode))
            rc = format_visit(w, sub, depth + 1, e);
        free(sub);
    }
    names_free(names, n);
    return rc;
}

int format_each(const char *path, const char *only, int most, bool published, format_take *take, void *ctx,
                struct err *e)
{
    struct format_walk w = {only, most, published, take, ctx};

    if (!file_exists(path) && !file_is_dir(path))
        return err_set(e, ERR_INPUT, "no file or folder '%s'", path);
    return format_visit(&w, path, 0, e);
}
