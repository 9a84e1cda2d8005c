/* jail_probe.c - which layers hold on this machine, found by trying them. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/jail.h"
#include "proc/jail_apply.h"

const char *jail_layer_name(unsigned bit)
{
    static const char *const names[] = {"root",    "user-namespaces", "namespaces",  "landlock",
                                        "seccomp", "memory-cgroup",   "pids-cgroup", "procfs"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bit == 1u << i)
            return names[i];
    return NULL;
}

/* Makes a real jail with these layers and asks mcjail whether it stands. */
static bool jail_probe_stands(unsigned held, char *why, size_t n_why)
{
    static const int none[3] = {-1, -1, -1};
    static char *const env[] = {NULL};
    struct jail_layers l = {.held = held | JAIL_NAMESPACES};
    struct jail_spec s = {.memory_bytes = 64 << 20, .tmp_bytes = 1 << 20};
    struct err e = ERR_INIT;
    struct buf plan;
    struct pollfd p = {.events = POLLIN};
    char text[512] = "";
    bool ok = false;
    pid_t pid;

    buf_init(&plan, 1 << 20);
    if (jail_plan(&s, &l, &plan, &e) == 0 && jail_start(plan.p, plan.n, NULL, env, none, NULL, &pid, &p.fd, &e) == 0) {
        ssize_t n = poll(&p, 1, 3000) > 0 ? read(p.fd, text, sizeof text - 1) : 0;
        text[n > 0 ? n : 0] = 0;
        ok = !strncmp(text, "ready", 5);
        close(p.fd);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        text[strcspn(text, "\n")] = 0;
        if (!ok)
            err_set(&e, ERR_ENV, "%.400s", text[0] ? text + (strncmp(text, "error ", 6) ? 0 : 6) : "no answer");
    }
    buf_free(&plan);
    if (!ok)
        snprintf(why, n_why, "%.300s", e.msg);
    return ok;
}

/* A thread that loads the filter of system calls, to see whether that works. */
static void *jail_probe_load_filter(void *ret_loaded)
{
    static const char plan[] = "nnp\nseccomp\tnoexec\n";

    *(bool *)ret_loaded = jail_close(plan, sizeof plan - 1, NULL) == 0;
    return NULL;
}

/* In a thread, with which the filter ends. Not in a fork: libseccomp allocates, and in the copy of a process that has
 * threads a lock may be held for ever. No handler of ours runs under the filter. */
bool jail_seccomp_holds(void)
{
    bool loaded = false;
    sigset_t all, old;
    pthread_t t;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&t, NULL, jail_probe_load_filter, &loaded);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0 && pthread_join(t, NULL) == 0 && loaded;
}

static struct jail_layers layers;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Tries namespaces from the best combination down; why says what failed. */
static void probe_namespaces(char *why, size_t n)
{
    static const unsigned tries[] = {JAIL_ROOT | JAIL_PROCFS, JAIL_USERNS | JAIL_PROCFS, JAIL_ROOT, JAIL_USERNS};

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if ((tries[i] & JAIL_ROOT) && geteuid() != 0)
            continue;
        if (jail_probe_stands(tries[i], why, n)) {
            layers.held |= tries[i] | JAIL_NAMESPACES;
            return;
        }
    }
}

/* Tries each layer of the jail once and keeps which ones hold. */
static void jail_probe_probe(void)
{
    struct jail_cgroup g;
    char why[320] = "";

    layers.landlock_abi = jail_landlock_abi();
    layers.held |= layers.landlock_abi > 0 ? JAIL_LANDLOCK : 0;
    layers.held |= jail_seccomp_holds() ? JAIL_SECCOMP : 0;
    jail_cgroup_make(&g, 64 << 20, 8);
    layers.held |= (g.memory[0] ? JAIL_CGROUP_MEMORY : 0) | (g.pids[0] ? JAIL_CGROUP_PIDS : 0);
    jail_cgroup_remove(&g);
    layers.cgroup = jail_cgroup_version();
    probe_namespaces(why, sizeof why);
    layers.enough = (layers.held & JAIL_NAMESPACES) && (layers.held & JAIL_SECCOMP);
    if (!(layers.held & JAIL_NAMESPACES))
        snprintf(layers.missing, sizeof layers.missing,
                 "namespaces cannot be made (%.300s); run as root, allow unprivileged user namespaces "
                 "(sysctl kernel.unprivileged_userns_clone=1), or start the container with SYS_ADMIN", why);
    else if (!(layers.held & JAIL_SECCOMP))
        snprintf(layers.missing, sizeof layers.missing, "the kernel refuses seccomp filters; build it with "
                                                        "CONFIG_SECCOMP_FILTER");
    else if (!(layers.held & JAIL_CGROUP_MEMORY))
        snprintf(layers.missing, sizeof layers.missing,
                 "no writable memory cgroup; resident memory is watched instead (root or a delegated cgroup "
                 "is better)");
    else if (!(layers.held & JAIL_LANDLOCK))
        snprintf(layers.missing, sizeof layers.missing,
                 "the kernel has no Landlock; mounts and seccomp hold without it");
}

const struct jail_layers *jail_probe(void)
{
    pthread_once(&once, jail_probe_probe);
    return &layers;
}
