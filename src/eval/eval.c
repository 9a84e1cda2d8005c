/* eval.c - the judge's long-lived parts: fork server, slots, verdict cache, single flight, and how many candidates go
 * through at once. A verdict that is known is given before anything is started. */
#include "eval/eval.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/trace.h"
#include "device/device.h"
#include "eval/build/build.h"
#include "eval/eval_state.h"
#include "eval/daemon_client.h"
#include "eval/perf/baseline.h"
#include "eval/server/judge_server.h"
#include "eval/server/settings.h"
#include "eval/schedule/schedule.h"
#include "eval/stage/pipeline.h"
#include "eval/stage/workloads.h"
#include "eval/verdict/record.h"
#include "store/limit.h"

/* ---- opening ---- */

int eval_backend_check(const char *backend, struct err *e)
{
    const struct judge_backend *b = backend_find(backend);
    struct device_facts facts = {0};
    char *python;

    if (!b)
        return options_no_backend(backend, e);
    if (!(python = path_python(e)))
        return err_prefix(e, "backend '%s' cannot be used", b->name);
    free(python);
    if (judge_server_look(b, &facts, e) < 0)
        return -1;
    device_facts_free(&facts);
    return 0;
}

/* Made once per cache folder; whoever comes second uses what the first one wrote. */
static int eval_secret_make(const char *path, struct err *e)
{
    unsigned char raw[32];
    char hex[65], *tmp;
    int rc = 0;

    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return err_sys(e, "no random numbers");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(hex + 2 * i, 3, "%02x", raw[i]);
    tmp = file_temporary(path);
    if (file_write(tmp, hex, 64, e) < 0)
        rc = -1;
    else if (chmod(tmp, 0600) < 0 || (link(tmp, path) < 0 && errno != EEXIST))
        rc = err_sys(e, "cannot write '%s'", path);
    unlink(tmp);
    free(tmp);
    return rc;
}

/* $MUSACODER_SECRET, taken out of our environment's memory: /proc/PID/environ shows it to whoever may look, an unjailed
 * candidate for one. "" if it was not set. Later calls get what the first one found. */
static const char *eval_secret_taken(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char kept[65];
    char *env;

    pthread_mutex_lock(&lock);
    if ((env = getenv("MUSACODER_SECRET")) && *env) {
        snprintf(kept, sizeof kept, "%.64s", env);
        explicit_bzero(env, strlen(env));
        unsetenv("MUSACODER_SECRET");
    }
    pthread_mutex_unlock(&lock);
    return kept;
}

/* Ours is 64 hexadecimal digits. Anything else was damaged: draws that others could foretell are worse than new
 * ones. */
static bool eval_secret_holds(const char *path)
{
    struct buf b;
    bool holds;

    buf_init(&b, 128);
    holds = file_read(path, &b, NULL) == 0 && strspn(b.p, "0123456789abcdef") == 64 && strlen(b.p) <= 65;
    buf_free(&b);
    return holds;
}

/* Appends the secret of the file, which is made where it is missing or damaged. */
static int eval_secret_file(const char *path, struct buf *out, struct err *e)
{
    if (file_exists(path) && !eval_secret_holds(path)) {
        log_warn("'%s' is damaged and is made again: draws change", path);
        unlink(path);
    }
    if (!file_exists(path) && eval_secret_make(path, e) < 0)
        return -1;
    return file_read(path, out, e);
}

/* The judge's secret: of the environment, else of the cache folder, where it is made at the first use. */
static int eval_secret_load(struct eval *ev, struct err *e)
{
    const char *env = eval_secret_taken();
    char *path = path_cache("judge-secret"), *folder = path_cache("");
    struct buf b;
    int rc = 0;

    buf_init(&b, 128);
    if (*env)
        buf_adds(&b, env);
    else
        rc = dir_make(folder, e) < 0 ? -1 : eval_secret_file(path, &b, e);
    snprintf(ev->servers.secret, sizeof ev->servers.secret, "%.64s", b.n ? b.p : "");
    buf_free(&b);
    free(path);
    free(folder);
    return rc;
}

/* What stands for compiler, torch, our own code and device in keys; owned. NULL: known once the server is started. */
static char *eval_toolchain_of(struct eval *ev, const struct judge_backend *b)
{
    struct identity *id = &ev->identities[backend_index(b)];
    char *name;

    pthread_mutex_lock(&ev->lock);
    identity_look(b, id);
    name = id->toolchain ? xstrdup(id->toolchain) : NULL;
    pthread_mutex_unlock(&ev->lock);
    return name;
}

