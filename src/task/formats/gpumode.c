/* gpumode.c - GPU MODE's task.yml: reference.py with ref_kernel and generate_input, files that it imports, and rows of
 * arguments (tests, then benchmarks). The task is one file: what reference.py imports stands before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "task/formats/format.h"

static const char *const inlined[] = {"utils", "task", "reference", NULL};

static bool gpumode_is(const char *path)
{
    return format_named(path, "task.yml") && format_has_beside(path, "reference.py");
}

/* Names the task after its folder. */
static void gpumode_name(const char *path, struct format_task *t)
{
    char *folder = format_beside(path, "");
    size_t n = strlen(folder);

    if (n && folder[n - 1] == '/')
        folder[n - 1] = 0;
    snprintf(t->name, sizeof t->name, "%.100s", strrchr(folder, '/') ? strrchr(folder, '/') + 1 : *folder ? folder
             : "task");
    free(folder);
}

/* One of the files that reference.py may import, in front of it. */
static int gpumode_add_file(const char *path, const char *source, struct format_task *t, struct err *e)
{
    char *at = format_beside(path, source);
    struct buf text;
    int rc = format_text(at, &text, e);

    free(at);
    if (rc < 0)
        return -1;
    format_inline(&t->code, text.p, inlined);
    rc = strstr(text.p, "\nimport utils") || strstr(text.p, "\nimport reference") ?
        err_set(e, ERR_INPUT, "'%.80s' imports a module of the task as a whole; only 'from .. import' can be inlined",
                source) : 0;
    buf_free(&text);
    return rc;
}

/* Appends the task's Python files in the order in which they need each other. */
static int gpumode_add_files(const char *path, const json_t *files, struct format_task *t, struct err *e)
{
    static const char *const order[] = {"utils.py", "task.py", "reference.py", NULL};
    const json_t *one;
    int rc = 0;
    size_t i;

    for (const char *const *name = order; *name; name++)
        json_array_foreach(files, i, one)
            if (rc == 0 && !strcmp(json_str(one, "name", ""), *name))
                rc = gpumode_add_file(path, json_str(one, "source", *name), t, e);
    return rc;
}

/* New: tests, then benchmarks. */
static json_t *gpumode_rows(const json_t *spec)
{
    json_t *rows = json_array(), *one;
    size_t i;

    json_array_foreach(json_object_get(spec, "tests"), i, one)
        json_array_append(rows, one);
    json_array_foreach(json_object_get(spec, "benchmarks"), i, one)
        json_array_append(rows, one);
    return rows;
}

/* Appends Model and get_inputs() around the task's ref_kernel and generate_input. */
static void gpumode_add_model(struct format_task *t, const json_t *row)
{
    const char *key, *sep = "";
    json_t *value;

    buf_adds(&t->code, "\n\nclass Model(torch.nn.Module):\n    def forward(self, data):\n        return "
                       "ref_kernel(data)\n\n\ndef get_inputs():\n    return [generate_input(");
    json_object_foreach((json_t *)row, key, value) {
        /* each draw is another one, as the judge seeds it */
        bool seed = !strcmp(key, "seed");
        buf_addf(&t->code, "%s%s=%s%s", sep, key, key, seed ? " + int(torch.randint(1 << 16, ()))" : "");
        sep = ", ";
    }
    buf_adds(&t->code, ")]\n\n\ndef get_init_inputs():\n    return []\n");
}

/* Makes the task's code and workloads of a specification. ERR_INPUT: it has no cases, or wants several GPUs. */
static int gpumode_build(const char *path, const json_t *spec, int most, struct format_task *t, struct err *e)
{
    json_t *rows = gpumode_rows(spec);
    int rc;

    if (json_array_size(rows) == 0)
        rc = err_set(e, ERR_INPUT, "it has neither tests nor benchmarks");
    else if (json_object_get(spec, "multi_gpu") && json_is_true(json_object_get(spec, "multi_gpu")))
        rc = err_set(e, ERR_INPUT, "it is for several GPUs");
    else
        rc = gpumode_add_files(path, json_object_get(spec, "files"), t, e);
    if (rc == 0 && (!strstr(t->code.p, "\ndef ref_kernel(") || !strstr(t->code.p, "\ndef generate_input(")))
        rc = err_set(e, ERR_INPUT, "reference.py defines no ref_kernel and generate_input");
    if (rc == 0) {
        buf_adds(&t->code, "\n");
        rc = format_rows(t, rows, most, e);
    }
    if (rc == 0)
        gpumode_add_model(t, json_array_get(rows, 0));
    json_decref(rows);
    return rc;
}

/* format's 'read': a task.yml with its files. */
static int gpumode_read(const char *path, int most, struct format_task *t, struct err *e)
{
    json_t *spec = yaml_read(path, e);
    int rc;

    if (!spec)
        return -1;
    gpumode_name(path, t);
    rc = gpumode_build(path, spec, most, t, e);
    json_decref(spec);
    return rc;
}

const struct format format_gpumode = {"gpu-mode", "task.yml with reference.py: ref_kernel, generate_input, tests, "
                                                  "benchmarks", gpumode_is, gpumode_read};
