/* cmd_tasks.c - 'musacoder tasks': tasks in the forms of others become a folder of tasks with sidecars. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "task/formats/format.h"

static const struct opt rows[] = {
    {"tasks", "out", OPT_OUT_FOLDER, NULL,
     "folder to write NAME.py and NAME.yaml into; without it they are only listed"},
    {"tasks", "format", OPT_STR, NULL, "take this form alone: gpu-mode, definition, robust-kbench, multikernel, "
                                       "kernelbench, kernelbook, leetgpu, compute-eval"},
    {"tasks", "rows", OPT_INT, "257", "shapes of a task that are kept, the first ones"},
    {"tasks", "tolerance", OPT_CHOICE, "own", "own|published: the judge's, or the benchmark's with its share of "
                                              "elements that must match, where it has one"},
    {"tasks", "limit", OPT_INT, "0", "so many tasks at most; 0: all"},
    {"tasks", "json", OPT_BOOL, "false", "one line of JSON a task: path, format, name, rows, or refused with why"},
    {0},
};

struct tasks_run {
    struct listing *listing; /* of --out; NULL without */
    json_t *names; /* taken so far */
    int limit, written, refused;
    bool json;
};

/* Prints one task: its place, format and rows, or why it was refused. */
static void tasks_say(const struct tasks_run *r, const char *path, const struct format *f,
                      const struct format_task *t, const char *name, const char *why)
{
    size_t n = t ? json_array_size(json_object_get(t->sidecar, "workloads")) + 1 : 0;
    json_t *line = json_pack("{s:s,s:s,s:s?,s:i,s:s?}", "path", path, "format", f->name, "name", name, "rows", (int)n,
                             "refused", why);

    if (r->json)
        json_print(line);
    else if (t)
        printf("%-12s %s  %zu shape%s  %s\n", f->name, name, n, buf_plural((long long)n), path);
    else
        printf("%-12s refused: %s  %s\n", f->name, why, path);
    json_decref(line);
}

/* Two tasks of one name: the second is called NAME_2. Owned. */
static char *tasks_free_name(struct tasks_run *r, const char *wanted)
{
    char *stem = xstrdup(wanted), *name;

    for (char *p = stem; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", *p))
            *p = '_';
    name = xstrdup(stem);
    for (int k = 2; json_object_get(r->names, name); k++) {
        free(name);
        name = xasprintf("%s_%d", stem, k);
    }
    free(stem);
    json_object_set_new(r->names, name, json_true());
    return name;
}

/* JSON is YAML. */
static int tasks_write(struct listing *l, const char *name, const struct format_task *t, struct err *e)
{
    char *code = xasprintf("%s.py", name), *sidecar = xasprintf("%s.yaml", name);
    int rc = listing_write(l, code, t->code.p, t->code.n, e);

    if (rc == 0)
        rc = listing_write_json(l, sidecar, t->sidecar, e);
    free(code);
    free(sidecar);
    return rc;
}

/* A callback of format_each: writes a task and its sidecar. */
static int tasks_take(const char *path, const struct format *f, const struct format_task *t, const char *why, void *ctx,
                      struct err *e)
{
    struct tasks_run *r = ctx;
    char *name = NULL;
    int rc = 0;

    if (r->limit && r->written == r->limit)
        return 0;
    if (t) {
        name = tasks_free_name(r, t->name);
        rc = r->listing ? tasks_write(r->listing, name, t, e) : 0;
    }
    r->written += t != NULL;
    r->refused += t == NULL;
    if (rc == 0)
        tasks_say(r, path, f, t, name, why);
    free(name);
    return rc;
}

/* The folder holds what is made of one source: another's tasks, or those of files that went, would be taken for its. */
static int tasks_open_folder(struct tasks_run *r, const char *out, const char *from, struct err *e)
{
    char *real = realpath(from, NULL);
    int rc;

    if (!real)
        return err_set(e, ERR_INPUT, "there is no '%s'; name a file or folder of tasks", from);
    rc = folder_claim(out, "these tasks", e) < 0 ? -1 : listing_begin(out, real, &r->listing, e);
    free(real);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int tasks_run(const struct opts *o, struct err *e)
{
    struct tasks_run r = {.limit = (int)opts_int(o, "limit"), .json = opts_bool(o, "json")};
    int rc;

    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "name one file or folder of tasks");
    if (listing_check(o->args[0], e) < 0 || opts_check_outside(o, "out", e) < 0)
        return -1;
    if (opts_has(o, "out") && tasks_open_folder(&r, opts_str(o, "out"), o->args[0], e) < 0)
        return -1;
    r.names = json_object();
    rc = format_each(o->args[0], opts_str(o, "format"), (int)opts_int(o, "rows"),
                     !strcmp(opts_str(o, "tolerance"), "published"), tasks_take, &r, e);
    json_decref(r.names);
    if (rc == 0 && r.listing)
        rc = listing_end(r.listing, false, NULL, e);
    listing_free(r.listing);
    if (rc == 0 && r.written + r.refused == 0)
        rc = err_set(e, ERR_INPUT, "'%s' holds no task in a form that is known", o->args[0]);
    if (rc == 0)
        log_info("%d task%s, %d refused", r.written, buf_plural(r.written), r.refused);
    return rc < 0 ? -1 : r.refused ? EXIT_FAILED : EXIT_OK;
}

const struct command cmd_tasks = {
    "tasks", "turn tasks of other benchmarks into a folder of tasks", "FROM [--out FOLDER] [--format NAME] [--rows N]",
    "Finds tasks in FROM by their form: GPU MODE's task.yml, definitions of FlashInfer-Bench and SOL-ExecBench with\n"
    "their workloads, robust-kbench's func_forward.py, MultiKernelBench's NAME.py with NAME.json, LeetGPU's\n"
    "challenge.py, KernelBook's modules, and KernelBench's own. Each becomes NAME.py, and NAME.yaml with a workload\n"
    "for every further shape (docs/formats.md). Nothing is run.\n"
    "Exit code: 0 all were taken, 1 some were refused, with the reason, 2 usage, or no task at all.\n\n",
    rows, tasks_run, 1};