/* The server of b, started if it is not. What it is was looked at before: a change while it starts is seen next
 * time. */
static int eval_begin(struct eval *ev, const struct judge_backend *b, struct judge_server **ret, struct err *e)
{
    struct identity *id = &ev->identities[backend_index(b)];

    free(eval_toolchain_of(ev, b));
    if (server_get(&ev->servers, b, ret, e) < 0)
        return -1;
    pthread_mutex_lock(&ev->lock);
    identity_learn(b, id, (*ret)->toolchain, json_object_get((*ret)->info, "paths"));
    pthread_mutex_unlock(&ev->lock);
    return 0;
}

/* On a GPU most candidates wait most of the time: for memory, a slot, or their turn to be timed. */
static int eval_jobs_for(const struct judge_backend *b, int cpus)
{
    return b->timed ? 3 * cpus : cpus + (cpus + 1) / 2;
}

/* Candidates of this backend go to the device's owner, if there can be one. */
static void eval_hand_over(struct eval *ev, const struct judge_backend *b)
{
    struct identity *id = &ev->identities[backend_index(b)];

    identity_look(b, id);
    ev->daemon_client = daemon_client_open(&ev->servers.config, b->name, id->facts, ev->servers.secret);
    ev->daemon_backend = b;
}

int eval_open(const struct eval_config *c, struct eval **ret, struct err *e)
{
    const struct judge_backend *first = backend_find(c->backend ? c->backend : "sim");
    struct eval *ev = xcalloc(1, sizeof *ev);
    struct judge_server *sv;
    struct sha256 h;

    if (!first) {
        free(ev);
        return options_no_backend(c->backend, e);
    }
    servers_init(&ev->servers, c, machine_processors());
    sha256_start(&h);
    settings_add(&h, SETTINGS_ANSWER);
    sha256_end(&h, ev->settings);
    ev->servers.config.jobs_given = ev->servers.config.jobs > 0;
    if (ev->servers.config.jobs <= 0)
        ev->servers.config.jobs = eval_jobs_for(first, machine_processors());
    pthread_mutex_init(&ev->lock, NULL);
    pthread_cond_init(&ev->landed, NULL);
    if (eval_secret_load(ev, e) < 0 || store_open(NULL, &ev->store, e) < 0)
        goto fail;
    if (c->daemon_client)
        eval_hand_over(ev, first);
    if (c->start && (ev->daemon_client ? daemon_client_begin(ev->daemon_client, e) : eval_begin(ev, first, &sv, e)) < 0)
        goto fail;
    *ret = ev;
    return 0;
fail:
    eval_close(ev);
    return -1;
}

void eval_close(struct eval *ev)
{
    if (!ev)
        return;
    daemon_client_free(ev->daemon_client);
    for (int i = 0; i < BACKENDS; i++) {
        baseline_list_free(&ev->servers.kept[i]);
        reference_list_free(&ev->servers.kept[i]);
    }
    servers_close(&ev->servers);
    if (ev->store)
        store_close(ev->store);
    for (int i = 0; i < BACKENDS; i++)
        identity_free(&ev->identities[i]);
    pthread_cond_destroy(&ev->landed);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
}

int eval_jobs(const struct eval *ev)
{
    return ev->servers.config.jobs;
}

/* ---- the verdict cache ---- */

/* The seed is that of the draws: another secret is another verdict. */
static void eval_cache_key(const struct eval *ev, const char *toolchain, const struct task *t,
                           const struct eval_candidate *c, const struct eval_options *o, char ret[65])
{
    char sha[65], options[512], reward[64] = "";

    sha256_hex(c->text, c->n, sha);
    if (!reward_is_default(o->reward))
        snprintf(reward, sizeof reward, " reward=%g,%g", o->reward.lambda, o->reward.nu_max);
    snprintf(options, sizeof options, "kind=%d backend=%s protocol=%s trials=%d timeout=%g build=%g seed=%lld max=%lld "
             "perf=%d calls=%d compile=%s dialect=%s jail=%d settings=%.32s%s",
             c->kind, o->backend, o->protocol, o->trials, o->timeout_s, o->build_timeout_s,
             (long long)reference_seed(ev->servers.secret, o->seed), (long long)eval_max_elements(o), o->perf, o->calls,
             o->compile_baseline ? o->compile_mode : "none", o->dialect ? o->dialect : "any",
             !ev->servers.config.no_jail, ev->settings, reward);
    store_key(t->sha256, sha, options, toolchain, ret);
}

