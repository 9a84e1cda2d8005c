/* forkserver.c - see forkserver.h. One reader thread takes the server's reports and drains the children's output;
 * everybody else talks to the server under send_lock and waits on a condition. */
#include "proc/forkserver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/frame.h"
#include "proc/spawn.h"

#define START_S 180.0 /* importing torch from a cold disk */
#define SPAWN_S 30.0
#define SEND_S 30.0

enum state { ASKED, RUNNING, ENDED, FAILED };

struct forkserver_entry {
    struct forkserver_entry *next;
    int id;
    enum state state;
    pid_t pid;
    int out; /* read end of its output pipe; -1 when drained */
    bool killed, told, oom, outside, spared;
    int status;
    double cpu_s;
    size_t max_rss, peak;
    struct buf output;
    char error[256];
    bool no_memory; /* FAILED: the machine's memory ran out */
};

struct forkserver {
    pid_t pid;
    int fd, wake, log;
    bool no_jail, dead, stop, reading;
    json_t *info;
    char **ro; /* what every child may read; NULL-terminated. Until it is ready: what the caller asked for */
    int next_id, refs; /* refs: whoever called start, hold or spawn and has not stopped, dropped or freed; under lock */
    struct forkserver_entry *entries;
    pthread_t reader;
    pthread_mutex_t lock, send_lock, ready_lock;
    pthread_cond_t changed;
};

static struct forkserver_entry *forkserver_find(struct forkserver *fs, int id)
{
    struct forkserver_entry *x = fs->entries;

    while (x && x->id != id)
        x = x->next;
    return x;
}

/* The reader thread --------------------------------------------------------------------------------------------- */

