/* jail_cgroup.c - memory and pids limits of one jail through cgroup v1 or v2, whichever is writable; and the watch on
 * resident memory for machines where neither is. Groups are named mc-PID-N after their maker, so that those of dead
 * makers can be swept. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proc/jail.h"

static struct {
    int version; /* 0 none, 1, 2 */
    char memory[200], pids[200];
} base;
static pthread_once_t base_once = PTHREAD_ONCE_INIT;

/* Writes text to a group's file. -1: the kernel refused. */
static int jail_cgroup_put(const char *folder, const char *file, const char *text)
{
    char path[400];
    int fd, ok;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
        return -1;
    ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return ok ? 0 : -1;
}

/* A key's number in a control group's file; -1: there is none. */
static long jail_cgroup_get_key(const char *folder, const char *file, const char *key)
{
    char path[400], word[64];
    long value = -1, v;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!(f = fopen(path, "re")))
        return -1;
    while (fscanf(f, "%63s %ld", word, &v) == 2)
        if (!strcmp(word, key))
            value = v;
    fclose(f);
    return value;
}

static bool jail_cgroup_exists_in(const char *folder, const char *file)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, F_OK) == 0;
}

/* Where our own process sits in a controller's tree: "/x/y"; "" when it is not mounted. */
static void jail_cgroup_own_path(const char *controller, char *out, size_t n)
{
    char line[512];
    FILE *f = fopen("/proc/self/cgroup", "re");

    out[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL, *save = NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (!*controller && list[1] == 0)
            snprintf(out, n, "%s", path);
        for (char *w = strtok_r(list + 1, ",", &save); w; w = strtok_r(NULL, ",", &save))
            if (*controller && !strcmp(w, controller))
                snprintf(out, n, "%s", path);
    }
    if (f)
        fclose(f);
}

/* Tries to make a group with the limit file in root + under; removes it again. */
static bool jail_cgroup_works(const char *folder, const char *limit_file)
{
    char path[256], name[64];
    bool ok;

    if (strlen(folder) > 180)
        return false;
    snprintf(name, sizeof name, "mc-%d-probe", (int)getpid());
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return false;
    ok = jail_cgroup_exists_in(path, limit_file) && access(path, W_OK) == 0;
    rmdir(path);
    return ok;
}

/* Finds the folder of a controller of version 1 in which groups can be made; ret stays empty without one. */
static void jail_cgroup_find_v1(const char *controller, const char *limit_file, char *ret, size_t n)
{
    char own[200], path[512];
    const char *tails[2];

    jail_cgroup_own_path(controller, own, sizeof own);
    tails[0] = own;
    tails[1] = "";
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s", controller, strcmp(tails[i], "/") ? tails[i] : "");
        if (jail_cgroup_works(path, limit_file) && strlen(path) < n) {
            strcpy(ret, path);
            return;
        }
    }
}

/* v2: controllers must be enabled in the parent, which must hold no process itself (unless it is the real root). So
 * our group's parent, then the root, are candidates; systemd's delegated user slices are found by the first. */
static void jail_cgroup_find_v2(const char *mount)
{
    char own[200], path[512], *slash;

    jail_cgroup_own_path("", own, sizeof own);
    snprintf(path, sizeof path, "%s%s", mount, strcmp(own, "/") ? own : "");
    for (;;) {
        jail_cgroup_put(path, "cgroup.subtree_control", "+memory");
        jail_cgroup_put(path, "cgroup.subtree_control", "+pids");
        if (jail_cgroup_works(path, "memory.max") && jail_cgroup_works(path, "pids.max") &&
            strlen(path) < sizeof base.memory) {
            strcpy(base.memory, path);
            strcpy(base.pids, path);
            base.version = 2;
            return;
        }
        if (!(slash = strrchr(path, '/')) || (size_t)(slash - path) < strlen(mount))
            return;
        *slash = 0;
    }
}

/* Removes groups whose maker is dead. */
static void jail_cgroup_sweep(const char *folder)
{
    DIR *d = folder[0] ? opendir(folder) : NULL;
    struct dirent *de;
    int pid;
    char path[512];

    while (d && (de = readdir(d)))
        if (sscanf(de->d_name, "mc-%d-", &pid) == 1 && kill(pid, 0) < 0 && errno == ESRCH) {
            snprintf(path, sizeof path, "%s/%.200s", folder, de->d_name);
            rmdir(path);
        }
    if (d)
        closedir(d);
}

/* Finds where groups can be made, once, and removes those of processes that are gone. */
static void jail_cgroup_find_base(void)
{
    if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) {
        jail_cgroup_find_v2("/sys/fs/cgroup");
    } else {
        jail_cgroup_find_v1("memory", "memory.limit_in_bytes", base.memory, sizeof base.memory);
        jail_cgroup_find_v1("pids", "pids.max", base.pids, sizeof base.pids);
        if (base.memory[0] || base.pids[0])
            base.version = 1;
        else
            jail_cgroup_find_v2("/sys/fs/cgroup/unified");
    }
    jail_cgroup_sweep(base.memory);
    if (strcmp(base.memory, base.pids))
        jail_cgroup_sweep(base.pids);
}