/* A verdict that another candidate of the same text got, under this one's names. */
static json_t *eval_renamed(json_t *rec, const struct task *t, const struct eval_candidate *c)
{
    json_object_set_new(rec, "task", json_utf8(t->name, strlen(t->name)));
    json_object_set_new(rec, "candidate", json_utf8(c->name, strlen(c->name)));
    json_object_set_new(rec, "cached", json_true());
    return rec;
}

/* The cached record, new; NULL: none. A broken cache is warned about. */
static json_t *eval_cache_get(struct eval *ev, const char *key)
{
    struct err e = ERR_INIT;
    json_t *rec = NULL;
    int got;

    pthread_mutex_lock(&ev->lock);
    got = store_get(ev->store, key, &rec, &e);
    pthread_mutex_unlock(&ev->lock);
    if (got < 0)
        log_warn("verdict cache: %s", e.msg);
    return got > 0 ? rec : NULL;
}

/* Was it kept? Not what may be otherwise next time: a timeout, a fault of ours. */
static bool eval_cache_put(struct eval *ev, const char *key, const json_t *rec)
{
    struct err e = ERR_INIT;
    int kept;

    pthread_mutex_lock(&ev->lock);
    if ((kept = store_put(ev->store, key, rec, &e)) < 0)
        log_warn("verdict cache: %s", e.msg);
    pthread_mutex_unlock(&ev->lock);
    return kept > 0;
}

/* ---- single flight: of candidates that are the same, one is judged and the others wait for its verdict ---- */

struct single_flight {
    struct single_flight *next;
    char key[65];
    int users;   /* who is in it and who waits */
    bool landed;
    json_t *rec; /* owned; NULL: nothing that another could use */
};

/* Gives up a share in a verdict that several wait for. The caller holds the lock. */
static void eval_flight_leave(struct single_flight *f)
{
    if (--f->users == 0) {
        json_decref(f->rec);
        free(f);
    }
}

/* NULL and a new verdict when somebody else judged the same meanwhile; else the flight that the caller must land. */
static struct single_flight *eval_flight_board(struct eval *ev, const char *key, json_t **ret)
{
    struct single_flight *f = NULL;

    *ret = NULL;
    pthread_mutex_lock(&ev->lock);
    for (;;) {
        for (f = ev->flights; f && strcmp(f->key, key); f = f->next)
            ;
        if (!f)
            break;
        f->users++;
        while (!f->landed)
            pthread_cond_wait(&ev->landed, &ev->lock);
        *ret = f->rec ? json_deep_copy(f->rec) : NULL;
        eval_flight_leave(f);
        if (*ret)
            break;
    }
    if (!*ret) {
        f = xcalloc(1, sizeof *f);
        memcpy(f->key, key, sizeof f->key);
        f->users = 1;
        f->next = ev->flights;
        ev->flights = f;
    }
    pthread_mutex_unlock(&ev->lock);
    return *ret ? NULL : f;
}

/* Gives the record to all who wait for it; NULL: it failed, and they judge themselves. */
static void eval_flight_land(struct eval *ev, struct single_flight *f, const json_t *rec)
{
    struct single_flight **at;

    pthread_mutex_lock(&ev->lock);
    for (at = &ev->flights; *at != f; at = &(*at)->next)
        ;
    *at = f->next;
    f->rec = rec ? json_deep_copy(rec) : NULL;
    f->landed = true;
    pthread_cond_broadcast(&ev->landed);
    eval_flight_leave(f);
    pthread_mutex_unlock(&ev->lock);
}

/* Holds the cache folder under its limit, now and then; problems are said in the log and are no error. Verdicts, the
 * smallest and dearest of what is kept, may take an eighth. */
