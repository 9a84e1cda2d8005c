/* exec.c - see exec.h: the judge's end of the control socket. */
#include "exec/exec_ask.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/fdpass.h"
#include "proc/jail.h"
#include "proc/proc.h"
#include "proc/run_clock.h"
#include "proc/spawn.h"

struct executor {
    pid_t pid;
    int sock;
    uint8_t *bulk;
    double timeout_s, ran_s;
    uint64_t limit; /* of recordings to come */
    bool timed_out; /* an answer is still to come */
    bool stops;     /* a kernel that runs can be asked where it stands */
    struct wire_info info;
    int fds[FDPASS_MAX]; /* of the last answer */
};

/* ---- one question ---- */

/* Waits for an answer within x->timeout_s of the executor's run time. ERR_ENV: it is not there. */
static int exec_await(struct executor *x, struct err *e)
{
    struct run_clock c = {0};
    double ran;
    int rc = 0;

    if (run_clock_poll(&c, (pid_t[]){x->pid, 0}, x->sock, x->timeout_s, &ran) == 0) {
        x->timed_out = ran >= x->timeout_s;
        rc = x->timed_out      ? err_set(e, ERR_ENV, "the device has not finished within %.0f s", x->timeout_s)
             : stop_requested() ? err_set(e, ERR_STOP, "stopped")
                                : err_set(e, ERR_ENV, RUN_CLOCK_STARVED, "the device's process", ran, c.wall_s);
    }
    x->ran_s += ran;
    run_clock_end(&c);
    return rc;
}

/* Waits for the executor's answer. ERR_ENV: it ended, or has no more time. */
static int exec_hear(struct executor *x, struct ctl_reply *r, struct err *e)
{
    int rc = exec_await(x, e);

    fdpass_close(x->fds);
    if (rc < 0)
        return -1;
    if (fdpass_recv(x->sock, r, sizeof *r, x->fds, 0) != sizeof *r)
        return err_set(e, ERR_ENV, "the executor has ended");
    if (!r->code)
        return 0;
    err_set(e, (enum err_kind)r->code, "%s", r->why);
    return r->zero ? err_lack(e, (enum err_lack)r->zero) : -1;
}

int exec_ask(struct executor *x, const struct ctl_request *q, int fd, struct ctl_reply *r, struct err *e)
{
    if (fdpass_send(x->sock, q, sizeof *q, &fd, fd >= 0) < 0)
        return err_set(e, ERR_ENV, "the executor has ended");
    return exec_hear(x, r, e);
}

uint8_t *exec_bulk(struct executor *x)
{
    return x->bulk;
}

/* Asks for an operation with two numbers; the reply is in r. */
static int exec_say(struct executor *x, enum ctl_op op, uint64_t a, uint64_t b, struct ctl_reply *r, struct err *e)
{
    const struct ctl_request q = {.op = op, .a = a, .b = b};

    return exec_ask(x, &q, -1, r, e);
}

/* Descriptor i of the last answer, now the caller's. */
static int exec_keep_fd(struct executor *x, int i)
{
    int fd = x->fds[i];

    x->fds[i] = -1;
    return fd;
}

/* ---- its life ---- */

/* The command line: mcexec, or what it runs under. */
static void exec_program_of(const struct executor_options *o, char *path, char *device, char *memory, bool apart,
                            char *argv[24])
{
    char *own[] = {path, (char *)o->backend, device, memory, o->no_check ? "no-check" : "check",
                   o->under ? "open" : apart ? "apart" : "jail"};
    int n = 0;

    for (; o->under && o->under[n] && n < 16; n++)
        argv[n] = (char *)o->under[n];
    memcpy(argv + n, own, sizeof own);
}

/* Nothing of the network, of other processes, of their shared memory; on 'sim' of the file system neither (mcexec.c).
 * Not for what runs under a profiler: the two talk to each other. A GPU's nodes belong to the user that we are, so
 * there it takes root. */
static int exec_namespaces(const struct executor_options *o)
{
    const int all = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
    unsigned held = jail_probe()->held;

    if (o->under || !(held & JAIL_NAMESPACES))
        return 0;
    if (held & JAIL_ROOT)
        return all;
    return held & JAIL_USERNS && !strcmp(o->backend, "sim") ? all | CLONE_NEWUSER : 0;
}

