/* judge_server.c - see judge_server.h. */
#include "eval/server/judge_server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "daemon/daemon.h"
#include "device/device.h"
#include "eval/build/build.h"
#include "eval/server/torch_device.h"
#include "proc/frame.h"

#define BEGIN_S 60.0 /* context, first launch; several children may wait for the driver's lock */

/* ---- what a verdict depends on ---- */

/* Adds names and contents of a folder's files to h, without READMEs and folders below. */
static void judge_server_add_files(struct sha256 *h, const char *folder)
{
    char **names, *path;
    size_t n;
    struct buf b;

    if (dir_list(folder, &names, &n, NULL) < 0)
        return;
    buf_init(&b, BUF_MAX_TEXT);
    for (size_t i = 0; i < n; i++) {
        path = path_join(folder, names[i]);
        buf_clear(&b);
        if (!file_is_dir(path) && strcmp(names[i], "README.md") && file_read(path, &b, NULL) == 0) {
            sha256_adds(h, names[i]);
            sha256_add(h, b.p, b.n);
        }
        free(path);
    }
    buf_free(&b);
    names_free(names, n);
}

/* The judge's own code is part of what a verdict depends on: the Python halves, and this binary. */
static void judge_server_runner_hash(const struct judge_backend *b, char ret[65])
{
    char *runner = path_share("runner"), *device = path_join(runner, b->device), *native = path_join(runner, "native");
    char *client = b->client_device ? path_join(runner, b->client_device) : NULL;
    struct sha256 h;

    sha256_start(&h);
    judge_server_add_files(&h, runner);
    judge_server_add_files(&h, native);
    judge_server_add_files(&h, device);
    if (client)
        judge_server_add_files(&h, client);
    sha256_end(&h, ret);
    free(client);
    free(runner);
    free(device);
    free(native);
}

/* Adds the content of one of our libraries. */
static void judge_server_add_file(struct sha256 *h, const char *lib)
{
    char *path = path_lib(lib);
    struct buf b;

    buf_init(&b, (size_t)256 << 20);
    if (path && file_read(path, &b, NULL) == 0)
        sha256_add(h, b.p, b.n);
    buf_free(&b);
    free(path);
}

/* The judge itself: this program and the devices' libraries. */
static void judge_server_binary_hash(char ret[65])
{
    struct sha256 h;
    struct buf b;

    buf_init(&b, (size_t)256 << 20);
    file_read("/proc/self/exe", &b, NULL);
    sha256_start(&h);
    sha256_add(&h, b.p, b.n);
    judge_server_add_file(&h, "libsimt.so");
    judge_server_add_file(&h, "libfront.so");
    judge_server_add_file(&h, "libfronttorch.so");
    judge_server_add_file(&h, "mcexec");
    sha256_end(&h, ret);
    buf_free(&b);
}

static struct build_opts judge_server_build_options(const struct judge_server *sv)
{
    return (struct build_opts){.target = sv->backend->name, .arch = sv->arch, .no_jail = sv->all->config.no_jail};
}

/* What all builds need, made while the fork server imports torch: both take seconds. */
struct preparation {
    struct build_opts o;
    struct err why;
    int rc;
    bool started;
    pthread_t thread;
};

/* A thread that prepares what builds need. */
static void *judge_server_prepare_builds(void *arg)
{
    struct preparation *p = arg;

    p->rc = build_prepare(&p->o, &p->why);
    return NULL;
}

/* Starts the thread that prepares builds, or does its work here if there is none. */
static void judge_server_preparation_start(struct preparation *p)
{
    p->started = pthread_create(&p->thread, NULL, judge_server_prepare_builds, p) == 0;
    if (!p->started)
        judge_server_prepare_builds(p);
}

/* Waits for the preparing thread; -1 with e where it failed. */
static int judge_server_preparation_end(struct preparation *p, struct err *e)
{
    if (p->started)
        pthread_join(p->thread, NULL);
    if (p->rc < 0 && e)
        *e = p->why;
    return p->rc;
}

/* Settles the toolchain's and the judge's identity. */
static int judge_server_make_toolchain(struct judge_server *sv, struct err *e)
{
    struct build_opts o = judge_server_build_options(sv);
    const json_t *info = sv->info = json_deep_copy(forkserver_info(sv->fs));
    char exe[65];

    if (!(sv->compiler = build_toolchain_id(&o, e)))
        return -1;
    judge_server_runner_hash(sv->backend, sv->runner_sha);
    judge_server_binary_hash(exe);
    sv->toolchain = xasprintf("%s | torch %s python %s | %s | %s%s%s", sv->compiler, json_str(info, "torch", "?"),
                              json_str(info, "python", "?"), sv->runner_sha, exe, *sv->device ? " | " : "", sv->device);
    return 0;
}

/* ---- starting ---- */