static void eval_cache_tend(struct eval *ev)
{
    static const char *const folders[] = {"build", "reference", "shrunk", "content", NULL};
    struct cache_limit l = {.bytes = ev->servers.config.cache_limit,
                            .grace_s = CACHE_GRACE_S, .every_s = CACHE_EVERY_S};
    struct cache_trimmed done = {0};
    struct err e = ERR_INIT;
    uint64_t verdicts = 0;
    bool due;
    char *root;
    int rc;

    pthread_mutex_lock(&ev->lock);
    due = l.bytes && now_s() >= ev->trim_at;
    if (due)
        ev->trim_at = now_s() + CACHE_EVERY_S;
    pthread_mutex_unlock(&ev->lock);
    if (!due)
        return;
    root = path_cache("");
    rc = store_trim(ev->store, l.bytes / 8, &verdicts, &e);
    if (rc == 0)
        rc = cache_trim(root, folders, &l, verdicts, &done, &e);
    if (rc < 0)
        log_warn("the cache's limit: %s", e.msg);
    else if (done.removed)
        log_info("cache: %zu entries removed, %.1f GiB kept, limit %.1f", done.removed,
                 (double)(done.after + verdicts) / 0x1p30, (double)l.bytes / 0x1p30);
    free(root);
}

/* ---- tries ---- */

struct eval_entry { /* of one candidate, through all its tries */
    struct judge_server *sv;
    const struct task *task;
    const struct eval_candidate *c;
    const struct eval_options *o;
    json_t *rec;    /* of the last try; owned, NULL if there is none */
    struct err why; /* there is none */
};

/* References that nobody uses give the device's memory back, but for those that fit beside what is claimed; all of
 * them to who wants to be alone. */
static void eval_give_way(struct eval_entry *n, bool all)
{
    struct device_lock share = {0};

    if (device_lock_take(&n->sv->schedule, false, &share, NULL) < 0)
        return;
    reference_list_fit(n->sv->kept, all ? 0 : schedule_room(&n->sv->schedule));
    if (all)
        baseline_list_stop(n->sv->kept, false, 0);
    device_lock_drop(&share);
}

/* A claim of the device for one try. Waiting for it is nobody's run time. */
static int eval_enter(struct eval_entry *n, enum retry_step how, struct reservation *c)
{
    char *task = xasprintf("%s %s", n->task->sha256, n->o->protocol);
    bool fresh = false;
    int rc = reservation_enter(&n->sv->schedule, task, n->o->caller, how == RETRY_ALONE, c, &fresh, &n->why);

    if (rc == 0 && n->sv->backend->timed && (fresh || c->all))
        eval_give_way(n, c->all);
    free(task);
    return rc;
}

/* One try at a verdict, for retry_run: reserves memory, runs the stages, and tells in *seen how it ended. */
static void eval_try_once(void *ctx, enum retry_step how, struct try_seen *seen)
{
    struct eval_entry *n = ctx;
    struct err infra = ERR_INIT;
    struct reservation reservation = {0};
    double t0 = now_s(), waited;

    json_decref(n->rec);
    n->rec = NULL;
    n->why = (struct err)ERR_INIT;
    *seen = (struct try_seen){.end = TRY_NOTHING, .shared = n->sv->backend->timed};
    if (eval_enter(n, how, &reservation) == 0) {
        waited = now_s() - t0;
        trace_span(t0, "wait", "memory");
        pipeline_run(n->sv, n->task, n->c, n->o, how, &reservation, &n->rec, &infra, &n->why);
        trace_span(t0, "candidate", "%s, %s", n->task->name, n->c->name);
        seen->learned = reservation_learned(&reservation);
        reservation_leave(&reservation);
        if (n->rec && waited > 1e-3) {
            record_stage_ms(n->rec, "waiting", waited * 1e3);
            record_waiting(n->rec, "memory", waited * 1e3);
        }
    }
    if (n->rec)
        seen->end = infra.kind == ERR_NONE ? TRY_VERDICT : TRY_INFRA;
    seen->lack = n->rec ? infra.lack : n->why.lack;
    seen->stopped = seen->end != TRY_VERDICT && stop_requested();
}

/* Starts the server's processes again after the machine failed. */
static void eval_revive(void *ctx)
{
    struct eval_entry *n = ctx;

    server_revive(n->sv, NULL);
}

/* Memory did not suffice with nobody else in the room: that is how it is. */
static void eval_say_it_is_final(json_t *rec)
{
    const char *also = " (with no other job on the device: make the task smaller with 'musacoder shrink')";
    json_t *r = (json_t *)record_reason(rec);
    char *text = xasprintf("%s%s", json_str(r, "message", ""), also);

    json_object_set_new(r, "message", json_utf8(text, strlen(text)));
    free(text);
    record_set(rec, "feedback", json_utf8(json_str(r, "message", ""), strlen(json_str(r, "message", ""))));
}

