/* judge_tasks.c - does the judge judge each task of a folder rightly, without a candidate? For each draw the
 * reference's own output goes through the judge's comparison twice: unchanged, which must pass, and with the last
 * element off by four tolerances, which must fail. In between inputs and expected values are made a second time, from
 * nothing.
 *
 *   judge_tasks [--backend cuda|sim] [--protocol strict|kernelbench] [--trials N] [--seconds N] [--again]
 *               --out RESULTS.jsonl TASK.py|FOLDER...
 *
 * One line a task: {"task","ok","seconds","peak_gib","own_gib","draws","deciding","wrong","missed","truth","why"}.
 * peak_gib: in use on the whole device; own_gib: by this task alone; wrong: unchanged outputs that failed; missed:
 * changed ones that passed. Tasks that RESULTS holds already are left out (--again: those that are not ok are not),
 * so the same command goes on where --seconds or Ctrl-C cut it short. On sim set MUSACODER_VALUES=host. Exit code 0:
 * all are ok, 1: some are not, 3: some are left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "../tests/eval/seam.h"

static const struct opt rows[] = {
    {NULL, "backend", OPT_CHOICE, "cuda", "cuda|sim: where the reference runs"},
    {NULL, "protocol", OPT_CHOICE, "strict", "strict|kernelbench: whose draws and tolerance"},
    {NULL, "trials", OPT_INT, "5", "draws of each distribution"},
    {NULL, "max-elements", OPT_INT, "0", "of a task's largest tensor; 0: the backend's limit"},
    {NULL, "small", OPT_INT, "0", "elements up to which a task is treated as a small one; 0: the judge's own number"},
    {NULL, "seconds", OPT_REAL, "100000", "stop before another task after so long"},
    {NULL, "again", OPT_BOOL, "no", "tasks that were not ok, once more"},
    {NULL, "out", OPT_STR, NULL, "results, JSON Lines"},
    {NULL, NULL, OPT_BOOL, NULL, NULL},
};

/* ---- which tasks ---- */

struct names {
    char **v;
    size_t n;
};

static void add_name(struct names *all, char *path)
{
    all->v = xrealloc(all->v, (all->n + 1) * sizeof *all->v);
    all->v[all->n++] = path;
}

static int collect(const char *arg, struct names *all, struct err *e)
{
    char **names;
    size_t n;

    if (!file_is_dir(arg)) {
        add_name(all, xstrdup(arg));
        return 0;
    }
    if (dir_list(arg, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);

        if (len > 3 && !strcmp(names[i] + len - 3, ".py"))
            add_name(all, xasprintf("%s/%s", arg, names[i]));
        free(names[i]);
    }
    free(names);
    return 0;
}

struct known {
    json_t *done;
    bool again;
};

static int take_result(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct known *k = ctx;

    (void)line, (void)e;
    if (!k->again || json_flag(v, "ok", false))
        json_object_set(k->done, json_str(v, "task", ""), json_true());
    return 0;
}

static int judge_path(struct seam *r, const char *path, const struct known *k, const char *out, bool *ret_ok,
                      struct err *e)
{
    struct task t;
    json_t *row;
    char *text;
    int rc;
    bool ok;

    if (task_read(path, &t, e) < 0) {
        row = json_pack("{s:s,s:b,s:s}", "task", path, "ok", 0, "why", e->msg);
        *e = (struct err)ERR_INIT;
        rc = jsonl_append(out, row, e);
        *ret_ok = false;
        json_decref(row);
        return rc;
    }
    if (json_object_get(k->done, t.name)) {
        task_free(&t);
        return 0;
    }
    ok = seam_task(r, &t, &row) == 1;
    if (!ok && stop_requested()) { /* it is one of those that are left */
        json_decref(row);
        task_free(&t);
        return 0;
    }
    *ret_ok &= ok;
    rc = jsonl_append(out, row, e);
    text = json_text(row);
    printf("%s\n", text);
    fflush(stdout);
    free(text);
    json_decref(row);
    task_free(&t);
    return rc;
}

static int run(struct opts *o, struct err *e)
{
    struct seam r = {.o = EVAL_OPTIONS_DEFAULT};
    struct known k = {json_object(), opts_bool(o, "again")};
    struct names all = {0};
    const char *out = opts_str(o, "out");
    double t0;
    size_t i;
    bool ok = true, left;

    for (int i = 0; i < o->n_args; i++)
        if (collect(o->args[i], &all, e) < 0)
            return -1;
    if (file_exists(out) && jsonl_each(out, take_result, &k, e) < 0)
        return -1;
    r.o.backend = opts_str(o, "backend"), r.o.protocol = opts_str(o, "protocol");
    r.o.trials = (int)opts_int(o, "trials"), r.o.max_elements = opts_int(o, "max-elements");
    r.small = opts_int(o, "small");
    if (seam_open(&r, e) < 0)
        return -1;
    t0 = now_s();
    for (i = 0; i < all.n && !stop_requested() && now_s() - t0 < opts_real(o, "seconds"); i++) {
        if (judge_path(&r, all.v[i], &k, out, &ok, e) < 0)
            return -1;
        fprintf(stderr, "\r%zu of %zu tasks, %.0f s, about %.0f s left ", i + 1, all.n, now_s() - t0,
                (now_s() - t0) / (double)(i + 1) * (double)(all.n - i - 1));
    }
    left = i < all.n || stop_requested();
    fprintf(stderr, "\njudge_tasks: %.1f s%s\n", now_s() - t0, left ? "; the same command does the rest" : "");
    for (i = 0; i < all.n; i++)
        free(all.v[i]);
    free(all.v);
    json_decref(k.done);
    seam_close(&r);
    return left ? 3 : ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct opts o;
    int rc;

    stop_install();
    if (opts_parse(rows, argc - 1, argv + 1, NULL, &o, &e) < 0 || o.help || !o.n_args || !opts_str(&o, "out")) {
        fprintf(stderr, "%s%sjudge_tasks --out RESULTS.jsonl TASK.py|FOLDER...\n", e.msg, e.msg[0] ? "\n" : "");
        opts_help(stderr, rows);
        return 2;
    }
    if ((rc = run(&o, &e)) < 0)
        fprintf(stderr, "judge_tasks: %s\n", e.msg);
    opts_free(&o);
    return rc < 0 ? 3 : rc;
}
