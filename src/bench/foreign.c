/* foreign.c - see foreign.h. */
#include "bench/foreign.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/archive.h"
#include "task/bundle.h"

/* ---- names ---- */

static bool foreign_is_sample_file(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (!strcmp(dot, ".py") || !strcmp(dot, ".txt") || !strcmp(dot, ".md"));
}

static bool foreign_is_response(const char *file)
{
    const char *dot = strrchr(file, '.');

    return dot && (!strcmp(dot, ".txt") || !strcmp(dot, ".md"));
}

/* task: its name without level; level 0: a plain folder, where a file's own level says nothing. */
static bool foreign_belongs(const char *file, const char *task, int in_level)
{
    size_t n = strlen(task);
    int level, problem, sample, end = 0;

    if (sscanf(file, "level_%d_problem_%d_sample_%d_kernel.py%n", &level, &problem, &sample, &end) == 3 && end > 0)
        return isdigit((unsigned char)*task) && atoi(task) == problem && (!in_level || in_level == level);
    if (strncmp(file, task, n))
        return false;
    file += n;
    if (*file == '.')
        return true;
    if (!strncmp(file, "_sample", 7))
        file += 7;
    file += *file == '_';
    return isdigit((unsigned char)*file) && file[-1] == '_' && strchr(".", file[strspn(file, "0123456789")]);
}

/* Two names may claim a file: relu_2.py is task relu_2, and sample 2 of relu. The longer name has it. */
static bool foreign_belongs_to_longer(const char *file, const char *task, int in_level, const struct suite *s)
{
    for (int i = 0; i < s->n; i++) {
        const char *other = s->levels ? path_name(s->tasks[i].name) : s->tasks[i].name;

        if (strlen(other) > strlen(task) && (!s->levels || !in_level || s->levels[i] == in_level) &&
            foreign_belongs(file, other, in_level))
            return true;
    }
    return false;
}

/* ---- folders ---- */

struct foreign_listing { /* the sample files of one folder, in natural order */
    char *dir, **names;
    bool *used;
    size_t n;
};

static int foreign_natural_names(const void *a, const void *b)
{
    return natural_compare(*(char *const *)a, *(char *const *)b);
}

/* Lists a folder for matching. */
static int foreign_list(const char *dir, struct foreign_listing *ret, struct err *e)
{
    struct foreign_listing l = {0};

    if (dir_list(dir, &l.names, &l.n, e) < 0)
        return -1;
    l.dir = xstrdup(dir);
    l.used = xcalloc(l.n + 1, sizeof *l.used);
    if (l.n)
        qsort(l.names, l.n, sizeof *l.names, foreign_natural_names);
    *ret = l;
    return 0;
}

static void foreign_listing_free(struct foreign_listing *l)
{
    names_free(l->names, l->n);
    free(l->dir);
    free(l->used);
    *l = (struct foreign_listing){0};
}

/* A new item of that task; it moves with the next one. */
static struct foreign_item *foreign_add_item(struct foreign *f, int task)
{
    f->items = xrealloc(f->items, (size_t)(f->n + 1) * sizeof *f->items);
    f->items[f->n] = (struct foreign_item){.task = task};
    if (++f->counts[task] > f->most)
        f->most = f->counts[task];
    return &f->items[f->n++];
}

/* A sample, or an answer of several files: a folder or an archive. CUDA sources count where no Python is beside them,
 * which they would be part of. */
static bool foreign_is_sample(const struct foreign_listing *l, size_t i)
{
    char *path;
    bool is;

    if (foreign_is_sample_file(l->names[i]))
        return true;
    path = path_join(l->dir, l->names[i]);
    is = bundle_is_one(path) && strcmp(l->names[i], "__pycache__");
    for (size_t k = 0; k < l->n && is && !archive_is_one(path) && !file_is_dir(path); k++)
        is = !foreign_is_sample_file(l->names[k]);
    free(path);
    return is;
}

/* base NULL: every sample file of the folder is the task's. */
static void foreign_take(struct foreign *f, struct foreign_listing *l, int task, const char *base, int level,
                         const struct suite *s)
{
    for (size_t i = 0; i < l->n; i++) {
        struct foreign_item *it;
        if (!foreign_is_sample(l, i) || (base && (!foreign_belongs(l->names[i], base, level) ||
                                                               foreign_belongs_to_longer(l->names[i], base, level, s))))
            continue;
        l->used[i] = true;
        it = foreign_add_item(f, task);
        it->file = path_join(l->dir, l->names[i]);
        it->is_response = foreign_is_response(l->names[i]);
    }
}

/* Notes programs that no task took. */
static void foreign_add_strays(struct foreign *f, const struct foreign_listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!l->used[i] && foreign_is_sample_file(l->names[i])) {
            f->strays = xrealloc(f->strays, (size_t)(f->n_strays + 1) * sizeof *f->strays);
            f->strays[f->n_strays++] = path_join(l->dir, l->names[i]);
        }
}