/* Judges, again after a fault of ours; where memory was short, with more of it (retry.h). */
static int eval_judge(struct judge_server *sv, const struct task *task, const struct eval_candidate *c,
                      const struct eval_options *o, json_t **ret, struct err *e)
{
    struct eval_entry n = {.sv = sv, .task = task, .c = c, .o = o};
    struct try_seen seen;
    enum retry_step how = retry_run(eval_try_once, eval_revive, &n, &seen);

    if (seen.stopped) {
        json_decref(n.rec);
        return err_set(e, ERR_STOP, "interrupted");
    }
    if (!n.rec) {
        if (e)
            *e = n.why;
        return -1;
    }
    if (retry_is_final(how, &seen))
        eval_say_it_is_final(n.rec);
    *ret = n.rec;
    return 0;
}

/* Are verdicts taken from the cache? Without a jail nobody knows what a program includes or a task reads. */
static bool eval_uses_cache(const struct eval *ev, const struct eval_options *o)
{
    return !ev->servers.config.no_cache && !ev->servers.config.no_jail && !o->fresh;
}

/* The verdict that is known under the key of a toolchain that was not started yet, or NULL. */
static json_t *eval_known(struct eval *ev, const struct task *task, const struct eval_candidate *c,
                          const struct eval_options *o)
{
    char *toolchain = eval_uses_cache(ev, o) ? eval_toolchain_of(ev, backend_find(o->backend)) : NULL, key[65];
    json_t *rec = NULL;

    if (toolchain) {
        eval_cache_key(ev, toolchain, task, c, o, key);
        rec = eval_cache_get(ev, key);
    }
    free(toolchain);
    return rec;
}

/* A verdict from the cache, from somebody who judges the same just now, or judged here. *ret is new. */
static int eval_judge_once(struct eval *ev, struct judge_server *sv, const struct task *task,
                           const struct eval_candidate *c, const struct eval_options *o, json_t **ret, struct err *e)
{
    struct single_flight *f = NULL;
    json_t *rec = NULL;
    bool kept;
    char key[65];
    int rc;

    eval_cache_key(ev, sv->toolchain, task, c, o, key);
    if (eval_uses_cache(ev, o) && !(f = eval_flight_board(ev, key, &rec))) {
        *ret = eval_renamed(rec, task, c);
        return 0;
    }
    /* who was in the air when we looked first may have landed since */
    if (f && (rec = eval_cache_get(ev, key))) {
        eval_flight_land(ev, f, rec);
        *ret = eval_renamed(rec, task, c);
        return 0;
    }
    rc = eval_judge(sv, task, c, o, &rec, e);
    kept = rc == 0 && !ev->servers.config.no_jail && eval_cache_put(ev, key, rec);
    if (f)
        eval_flight_land(ev, f, kept ? rec : NULL);
    if (rc < 0)
        return -1;
    eval_cache_tend(ev);
    *ret = rec;
    return 0;
}

/* As it is looked for and kept: standard input is a response or a file by what it holds, and an owner gets UTF-8. *text
 * holds what was mended. */
static struct eval_candidate eval_settled(const struct eval *ev, const struct eval_candidate *c, json_t **text)
{
    struct eval_candidate s = *c;
    struct extraction x;

    if (s.kind == EXTRACT_AUTO) {
        extract_code(s.text, s.n, EXTRACT_AUTO, &x);
        s.kind = strcmp(x.how, "file") ? EXTRACT_RESPONSE : EXTRACT_FILE;
    }
    if (ev->daemon_client && (utf8_bad_at(s.text, s.n) < s.n || memchr(s.text, 0, s.n))) {
        *text = json_utf8(s.text, s.n);
        s.text = json_string_value(*text);
        s.n = json_string_length(*text);
        s.mended = true;
    }
    return s;
}