/* Reads a child's output until nothing is there; closes the pipe at its end. */
static void forkserver_drain(struct forkserver_entry *x)
{
    char chunk[16384];
    ssize_t n;

    while (x->out >= 0 && (n = read(x->out, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        buf_add(&x->output, chunk, (size_t)n);
    }
    if (x->out >= 0)
        close(x->out);
    x->out = -1;
}

/* Takes the fork server's word about a child: spawned, failed or ended. */
static void forkserver_take_report(struct forkserver *fs, const json_t *h)
{
    const char *op = json_str(h, "op", "");
    struct forkserver_entry *x = forkserver_find(fs, (int)json_i64(h, "id", -1));

    if (!x)
        return;
    if (!strcmp(op, "spawned")) {
        x->pid = (pid_t)json_i64(h, "pid", 0);
        x->state = RUNNING;
    } else if (!strcmp(op, "failed")) {
        snprintf(x->error, sizeof x->error, "%s", json_str(h, "error", "unknown"));
        x->no_memory = json_flag(h, "memory", false);
        x->state = FAILED;
    } else if (!strcmp(op, "exit")) {
        forkserver_drain(x);
        x->status = (int)json_i64(h, "status", 0);
        x->cpu_s = json_f64(h, "cpu_s", 0);
        x->max_rss = (size_t)json_i64(h, "max_rss", 0);
        x->peak = (size_t)json_i64(h, "peak", 0);
        x->oom = json_flag(h, "oom", false);
        x->outside = json_flag(h, "outside", false);
        x->spared = json_flag(h, "spared", false);
        x->state = ENDED;
    }
}

/* Fills *v with what the reader waits for and returns how many. The caller holds the lock. */
static nfds_t forkserver_reader_polls(struct forkserver *fs, struct pollfd **v, size_t *cap)
{
    nfds_t n = 2;

    for (struct forkserver_entry *x = fs->entries; x; x = x->next)
        n++;
    if (n > *cap)
        *v = xrealloc(*v, (*cap = n * 2) * sizeof **v);
    (*v)[0] = (struct pollfd){.fd = fs->fd, .events = POLLIN};
    (*v)[1] = (struct pollfd){.fd = fs->wake, .events = POLLIN};
    n = 2;
    for (struct forkserver_entry *x = fs->entries; x; x = x->next)
        if (x->out >= 0)
            (*v)[n++] = (struct pollfd){.fd = x->out, .events = POLLIN};
    return n;
}

/* The thread that reads reports and children's outputs until the fork server ends. */
static void *forkserver_reader_main(void *arg)
{
    struct forkserver *fs = arg;
    struct pollfd *v = NULL;
    size_t cap = 0;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* Ctrl-C belongs to the main thread */
    pthread_mutex_lock(&fs->lock);
    while (!fs->stop && !fs->dead) {
        nfds_t n = forkserver_reader_polls(fs, &v, &cap);
        struct frame f;
        uint64_t tick;

        pthread_mutex_unlock(&fs->lock);
        poll(v, n, -1);
        if (v[1].revents && read(fs->wake, &tick, sizeof tick) < 0 && errno != EAGAIN)
            log_debug("the fork server's wake-up failed");
        int rc = v[0].revents ? frame_recv(fs->fd, 0, 1 << 20, now_s() + SEND_S, &f, NULL, NULL) : 1;
        pthread_mutex_lock(&fs->lock);
        for (struct forkserver_entry *x = fs->entries; x; x = x->next)
            forkserver_drain(x);
        if (rc < 0)
            fs->dead = true;
        if (rc == 0) {
            forkserver_take_report(fs, f.head);
            frame_free(&f);
        }
        pthread_cond_broadcast(&fs->changed);
    }
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
    free(v);
    return NULL;
}

/* Has the reader look at its list of children again. */
static void forkserver_wake_reader(struct forkserver *fs)
{
    uint64_t one = 1;

    if (write(fs->wake, &one, sizeof one) < 0)
        log_debug("the fork server's wake-up failed");
}

/* Waits for a change, at most 250 ms: the slice in which Ctrl-C is seen. Under the lock. */
static void forkserver_wait_slice(struct forkserver *fs, double deadline)
{
    double left = deadline > 0 ? deadline - now_s() : 0.25;
    struct timespec ts;
    long ns;

    if (left > 0.25)
        left = 0.25;
    if (left < 0.001)
        left = 0.001;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ns = ts.tv_nsec + (long)(left * 1e9);
    ts.tv_sec += ns / 1000000000;
    ts.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(&fs->changed, &fs->lock, &ts);
}

/* Starting ------------------------------------------------------------------------------------------------------ */

/* The last line that the server wrote to its log: a Python traceback ends with the reason. */
static void forkserver_last_words(struct forkserver *fs, char *out, size_t n)
{
    char text[2048];
    off_t size = lseek(fs->log, 0, SEEK_END), from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
    ssize_t k = fs->log >= 0 ? pread(fs->log, text, sizeof text - 1, from) : 0;
    char *line;

    text[k > 0 ? k : 0] = 0;
    for (k = (ssize_t)strlen(text); k > 0 && (text[k - 1] == '\n' || text[k - 1] == ' '); k--)
        text[k - 1] = 0;
    line = strrchr(text, '\n');
    snprintf(out, n, "%s", line ? line + 1 : text);
}

/* Starts the fork server's Python process in its jail. */
static int forkserver_do_launch(struct forkserver *fs, const struct forkserver_spec *s, struct err *e)
{
    char *python = s->python ? xstrdup(s->python) : path_python(e), *script = path_share("runner/main.py");
    char *lib = jail_tool_folder(), *lib_env = xasprintf("MUSACODER_LIB=%s", lib);
    char *models = path_models(), *models_env = xasprintf("HF_HUB_CACHE=%s", models ? models : "/tmp/hub");
    char *device = xasprintf("MUSACODER_DEVICE=%s", s->device ? s->device : "front");
    const char *extra[70] = {lib_env, device, models_env, "HF_HUB_OFFLINE=1", "PYTHONDONTWRITEBYTECODE=1",
                             "OMP_NUM_THREADS=1", "PYTHONNOUSERSITE=1", "PYTHONIOENCODING=utf-8:replace",
                             s->compiles ? "MUSACODER_COMPILES=1" : "MUSACODER_COMPILES="};
    char *argv[] = {python, "-u", script, NULL}, **env;
    size_t n = 9, n_env;
    int sv[2] = {-1, -1}, null = open("/dev/null", O_RDWR | O_CLOEXEC), rc = -1;

    for (const char *const *p = s->env; p && *p && n < 69; p++)
        extra[n++] = *p;
    env = proc_env(extra, &n_env);
    if (python && !file_exists(script))
        err_set(e, ERR_ENV, "'%s' is missing; set MUSACODER_SHARE to the checkout", script);
    else if (python && (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0))
        err_sys(e, "cannot start the fork server");
    else if (python) {
        struct spawn sp = {.path = python, .argv = argv, .env = env, .fds = {null, fs->log, fs->log, sv[1]}, .n_fds = 4,
                           .group = true};
        rc = spawn(&sp, &fs->pid, e);
    }
    if (sv[1] >= 0)
        close(sv[1]);
    if (null >= 0)
        close(null);
    fs->fd = sv[0];
    names_free(env, n_env);
    free(lib_env);
    free(models_env);
    free(models);
    free(device);
    free(lib);
    free(script);
    free(python);
    return rc;
}

/* What the caller asks for. */
static void forkserver_set_ro(struct forkserver *fs, const char *const *asked)
{
    size_t n = 0;

    for (const char *const *p = asked; p && *p; p++)
        n++;
    fs->ro = xcalloc(n + 1, sizeof *fs->ro);
    n = 0;
    for (const char *const *p = asked; p && *p; p++)
        if (file_exists(*p))
            fs->ro[n++] = xstrdup(*p);
}

/* And what Python needs, and the models that tasks may build on. */
static void forkserver_add_ro(struct forkserver *fs)
{
    const json_t *paths = json_object_get(fs->info, "paths");
    size_t n = 0;

    while (fs->ro[n])
        n++;
    fs->ro = xrealloc(fs->ro, (n + json_array_size(paths) + 2) * sizeof *fs->ro);
    for (size_t i = 0; i < json_array_size(paths); i++)
        fs->ro[n++] = xstrdup(json_string_value(json_array_get(paths, i)));
    if ((fs->ro[n] = path_models()))
        fs->ro[n + 1] = NULL;
}

/* Waits until the fork server says that it is ready. ERR_ENV with its last words. */
static int forkserver_await_hello(struct forkserver *fs, struct err *e)
{
    struct frame f;
    char why[600];

    if (frame_recv(fs->fd, 0, 1 << 20, now_s() + START_S, &f, NULL, e) < 0) {
        if (e && e->kind == ERR_STOP)
            return -1;
        forkserver_last_words(fs, why, sizeof why);
        return err_set(e, ERR_ENV, "the Python fork server did not start: %s; check with 'musacoder doctor'",
                       why[0] ? why : "it ended, or stood still, without a word");
    }
    fs->info = json_incref(f.head);
    frame_free(&f);
    return 0;
}

/* Names of the jail's layers that hold. New. */
static json_t *forkserver_layer_names(bool no_jail)
{
    json_t *list = json_array();

    for (unsigned bit = 1; !no_jail && jail_layer_name(bit); bit <<= 1)
        if (jail_probe()->held & bit)
            json_array_append_new(list, json_string(jail_layer_name(bit)));
    return list;
}

int forkserver_launch(const struct forkserver_spec *s, struct forkserver **ret, struct err *e)
{
    struct forkserver *fs;
    pthread_condattr_t mono;

    if (!s->no_jail && !jail_probe()->enough)
        return err_set(e, ERR_ENV, "no jail for foreign code: %s; or accept the risk with --jail none",
                       jail_probe()->missing);
    fs = xcalloc(1, sizeof *fs);
    fs->fd = -1;
    fs->refs = 1;
    fs->no_jail = s->no_jail;
    fs->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fs->log = memfd_create("forkserver", MFD_CLOEXEC);
    pthread_mutex_init(&fs->lock, NULL);
    pthread_mutex_init(&fs->send_lock, NULL);
    pthread_mutex_init(&fs->ready_lock, NULL);
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&fs->changed, &mono);
    pthread_condattr_destroy(&mono);
    forkserver_set_ro(fs, s->ro);
    if (fs->wake < 0 || fs->log < 0) {
        err_sys(e, "cannot start the fork server");
    } else if (forkserver_do_launch(fs, s, e) == 0) {
        *ret = fs;
        return 0;
    }
    forkserver_stop(fs);
    return -1;
}

/* Waits for the server's hello and takes what it says. */
static int forkserver_get_ready(struct forkserver *fs, struct err *e)
{
    if (forkserver_await_hello(fs, e) < 0)
        return -1;
    forkserver_add_ro(fs);
    json_object_del(fs->info, "op");
    json_object_set_new(fs->info, "jail", forkserver_layer_names(fs->no_jail));
    fs->reading = pthread_create(&fs->reader, NULL, forkserver_reader_main, fs) == 0;
    return fs->reading ? 0 : err_set(e, ERR_ENV, "cannot start a thread");
}

/* Waits for what forkserver_launch did not wait for. */
static int forkserver_ready(struct forkserver *fs, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&fs->ready_lock);
    if (!fs->reading && !forkserver_alive(fs)) {
        rc = err_set(e, ERR_ENV, "the Python fork server did not start");
    } else if (!fs->reading && (rc = forkserver_get_ready(fs, e)) < 0) {
        pthread_mutex_lock(&fs->lock);
        fs->dead = true;
        pthread_mutex_unlock(&fs->lock);
    }
    pthread_mutex_unlock(&fs->ready_lock);
    return rc;
}

