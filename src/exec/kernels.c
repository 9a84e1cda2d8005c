/* kernels.c - see kernels.h: both ends of the socket, and the process in which kernels run. kernels_do_NAME does the
 * question KERNELS_NAME: q is the question, r the answer. */
#include "exec/kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/fdpass.h"
#include "exec/kernels_jail.h"
#include "exec/wire.h"

/* ---- libsimt, as simt/api.h and simt/image.h declare it ---- */

#define SIMT(X)                                                                                                        \
    X(image_open, void *, (const char *, char *, size_t))                                                              \
    X(image_function, const void *, (void *, const char *))                                                            \
    X(image_symbol, void *, (void *, const char *, size_t *))                                                          \
    X(image_attribute, int, (const void *, int, int))                                                                  \
    X(image_launch, int, (const void *, const unsigned *, const unsigned *, size_t, int, const void *, \
                          size_t))             \
    X(mem_register, int, (const void *, size_t, const char *))                                                         \
    X(mem_unregister, int, (const void *))                                                                             \
    X(set_device_arena, void, (const void *, size_t))                                                                  \
    X(set_written, void, (uint8_t *, const void *, size_t))                                                            \
    X(set_check, void, (int))                                                                                          \
    X(set_poison, void, (int))                                                                                         \
    X(set_blocks, void, (int))                                                                                         \
    X(set_fatal_hook, void, (void (*)(void)))                                                                          \
    X(set_stop_signal, void, (int, int (*)(void)))                                                                     \
    X(findings_json, const char *, (void))

static struct {
#define MEMBER(name, type, args) type(*name) args;
    SIMT(MEMBER)
#undef MEMBER
} simt;

