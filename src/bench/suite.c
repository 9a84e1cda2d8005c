/* suite.c - see suite.h. */
#include "bench/suite.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

/* Compares the digits at *a and *b as numbers and moves both behind them. */
static int suite_compare_numbers(const char **a, const char **b)
{
    size_t n, m;
    int c;

    while (**a == '0')
        (*a)++;
    while (**b == '0')
        (*b)++;
    n = strspn(*a, "0123456789");
    m = strspn(*b, "0123456789");
    c = n != m ? (n < m ? -1 : 1) : strncmp(*a, *b, n);
    *a += n;
    *b += m;
    return c;
}

int natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && *y) {
        if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
            int c = suite_compare_numbers(&x, &y);
            if (c)
                return c;
        } else if (*x != *y) {
            break;
        } else {
            x++;
            y++;
        }
    }
    if (*x != *y)
        return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
    return strcmp(a, b); /* "01" and "1" */
}

/* The task's family: its name without a number at the end; "all" without one. Owned. */
static char *suite_family_of(const char *name)
{
    size_t n = strlen(name), k = n;

    while (k > 0 && isdigit((unsigned char)name[k - 1]))
        k--;
    return k < n && k > 1 && name[k - 1] == '_' ? xstrndup(name, k - 1) : xstrdup("all");
}

/* ---- collecting: one row per file, sorted at the end ---- */

struct suite_row {
    struct task task;
    int level;
    char *skip;
};

struct suite_rows {
    struct suite_row *v;
    int n;
};

static int suite_by_name(const void *a, const void *b)
{
    return natural_compare(((const struct suite_row *)a)->task.name, ((const struct suite_row *)b)->task.name);
}

static void suite_rows_free(struct suite_rows *r)
{
    for (int i = 0; i < r->n; i++) {
        task_free(&r->v[i].task);
        free(r->v[i].skip);
    }
    free(r->v);
    *r = (struct suite_rows){0};
}

/* A new row, zeroed, valid until the next one. */
static struct suite_row *suite_add_row(struct suite_rows *r)
{
    r->v = xrealloc(r->v, (size_t)(r->n + 1) * sizeof *r->v);
    memset(&r->v[r->n], 0, sizeof *r->v);
    return &r->v[r->n++];
}

/* Appends the task of a file; fails as task_read does. */
static int suite_add_task(struct suite_rows *r, const char *path, struct err *e)
{
    struct task t;

    if (task_read(path, &t, e) < 0)
        return -1;
    suite_add_row(r)->task = t;
    return 0;
}

/* A broken task of a published suite is a named skip: it must not keep the others from being judged. */
static int suite_add_level_task(struct suite_rows *r, const char *path, int level, struct err *e)
{
    struct err why = ERR_INIT;
    char *base = path_stem(path);
    struct suite_row *row;
    struct task t = {0};
    bool good = task_read(path, &t, &why) == 0;

    if (!good && why.kind != ERR_INPUT) {
        free(base);
        *e = why;
        return -1;
    }
    row = suite_add_row(r);
    row->task = t;
    row->level = level;
    free(row->task.name);
    row->task.name = xasprintf("level%d/%s", level, base);
    if (!good) {
        row->skip = xstrdup(why.msg);
        row->task.code = xstrdup("");
    }
    free(base);
    return 0;
}

static bool suite_is_level_task(const char *name)
{
    return isdigit((unsigned char)*name) && name[strspn(name, "0123456789")] == '_';
}

/* level 0: a plain folder, every *.py is a task. */
static int suite_add_folder(struct suite_rows *r, const char *path, int level, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(path, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t k = strlen(names[i]);
        char *file = path_join(path, names[i]);
        if (k > 3 && !strcmp(names[i] + k - 3, ".py") && !file_is_dir(file)) {
            if (utf8_bad_at(names[i], k) < k)
                rc = err_set(e, ERR_INPUT, "the name of task '%s' is no UTF-8 text; rename the file", file);
            else if (!level)
                rc = suite_add_task(r, file, e);
            else if (suite_is_level_task(names[i]))
                rc = suite_add_level_task(r, file, level, e);
            else
                log_warn("'%s' is not named ID_NAME.py and is no task of the suite", file);
        }
        free(file);
    }
    names_free(names, n);
    return rc;
}

/* Takes the rows: the first 'limit' of each level. */
static void suite_finish(struct suite_rows *r, int limit, bool leveled, struct suite *ret)
{
    struct suite s = {.tasks = xcalloc((size_t)r->n, sizeof *s.tasks),
                      .families = xcalloc((size_t)r->n, sizeof *s.families),
                      .skips = xcalloc((size_t)r->n, sizeof *s.skips),
                      .levels = leveled ? xcalloc((size_t)r->n, sizeof *s.levels) : NULL};
    int of_level[SUITE_MAX_LEVEL + 1] = {0};
    struct sha256 h;

    qsort(r->v, (size_t)r->n, sizeof *r->v, suite_by_name);
    sha256_start(&h);
    for (int i = 0; i < r->n; i++) {
        struct suite_row *row = &r->v[i];
        if (limit > 0 && of_level[row->level]++ >= limit)
            continue;
        sha256_adds(&h, row->task.name);
        sha256_adds(&h, row->task.sha256);
        s.families[s.n] = leveled ? xasprintf("level %d", row->level) : suite_family_of(row->task.name);
        if (leveled)
            s.levels[s.n] = row->level;
        s.tasks[s.n] = row->task;
        s.skips[s.n++] = row->skip;
        memset(row, 0, sizeof *row);
    }
    sha256_end(&h, s.sha256);
    *ret = s;
}

