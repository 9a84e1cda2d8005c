/* mcexec.c - the executor's program: 'mcexec BACKEND DEVICE MEMORY CHECK JAIL' (JAIL: apart, jail or open),
 * started by exec.c with its socket and
 * the bulk area as descriptors 3 and 4. It serves one client and the judge, and ends with the judge. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/cuda_driver.h"
#include "exec/ctl.h"
#include "exec/fdpass.h"
#include "exec/kernels_jail.h"
#include "exec/exec_server.h"

#define SPIN_NS 200000u /* looked at the ring for so long before the bell is needed */

static struct exec_server server;

/* Opens the backend and the ring from the command line. */
static int mcexec_start(struct exec_server *s, char **argv, struct err *e)
{
    const struct backend_options o = {argv[1], atoi(argv[2]), strtoull(argv[3], NULL, 10),
                                      !strcmp(argv[4], "no-check")};

    s->ops = !strcmp(argv[1], "sim") ? &exec_on_sim : drv_vendor_find(argv[1]) ? &exec_on_driver : NULL;
    if (!s->ops)
        return err_set(e, ERR_INPUT, "there is no backend '%s'", argv[1]);
    s->ctl = CTL_FD;
    s->bulk = mmap(NULL, CTL_BULK, PROT_READ | PROT_WRITE, MAP_SHARED, CTL_BULK_FD, 0);
    if (s->bulk == MAP_FAILED)
        return err_sys(e, "cannot map the bulk area");
    if (s->ops->open(&o, &s->b, &s->info, e) < 0)
        return -1;
    s->msg = xmalloc(RING_MESSAGE);
    s->down = xmalloc(WIRE_CHUNK > sizeof(struct wire_function_info) ? WIRE_CHUNK : sizeof(struct wire_function_info));
    context_init(&s->context, &s->info, s->info.memory);
    player_init(&s->player, s->ops, s->b, &s->images);
    s->player.shared_from = WIRE_BASE + s->info.reserved / 2;
    return play_queue_start(&s->queue, &s->player, &s->context.log, &s->ring, e);
}

static bool mcexec_served(const struct exec_server *s)
{
    return s->ring.area && !s->paused;
}

/* Looks at the ring for a while, then sleeps until the judge or the client's bell. */
static void mcexec_wait_for_work(struct exec_server *s)
{
    struct pollfd p[2] = {{.fd = s->ctl, .events = POLLIN},
                          {.fd = mcexec_served(s) ? s->ring.bell : -1, .events = POLLIN}};

    if (mcexec_served(s) && !ring_sleep(&s->ring))
        return;
    poll(p, 2, 100);
    if (mcexec_served(s))
        ring_wake(&s->ring);
}

/* Serves the client's ring and the judge's control socket until the latter closes. */
static void mcexec_loop(struct exec_server *s)
{
    uint64_t idle_since = 0, spin = sysconf(_SC_NPROCESSORS_ONLN) > 2 ? SPIN_NS : 0;
    struct pollfd judge = {.fd = s->ctl, .events = POLLIN};

    for (;;) {
        if (serve_some(s, 64) > 0) {
            idle_since = 0;
            continue;
        }
        if (!idle_since)
            idle_since = clock_now_ns();
        if (poll(&judge, 1, 0) > 0) {
            if (!serve_ctl(s, 0))
                return;
            idle_since = 0;
        } else if (!mcexec_served(s) || clock_now_ns() - idle_since > spin) {
            mcexec_wait_for_work(s);
        }
    }
}

/* A judge that has gone is noticed even while a kernel runs that never ends. The orderly way is sooner, but under a
 * profiler it takes its time. */
static void *mcexec_watch_judge(void *arg)
{
    struct pollfd p = {.fd = CTL_FD, .events = POLLRDHUP};
    const char *jail = arg;

    while (!(poll(&p, 1, -1) > 0 && p.revents & (POLLHUP | POLLRDHUP)))
        ;
    usleep(strcmp(jail, "open") ? 200000 : 60000000);
    if (server.ops->tidy)
        server.ops->tidy(server.b);
    _exit(1);
}

/* The judge's time is up (executor_stand). */
static void mcexec_on_stop(int sig)
{
    (void)sig;
    if (server.ops->stop)
        server.ops->stop(server.b);
}

/* mcexec BACKEND DEVICE MEMORY CHECK APART, started by the judge alone. Exit 0, or 2 for wrong usage. */
int main(int argc, char **argv)
{
    struct ctl_reply ready = {0};
    struct err e = ERR_INIT;

    pthread_t watch;
    bool apart;

    if (argc != 6) {
        fprintf(stderr, "mcexec is started by musacoder\n");
        return 2;
    }
    if (strcmp(argv[5], "open"))
        prctl(PR_SET_DUMPABLE, 0); /* the process for kernels, of the same user, must not look in here */
    apart = !strcmp(argv[5], "apart") && executor_apart(!strcmp(argv[1], "sim"));
    if (mcexec_start(&server, argv, &e) < 0) {
        ready.code = (int)e.kind;
        snprintf(ready.why, sizeof ready.why, "%.255s", e.msg);
    } else if (apart && server.ops->shut_in && !server.ops->shut_in(server.b)) {
        ready.code = ERR_ENV;
        snprintf(ready.why, sizeof ready.why, "the executor cannot be shut in its folder");
    }
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = mcexec_on_stop, .sa_flags = SA_RESTART}, NULL);
    if (strcmp(argv[5], "open")) /* a profiler needs more */
        executor_jail(); /* on 'sim' the process that forks others is another one, and has been started */
    if (fdpass_send(CTL_FD, &ready, sizeof ready, NULL, 0) < 0 || ready.code)
        return 1;
    if (pthread_create(&watch, NULL, mcexec_watch_judge, argv[5]))
        return 1;
    mcexec_loop(&server);
    play_queue_stop(&server.queue);
    ring_close(&server.ring);
    server.ops->close(server.b);
    return 0;
}