int forkserver_start(const struct forkserver_spec *s, struct forkserver **ret, struct err *e)
{
    struct forkserver *fs;

    if (forkserver_launch(s, &fs, e) < 0)
        return -1;
    if (forkserver_ready(fs, e) < 0) {
        forkserver_stop(fs);
        return -1;
    }
    *ret = fs;
    return 0;
}

static void forkserver_entry_free(struct forkserver_entry *x)
{
    if (x->out >= 0)
        close(x->out);
    buf_free(&x->output);
    free(x);
}

/* Frees fs and its entries; its process and thread have ended. */
static void forkserver_free(struct forkserver *fs)
{
    while (fs->entries) {
        struct forkserver_entry *x = fs->entries;
        fs->entries = x->next;
        forkserver_entry_free(x);
    }
    if (fs->wake >= 0)
        close(fs->wake);
    if (fs->log >= 0)
        close(fs->log);
    for (char **p = fs->ro; p && *p; p++)
        free(*p);
    free(fs->ro);
    json_decref(fs->info);
    pthread_mutex_destroy(&fs->lock);
    pthread_mutex_destroy(&fs->send_lock);
    pthread_mutex_destroy(&fs->ready_lock);
    pthread_cond_destroy(&fs->changed);
    free(fs);
}

struct forkserver *forkserver_hold(struct forkserver *fs)
{
    pthread_mutex_lock(&fs->lock);
    fs->refs++;
    pthread_mutex_unlock(&fs->lock);
    return fs;
}