int judge_server_look(const struct judge_backend *b, struct device_facts *ret, struct err *e)
{
    struct build_opts o = {.target = b->name};
    char *id;

    if (b->look && b->look(ret, e) < 0)
        return err_prefix(e, "backend '%s' cannot be used", b->name);
    o.arch = ret->arch;
    if (!(id = build_toolchain_id(&o, e))) {
        device_facts_free(ret);
        return err_prefix(e, "backend '%s' cannot be used", b->name);
    }
    free(id);
    return 0;
}

/* What the device is. Asks the driver without making a context. */
static int judge_server_look_at_device(struct judge_server *sv, struct err *e)
{
    struct device_facts f = {0};

    if (sv->backend->look && judge_server_look(sv->backend, &f, e) < 0)
        return -1;
    if (!f.name)
        f.name = xstrdup("");
    if (!f.uuid && sv->backend->timed)
        f.uuid = xasprintf("%s-test", sv->backend->name);
    sv->device = f.name, sv->uuid = f.uuid, sv->arch = f.arch, sv->device_memory = f.memory;
    return 0;
}

/* Of references and baselines; of baselines that compile, not waited for; of candidates without a device. */
enum forks { FORKS, FORKS_COMPILE, FORKS_CLIENT };

/* Starts a fork server for compilers, clients or candidates, with the folders and devices that they may see. */
static int judge_server_start_forks(struct judge_server *sv, enum forks kind, struct forkserver **fs, struct err *e)
{
    bool compiles = kind == FORKS_COMPILE, client = kind == FORKS_CLIENT;
    char *builds = path_cache("build"), *lib = path_lib_folder();
    size_t n_env = 0, n_ro = 0;
    char **env = sv->backend->env ? sv->backend->env(&n_env) : NULL, *torch_device = NULL;
    const char **ro = xcalloc(sv->n_folders + 3, sizeof *ro);
    struct forkserver_spec spec = {.env = (const char *const *)env, .ro = ro,
                                   .device = client ? sv->backend->client_device : sv->backend->device,
                                   .no_jail = sv->all->config.no_jail, .compiles = compiles};
    int rc = dir_make(builds, e);

    if (rc == 0 && (!spec.device || !strcmp(spec.device, "front"))) /* on 'sim' the reference's processes too */
        rc = torch_device_prepare(&torch_device, e);
    if (torch_device) {
        env = xrealloc(env, (n_env + 2) * sizeof *env);
        env[n_env++] = xasprintf("MUSACODER_FRONT_TORCH=%s", torch_device);
        env[n_env] = NULL;
        spec.env = (const char *const *)env;
    }
    ro[n_ro++] = builds;
    if (lib)
        ro[n_ro++] = lib;
    for (size_t i = 0; i < sv->n_folders; i++)
        ro[n_ro++] = sv->folders[i];
    if (rc == 0)
        rc = compiles ? forkserver_launch(&spec, fs, e) : forkserver_start(&spec, fs, e);
    free(ro);
    if (env)
        names_free(env, n_env);
    free(torch_device);
    free(builds);
    free(lib);
    return rc;
}

/* Stops the fork servers and frees all of sv; one that was never started is fine. */
static void server_close(struct judge_server *sv)
{
    forkserver_stop(sv->fs);
    forkserver_stop(sv->compilers);
    forkserver_stop(sv->clients);
    json_decref(sv->info);
    if (sv->started) {
        executors_end(&sv->executors);
        sem_destroy(&sv->run_slots);
        schedule_free(&sv->schedule);
    }
    if (sv->device_lock >= 0)
        close(sv->device_lock);
    if (sv->devices)
        names_free(sv->devices, sv->n_devices);
    if (sv->folders)
        names_free(sv->folders, sv->n_folders);
    free(sv->toolchain);
    free(sv->compiler);
    free(sv->device);
    free(sv->arch);
    free(sv->uuid);
    memset(sv, 0, sizeof *sv);
}

/* A real device has one process that judges there: what it knows of the memory is all that is given out. Whoever sets
 * $MUSACODER_OWNER to "none" sees to that. */
static int judge_server_take_device(struct judge_server *sv, struct err *e)
{
    struct err why = ERR_INIT;

    const char *how = getenv("MUSACODER_OWNER");

    if (!sv->backend->on_device || !sv->uuid || (how && !strcmp(how, "none")) ||
        (sv->device_lock = daemon_device(sv->uuid, sv->all->config.socket, &why)) >= 0)
        return 0;
    if (why.kind == ERR_STOP)
        return err_set(e, ERR_STOP, "interrupted");
    log_debug("the device may have other owners: %s", why.msg);
    return 0;
}

