/* task.c - reading a task file; see task.h. */
#include "task/task.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

/* Does a line of code begin with 'word' followed by a non-identifier character? */
static bool has_line(const char *code, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = code; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (!strncmp(p, word, n) && !isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    }
    return false;
}

static int check(const char *name, const char *code, struct err *e)
{
    static const struct {
        const char *line, *what;
    } need[] = {{"class Model", "class Model"}, {"def get_inputs", "get_inputs()"}, {"def get_init_inputs", "get_init_inputs()"}};

    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++)
        if (!has_line(code, need[i].line))
            return err_set(e, ERR_INPUT, "task '%s' has no %s; a task defines Model, get_inputs and get_init_inputs", name,
                           need[i].what);
    return 0;
}

int task_make(const char *name, const char *code, size_t n, struct task *ret, struct err *e)
{
    char *copy;

    if (n > TASK_MAX_BYTES)
        return err_set(e, ERR_INPUT, "task '%s' is larger than %u bytes", name, TASK_MAX_BYTES);
    if (memchr(code, 0, n))
        return err_set(e, ERR_INPUT, "task '%s' holds a NUL byte; a task is a Python source file", name);
    copy = xstrndup(code, n);
    if (check(name, copy, e) < 0) {
        free(copy);
        return -1;
    }
    ret->name = xstrdup(name);
    ret->code = copy;
    ret->n = n;
    sha256_hex(code, n, ret->sha256);
    return 0;
}

int task_read(const char *path, struct task *ret, struct err *e)
{
    struct buf b;
    char *name;
    int rc = -1;

    buf_init(&b, TASK_MAX_BYTES);
    if (file_read(path, &b, e) == 0) {
        name = path_stem(path);
        rc = task_make(name, b.p, b.n, ret, e);
        free(name);
    }
    buf_free(&b);
    return rc;
}

void task_free(struct task *t)
{
    free(t->name);
    free(t->code);
    *t = (struct task){0};
}
