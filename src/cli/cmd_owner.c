/* cmd_owner.c - 'musacoder owner': the process that judges on a device for all callers: what lives, end it, be one. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include "daemon/daemon.h"
#include "eval/build/judge_backend.h"

static const struct opt rows[] = {
    {"owner", "stop", OPT_BOOL, "false", "ask all owners of this user to finish what they have and leave"},
    {"owner", "json", OPT_BOOL, "false", "print the list as JSON"},
    {"owner", "serve", OPT_BOOL, "false", "be one; eval, bench and the others start it by themselves, with --digest"},
    {"owner", "backend", OPT_CHOICE, "sim", BACKEND_WORDS ": --serve: where candidates run"},
    {"owner", "jail", OPT_CHOICE, "auto", "auto|none: --serve: as of 'musacoder eval'"},
    {"owner", "cache-limit", OPT_STR, "10GiB", "--serve: size of the cache folder; 0 = no limit"},
    {"owner", "digest", OPT_STR, NULL, "--serve: names it"},
    {0},
};

/* Owns the device and judges for all callers until it is asked to leave; an exit code, or -1 with e. */
static int owner_do_serve(const struct opts *o, struct err *e)
{
    struct eval_config c = {.no_jail = !strcmp(opts_str(o, "jail"), "none"), .backend = opts_str(o, "backend")};

    if (size_parse("cache-limit", opts_str(o, "cache-limit"), &c.cache_limit, e) < 0)
        return -1;
    if (!opts_has(o, "digest"))
        return err_set(e, ERR_INPUT, "--serve needs the --digest of who starts it");
    return eval_daemon_run(&c, opts_str(o, "digest"), e) < 0 ? -1 : EXIT_OK;
}

/* Asks each daemon of this user to leave; an exit code, or -1 with e. */
static int owner_stop(struct err *e)
{
    int n = daemon_stop_all(e);

    if (n >= 0)
        printf("%d owner%s asked to leave\n", n, n == 1 ? "" : "s");
    return n < 0 ? -1 : EXIT_OK;
}

/* 'owner --list': prints the daemons that run. */
static int owner_do_list(bool json, struct err *e)
{
    json_t *all = daemon_list(e), *one;
    char since[32];
    size_t i;

    if (!all)
        return -1;
    if (json) {
        json_print(all);
        json_decref(all);
        return EXIT_OK;
    }
    json_array_foreach(all, i, one) {
        format_duration(json_f64(one, "since_s", 0), since, sizeof since);
        printf("%s: process %d, for %s, %d request%s, log %s\n", json_str(one, "backend", "?"),
               (int)json_i64(one, "pid", 0), since, (int)json_i64(one, "requests", 0),
               buf_plural(json_i64(one, "requests", 0)), json_str(one, "log", "?"));
    }
    if (json_array_size(all) == 0)
        printf("no owner of a device lives\n");
    json_decref(all);
    return EXIT_OK;
}

static int owner_run(const struct opts *o, struct err *e)
{
    return opts_bool(o, "serve") ? owner_do_serve(o, e) : opts_bool(o, "stop") ? owner_stop(e)
           : owner_do_list(opts_bool(o, "json"), e);
}

const struct command cmd_owner = {
    "owner", "the processes that judge here: list them, stop them", "[--stop]",
    "One process owns a device: 'eval' and others hand it their candidates, so that PyTorch is imported once and the\n"
    "device's memory has one keeper. It is started when the first one asks, and leaves when nobody has asked\n"
    "for a minute. Another build, secret, jail or cache folder has an owner of its own. Ctrl-C cancels the caller's\n"
    "candidates alone. With MUSACODER_OWNER=none a command judges in its own process, under a debugger for instance.\n"
    "Exit code: 0, 2 usage, 3 none can live here.\n\n",
    rows, owner_run, 0};