/* A verdict of the backend that o names: known, asked of the daemon, or made in this process. *ret is new. */
static int eval_judge_settled(struct eval *ev, const struct task *task, const struct eval_candidate *c,
                              const struct eval_options *o, json_t **ret, struct err *e)
{
    struct judge_server *sv;
    json_t *rec;

    if ((rec = eval_known(ev, task, c, o))) {
        *ret = eval_renamed(rec, task, c);
        return 0;
    }
    if (ev->daemon_client && ev->daemon_backend == backend_find(o->backend)) {
        struct eval_options asked = *o;

        asked.fresh |= ev->servers.config.no_cache; /* the owner's own setting may be another */
        return daemon_client_one(ev->daemon_client, task, c, &asked, ret, e);
    }
    if (eval_begin(ev, backend_find(o->backend), &sv, e) < 0)
        return -1;
    return eval_judge_once(ev, sv, task, c, o, ret, e);
}

/* The verdict of a task without workloads. */
static int eval_one_task(struct eval *ev, const struct task *task, const struct eval_candidate *c,
                         const struct eval_options *o, json_t **ret, struct err *e)
{
    struct eval_candidate s;
    json_t *text = NULL;
    int rc;

    if (eval_options_check(o, e) < 0)
        return -1;
    s = eval_settled(ev, c, &text);
    rc = eval_judge_settled(ev, task, &s, o, ret, e);
    json_decref(text);
    return rc;
}

/* ---- workloads ---- */

/* The capsule of workload i > 0 lies beside that of the task as written: NAME.capsule, NAME.1.capsule .. */
static char *eval_workload_capsule(const char *path, int i)
{
    const char *dot = path ? strrchr(path, '.') : NULL;

    if (!path || i == 0)
        return path ? xstrdup(path) : NULL;
    return dot && !strchr(dot, '/') ? xasprintf("%.*s.%d%s", (int)(dot - path), path, i, dot)
                                    : xasprintf("%s.%d", path, i);
}

/* What a failing trial of workload i leaves, until it is known whose failure the verdict is. Owned, NULL for NULL. */
static char *eval_workload_repro(const char *folder, int i)
{
    return folder ? xasprintf("%s/workload-%d", folder, i) : NULL;
}

/* The files of the workload that the verdict is about come to stand in the folder itself; the others' go. */
static int eval_keep_repro(const char *folder, int which, int n, struct err *e)
{
    char *kept = eval_workload_repro(folder, which), **names;
    size_t n_names = 0;
    int rc = file_is_dir(kept) ? dir_list(kept, &names, &n_names, e) : 0;

    for (size_t i = 0; i < n_names; i++) {
        char *from = path_join(kept, names[i]), *to = path_join(folder, names[i]);
        if (rc == 0 && rename(from, to) < 0)
            rc = err_sys(e, "cannot move '%s'", from);
        free(from);
        free(to);
    }
    if (n_names)
        names_free(names, n_names);
    free(kept);
    for (int i = 0; i < n; i++) {
        char *row = eval_workload_repro(folder, i);
        if (rc == 0 && file_is_dir(row))
            rc = dir_remove(row, e);
        free(row);
    }
    return rc;
}

/* The verdict of workload i of a task of several, as if it were a task of its own. A workload that cannot be judged has
 * a record that says so (workloads_refused), and e says why. */
static int eval_one_workload(struct eval *ev, const struct task *task, int i, const struct eval_candidate *c,
                             const struct eval_options *o, json_t **ret, struct err *e)
{
    struct eval_options own = *o;
    char *capsule = eval_workload_capsule(o->capsule, i), *repro = eval_workload_repro(o->repro, i);
    struct task one;
    int rc;

    own.capsule = capsule;
    own.repro = repro;
    rc = task_workload(task, i, &one, e);
    if (rc == 0) {
        rc = eval_one_task(ev, &one, c, &own, ret, e);
        if (rc < 0 && e->kind == ERR_INPUT && e->lack == LACK_NONE) {
            *ret = workloads_refusal(&one, o->backend, o->protocol, e->msg);
            err_prefix(e, "workload '%s'", task_workload_name(task, i));
            rc = 0;
        }
        task_free(&one);
    }
    free(capsule);
    free(repro);
    return rc;
}

/* Judges workloads in order until one decides, and merges their records into *ret. Those that cannot be judged are
 * named in it; where none can, that is the error of the first. */