/* Finds libsimt's functions. NULL, or the name of a missing one. */
static const char *kernels_find_all(void *lib)
{
#define FIND(name, type, args)                                                                                         \
    if (!(*(void **)&simt.name = dlsym(lib, "simt_" #name)))                                                           \
        return "simt_" #name;
    SIMT(FIND)
#undef FIND
    return NULL;
}

/* ---- the process in which kernels run ---- */

#define MOST_MODULES 64
#define MOST_FUNCTIONS 4096
static int line; /* its socket */
static void *modules[MOST_MODULES];
static const void *functions[MOST_FUNCTIONS];
static uint64_t n_modules, n_functions;
static struct kernels_ask q;
static struct kernels_answer r;

static void kernels_do_answer(void)
{
    if (send(line, &r, offsetof(struct kernels_answer, data) + r.n, MSG_NOSIGNAL) < 0)
        _exit(1);
}

/* Puts a text into the answer, cut to its room. */
static void kernels_put_text(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    r.n = (uint32_t)(n < KERNELS_DATA ? n : KERNELS_DATA);
    memcpy(r.data, s ? s : "", r.n);
}

/* Host code of libsimt or a corrupted heap: the last words. malloc may be locked. */
static void kernels_last_words(void)
{
    r.code = WIRE_LAUNCH_FAILED;
    kernels_put_text(simt.findings_json());
    kernels_do_answer();
    _exit(1);
}

/* Question 'module': opens an image; v[0] is its number. The next ones answer theirs alike. */
static void kernels_do_module(void)
{
    char why[512] = "";
    void *m;

    if (n_modules == MOST_MODULES || !(m = simt.image_open((const char *)q.data, why, sizeof why))) {
        r.code = WIRE_NOT_FOUND;
        kernels_put_text(why);
        return;
    }
    modules[n_modules] = m;
    r.v[0] = n_modules++;
}

/* Question 'function': v[0] is the function's number. */
static void kernels_do_function(void)
{
    const void *f = q.a < n_modules ? simt.image_function(modules[q.a], (const char *)q.data) : NULL;

    if (!f || n_functions == MOST_FUNCTIONS) {
        r.code = WIRE_NOT_FOUND;
        return;
    }
    functions[n_functions] = f;
    r.v[0] = n_functions++;
}

/* Question 'symbol': address and bytes. */
static void kernels_do_symbol(void)
{
    size_t n = 0;
    void *p = q.a < n_modules ? simt.image_symbol(modules[q.a], (const char *)q.data, &n) : NULL;

    r.code = p ? WIRE_OK : WIRE_NOT_FOUND;
    r.v[0] = (uintptr_t)p;
    r.v[1] = n;
}

static void kernels_do_attr(void)
{
    r.code = q.a < n_functions ? simt.image_attribute(functions[q.a], (int)q.b, (int)(int64_t)q.c) : WIRE_BAD_HANDLE;
}

static void kernels_do_findings(void);

/* Question 'launch': runs a kernel to its end. */
static void kernels_do_launch(void)
{
    const unsigned grid[3] = {q.grid[0], q.grid[1], q.grid[2]}, block[3] = {q.block[0], q.block[1], q.block[2]};

    r.code = WIRE_BAD_HANDLE;
    simt.set_poison((int)(q.poison & 0xff));
    simt.set_blocks((int)(q.c & 3));
    if (q.a < n_functions)
        r.code = simt.image_launch(functions[q.a], grid, block, q.shared, q.b != 0, q.data, q.n);
    if (r.code)
        kernels_do_findings();
}

/* Question 'block': a block of device memory begins or ends. */
static void kernels_do_block(void)
{
    if (q.b)
        simt.mem_register((void *)(uintptr_t)q.a, q.b, "device memory");
    else
        simt.mem_unregister((void *)(uintptr_t)q.a);
}

static void kernels_do_read(void)
{
    r.n = (uint32_t)(q.b < KERNELS_DATA ? q.b : KERNELS_DATA);
    memcpy(r.data, (const void *)(uintptr_t)q.a, r.n);
}

static void kernels_do_write(void)
{
    memcpy((void *)(uintptr_t)q.a, q.data, q.n);
}

/* ---- what kernels print: the first of it, in a file in memory that cannot grow, of this process alone ---- */

#define PRINTED_FILE (16 << 10)
#define PRINTED 2000

/* Lets printf of kernels go to a file of bounded size. */
static void kernels_hear_printing(void)
{
    int fd = memfd_create("printed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, PRINTED_FILE) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        dup2(fd, 1);
    if (fd >= 0)
        close(fd);
}

/* As a finding of its own kind, last in the list. Bytes are whatever the candidate likes. */
static void kernels_put_printed(void)
{
    static const char head[] = "{\"kind\":\"printed\",\"message\":\"";
    unsigned char said[PRINTED];
    char text[sizeof head + 6 * PRINTED + 8];
    ssize_t n = fflush(stdout) == 0 || errno == EPERM ? lseek(1, 0, SEEK_CUR) : 0;
    size_t at = 0;

    n = n > 0 ? pread(1, said, n < PRINTED ? (size_t)n : PRINTED, 0) : 0;
    if (n <= 0 || r.n < 2 || r.n + sizeof text > KERNELS_DATA || r.data[r.n - 1] != ']')
        return;
    at += (size_t)snprintf(text, sizeof text, "%s%s", r.n > 2 ? "," : "", head);
    for (ssize_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, said[i] < 32 || said[i] > 126 || said[i] == '"' ||
                               said[i] == '\\' ? "\\u%04x" : "%c", said[i]);
    at += (size_t)snprintf(text + at, sizeof text - at, "\"}]");
    memcpy(r.data + r.n - 1, text, at);
    r.n += (uint32_t)at - 1;
}

static void kernels_do_findings(void)
{
    kernels_put_text(simt.findings_json());
    kernels_put_printed();
}

static void kernels_do_nothing(void)
{
}

static void (*const rows[])(void) = {kernels_do_module, kernels_do_function, kernels_do_symbol, kernels_do_attr,
                                     kernels_do_launch,
                                     kernels_do_block,  kernels_do_read,     kernels_do_write,  kernels_do_findings,
                                     kernels_do_nothing};

/* In the handler: is a KERNELS_STOP what came while the kernel ran? */
static int kernels_is_stopped(void)
{
    uint32_t op = 0;

    return recv(line, &op, sizeof op, MSG_PEEK | MSG_DONTWAIT) == sizeof op && op == KERNELS_STOP;
}

/* What comes while a kernel runs raises SIGIO. */
static void kernels_hear_stop(void)
{
    simt.set_stop_signal(SIGIO, kernels_is_stopped);
    fcntl(line, F_SETOWN, getpid());
    fcntl(line, F_SETFL, fcntl(line, F_GETFL) | O_ASYNC);
}

/* The process that runs kernels: serves questions from fd until it closes. It is jailed. */
static _Noreturn void kernels_main(int fd)
{
    const struct rlimit no_core = {0, 0};
    ssize_t n;

    line = fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    simt.set_fatal_hook(kernels_last_words);
    kernels_hear_printing();
    kernels_hear_stop();
    kernels_jail();
    while ((n = recv(fd, &q, sizeof q, 0)) > 0) {
        if ((size_t)n < offsetof(struct kernels_ask, data) || q.op >= sizeof rows / sizeof rows[0])
            _exit(2);
        q.data[q.n < KERNELS_DATA ? q.n : KERNELS_DATA] = 0;
        memset(&r, 0, offsetof(struct kernels_answer, data));
        rows[q.op]();
        if (q.op != KERNELS_BLOCK && q.op != KERNELS_STOP)
            kernels_do_answer();
    }
    _exit(0);
}

/* ---- the process that they are forked from ---- */

/* The process that forks processes of kernels, one for each descriptor that it receives. */
static _Noreturn void kernels_source_main(int fd)
{
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fds[FDPASS_MAX];
        char c;

        if (fdpass_recv(fd, &c, 1, fds, 0) <= 0)
            _exit(0);
        if (fds[0] >= 0 && fork() == 0) {
            close(fd);
            kernels_main(fds[0]);
        }
        fdpass_close(fds);
    }
}

/* In the new process: nothing but its socket and device memory stays open. */
static const char *kernels_load_libraries(const char *libsimt)
{
    void *lib = dlopen(libsimt, RTLD_NOW | RTLD_GLOBAL);

    if (!lib)
        return dlerror();
    dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL); /* images may need them, and cannot open them later */
    dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
    return kernels_find_all(lib);
}

/* From here on no file can be opened but images: not what the judge keeps on disk, and not /proc, where the memory of
 * the user's other processes lies. Without root a user namespace of its own gives the right to do so. */
static const char *kernels_shut_in(const char *folder)
{
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0)
        return "it cannot be shut in: enable user namespaces, or run as root";
    return chdir(folder) < 0 || chroot(".") < 0 || chdir("/") < 0 ? "it cannot be shut in its folder" : NULL;
}

/* What kernels print before anybody hears it, and libc's words about an assertion, are no business of the judge's own
 * streams. */
static void kernels_silence(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    dup2(null, 1);
    dup2(null, 2);
}

/* Maps the device's memory and loads the emulator. NULL, or why that failed. */
static const char *kernels_prepare(const struct kernels_place *place, int *fd)
{
    const char *wrong = kernels_load_libraries(place->libsimt);
    uint8_t *bits;
    void *p;

    if (wrong)
        return wrong;
    p = mmap((void *)WIRE_BASE, place->reserved, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, place->memory_fd, 0);
    if (p != (void *)WIRE_BASE)
        return "the addresses of device memory are taken";
    bits = mmap(NULL, place->reserved / 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, place->written_fd, 0);
    if (bits == MAP_FAILED)
        return "there is no memory to note what was written";
    simt.set_written(place->check ? bits : NULL, p, place->reserved);
    *fd = dup2(*fd, 3);
    kernels_silence();
    close(0);
    close_range(4, ~0u, 0);
    simt.set_device_arena(p, place->reserved);
    simt.set_check(place->check);
    return kernels_shut_in(place->folder);
}

int kernels_source_start(const struct kernels_place *p, struct kernels_source *ret, struct err *e)
{
    int fds[2];
    char why[256] = "";
    ssize_t n;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(e, "cannot make a socket");
    if ((ret->pid = fork()) == 0) {
        const char *wrong;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wrong = kernels_prepare(p, &fds[1]);
        snprintf(why, sizeof why, "%s", wrong ? wrong : "");
        if (send(fds[1], why, strlen(why) + 1, MSG_NOSIGNAL) < 0 || wrong)
            _exit(1);
        kernels_source_main(fds[1]);
    }
    close(fds[1]);
    ret->fd = fds[0];
    if (ret->pid < 0)
        return err_sys(e, "cannot start a process for kernels");
    n = recv(fds[0], why, sizeof why - 1, 0);
    if (n > 0 && !why[0])
        return 0;
    return err_set(e, ERR_ENV, "the emulator does not start: %s; run 'make'", n > 0 ? why : "it ended");
}

void kernels_source_end(struct kernels_source *s)
{
    close(s->fd);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}

int kernels_start(const struct kernels_source *s, struct err *e)
{
    int fds[2], size = 4 << 20;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(e, "cannot make a socket");
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (fdpass_send(s->fd, "k", 1, &fds[1], 1) < 0) {
        err_sys(e, "cannot start a process for kernels");
        close(fds[0]);
        fds[0] = -1;
    }
    close(fds[1]);
    return fds[0];
}

bool kernels_ask(int fd, struct kernels_ask *ask, struct kernels_answer *ret)
{
    ssize_t n;

    if (ask->n > KERNELS_DATA || send(fd, ask, offsetof(struct kernels_ask, data) + ask->n, MSG_NOSIGNAL) < 0)
        return false;
    if (ask->op == KERNELS_BLOCK)
        return true;
    do /* a process that ends with questions unread resets the line; what it said before can be read all the same */
        n = recv(fd, ret, sizeof *ret, 0);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < (ssize_t)offsetof(struct kernels_answer, data))
        return false;
    ret->n = (uint32_t)(n - (ssize_t)offsetof(struct kernels_answer, data)); /* what came, not what it says */
    return true;
}

void kernels_stop(int fd)
{
    static const uint32_t stop[offsetof(struct kernels_ask, data) / sizeof(uint32_t)] = {KERNELS_STOP};

    if (send(fd, stop, sizeof stop, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it has ended */
}
