/* daemon_place.c - where owners are found: the folder, the names, and who lives there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/daemon_wire.h"

#define SWEEP_S 86400
#define STATE_S 5.0 /* for a word of an owner about itself */

/* The user's alone: a folder of somebody else, or one that others may write, is refused. */
static int daemon_place_folder_check(const char *path, struct err *e)
{
    struct stat s;

    if (mkdir(path, 0700) == 0 || lstat(path, &s) < 0)
        return file_is_dir(path) ? 0 : err_sys(e, "cannot make '%s'", path);
    if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077))
        return err_set(e, ERR_ENV, "'%s' is not a folder of this user's alone; remove it", path);
    return 0;
}

/* The folder of this user's sockets, made and checked to be ours alone. */
static int daemon_place_folder_of(char *ret, size_t n, struct err *e)
{
    const char *run = getenv("MUSACODER_RUN_DIR"); /* of tests; a user has one place for all sessions */

    if (run && *run && strlen(run) < 48)
        snprintf(ret, n, "%s", run);
    else
        snprintf(ret, n, "/tmp/musacoder-%u", (unsigned)geteuid());
    return daemon_place_folder_check(ret, e);
}

int daemon_place(const char *backend, const char *digest, struct daemon_place *ret, struct err *e)
{
    struct daemon_place p = {.digest = ""};
    char folder[64];

    if (daemon_place_folder_of(folder, sizeof folder, e) < 0)
        return -1;
    snprintf(p.digest, sizeof p.digest, "%s", digest);
    snprintf(p.socket, sizeof p.socket, "%s/%.8s-%.16s.sock", folder, backend, digest);
    snprintf(p.lock, sizeof p.lock, "%s/%.8s-%.16s.lock", folder, backend, digest);
    snprintf(p.log, sizeof p.log, "%s/%.8s-%.16s.log", folder, backend, digest);
    *ret = p;
    return 0;
}

/* One word to the owner of a socket: its reply, or NULL. */
static json_t *daemon_place_say(const char *socket, const char *op)
{
    json_t *request = json_pack("{s:s}", "op", op), *reply = NULL;
    int fd = daemon_dial(socket, NULL);

    if (fd >= 0 && daemon_send(fd, request, STATE_S, NULL, NULL) == 0)
        reply = daemon_recv(fd, STATE_S, NULL, NULL);
    if (fd >= 0)
        close(fd);
    json_decref(request);
    return reply;
}

/* "sim-0123456789abcdef" and the ending, as daemon_place_of names them: the folder may hold other programs' files. */
static bool daemon_place_is_name(const char *name, const char *ending)
{
    const char *digest = strrchr(name, '-');

    return digest && digest > name && digest - name <= 8 && strspn(digest + 1, "0123456789abcdef") == 16 &&
           !strcmp(digest + 17, ending);
}

/* Says op to all, and gathers what they answer. */
static json_t *daemon_place_say_to_all(const char *op, struct err *e)
{
    json_t *all, *one;
    char folder[64], **names;
    size_t n;

    if (daemon_place_folder_of(folder, sizeof folder, e) < 0 || dir_list(folder, &names, &n, e) < 0)
        return NULL;
    all = json_array();
    for (size_t i = 0; i < n; i++) {
        char *path = path_join(folder, names[i]);

        if (daemon_place_is_name(names[i], ".sock") && (one = daemon_place_say(path, op)))
            json_array_append_new(all, one);
        free(path);
    }
    names_free(names, n);
    return all;
}

/* ---- what the dead left ---- */

static bool daemon_place_is_old(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0 || time(NULL) - st.st_mtime > SWEEP_S;
}

/* True where somebody listens at the socket. */
static bool daemon_place_lives(const char *socket)
{
    int fd = daemon_dial(socket, NULL);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* stem: the path without "lock". Who has the lock starts an owner; who opened it before it was removed sees that it has
 * no name (daemon_ask.c). */
static void daemon_place_sweep_one(const char *stem)
{
    char lock[200], log[200], socket[200];
    int fd;

    snprintf(lock, sizeof lock, "%slock", stem);
    snprintf(log, sizeof log, "%slog", stem);
    snprintf(socket, sizeof socket, "%ssock", stem);
    if (!daemon_place_is_old(log) || !daemon_place_is_old(lock) || (fd = open(lock, O_RDWR | O_CLOEXEC)) < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && !daemon_place_lives(socket)) {
        unlink(socket);
        unlink(log);
        unlink(lock);
    }
    close(fd);
}

void daemon_sweep(void)
{
    char folder[64], **names, stem[180];
    size_t n;

    if (daemon_place_folder_of(folder, sizeof folder, NULL) < 0 || dir_list(folder, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);

        if (daemon_place_is_name(names[i], ".lock")) {
            snprintf(stem, sizeof stem, "%s/%.*s", folder, (int)len - 4, names[i]);
            daemon_place_sweep_one(stem);
        }
    }
    names_free(names, n);
}

/* What the lock's file says of who has the device: "PID SOCKET". Says "leave" to a socket that it has not told yet. */
static void daemon_place_ask_to_leave(int fd, char *told, size_t n)
{
    char text[200], socket[120] = "";
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    int pid = 0;

    text[got < 0 ? 0 : got] = 0;
    if (!strcmp(text, told) || sscanf(text, "%d %119s", &pid, socket) < 1)
        return;
    snprintf(told, n, "%s", text);
    log_info("process %d has the device; waiting until it leaves", pid);
    if (*socket)
        json_decref(daemon_place_say(socket, "leave"));
}

int daemon_device(const char *uuid, const char *socket, struct err *e)
{
    char folder[64], path[200], told[200] = "", text[200];
    int fd;

    if (daemon_place_folder_of(folder, sizeof folder, e) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%.100s.device", folder, uuid);
    if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
        return err_sys(e, "cannot open '%s'", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (stop_requested()) {
            close(fd);
            return err_set(e, ERR_STOP, "interrupted");
        }
        daemon_place_ask_to_leave(fd, told, sizeof told);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    snprintf(text, sizeof text, "%d %s", (int)getpid(), socket ? socket : "");
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) < 0)
        log_debug("cannot write '%s'", path);
    return fd;
}

json_t *daemon_list(struct err *e)
{
    return daemon_place_say_to_all("state", e);
}

int daemon_stop_all(struct err *e)
{
    json_t *all = daemon_place_say_to_all("leave", e);
    int n = all ? (int)json_array_size(all) : -1;

    json_decref(all);
    return n;
}