/* Of our environment: other drivers, the executor's own kernels for MUSA, the emulated card, which cards are ours. */
static const char *const pass[] = {"MUSACODER_LIBCUDA", "MUSACODER_LIBMUSA", "MUSACODER_EXEC_MUBIN", "SIMT_PROFILE",
                                   "MUSA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
enum { N_PASSED = sizeof pass / sizeof *pass };

/* Starts mcexec in its namespaces with the socket and the area of bulk data. */
static int exec_launch_program(struct executor *x, const struct executor_options *o, int theirs, int bulk,
                               struct err *e)
{
    char *path = path_lib("mcexec"), device[16], memory[32];
    char *argv[24] = {NULL};
    const char *extra[N_PASSED + 3] = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
    char *passed[N_PASSED], **env;
    int n_extra = 1;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), rc;
    size_t n_env;
    int ns = exec_namespaces(o);

    snprintf(device, sizeof device, "%d", o->device);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)o->memory);
    if (!o->under) /* a tool's own kernels may be PTX */
        extra[n_extra++] = "CUDA_DISABLE_PTX_JIT=1";
    for (int i = 0; i < N_PASSED; i++)
        if ((passed[i] = getenv(pass[i]) ? xasprintf("%s=%s", pass[i], getenv(pass[i])) : NULL))
            extra[n_extra++] = passed[i];
    env = proc_env(extra, &n_env);
    exec_program_of(o, path, device, memory, ns != 0, argv);
    rc = path ? spawn(&(struct spawn){.path = argv[0], .argv = argv, .env = env, .n_fds = 5, .group = true,
                                      .ns_flags = ns,
                                      .fds = {null, 2, 2, theirs, bulk}}, &x->pid, e)
              : err_set(e, ERR_ENV, "'mcexec' is missing; run 'make'");
    close(null);
    names_free(env, n_env);
    for (int i = 0; i < N_PASSED; i++)
        free(passed[i]);
    free(path);
    return rc;
}

/* Waits for the executor and asks for its device's limits. */
static int exec_say_hello(struct executor *x, struct err *e)
{
    struct ctl_reply r;

    if (exec_hear(x, &r, e) < 0 || exec_say(x, CTL_HELLO, 0, 0, &r, e) < 0)
        return -1;
    memcpy(&x->info, x->bulk, sizeof x->info);
    return 0;
}