/* Looks at the device, takes it, and starts fork servers and schedule. On failure server_close cleans up. */
static int server_start(struct judge_server *sv, struct err *e)
{
    const struct eval_config *c = &sv->all->config;
    const struct judge_backend *b = sv->backend;
    struct preparation p = {.rc = 0};
    int rc;

    sv->device_lock = -1;
    if (judge_server_look_at_device(sv, e) < 0 || judge_server_take_device(sv, e) < 0)
        return -1;
    sv->devices = b->devices ? b->devices(&sv->n_devices) : NULL;
    sv->folders = b->folders ? b->folders(&sv->n_folders) : NULL;
    p.o = judge_server_build_options(sv);
    judge_server_preparation_start(&p);
    rc = judge_server_start_forks(sv, FORKS, &sv->fs, e);
    if (rc == 0 && b->client_device)
        rc = judge_server_start_forks(sv, FORKS_CLIENT, &sv->clients, e);
    if (judge_server_preparation_end(&p, rc == 0 ? e : NULL) < 0 || rc < 0 ||
        judge_server_make_toolchain(sv, e) < 0)
        return -1;
    sem_init(&sv->run_slots, 0, (unsigned)(b->slots && !c->jobs_given ? b->slots : c->jobs));
    schedule_init(&sv->schedule, b->timed ? sv->device_memory / 2 : 0, 2 * c->jobs);
    executors_init(&sv->executors, b->timed);
    sv->started = true;
    return 0;
}

/* Makes all servers, none of them started. */
void servers_init(struct judge_servers *s, const struct eval_config *c, int build_slots)
{
    s->config = *c;
    pthread_mutex_init(&s->lock, NULL);
    sem_init(&s->build_slots, 0, (unsigned)build_slots);
    for (int i = 0; i < BACKENDS; i++) {
        pthread_mutex_init(&s->kept[i].lock, NULL);
        device_context_set_init(&s->kept[i].contexts);
    }
}

int server_get(struct judge_servers *s, const struct judge_backend *b, struct judge_server **ret, struct err *e)
{
    struct judge_server *sv = &s->each[backend_index(b)];
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (!sv->started) {
        sv->backend = b;
        sv->all = s;
        sv->kept = &s->kept[backend_index(b)];
        if ((rc = server_start(sv, e)) < 0)
            server_close(sv);
    }
    pthread_mutex_unlock(&s->lock);
    if (rc == 0)
        *ret = sv;
    return rc;
}

int server_revive(struct judge_server *sv, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&sv->all->lock);
    if (!sv->fs || !forkserver_alive(sv->fs)) {
        log_warn("the fork server died; starting another");
        if (sv->kept->baselines_stop)
            sv->kept->baselines_stop(sv->kept, true, 0);
        forkserver_stop(sv->fs);
        sv->fs = NULL;
        rc = judge_server_start_forks(sv, FORKS, &sv->fs, e);
    }
    if (rc == 0 && sv->backend->client_device && (!sv->clients || !forkserver_alive(sv->clients))) {
        log_warn("the fork server of candidates died; starting another");
        forkserver_stop(sv->clients);
        sv->clients = NULL;
        rc = judge_server_start_forks(sv, FORKS_CLIENT, &sv->clients, e);
    }
    if (sv->compilers && !forkserver_alive(sv->compilers)) { /* the next one that is timed starts another */
        forkserver_stop(sv->compilers);
        sv->compilers = NULL;
    }
    pthread_mutex_unlock(&sv->all->lock);
    return rc;
}

void server_expect_baseline(struct judge_server *sv)
{
    struct err e = ERR_INIT;

    pthread_mutex_lock(&sv->all->lock);
    if (sv->backend->timed && !sv->compilers && judge_server_start_forks(sv, FORKS_COMPILE, &sv->compilers, &e) < 0)
        log_debug("no fork server for baselines: %s", e.msg);
    pthread_mutex_unlock(&sv->all->lock);
}

void servers_close(struct judge_servers *s)
{
    for (int i = 0; i < BACKENDS; i++) {
        device_context_set_close(&s->kept[i].contexts);
        if (s->kept[i].timer)
            device_close(s->kept[i].timer);
        pthread_mutex_destroy(&s->kept[i].lock);
        if (s->each[i].started)
            server_close(&s->each[i]);
    }
    pthread_mutex_destroy(&s->lock);
    sem_destroy(&s->build_slots);
}

/* ---- children ---- */

/* What a child must know of the device; NULL: nothing. */
static json_t *judge_server_spawn_args(const struct judge_server *sv, const struct server_child *c)
{
    json_t *device;

    if (!sv->backend->on_device || c->client)
        return NULL;
    device = json_pack("{s:o,s:i}", "tf32", c->published ? json_null() : json_false(), "queues", c->queues);
    return json_pack("{s:s,s:o}", "place", sv->backend->device, "device", device);
}