static int eval_all_workloads(struct eval *ev, const struct task *task, const struct eval_candidate *c,
                              const struct eval_options *o, json_t **ret, struct err *e)
{
    int all = task_workloads(task) + 1, n = 0, rc = 0;
    json_t **records = xcalloc((size_t)all, sizeof *records);
    struct err first = ERR_INIT, one = ERR_INIT;
    const char *failed;

    while (n < all && rc == 0 && !(n && workloads_decided(records[n - 1]))) {
        one = (struct err)ERR_INIT;
        rc = eval_one_workload(ev, task, n, c, o, &records[n], &one);
        n += rc == 0;
        if (one.kind != ERR_NONE && (rc < 0 || first.kind == ERR_NONE))
            first = one;
    }
    if (rc < 0 || workloads_all_refused(records, n)) {
        rc = -1;
        if (e)
            *e = first;
    }
    if (rc == 0)
        *ret = workloads_merge(task, records, n, o->reward);
    failed = rc == 0 ? json_str(json_object_get(*ret, "workload"), "name", NULL) : NULL;
    if (rc == 0 && o->repro && (rc = eval_keep_repro(o->repro, task_workload_find(task, failed), n, e)) < 0)
        json_decref(*ret);
    for (int i = 0; i < n; i++)
        json_decref(records[i]);
    free(records);
    return rc;
}

int eval_one(struct eval *ev, const struct task *task, const struct eval_candidate *c, const struct eval_options *o,
             json_t **ret, struct err *e)
{
    const struct protocol *p = protocol_find(o->protocol);

    if (task_workloads(task) == 0 || !p || !p->sidecar)
        return eval_one_task(ev, task, c, o, ret, e);
    return eval_all_workloads(ev, task, c, o, ret, e);
}

/* ---- many ---- */

struct many {
    struct eval *ev;
    const struct task *task;
    const struct eval_candidate *cs;
    const struct eval_options *o;
    int n, next;
    bool failed;
    json_t **verdicts; /* NULL: not yet */
    struct err err;
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* A thread of eval_many: takes the next candidate until there is none or one could not be judged. */
static void *eval_many_thread(void *arg)
{
    struct many *m = arg;
    struct err e = ERR_INIT;
    json_t *v;
    int i, rc;

    pthread_mutex_lock(&m->lock);
    while (!m->failed && m->next < m->n) {
        i = m->next++;
        pthread_mutex_unlock(&m->lock);
        rc = eval_one(m->ev, m->task, &m->cs[i], m->o, &v, &e);
        pthread_mutex_lock(&m->lock);
        if (rc < 0 && !m->failed) {
            m->failed = true;
            m->err = e;
        }
        m->verdicts[i] = rc < 0 ? NULL : v;
        pthread_cond_broadcast(&m->change);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* In order, from the caller's thread, without the lock while each() works. */
static int eval_many_report(struct many *m, int (*each)(int, const json_t *, void *, struct err *), void *ctx,
                            struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->n && rc == 0; i++) {
        while (!m->verdicts[i] && !m->failed)
            pthread_cond_wait(&m->change, &m->lock);
        if (!m->verdicts[i])
            break;
        pthread_mutex_unlock(&m->lock);
        rc = each(i, m->verdicts[i], ctx, e);
        pthread_mutex_lock(&m->lock);
    }
    if (rc == 0 && m->failed) {
        if (e)
            *e = m->err;
        rc = -1;
    }
    m->failed = m->failed || rc < 0;
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int eval_many(struct eval *ev, const struct task *task, const struct eval_candidate *cs, int n,
              const struct eval_options *o, int (*each)(int i, const json_t *verdict, void *ctx, struct err *e),
              void *ctx, struct err *e)
{
    struct many m = {.ev = ev, .task = task, .cs = cs, .o = o, .n = n,
                     .verdicts = xcalloc((size_t)n + 1, sizeof(json_t *)),
                     .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    /* an owner has slots of its own */
    int most = ev->servers.config.jobs * (ev->daemon_client && ev->servers.config.jobs_given ? 1 : 2);
    int n_threads = most < n ? most : n, started = 0, rc;
    pthread_t *threads = xcalloc((size_t)n_threads + 1, sizeof *threads);

    while (started < n_threads && pthread_create(&threads[started], NULL, eval_many_thread, &m) == 0)
        started++;
    if (started == 0)
        eval_many_thread(&m);
    rc = eval_many_report(&m, each, ctx, e);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        json_decref(m.verdicts[i]);
    free(m.verdicts);
    free(threads);
    return rc;
}