int executor_start(const struct executor_options *o, struct executor **ret, struct err *e)
{
    struct executor *x = xcalloc(1, sizeof *x);
    int socks[2] = {-1, -1}, bulk = memfd_create("bulk", MFD_CLOEXEC), rc = -1;

    x->timeout_s = o->timeout_s > 0 ? o->timeout_s : 60;
    x->stops = !strcmp(o->backend, "sim") && !o->under;
    memset(x->fds, -1, sizeof x->fds);
    x->bulk = MAP_FAILED;
    if (bulk >= 0 && ftruncate(bulk, (off_t)CTL_BULK) == 0)
        x->bulk = mmap(NULL, CTL_BULK, PROT_READ | PROT_WRITE, MAP_SHARED, bulk, 0);
    if (x->bulk == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
        err_sys(e, "cannot start an executor");
    else
        rc = exec_launch_program(x, o, socks[1], bulk, e);
    x->sock = socks[0];
    if (socks[1] >= 0)
        close(socks[1]);
    if (bulk >= 0)
        close(bulk);
    if (rc == 0)
        rc = exec_say_hello(x, e);
    if (rc < 0) {
        executor_stop(x);
        return -1;
    }
    *ret = x;
    return 0;
}

/* It ends by itself when its socket is closed; at the latest after so many steps of the wait it is killed. */
static int exec_end_within(struct executor *x, int steps)
{
    int status = -1;

    if (x->sock >= 0)
        close(x->sock);
    x->sock = -1;
    for (int i = 0; i < steps && x->pid > 0; i++)
        if (waitpid(x->pid, &status, WNOHANG) != 0)
            x->pid = 0;
        else
            usleep(i < 100 ? 2000 : 100000);
    return status;
}

int executor_end(struct executor *x)
{
    int status = x ? exec_end_within(x, 700) : -1; /* a minute */

    executor_stop(x);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void executor_stop(struct executor *x)
{
    if (!x)
        return;
    exec_end_within(x, 103); /* half a second: it takes its files along */
    if (x->pid > 0) {
        kill(-x->pid, SIGKILL);
        kill(x->pid, SIGKILL);
        waitpid(x->pid, NULL, 0);
    }
    fdpass_close(x->fds);
    if (x->bulk != MAP_FAILED)
        munmap(x->bulk, CTL_BULK);
    free(x);
}

const struct wire_info *executor_info(const struct executor *x)
{
    return &x->info;
}

void executor_limit(struct executor *x, uint64_t bytes)
{
    x->limit = bytes;
}

void executor_wait(struct executor *x, double timeout_s)
{
    x->timeout_s = timeout_s;
}

double executor_ran(const struct executor *x)
{
    return x->ran_s;
}

pid_t executor_pid(const struct executor *x)
{
    return x->pid;
}

bool executor_timed_out(const struct executor *x)
{
    return x->timed_out;
}

/* ---- a candidate's recording ---- */

int executor_context(struct executor *x, int ret_fds[2], struct err *e)
{
    struct ctl_reply r;

    if (exec_say(x, CTL_CONTEXT, x->limit, 0, &r, e) < 0)
        return -1;
    ret_fds[0] = exec_keep_fd(x, 0);
    ret_fds[1] = exec_keep_fd(x, 1);
    return 0;
}

/* A file without a name that holds the bytes; -1 on failure. */
static int exec_file_of(const void *p, size_t n, struct err *e)
{
    int fd = memfd_create("bytes", MFD_CLOEXEC);

    for (size_t at = 0; fd >= 0 && at < n;) {
        ssize_t w = write(fd, (const char *)p + at, n - at);

        if (w <= 0) {
            close(fd);
            fd = -1;
        }
        at += (size_t)w;
    }
    if (fd < 0)
        err_sys(e, "cannot hand bytes to the executor");
    return fd;
}

int executor_image(struct executor *x, const void *image, size_t n, char ret_sha256[65], struct err *e)
{
    const struct ctl_request q = {.op = CTL_IMAGE, .a = n};
    int fd = exec_file_of(image, n, e), rc;
    struct ctl_reply r;

    if (fd < 0)
        return -1;
    rc = exec_ask(x, &q, fd, &r, e);
    close(fd);
    for (int i = 0; rc == 0 && i < 32; i++)
        snprintf(ret_sha256 + 2 * i, 3, "%02x", r.sha256[i]);
    return rc;
}

int executor_alloc(struct executor *x, uint64_t bytes, uint64_t *ret_addr, struct err *e)
{
    struct ctl_reply r;

    if (exec_say(x, CTL_ALLOC, bytes, 0, &r, e) < 0)
        return -1;
    *ret_addr = r.v[0];
    return 0;
}

/* Writes n bytes of the bulk area to addr + at, as a part of inputs of 'all' bytes. */
static int exec_bind_part(struct executor *x, uint64_t addr, uint64_t at, uint64_t n, uint64_t all, uint32_t tag,
                          struct err *e)
{
    const struct ctl_request q = {.op = CTL_BIND, .tag = tag, .a = addr, .b = n, .c = at, .d = all};
    struct ctl_reply r;

    return exec_ask(x, &q, -1, &r, e);
}

int executor_bind(struct executor *x, uint64_t addr, const void *data, uint64_t n, uint32_t tag, struct err *e)
{
    for (uint64_t at = 0; at < n; at += CTL_BULK) {
        uint64_t part = n - at < CTL_BULK ? n - at : CTL_BULK;

        memcpy(x->bulk, (const char *)data + at, part);
        if (exec_bind_part(x, addr, at, part, n, tag, e) < 0)
            return -1;
    }
    return 0;
}

int executor_peek(struct executor *x, uint64_t addr, void *data, uint64_t n, struct err *e)
{
    for (uint64_t at = 0; at < n; at += CTL_BULK) {
        uint64_t part = n - at < CTL_BULK ? n - at : CTL_BULK;
        struct ctl_reply r;

        if (exec_say(x, CTL_PEEK, addr + at, part, &r, e) < 0)
            return -1;
        memcpy((char *)data + at, x->bulk, part);
    }
    return 0;
}

int executor_share(struct executor *x, int fd, uint64_t bytes, uint64_t inputs, uint64_t *ret_addr, struct err *e)
{
    const struct ctl_request q = {.op = CTL_SHARE, .a = bytes, .b = inputs};
    struct ctl_reply r;

    if (exec_ask(x, &q, fd, &r, e) < 0)
        return -1;
    *ret_addr = r.v[0];
    return 0;
}

int executor_bound(struct executor *x, uint64_t addr, uint64_t n, uint32_t tag, struct err *e)
{
    const struct ctl_request q = {.op = CTL_BOUND, .tag = tag, .a = addr, .d = n};
    struct ctl_reply r;

    return exec_ask(x, &q, -1, &r, e);
}

int executor_pull(struct executor *x, uint64_t addr, uint64_t n, struct err *e)
{
    struct ctl_reply r;

    return exec_say(x, CTL_PULL, addr, n, &r, e);
}

int executor_tile(struct executor *x, const struct wire_strided *m, uint64_t span, struct err *e)
{
    struct ctl_reply r;

    memcpy(x->bulk, m, sizeof *m);
    return exec_say(x, CTL_TILE, span, 0, &r, e);
}

int executor_typed(struct executor *x, uint64_t addr, uint64_t n, int dtype, struct err *e)
{
    const struct ctl_request q = {.op = CTL_TYPED, .a = addr, .b = n, .c = (uint64_t)dtype};
    struct ctl_reply r;

    return exec_ask(x, &q, -1, &r, e);
}

int executor_pause(struct executor *x, struct err *e)
{
    struct ctl_reply r;

    return exec_say(x, CTL_PAUSE, 0, 0, &r, e);
}

int executor_lacks(struct executor *x, uint32_t *ret, struct err *e)
{
    struct ctl_reply r;

    if (exec_say(x, CTL_LACKS, 0, 0, &r, e) < 0)
        return -1;
    *ret = (uint32_t)r.v[0];
    return 0;
}

int executor_dry(struct executor *x, struct err *e)
{
    struct ctl_reply r;

    return exec_say(x, CTL_DRY, 1, 0, &r, e);
}

int executor_call_begin(struct executor *x, uint32_t index, struct err *e)
{
    struct ctl_reply r;

    return exec_say(x, CTL_CALL_BEGIN, index, 0, &r, e);
}

int executor_call_end(struct executor *x, struct executor_call *ret, struct err *e)
{
    struct ctl_reply r;

    if (exec_say(x, CTL_CALL_END, 0, 0, &r, e) < 0)
        return -1;
    memcpy(ret, x->bulk, sizeof *ret);
    return 0;
}

/* ---- the log ---- */

int executor_log(struct executor *x, struct exec_log *ret, struct err *e)
{
    struct exec_log l;
    struct ctl_reply r;
    int fd;

    if (exec_say(x, CTL_LOG, 0, 0, &r, e) < 0)
        return -1;
    fd = exec_keep_fd(x, 0);
    if (exec_log_init(&l, LOG_MAX) < 0 || r.v[0] > l.max || pread(fd, l.p, r.v[0], 0) != (ssize_t)r.v[0]) {
        exec_log_free(&l);
        close(fd);
        return err_set(e, ERR_ENV, "the executor's log cannot be read");
    }
    close(fd);
    l.n = r.v[0];
    l.full = r.v[1] != 0;
    memcpy(&l.counts, x->bulk, sizeof l.counts);
    *ret = l;
    return 0;
}

int executor_adopt(struct executor *x, const struct exec_log *log, struct err *e)
{
    const struct ctl_request q = {.op = CTL_ADOPT, .a = log->n};
    int fd = exec_file_of(log->p, log->n, e), rc;
    struct ctl_reply r;

    if (fd < 0)
        return -1;
    rc = exec_ask(x, &q, fd, &r, e);
    close(fd);
    return rc;
}

#define STOP_MS 50   /* between two signals: one may come before the kernel has begun */
#define STOP_TRIES 400 /* a kernel that is asked answers at once; on a loaded machine it comes late */

/* The next answer, with a signal to the executor until it is there. */
static bool exec_hear_stopped(struct executor *x, struct ctl_reply *r)
{
    struct pollfd p = {.fd = x->sock, .events = POLLIN};

    for (int i = 0; i < STOP_TRIES; i++) {
        if (x->pid > 0 && kill(x->pid, SIGUSR1) < 0)
            return false;
        if (poll(&p, 1, STOP_MS) > 0) {
            fdpass_close(x->fds);
            return fdpass_recv(x->sock, r, sizeof *r, x->fds, 0) == sizeof *r;
        }
    }
    return false;
}

char *executor_stand(struct executor *x)
{
    const struct ctl_request q = {.op = CTL_FINDINGS};
    struct ctl_reply r = {0};

    if (!x->stops || fdpass_send(x->sock, &q, sizeof q, NULL, 0) < 0 ||
        (x->timed_out && !exec_hear_stopped(x, &r)) || !exec_hear_stopped(x, &r) || r.code || !r.v[0])
        return NULL;
    x->timed_out = false;
    return xstrndup((const char *)x->bulk, r.v[0]);
}

int executor_findings(struct executor *x, char **ret_json, struct err *e)
{
    struct ctl_reply r;

    if (exec_say(x, CTL_FINDINGS, 0, 0, &r, e) < 0)
        return -1;
    *ret_json = r.v[0] ? xstrndup((const char *)x->bulk, r.v[0]) : xstrdup("[]");
    return 0;
}