void forkserver_drop(struct forkserver *fs)
{
    int left;

    pthread_mutex_lock(&fs->lock);
    left = --fs->refs;
    pthread_mutex_unlock(&fs->lock);
    if (left == 0)
        forkserver_free(fs);
}

void forkserver_stop(struct forkserver *fs)
{
    if (!fs)
        return;
    pthread_mutex_lock(&fs->lock);
    fs->stop = true;
    pthread_mutex_unlock(&fs->lock);
    if (fs->reading) {
        forkserver_wake_reader(fs);
        pthread_join(fs->reader, NULL);
    }
    pthread_mutex_lock(&fs->lock);
    fs->dead = true; /* who waits for a child hears it now */
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
    pthread_mutex_lock(&fs->send_lock);
    if (fs->fd >= 0)
        close(fs->fd); /* it sees the end, kills its children and leaves */
    fs->fd = -1;
    pthread_mutex_unlock(&fs->send_lock);
    if (fs->pid > 0) {
        for (int i = 0; i < 200 && waitpid(fs->pid, NULL, WNOHANG) == 0; i++) {
            if (i == 150 || !fs->reading) /* it imports, and would not see the end; it has no children yet */
                kill(fs->pid, SIGKILL);
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        }
    }
    forkserver_drop(fs);
}

bool forkserver_alive(struct forkserver *fs)
{
    bool alive;

    pthread_mutex_lock(&fs->lock);
    alive = !fs->dead;
    pthread_mutex_unlock(&fs->lock);
    return alive;
}

const json_t *forkserver_info(struct forkserver *fs)
{
    return fs->info;
}

/* Children ------------------------------------------------------------------------------------------------------ */

