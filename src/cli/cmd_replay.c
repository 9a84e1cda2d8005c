/* cmd_replay.c - 'musacoder replay': a capsule's kernels again: right? how fast? what do the vendor's tools say? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "cli/cli.h"
#include "exec/capsule.h"

static const struct opt rows[] = {
    {"replay", "time", OPT_INT, "0", "time the last call this many times (cuda)"},
    {"replay", "check", OPT_BOOL, "false", "run under compute-sanitizer (cuda); show the emulator's findings (sim)"},
    {"replay", "profile", OPT_OUT_FILE, NULL, "run under ncu and write its figures to this CSV file (cuda)"},
    {"replay", "device", OPT_INT, "0", "which GPU"},
    {"replay", "json", OPT_BOOL, "false", "print one JSON object, nothing else"},
    {0},
};

#define TOOL_FOUND 9 /* compute-sanitizer's exit code, as we ask for it */

/* Finds a program of the toolkit; its path goes to out. */
static bool replay_on_path(const char *name, char out[512])
{
    const char *path = getenv("PATH"), *extra = ":/usr/local/cuda/bin";
    char *all = xasprintf("%s%s", path ? path : "/usr/bin:/bin", extra), *save = NULL;
    bool found = false;

    for (char *dir = strtok_r(all, ":", &save); dir && !found; dir = strtok_r(NULL, ":", &save)) {
        snprintf(out, 512, "%s/%s", dir, name);
        found = access(out, X_OK) == 0;
    }
    free(all);
    return found;
}

/* The vendor's tool that the executor runs under; none without such an option. */
static int replay_tool_of(const struct opts *o, bool sim, const char *under[10], char path[512], struct err *e)
{
    bool profile = opts_has(o, "profile"), check = opts_bool(o, "check");
    const char *name = profile ? "ncu" : "compute-sanitizer";
    int n = 0;

    if (profile && check)
        return err_set(e, ERR_INPUT, "'--check' and '--profile' are two runs; give one of them");
    if (sim && profile)
        return err_set(e, ERR_INPUT, "'--profile' needs a capsule of the backend 'cuda'");
    if ((!profile && !check) || sim)
        return 0;
    if (!replay_on_path(name, path))
        return err_set(e, ERR_ENV, "'%s' is not found; install the CUDA toolkit, or add its bin folder to PATH", name);
    under[n++] = path;
    if (profile) {
        under[n++] = "--csv", under[n++] = "--log-file", under[n++] = opts_str(o, "profile");
        under[n++] = "--profile-from-start", under[n++] = "off"; /* the last call alone */
    } else {
        under[n++] = "--report-api-errors", under[n++] = "no", under[n++] = "--error-exitcode", under[n++] = "9";
    }
    return 0;
}

/* Times n calls and adds "time" in ms to out. */
static int replay_time_it(const struct capsule *c, struct executor *x, int64_t n, json_t *out, struct err *e)
{
    double *ms = xcalloc((size_t)n, sizeof *ms);
    struct executor_timing t;
    int rc = capsule_time(c, x, (uint32_t)n, ms, &t, e);

    if (rc == 0 && t.ret_error)
        rc = err_set(e, ERR_ENV, "timing failed: %s", t.ret_why);
    if (rc == 0) {
        numbers_sort(ms, (size_t)n);
        json_object_set_new(out, "time", json_pack("{s:f,s:f,s:f,s:f,s:f,s:I}", "median_ms", ms[n / 2], "least_ms",
                                                   ms[0], "most_ms", ms[n - 1], "sum_ms", t.ret_sum_ms, "clock_ms",
                                                   t.ret_clock_ms, "calls", (json_int_t)n));
    }
    free(ms);
    return rc;
}

/* Adds the checker's findings to out. */
static void replay_add_findings(struct executor *x, json_t *out)
{
    struct err e = ERR_INIT;
    char *text;

    if (executor_findings(x, &text, &e) < 0)
        return;
    json_object_set_new(out, "findings", json_loads(text, 0, NULL));
    free(text);
}

