/* daemon_client.c - see daemon_client.h: a caller's end of the way to the process that owns its device; the other end
 * is daemon_server.c. */
#include "eval/daemon_client.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/server/options.h"
#include "eval/server/settings.h"
#include "eval/verdict/record.h"

struct daemon_client {
    struct daemon_place place;
    char **argv, **env;
};

/* ---- which owner ---- */

/* What a process inherits: times under another priority or on other cores are other times. */
static void daemon_client_add_limits(struct sha256 *h)
{
    cpu_set_t cpus;
    struct rlimit r;
    int nice = getpriority(PRIO_PROCESS, 0);

    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    sha256_add(h, &cpus, sizeof cpus);
    sha256_add(h, &nice, sizeof nice);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (getrlimit(i, &r) == 0)
            sha256_add(h, &r, sizeof r);
}

/* Hex SHA-256 of all that decides verdicts and limits of a daemon: only one of the same digest may serve us. */
static void daemon_client_digest_of(const struct eval_config *c, const char *facts, const char *secret, char ret[65])
{
    char *cache = path_cache(""), real[PATH_MAX];
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, facts);
    sha256_adds(&h, secret);
    sha256_adds(&h, c->no_jail ? "no jail" : "jail");
    sha256_adds(&h, realpath(cache, real) ? real : cache);
    settings_add(&h, SETTINGS_PROCESS);
    daemon_client_add_limits(&h);
    sha256_end(&h, ret);
    free(cache);
}

/* ---- the caller ---- */

/* The command line that starts a daemon of these settings; NULL-terminated, the caller frees list and words. */
static char **daemon_client_argv_of(const struct eval_config *c, const char *backend, const char *digest)
{
    char **argv = xcalloc(16, sizeof *argv);
    int n = 0;

    argv[n++] = xstrdup("/proc/self/exe");
    argv[n++] = xstrdup("owner");
    argv[n++] = xstrdup("--serve");
    argv[n++] = xstrdup("--backend");
    argv[n++] = xstrdup(backend);
    argv[n++] = xstrdup("--jail");
    argv[n++] = xstrdup(c->no_jail ? "none" : "auto");
    argv[n++] = xstrdup("--cache-limit");
    argv[n++] = xasprintf("%llu", (unsigned long long)c->cache_limit);
    argv[n++] = xstrdup("--digest");
    argv[n++] = xstrdup(digest);
    return argv;
}

/* A setting that is a path here is the same path there: the owner's folder is another one. */
static char *daemon_client_setting(const char *line)
{
    const char *value = strchr(line, '=');
    char cwd[PATH_MAX];

    if (strncmp(line, "MUSACODER_", 10) || !value || value[1] == '/' || !strchr(value, '/') || strstr(value, "://") ||
        !getcwd(cwd, sizeof cwd))
        return xstrdup(line);
    return xasprintf("%.*s=%s/%s", (int)(value - line), line, cwd, value + 1);
}

/* Ours, and the secret, which is no longer there. */
static char **daemon_client_env_of(const char *secret)
{
    size_t n = 0, k = 0;
    char **env;

    while (environ[n])
        n++;
    env = xcalloc(n + 2, sizeof *env);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "MUSACODER_SECRET=", 17))
            env[k++] = daemon_client_setting(environ[i]);
    env[k] = xasprintf("MUSACODER_SECRET=%s", secret);
    return env;
}

static void daemon_client_list_free(char **list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    if (list)
        names_free(list, n);
}

struct daemon_client *daemon_client_open(const struct eval_config *c, const char *backend, const char *facts,
                                         const char *secret)
{
    const char *how = getenv("MUSACODER_OWNER");
    struct daemon_client *w;
    struct err why = ERR_INIT;
    char digest[65];

    if (how && !strcmp(how, "none"))
        return NULL;
    w = xcalloc(1, sizeof *w);
    daemon_client_digest_of(c, facts, secret, digest);
    if (daemon_place(backend, digest, &w->place, &why) < 0) {
        log_warn("%s; candidates are judged in this process", why.msg);
        free(w);
        return NULL;
    }
    w->argv = daemon_client_argv_of(c, backend, digest);
    w->env = daemon_client_env_of(secret);
    return w;
}

void daemon_client_free(struct daemon_client *w)
{
    if (!w)
        return;
    daemon_client_list_free(w->argv);
    daemon_client_list_free(w->env);
    free(w);
}

/* Asks the daemon, which is started where there is none. Takes request; *ret is new. */
static int daemon_client_ask(const struct daemon_client *w, json_t *request, json_t **ret, struct err *e)
{
    const struct daemon_command c = {w->argv, w->env};
    int rc;

    json_object_set_new(request, "digest", json_string(w->place.digest));
    rc = daemon_ask(&w->place, &c, request, ret, e);
    json_decref(request);
    if (rc == 0 && (rc = daemon_check(*ret, e)) < 0)
        json_decref(*ret);
    return rc;
}

/* The body of POST /v1/eval. */
static json_t *daemon_client_body_of(const struct task *task, const struct eval_candidate *c,
                                     const struct eval_options *o)
{
    json_t *body = json_pack("{s:{s:o,s:o},s:[{s:o}],s:o}", "task", "name", json_utf8(task->name, strlen(task->name)),
                             "code", json_utf8(task->code, task->n), "candidates",
                             c->kind == EXTRACT_FILE ? "code" : "response", json_utf8(c->text, c->n), "options",
                             eval_options_json(o));

    if (task->sidecar)
        json_object_set(body, "sidecar", task->sidecar);
    return body;
}

/* The path as an absolute one, as a JSON text. New. */
static json_t *daemon_client_absolute(const char *path)
{
    char *cwd = *path == '/' ? NULL : getcwd(NULL, 0), *full = cwd ? path_join(cwd, path) : xstrdup(path);
    json_t *text = json_string(full);

    free(full);
    free(cwd);
    return text;
}

int daemon_client_one(const struct daemon_client *w, const struct task *task, const struct eval_candidate *c,
                      const struct eval_options *o, json_t **ret, struct err *e)
{
    struct err why = ERR_INIT;
    json_t *reply, *rec,
        *request = json_pack("{s:s,s:o,s:b,s:b}", "op", "eval", "job", daemon_client_body_of(task, c, o), "fresh",
                                              o->fresh, "mended", c->mended);

    if (o->capsule)
        json_object_set_new(request, "capsule", daemon_client_absolute(o->capsule));
    if (o->repro)
        json_object_set_new(request, "repro", daemon_client_absolute(o->repro));
    /* it ends the judge: no other candidate shall suffer */
    if (daemon_client_ask(w, request, &reply, &why) < 0 && why.kind == ERR_BUG) {
        *ret = record_refusal(task->name, o->backend, o->protocol, why.msg);
        json_object_set_new(*ret, "candidate", json_utf8(c->name, strlen(c->name)));
        return 0;
    }
    if (why.kind != ERR_NONE) {
        if (e)
            *e = why;
        return -1;
    }
    rec = json_object_get(json_array_get(json_object_get(reply, "jobs"), 0), "verdict");
    if (rec)
        *ret = json_incref(rec);
    json_decref(reply);
    if (!rec)
        return err_set(e, ERR_BUG, "the owner of the device answered without a verdict");
    json_object_set_new(*ret, "candidate", json_utf8(c->name, strlen(c->name)));
    return 0;
}

int daemon_client_begin(const struct daemon_client *w, struct err *e)
{
    json_t *reply;

    if (daemon_client_ask(w, json_pack("{s:s}", "op", "begin"), &reply, e) < 0)
        return -1;
    json_decref(reply);
    return 0;
}
