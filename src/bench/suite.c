/* suite.c - see suite.h. */
#include "bench/suite.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

static int compare_numbers(const char **a, const char **b)
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
            int c = compare_numbers(&x, &y);
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

static char *family_of(const char *name)
{
    size_t n = strlen(name), k = n;

    while (k > 0 && isdigit((unsigned char)name[k - 1]))
        k--;
    return k < n && k > 1 && name[k - 1] == '_' ? xstrndup(name, k - 1) : xstrdup("all");
}

static int by_name(const void *a, const void *b)
{
    return natural_compare(((const struct task *)a)->name, ((const struct task *)b)->name);
}

static int add_task(struct suite *s, const char *path, struct err *e)
{
    s->tasks = xrealloc(s->tasks, (size_t)(s->n + 1) * sizeof *s->tasks);
    if (task_read(path, &s->tasks[s->n], e) < 0)
        return -1;
    s->n++;
    return 0;
}

static int add_folder(struct suite *s, const char *path, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(path, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t k = strlen(names[i]);
        char *file = path_join(path, names[i]);
        if (k > 3 && !strcmp(names[i] + k - 3, ".py") && !file_is_dir(file))
            rc = add_task(s, file, e);
        free(file);
    }
    names_free(names, n);
    return rc;
}

static void finish(struct suite *s, int limit)
{
    struct sha256 h;

    qsort(s->tasks, (size_t)s->n, sizeof *s->tasks, by_name);
    while (limit > 0 && s->n > limit)
        task_free(&s->tasks[--s->n]);
    s->families = xcalloc((size_t)s->n, sizeof *s->families);
    sha256_start(&h);
    for (int i = 0; i < s->n; i++) {
        s->families[i] = family_of(s->tasks[i].name);
        sha256_adds(&h, s->tasks[i].name);
        sha256_adds(&h, s->tasks[i].sha256);
    }
    sha256_end(&h, s->sha256);
}

int suite_load(const char *path, int limit, struct suite *ret, struct err *e)
{
    struct suite s = {0};
    int rc = file_is_dir(path) ? add_folder(&s, path, e) : add_task(&s, path, e);

    if (rc == 0 && s.n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' has no task files; a suite is a folder of NAME.py", path);
    if (rc < 0) {
        suite_free(&s);
        return -1;
    }
    finish(&s, limit);
    *ret = s;
    return 0;
}

void suite_free(struct suite *s)
{
    for (int i = 0; i < s->n; i++) {
        task_free(&s->tasks[i]);
        if (s->families)
            free(s->families[i]);
    }
    free(s->tasks);
    free(s->families);
    memset(s, 0, sizeof *s);
}

int suite_find(const struct suite *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->tasks[i].name, name))
            return i;
    return -1;
}