/* The plan's text, or JSON null when unjailed. */
static int forkserver_plan_of(struct forkserver *fs, const struct child_spec *s, json_t **ret, struct err *e)
{
    struct jail_spec spec = s->jail;
    const char *ro[128];
    struct buf plan;
    size_t n = 0;
    int rc;

    if (fs->no_jail) {
        *ret = json_null();
        return 0;
    }
    for (char **p = fs->ro; *p && n < 100; p++)
        ro[n++] = *p;
    for (const char *const *p = s->jail.ro; p && *p && n < 127; p++)
        ro[n++] = *p;
    ro[n] = NULL;
    spec.ro = ro;
    spec.no_exec = !s->may_exec; /* no compiler, and no other program, runs beside a candidate's code */
    buf_init(&plan, 1 << 20);
    rc = jail_plan(&spec, jail_probe(), &plan, e);
    if (rc == 0)
        *ret = json_stringn(plan.p, plan.n);
    buf_free(&plan);
    return rc;
}

/* Sends a request; one at a time. */
static int forkserver_send_request(struct forkserver *fs, const json_t *head, const int *fds, int n, struct err *e)
{
    int rc;

    pthread_mutex_lock(&fs->send_lock);
    rc = fs->fd < 0 ? err_set(e, ERR_ENV, "the Python fork server was stopped")
                    : frame_send_fds(fs->fd, head, fds, n, now_s() + SEND_S, e);
    pthread_mutex_unlock(&fs->send_lock);
    return rc;
}

/* Adds a child that will be asked for; takes the pipe 'out'. */
static struct forkserver_entry *forkserver_entry_add(struct forkserver *fs, int out, size_t max_output)
{
    struct forkserver_entry *x = xcalloc(1, sizeof *x);

    x->out = out;
    fcntl(out, F_SETFL, O_NONBLOCK);
    buf_init(&x->output, max_output ? max_output : 64 << 10);
    pthread_mutex_lock(&fs->lock);
    x->id = ++fs->next_id;
    x->next = fs->entries;
    fs->entries = x;
    pthread_mutex_unlock(&fs->lock);
    return x;
}

/* Removes and frees a child's entry. */
static void forkserver_entry_remove(struct forkserver *fs, int id)
{
    pthread_mutex_lock(&fs->lock);
    for (struct forkserver_entry **p = &fs->entries; *p; p = &(*p)->next)
        if ((*p)->id == id) {
            struct forkserver_entry *x = *p;
            *p = x->next;
            forkserver_entry_free(x);
            break;
        }
    pthread_mutex_unlock(&fs->lock);
}

/* Blocks until the server says that the child runs. */
static int forkserver_await_running(struct forkserver *fs, struct forkserver_entry *x, pid_t *ret_pid, struct err *e)
{
    double deadline = now_s() + SPAWN_S;
    char why[300];
    int rc = 0;

    pthread_mutex_lock(&fs->lock);
    while (x->state == ASKED && !fs->dead && now_s() < deadline && !stop_requested())
        forkserver_wait_slice(fs, deadline);
    if (x->state == FAILED)
        rc = err_set(e, ERR_ENV, "cannot start a jailed process: %s", x->error),
        err_lack(e, x->no_memory ? LACK_HOST : LACK_NONE);
    else if (x->state == ASKED && stop_requested())
        rc = err_set(e, ERR_STOP, "stopped");
    else if (x->state == ASKED) {
        forkserver_last_words(fs, why, sizeof why);
        rc = err_set(e, ERR_ENV, "the Python fork server %s%s%s", fs->dead ? "died" : "does not answer",
                     why[0] ? ": " : "", why);
    }
    *ret_pid = x->pid;
    pthread_mutex_unlock(&fs->lock);
    return rc;
}