int jail_cgroup_version(void)
{
    pthread_once(&base_once, jail_cgroup_find_base);
    return base.version;
}

/* Makes a group below parent; its path goes to ret, "" where that failed. */
static bool jail_cgroup_make_one(const char *parent, const char *name, char *ret, size_t n)
{
    if (!parent[0] || (size_t)snprintf(ret, n, "%s/%s", parent, name) >= n ||
        (mkdir(ret, 0755) < 0 && errno != EEXIST)) {
        ret[0] = 0;
        return false;
    }
    return true;
}

void jail_cgroup_make(struct jail_cgroup *g, size_t memory_bytes, int pids)
{
    static atomic_uint count;
    char name[64], text[32];

    pthread_once(&base_once, jail_cgroup_find_base);
    memset(g, 0, sizeof *g);
    snprintf(name, sizeof name, "mc-%d-%u", (int)getpid(), atomic_fetch_add(&count, 1));
    snprintf(text, sizeof text, "%zu", memory_bytes ? memory_bytes : JAIL_MEMORY);
    if (jail_cgroup_make_one(base.memory, name, g->memory, sizeof g->memory)) {
        jail_cgroup_put(g->memory, base.version == 2 ? "memory.max" : "memory.limit_in_bytes", text);
        if (base.version == 2)
            jail_cgroup_put(g->memory, "memory.swap.max", "0"), jail_cgroup_put(g->memory, "memory.oom.group", "1");
        else
            jail_cgroup_put(g->memory, "memory.memsw.limit_in_bytes", text),
                jail_cgroup_put(g->memory, "memory.swappiness", "0");
    }
    if (jail_cgroup_make_one(base.pids, name, g->pids, sizeof g->pids)) {
        snprintf(text, sizeof text, "%d", (pids ? pids : 64) + 2); /* mcjail and the fork server's middle process */
        jail_cgroup_put(g->pids, "pids.max", text);
    }
}

int jail_cgroup_add(const struct jail_cgroup *g, pid_t pid)
{
    char text[16] = "0";
    int i = 15;

    if (pid > 0) {
        text[i] = 0;
        for (unsigned v = (unsigned)pid; v; v /= 10)
            text[--i] = (char)('0' + v % 10);
    } else {
        i = 0;
    }
    if (g->memory[0] && jail_cgroup_put(g->memory, "cgroup.procs", text + i) < 0)
        return -1;
    if (g->pids[0] && strcmp(g->pids, g->memory) && jail_cgroup_put(g->pids, "cgroup.procs", text + i) < 0)
        return -1;
    return 0;
}

/* Version 2 has it since Linux 5.19. */
size_t jail_cgroup_peak(const struct jail_cgroup *g)
{
    char path[400];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", g->memory, base.version == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
    if (!g->memory[0] || !(f = fopen(path, "re")))
        return 0;
    if (fscanf(f, "%zu", &n) != 1)
        n = 0;
    fclose(f);
    return n;
}

long jail_cgroup_kills(const struct jail_cgroup *g)
{
    if (!g->memory[0])
        return -1;
    return jail_cgroup_get_key(g->memory, base.version == 2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

/* A group can be busy for a moment after its last member died. */
static void jail_cgroup_remove_one(const char *folder)
{
    for (int i = 0; folder[0] && i < 20 && rmdir(folder) < 0 && errno == EBUSY; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void jail_cgroup_remove(struct jail_cgroup *g)
{
    jail_cgroup_remove_one(g->memory);
    if (strcmp(g->memory, g->pids))
        jail_cgroup_remove_one(g->pids);
    memset(g, 0, sizeof *g);
}

/* The watch ------------------------------------------------------------------------------------------------------ */

/* Bytes of the process that are its own and resident; 0: it is gone. */
static size_t jail_cgroup_resident_of(int pid)
{
    char path[64];
    size_t pages = 0, shared = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    if (!(f = fopen(path, "re")))
        return 0;
    if (fscanf(f, "%*u %zu %zu", &pages, &shared) != 2)
        pages = 0;
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t jail_resident(pid_t box)
{
    char path[64], want[64] = "", have[64];
    size_t total = 0;
    struct dirent *de;
    DIR *d;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)box);
    if ((n = readlink(path, want, sizeof want - 1)) <= 0 || !(d = opendir("/proc")))
        return 0;
    want[n] = 0;
    while ((de = readdir(d))) {
        int pid = atoi(de->d_name);
        if (pid <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
        if ((n = readlink(path, have, sizeof have - 1)) <= 0)
            continue;
        have[n] = 0;
        if (!strcmp(have, want))
            total += jail_cgroup_resident_of(pid);
    }
    closedir(d);
    return total;
}