/* Takes one task's samples from one folder: all of the subfolder BASE/, else the files that are named after it. */
static int foreign_take_in(struct foreign *f, struct foreign_listing *l, int task, const char *base, int level,
                           const struct suite *s, struct err *e)
{
    char *sub = path_join(l->dir, base);
    struct foreign_listing own;
    int rc = 0;

    if (!file_is_dir(sub))
        foreign_take(f, l, task, base, level, s);
    else if ((rc = foreign_list(sub, &own, e)) == 0) {
        foreign_take(f, &own, task, NULL, level, s);
        foreign_listing_free(&own);
    }
    free(sub);
    return rc;
}

/* Lists the folder of a level; empty where there is none. */
static int foreign_open_level(const char *path, int level, struct foreign_listing *ret, struct err *e)
{
    char *dir = xasprintf("%s/level%d", path, level);
    int rc = file_is_dir(dir) ? foreign_list(dir, ret, e) : 0;

    free(dir);
    return rc;
}

/* Finds each task's programs: files that are named after it, or in a folder of its name. Others are strays. */
static int foreign_scan_folder(struct foreign *f, const char *path, const struct suite *s, struct err *e)
{
    struct foreign_listing root, sub = {0};
    int rc = foreign_list(path, &root, e), level = 0;

    if (rc < 0)
        return -1;
    for (int i = 0; i < s->n && rc == 0; i++) {
        int here = s->levels ? s->levels[i] : 0;
        const char *base = here ? path_name(s->tasks[i].name) : s->tasks[i].name;
        if (here != level) { /* tasks come level by level */
            foreign_add_strays(f, &sub);
            foreign_listing_free(&sub);
            rc = foreign_open_level(path, level = here, &sub, e);
        }
        if (rc == 0 && sub.dir)
            rc = foreign_take_in(f, &sub, i, base, here, s, e);
        if (rc == 0)
            rc = foreign_take_in(f, &root, i, base, here, s, e);
    }
    foreign_add_strays(f, &sub);
    foreign_add_strays(f, &root);
    foreign_listing_free(&sub);
    foreign_listing_free(&root);
    return rc;
}

/* ---- lines ---- */

struct foreign_lines {
    struct foreign *f;
    const struct suite *s;
    const char *path;
};

/* The task that a line is about; -1: none of the suite. */
static int foreign_find_line(const struct suite *s, const json_t *v)
{
    const char *name = json_str(v, "task", "");
    int64_t level = json_i64(v, "level", 0);
    int i = suite_find(s, name);

    for (int k = 0; i < 0 && s->levels && k < s->n; k++)
        if ((!level || level == s->levels[k]) && !strcmp(path_name(s->tasks[k].name), name))
            i = k;
    return i;
}

/* A callback of jsonl_each: takes a program of samples.jsonl. */
static int foreign_take_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct foreign_lines *l = ctx;
    const char *text = json_str(v, "text", NULL);
    int task = foreign_find_line(l->s, v);
    struct foreign_item *it;

    (void)e;
    if (!text || json_i64(v, "turn", 1) != 1)
        return 0; /* later turns are no samples of their own */
    if (task < 0) {
        l->f->strays = xrealloc(l->f->strays, (size_t)(l->f->n_strays + 1) * sizeof *l->f->strays);
        l->f->strays[l->f->n_strays++] = xasprintf("%s:%zu", l->path, line);
        return 0;
    }
    it = foreign_add_item(l->f, task);
    it->file = xasprintf("%s:%zu", l->path, line);
    it->text = xstrdup(text);
    it->is_response = json_flag(v, "is_response", true);
    return 0;
}

/* Finds all programs in a folder or a file; foreign_free frees *ret. */
int foreign_scan(const char *path, const struct suite *s, struct foreign *ret, struct err *e)
{
    char *lines = file_is_dir(path) ? path_join(path, "samples.jsonl") : xstrdup(path);
    struct foreign f = {.counts = xcalloc((size_t)s->n + 1, sizeof *f.counts)};
    struct foreign_lines l = {&f, s, lines};
    int rc = file_exists(lines) || !file_is_dir(path) ? jsonl_each(lines, foreign_take_line, &l, e)
        : foreign_scan_folder(&f, path, s, e);

    free(lines);
    if (rc < 0)
        foreign_free(&f);
    else
        *ret = f;
    return rc;
}

void foreign_free(struct foreign *f)
{
    for (int i = 0; i < f->n; i++) {
        free(f->items[i].file);
        free(f->items[i].text);
    }
    for (int i = 0; i < f->n_strays; i++)
        free(f->strays[i]);
    free(f->items);
    free(f->strays);
    free(f->counts);
    *f = (struct foreign){0};
}

int foreign_text(const struct foreign_item *it, const char *task_code, char **ret, struct err *e)
{
    struct buf text;
    int rc;

    if (it->text) {
        *ret = xstrdup(it->text);
        return 0;
    }
    buf_init(&text, BUF_MAX_TEXT);
    rc = bundle_is_one(it->file) ? bundle_read(it->file, task_code, &text, e) : file_read(it->file, &text, e);
    if (rc < 0) {
        buf_free(&text);
        return -1;
    }
    *ret = buf_detach(&text);
    return 0;
}