/* A child's socket and the pipe of its output. */
static int forkserver_make_channels(int sv[2], int out[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return err_sys(e, "cannot make a socket");
    if (pipe2(out, O_CLOEXEC) < 0) {
        err_sys(e, "cannot make a pipe");
        close(sv[0]);
        close(sv[1]);
        return -1;
    }
    return 0;
}

/* Forks a child by plan s; *ret is freed by child_free. ERR_ENV: the server is gone or has no memory. */
int forkserver_spawn(struct forkserver *fs, const struct child_spec *s, struct child **ret, struct err *e)
{
    int sv[2], out[2], fds[2], rc;
    double start = now_s();
    struct forkserver_entry *x;
    struct child *c;
    json_t *plan, *req;
    pid_t pid = 0;

    if (forkserver_ready(fs, e) < 0 || forkserver_plan_of(fs, s, &plan, e) < 0)
        return -1;
    if (forkserver_make_channels(sv, out, e) < 0) {
        json_decref(plan);
        return -1;
    }
    x = forkserver_entry_add(fs, out[0], s->max_output);
    req = json_pack("{s:s,s:i,s:s,s:O?,s:o,s:I,s:i}", "op", "spawn", "id", x->id, "role", s->role, "args", s->args,
                    "plan", plan, "memory", (json_int_t)(s->jail.memory_bytes ? s->jail.memory_bytes : JAIL_MEMORY),
                    "pids", s->jail.pids ? s->jail.pids : 64);
    fds[0] = sv[1];
    fds[1] = out[1];
    rc = forkserver_send_request(fs, req, fds, 2, e);
    json_decref(req);
    close(sv[1]);
    close(out[1]);
    forkserver_wake_reader(fs);
    if (rc == 0)
        rc = forkserver_await_running(fs, x, &pid, e);
    if (rc < 0) {
        close(sv[0]);
        forkserver_entry_remove(fs, x->id);
        return -1;
    }
    c = xcalloc(1, sizeof *c);
    *c = (struct child){.fd = sv[0], .pid = pid, .id = x->id, .spawn_s = now_s() - start, .fs = forkserver_hold(fs)};
    *ret = c;
    return 0;
}

/* runner/main.py's exit code for a child whose jail was not closed yet: killed so early, it finds its jail gone. */
#define CHILD_UNREADY 125

/* How a child ended, as signal, exit code, memory limit or kill. */
static void forkserver_fill_end(struct forkserver_entry *x, struct child_end *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->why = WIFSIGNALED(x->status) ? PROC_SIGNALED : PROC_EXITED;
    ret->signal = WIFSIGNALED(x->status) ? WTERMSIG(x->status) : 0;
    ret->code = WIFEXITED(x->status) ? WEXITSTATUS(x->status) : 0;
    if (x->oom && !(ret->why == PROC_EXITED && ret->code == 0))
        ret->why = PROC_MEMORY;
    else if (x->killed && (ret->signal == SIGKILL || (ret->why == PROC_EXITED && ret->code == CHILD_UNREADY)))
        ret->why = PROC_STOPPED;
    ret->outside = x->outside || (ret->why == PROC_SIGNALED && ret->signal == SIGKILL && !x->killed && !x->spared);
    ret->cpu_s = x->cpu_s;
    ret->max_rss = x->max_rss;
    ret->peak = x->peak;
    buf_init(&ret->output, x->output.max);
    buf_add(&ret->output, x->output.p, x->output.n);
    ret->output.cut = x->output.cut;
}

int child_wait(struct child *c, double deadline, struct child_end *ret, struct err *e)
{
    struct forkserver *fs = c->fs;
    struct forkserver_entry *x;
    int rc = 0;

    pthread_mutex_lock(&fs->lock);
    x = forkserver_find(fs, c->id);
    while (x->state != ENDED && !fs->dead && (deadline <= 0 || now_s() < deadline) && !stop_requested())
        forkserver_wait_slice(fs, deadline);
    if (x->state == ENDED) {
        if (ret)
            forkserver_fill_end(x, ret);
    } else if (stop_requested()) {
        rc = err_set(e, ERR_STOP, "stopped");
    } else if (fs->dead) {
        rc = err_set(e, ERR_ENV, "the Python fork server died");
    } else {
        rc = err_set(e, ERR_ENV, "process %d has not ended in time", (int)c->pid);
    }
    pthread_mutex_unlock(&fs->lock);
    return rc;
}

void child_kill(struct child *c)
{
    struct forkserver_entry *x;
    json_t *req;
    bool send = false;

    pthread_mutex_lock(&c->fs->lock);
    x = forkserver_find(c->fs, c->id);
    if (x->state == RUNNING && !x->killed && !c->fs->dead)
        send = x->killed = true;
    pthread_mutex_unlock(&c->fs->lock);
    if (!send)
        return;
    req = json_pack("{s:s,s:i}", "op", "kill", "id", c->id);
    forkserver_send_request(c->fs, req, NULL, 0, NULL);
    json_decref(req);
}

void child_free(struct child *c)
{
    if (!c)
        return;
    child_kill(c);
    if (c->fd >= 0)
        close(c->fd);
    forkserver_entry_remove(c->fs, c->id);
    forkserver_drop(c->fs);
    free(c);
}
