/* task.c - reading a task file; see task.h. */
#include "task/task.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/sidecar.h"

/* Does a line of code begin with 'word' followed by a non-identifier character? */
static bool task_has_line(const char *code, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = code; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (!strncmp(p, word, n) && !isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    }
    return false;
}

/* ERR_INPUT where the code lacks what a task must define. */
static int task_check(const char *name, const char *code, struct err *e)
{
    static const struct {
        const char *line, *what;
    } need[] = {{"class Model", "class Model"}, {"def get_inputs", "get_inputs()"},
                {"def get_init_inputs", "get_init_inputs()"}};

    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++)
        if (!task_has_line(code, need[i].line))
            return err_set(e, ERR_INPUT,
                           "task '%s' has no %s; a task defines Model, get_inputs and get_init_inputs", name,
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
    if (utf8_bad_at(code, n) < n)
        return err_set(e, ERR_INPUT, "task '%s' is not UTF-8 text, from byte %zu on", name, utf8_bad_at(code, n));
    copy = xstrndup(code, n);
    if (task_check(name, copy, e) < 0) {
        free(copy);
        return -1;
    }
    *ret = (struct task){0};
    ret->name = xstrdup(name);
    ret->code = copy;
    ret->n = n;
    sha256_hex(code, n, ret->sha256);
    return 0;
}

int task_attach(struct task *t, const json_t *sidecar, const char *what, struct err *e)
{
    struct sha256 h;
    json_t *v = NULL;
    char *text;

    if (sidecar && !json_is_null(sidecar) && !(v = sidecar_check(sidecar, what, e)))
        return -1;
    json_decref(t->sidecar);
    t->sidecar = v;
    sha256_hex(t->code, t->n, t->sha256);
    if (v) {
        text = json_text(v);
        sha256_start(&h);
        sha256_adds(&h, t->sha256);
        sha256_adds(&h, text);
        sha256_end(&h, t->sha256);
        free(text);
    }
    return 0;
}

char *task_sidecar_path(const char *path)
{
    return xasprintf("%.*s.yaml", (int)strlen(path) - (path_ends(path, ".py") ? 3 : 0), path);
}

/* Reads the sidecar beside the task, if there is one. */
static int task_read_sidecar(const char *path, struct task *t, struct err *e)
{
    char *beside = task_sidecar_path(path);
    json_t *raw = NULL;
    int rc = 0;

    if (file_exists(beside)) {
        raw = yaml_read(beside, e);
        rc = raw ? task_attach(t, raw, beside, e) : -1;
    }
    json_decref(raw);
    free(beside);
    return rc;
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
        if (rc == 0 && (rc = task_read_sidecar(path, ret, e)) < 0)
            task_free(ret);
    }
    buf_free(&b);
    return rc;
}

void task_free(struct task *t)
{
    free(t->name);
    free(t->code);
    json_decref(t->sidecar);
    *t = (struct task){0};
}

/* ---- variants ---- */

int task_variants(const struct task *t)
{
    return (int)json_array_size(json_object_get(t->sidecar, "variants"));
}

static json_t *task_numbers;

static void task_numbers_make(void)
{
    task_numbers = json_pack("{s:s,s:b,s:[s,s]}", "name", "other numbers", "numbers", true, "regimes", "normal",
                             "task");
}

const json_t *task_variant(const struct task *t, int i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (i == TASK_NUMBERS) {
        pthread_once(&once, task_numbers_make);
        return task_numbers;
    }
    return i > 0 ? json_array_get(json_object_get(t->sidecar, "variants"), (size_t)i - 1) : NULL;
}

const char *task_variant_name(const struct task *t, int i)
{
    return json_string_value(json_object_get(task_variant(t, i), "name"));
}

const json_t *task_setting(const struct task *t, int i, const char *key)
{
    const json_t *v = json_object_get(task_variant(t, i), key);

    if (!v || json_is_null(v))
        v = json_object_get(t->sidecar, key);
    return json_is_null(v) ? NULL : v;
}