/* The child's first word on a real device; before it, failure is the machine's. */
static int judge_server_await_begun(struct child *c, struct err *e)
{
    struct child_end end = {0};
    struct frame f;
    char why[400] = "";
    bool begun, memory = false;

    if (frame_recv(c->fd, 1 << 16, 0, now_s() + BEGIN_S, &f, NULL, e) == 0) {
        begun = !strcmp(json_str(f.head, "op", ""), "begun");
        memory = json_flag(f.head, "memory", false);
        frame_free(&f);
        if (begun)
            return 0;
        child_wait(c, now_s() + 5, NULL, NULL); /* its last words say why */
    } else if (e && e->kind == ERR_STOP) {
        return -1;
    }
    child_kill(c);
    if (child_wait(c, now_s() + 10, &end, NULL) == 0) {
        snprintf(why, sizeof why, "%.300s", end.output.p ? end.output.p : "");
        why[strcspn(why, "\n")] = 0;
        buf_free(&end.output);
    }
    err_set(e, ERR_ENV, "a process on the GPU did not start: %s", *why ? why : "no answer");
    return memory ? err_lack(e, LACK_DEVICE) : -1;
}

/* The one that runs now: another thread may replace it meanwhile. NULL if it could not be started again. */
static struct forkserver *judge_server_current_forks(struct judge_server *sv, enum forks kind)
{
    struct forkserver *fs;

    pthread_mutex_lock(&sv->all->lock);
    fs = kind == FORKS_COMPILE && sv->compilers && forkserver_alive(sv->compilers) ? sv->compilers
         : kind == FORKS_CLIENT                                                     ? sv->clients
                                                                                   : sv->fs;
    fs = fs ? forkserver_hold(fs) : NULL;
    pthread_mutex_unlock(&sv->all->lock);
    return fs;
}

/* Starts a child of that kind of fork server. */
static int judge_server_spawn_from(struct judge_server *sv, enum forks kind, const struct child_spec *spec,
                                   struct child **ret, struct err *e)
{
    struct forkserver *fs = judge_server_current_forks(sv, kind);
    int rc;

    if (!fs)
        return err_set(e, ERR_ENV, "the Python fork server could not be started again");
    rc = forkserver_spawn(fs, spec, ret, e);
    forkserver_drop(fs);
    return rc;
}

/* Which of the fork servers starts this child. */
static enum forks judge_server_forks_for(const struct judge_server *sv, const struct server_child *c)
{
    if (c->client && sv->backend->client_device)
        return FORKS_CLIENT;
    return c->compiles ? FORKS_COMPILE : FORKS;
}

int server_spawn(struct judge_server *sv, const struct server_child *c, struct child **ret, struct err *e)
{
    struct child_spec spec = {.role = c->role, .jail = c->jail, .may_exec = c->compiles};
    struct child *child;
    bool begins = sv->backend->on_device && !c->client;
    double t0 = now_s();
    int rc;

    spec.args = judge_server_spawn_args(sv, c);
    spec.jail.devices = c->client ? NULL : (const char *const *)sv->devices;
    sv->beginning++;
    rc = judge_server_spawn_from(sv, judge_server_forks_for(sv, c), &spec, &child, e);
    if (rc < 0 && c->compiles && !stop_requested()) { /* its imports fail, or take too long: the other does without */
        if (e)
            log_debug("the fork server for baselines: %s", e->msg);
        rc = judge_server_spawn_from(sv, FORKS, &spec, &child, e);
    }
    json_decref(spec.args);
    if (rc == 0 && begins && (rc = judge_server_await_begun(child, e)) < 0)
        child_free(child);
    if (rc == 0)
        sv->begun_at = now_s();
    sv->beginning--;
    if (rc < 0)
        return -1;
    trace_span(t0, "process", "start %s", c->role);
    *ret = child;
    return 0;
}

/* Waits while others make processes, as long as one may take. Did one of them begin after 'since'? Those inside
 * server_spawn wait for nobody. */
static bool judge_server_others_begin(const struct judge_server *sv, double since)
{
    while (sv->begun_at <= since && sv->beginning > 0 && now_s() - since < BEGIN_S && !stop_requested())
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return sv->begun_at > since;
}

int server_check(struct judge_server *sv, struct err *e)
{
    const struct judge_backend *b = sv->backend;
    struct server_child spec = {.role = b->reference, .queues = 1,
                                .jail = {.no_exec = true, .memory_bytes = sv->backend->memory_bytes}};
    struct child_end end = {0};
    struct child *c;

    if (judge_server_others_begin(sv, now_s()))
        return 0;
    if (server_spawn(sv, &spec, &c, e) < 0)
        return -1;
    child_kill(c);
    if (child_wait(c, now_s() + 10, &end, NULL) == 0)
        buf_free(&end.output);
    child_free(c);
    return 0;
}
