/* fake_client.h - a candidate's process for tests: a child that attaches to a life and takes a step each time it is
 * told. */
#ifndef TESTS_EXEC_FRONT_H
#define TESTS_EXEC_FRONT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/client.h"
#include "exec/exec.h"

struct front_notes { /* shared by both */
    uint64_t in, out, param;
    int code;
    uint8_t image[32];
    float f;
    char bytes[256];
};

struct front {
    pid_t pid;
    int go, done;
    struct front_notes *notes;
};

/* step(c, n, notes) is called with n = 0, 1, 2, ... */
static inline void front_start(struct front *f, int fds[2], void (*step)(struct client *, int, struct front_notes *))
{
    int to[2], from[2];
    char c;

    if (!f->notes)
        f->notes = mmap(NULL, sizeof *f->notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pipe(to) || pipe(from))
        abort();
    if ((f->pid = fork()) == 0) {
        struct client *cl = client_attach(fds[0], fds[1]);

        close(to[1]);
        close(from[0]);
        if (!cl)
            _exit(9);
        for (int n = 0; read(to[0], &c, 1) == 1; n++) {
            step(cl, n, f->notes);
            if (write(from[1], &c, 1) != 1)
                break;
        }
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    close(fds[0]);
    close(fds[1]);
    f->go = to[1];
    f->done = from[0];
}

static inline int front_step(struct front *f) /* 0; -1: it has ended */
{
    char c = 's';

    return write(f->go, &c, 1) == 1 && read(f->done, &c, 1) == 1 ? 0 : -1;
}

static inline void front_end(struct front *f)
{
    close(f->go);
    close(f->done);
    waitpid(f->pid, NULL, 0);
}

#endif