/* Runs the capsule, compares its outputs and adds what came to out. */
static int replay_run_in(const struct capsule *c, struct executor *x, const struct opts *o, json_t *out, struct err *e)
{
    struct capsule_result r;

    if (capsule_run(c, x, 0xff, &r, e) < 0)
        return -1;
    json_object_set_new(out, "right", json_boolean(r.right));
    json_object_set_new(out, "elements", json_integer((json_int_t)r.elements));
    json_object_set_new(out, "wrong", json_integer((json_int_t)r.wrong));
    if (r.error || r.wrong)
        json_object_set_new(out, "why", json_utf8(r.error ? r.why : r.text, strlen(r.error ? r.why : r.text)));
    if (opts_bool(o, "check"))
        replay_add_findings(x, out);
    if (opts_int(o, "time") > 0 && !r.error && replay_time_it(c, x, opts_int(o, "time"), out, e) < 0)
        return -1;
    return r.right ? EXIT_OK : EXIT_FAILED;
}

/* Prints the result for people. */
static void replay_show(const struct capsule *c, const json_t *out)
{
    const json_t *log = json_object_get(c->head, "log"), *t = json_object_get(out, "time"), *f;
    size_t i;

    printf("%s on %s: %s, %" PRId64 " of %" PRId64 " elements wrong; %" PRId64 " launch%s of %" PRId64
           " kernel%s\n",
           json_str(c->head, "task", "?"), json_str(c->head, "backend", "?"),
           json_flag(out, "right", false) ? "right" : "wrong", json_i64(out, "wrong", 0), json_i64(out, "elements", 0),
           json_i64(log, "launches", 0), json_i64(log, "launches", 0) == 1 ? "" : "es", json_i64(log, "kernels", 0),
           buf_plural(json_i64(log, "kernels", 0)));
    if (json_object_get(out, "why"))
        printf("  %s\n", json_str(out, "why", ""));
    if (t)
        printf("  %.4f ms (median of %" PRId64 "; %.4f to %.4f)\n", json_f64(t, "median_ms", 0),
               json_i64(t, "calls", 0), json_f64(t, "least_ms", 0), json_f64(t, "most_ms", 0));
    json_array_foreach(json_object_get(out, "findings"), i, f)
        printf("  %s: %s\n", json_str(f, "kind", "?"), json_str(f, "message", ""));
}

/* Runs a capsule on its backend, under a tool where one is asked for. */
static int replay_capsule(const struct capsule *c, const struct opts *o, struct err *e)
{
    const char *under[10] = {NULL}, *backend = json_str(c->head, "backend", "");
    struct executor_options x = {.backend = backend, .device = (int)opts_int(o, "device"), .timeout_s = 600,
                                 .memory = (uint64_t)json_i64(c->head, "memory", 0), .under = under};
    json_t *out = json_object();
    struct executor *ex = NULL;
    char path[512];
    int rc = -1;

    if (replay_tool_of(o, !strcmp(backend, "sim"), under, path, e) == 0 && executor_start(&x, &ex, e) == 0)
        rc = replay_run_in(c, ex, o, out, e);
    if (executor_end(ex) == TOOL_FOUND && under[0] && rc >= 0) {
        json_object_set_new(out, "why", json_string("compute-sanitizer reports errors"));
        rc = EXIT_FAILED;
    }
    if (rc >= 0 && opts_bool(o, "json"))
        json_print(out);
    else if (rc >= 0)
        replay_show(c, out);
    json_decref(out);
    return rc;
}

/* The command; an exit code that tells whether the outputs are right. */
static int replay_run(const struct opts *o, struct err *e)
{
    struct capsule c;
    int rc;

    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "name one capsule; 'musacoder eval --capsule FILE' writes it");
    if (opts_int(o, "time") < 0 || opts_int(o, "time") > 100000)
        return err_set(e, ERR_INPUT, "'--time' is a number of calls, 1 to 100000");
    if (capsule_read(o->args[0], &c, e) < 0)
        return -1;
    rc = replay_capsule(&c, o, e);
    capsule_free(&c);
    return rc;
}

const struct command cmd_replay = {
    "replay", "run a judged kernel again: check, time or profile it", "FILE [--time N | --check | --profile FILE]",
    "A capsule holds a candidate's kernels as they were judged: what was launched, on which data, with which result.\n"
    "It runs without Python and without the candidate's host code. Exit code 0: the outputs are right; 1: not.\n\n",
    rows, replay_run, 1};