int suite_load(const char *path, int limit, struct suite *ret, struct err *e)
{
    struct suite_rows r = {0};
    int rc = file_is_dir(path) ? suite_add_folder(&r, path, 0, e) : suite_add_task(&r, path, e);

    if (rc == 0 && r.n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' has no task files; a suite is a folder of NAME.py", path);
    if (rc == 0)
        suite_finish(&r, limit, false, ret);
    suite_rows_free(&r);
    return rc;
}

/* ---- precision ---- */

int suite_set_precision(struct suite *s, const char *precision, struct err *e)
{
    static const char *const names[][2] = {{"fp32", "float32"}, {"fp16", "float16"}, {"bf16", "bfloat16"}};
    const char *dtype = NULL;
    struct sha256 h;
    int rc = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        dtype = !strcmp(precision, names[i][0]) ? names[i][1] : dtype;
    if (!dtype)
        return err_set(e, ERR_INPUT, "no precision '%s'; fp32, fp16 and bf16 are", precision);
    sha256_start(&h);
    for (int i = 0; i < s->n && rc == 0; i++) {
        if (!s->skips[i])
            rc = task_in_dtype(&s->tasks[i], dtype, e);
        sha256_adds(&h, s->tasks[i].name);
        sha256_adds(&h, s->tasks[i].sha256);
    }
    sha256_end(&h, s->sha256);
    return rc;
}

/* ---- KernelBench ---- */

/* "1,3": which levels; all of them when only is NULL. */
static int suite_parse_levels(const char *only, bool want[SUITE_MAX_LEVEL + 1], struct err *e)
{
    for (int k = 0; k <= SUITE_MAX_LEVEL; k++)
        want[k] = !only;
    for (const char *s = only; s && *s; s += strspn(s, ", ")) {
        if (*s < '1' || *s > '0' + SUITE_MAX_LEVEL || (s[1] && !strchr(", ", s[1])))
            return err_set(e, ERR_INPUT, "'%s' names no levels; write them as 1,3", only);
        want[*s++ - '0'] = true;
    }
    return 0;
}

/* Appends the tasks of the folders root/level1, root/level2, .. that are wanted and there. */
static int suite_add_levels(struct suite_rows *r, const char *root, const bool *want, struct err *e)
{
    int rc = 0;

    for (int k = 1; k <= SUITE_MAX_LEVEL && rc == 0; k++) {
        char *dir = xasprintf("%s/level%d", root, k);
        if (want[k] && file_is_dir(dir))
            rc = suite_add_folder(r, dir, k, e);
        free(dir);
    }
    return rc;
}

int suite_load_spec(const char *spec, const char *only, int limit, struct suite *ret, struct err *e)
{
    static const char prefix[] = "kernelbench:", musa[] = "musa-";
    bool want[SUITE_MAX_LEVEL + 1];
    struct suite_rows r = {0};
    char *inner;
    const char *dir;
    int rc;

    if (!strcmp(spec, "open") || !strcmp(spec, "musa-open")) {
        char *folder = path_share("suites/open");
        rc = only ? err_set(e, ERR_INPUT, "suite 'open' has no levels; leave --levels out")
                  : suite_load(folder, limit, ret, e);
        free(folder);
        return rc;
    }
    if (!strncmp(spec, musa, sizeof musa - 1)) /* the same tasks: a dialect is only what is asked for */
        spec += sizeof musa - 1;
    if (strncmp(spec, prefix, sizeof prefix - 1))
        return err_set(e, ERR_INPUT, "no suite '%s'; say open, or kernelbench:DIR with a checkout of KernelBench",
                       spec);
    dir = spec + sizeof prefix - 1;
    if (!file_is_dir(dir))
        return err_set(e, ERR_INPUT, "'%s' is not a folder; the suite needs a checkout of KernelBench", dir);
    if (suite_parse_levels(only, want, e) < 0)
        return -1;
    inner = path_join(dir, "KernelBench");
    rc = suite_add_levels(&r, file_is_dir(inner) ? inner : dir, want, e);
    free(inner);
    if (rc == 0 && r.n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' has no task%s; expected %s/KernelBench/level1/ID_NAME.py", dir,
                     only ? " of these levels" : "", dir);
    if (rc == 0)
        suite_finish(&r, limit, true, ret);
    suite_rows_free(&r);
    return rc;
}

void suite_free(struct suite *s)
{
    for (int i = 0; i < s->n; i++) {
        task_free(&s->tasks[i]);
        free(s->families[i]);
        free(s->skips[i]);
    }
    free(s->tasks);
    free(s->families);
    free(s->skips);
    free(s->levels);
    memset(s, 0, sizeof *s);
}

int suite_find(const struct suite *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->tasks[i].name, name))
            return i;
    return -1;
}