/* How a variant or workload differs from the task, in words. */
static void task_entry_text(const json_t *v, char *out, size_t n)
{
    const json_t *layout = json_object_get(v, "layout"), *x;
    const char *name, *sep = "";
    struct buf b;
    size_t k;

    buf_init(&b, n > 1 ? n - 1 : 1);
    if (json_flag(v, "numbers", false))
        buf_adds(&b, "numbers that get_inputs gives, and that are no tensors, are others");
    json_object_foreach(json_object_get(v, "sizes"), name, x) {
        buf_addf(&b, "%s%s = %lld", sep, name, (long long)json_integer_value(x));
        sep = ", ";
    }
    if (json_is_string(json_object_get(v, "dtype"))) {
        buf_addf(&b, "%s%s", sep, json_str(v, "dtype", ""));
        sep = ", ";
    }
    if (json_is_string(layout)) {
        buf_addf(&b, "%sinputs %s", sep, json_string_value(layout));
        sep = ", ";
    }
    json_array_foreach(layout, k, x) {
        if (!json_is_string(x))
            continue;
        buf_addf(&b, "%sinput %zu %s", sep, k, json_string_value(x));
        sep = ", ";
    }
    snprintf(out, n, "%s", b.n ? b.p : "");
    buf_free(&b);
}

void task_variant_text(const struct task *t, int i, char *out, size_t n)
{
    task_entry_text(task_variant(t, i), out, n);
}

/* ---- workloads ---- */

int task_workloads(const struct task *t)
{
    return (int)json_array_size(json_object_get(t->sidecar, "workloads"));
}

static const json_t *task_workload_entry(const struct task *t, int i)
{
    return i > 0 ? json_array_get(json_object_get(t->sidecar, "workloads"), (size_t)i - 1) : NULL;
}

const char *task_workload_name(const struct task *t, int i)
{
    return json_str(task_workload_entry(t, i), "name", "as written");
}

int task_workload_find(const struct task *t, const char *name)
{
    for (int i = task_workloads(t); name && i > 0; i--)
        if (!strcmp(task_workload_name(t, i), name))
            return i;
    return 0;
}

void task_workload_text(const struct task *t, int i, char *out, size_t n)
{
    task_entry_text(task_workload_entry(t, i), out, n);
}

/* The task's code with a workload's sizes set; the caller frees. */
static char *task_workload_code(const struct task *t, const json_t *entry)
{
    json_t *says = json_object();
    char *line, *code;

    for (const char *const *k = (const char *const[]){"sizes", "dtype", "layout", NULL}; *k; k++)
        if (!json_is_null(json_object_get(entry, *k)))
            json_object_set(says, *k, json_object_get(entry, *k));
    line = json_text(says);
    code = json_object_size(says) ? xasprintf("%s\n#@workload: %s\n", t->code, line) : xstrdup(t->code);
    free(line);
    json_decref(says);
    return code;
}

/* The sidecar of a workload alone. New. */
static json_t *task_workload_sidecar(const struct task *t, const json_t *entry)
{
    json_t *s = json_copy(t->sidecar);

    json_object_del(s, "workloads");
    if (entry)
        json_object_set_new(s, "variants", json_array());
    for (const char *const *k = (const char *const[]){"tolerance", "regimes", NULL}; entry && *k; k++)
        if (!json_is_null(json_object_get(entry, *k)))
            json_object_set(s, *k, json_object_get(entry, *k));
    return s;
}

int task_workload(const struct task *t, int i, struct task *ret, struct err *e)
{
    const json_t *entry = task_workload_entry(t, i);
    char *code = task_workload_code(t, entry);
    json_t *sidecar = task_workload_sidecar(t, entry);
    struct task own;
    int rc = task_make(t->name, code, strlen(code), &own, e);

    if (rc == 0 && (rc = task_attach(&own, sidecar, t->name, e)) < 0)
        task_free(&own);
    if (rc == 0)
        *ret = own;
    json_decref(sidecar);
    free(code);
    return rc;
}

int task_in_dtype(struct task *t, const char *dtype, struct err *e)
{
    char *code = xasprintf("%s\n#@workload: {\"dtype\":\"%s\"}\n", t->code, dtype);
    struct task own;
    int rc = task_make(t->name, code, strlen(code), &own, e);

    free(code);
    if (rc < 0)
        return -1;
    if (task_attach(&own, t->sidecar, t->name, e) < 0) {
        task_free(&own);
        return -1;
    }
    task_free(t);
    *t = own;
    return 0;
}
