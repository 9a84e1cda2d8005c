/* bench_serve.c - load on 'musacoder serve': N clients of this process, each with a connection of its own, send unique
 * jobs and wait for their verdicts; workers of this process answer at once.
 *
 *   bench_serve MUSACODER QUEUE-URL JOBS CLIENTS WORKERS        a server is started on a free port
 *   bench_serve --claims QUEUE-URL WAITING                      claims a second with so many jobs of 1 KB waiting, and
 *                                                               how long a look at the queue's state takes
 *   bench_serve --work QUEUE-URL NAME                           a worker that answers after 20 ms, with leases of 3 s
 *
 * Prints requests a second and the median, 99th percentile and maximum of their times. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "queue/queue.h"
#include "queue/sql.h"

#define VERDICT "{\"task\":\"t\",\"status\":\"passed\",\"category\":null,\"backend\":\"sim\",\"reward\":1}"
#define REFUSED \
    "{\"task\":\"t\",\"status\":\"failed\",\"category\":\"extraction_error\",\"backend\":\"sim\",\"reward\":-1}"
#define TASK "class Model: pass\\ndef get_inputs(): pass\\ndef get_init_inputs(): pass"
#define PROGRAM_BYTES 4000 /* of a candidate, as models write them */

static struct {
    const char *queue;
    int port, jobs;
    atomic_int next, failed;
    atomic_bool stop;
    double *took;
} b;

static void *work(void *arg)
{
    struct queue *q;
    struct queue_job j;
    struct err e = ERR_INIT;
    char name[32];

    snprintf(name, sizeof name, "bench-%d", (int)(intptr_t)arg);
    if (queue_open(b.queue, &q, &e) < 0) {
        fprintf(stderr, "bench_serve: %s\n", e.msg);
        exit(1);
    }
    while (!atomic_load(&b.stop))
        if (queue_claim(q, "run:sim", name, 60, 0.2, &j, &e) == 1) {
            queue_finish(q, &j, VERDICT, &e);
            queue_job_free(&j);
        }
    queue_close(q);
    return NULL;
}

static int connect_to(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        perror("bench_serve: connect");
        exit(1);
    }
    return fd;
}

static bool send_all(int fd, const char *p, size_t n)
{
    for (ssize_t k; n; p += k, n -= (size_t)k)
        if ((k = send(fd, p, n, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* One answer; its status, or -1. */
static int receive(int fd)
{
    char buf[65536], *end, *length;
    size_t n = 0, want = sizeof buf;

    while (n < want) {
        ssize_t k = recv(fd, buf + n, sizeof buf - 1 - n, 0);
        if (k <= 0)
            return -1;
        buf[n += (size_t)k] = 0;
        if (want == sizeof buf && (end = strstr(buf, "\r\n\r\n")) && (length = strcasestr(buf, "content-length:")))
            want = (size_t)(end + 4 - buf) + strtoul(length + 15, NULL, 10);
    }
    return strstr(buf, "\"state\":\"done\"") ? atoi(buf + 9) : -1;
}

static void *client(void *arg)
{
    char *body = xmalloc(PROGRAM_BYTES + 600), *request = xmalloc(PROGRAM_BYTES + 1000);
    int fd = connect_to(b.port), i;

    (void)arg;
    while ((i = atomic_fetch_add(&b.next, 1)) < b.jobs) {
        double began;
        int n = sprintf(body, "{\"task\":{\"name\":\"t\",\"code\":\"" TASK "\"},\"candidates\":[{\"code\":\"%d %d ",
                        (int)getpid(), i);
        memset(body + n, 'x', PROGRAM_BYTES);
        n += PROGRAM_BYTES + sprintf(body + n + PROGRAM_BYTES, "\"}]}");
        n = sprintf(request, "POST /v1/eval HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", n, body);
        began = now_s();
        if (!send_all(fd, request, (size_t)n) || receive(fd) != 200) {
            atomic_fetch_add(&b.failed, 1);
            close(fd);
            fd = connect_to(b.port);
        }
        b.took[i] = now_s() - began;
    }
    close(fd);
    free(body);
    free(request);
    return NULL;
}

static pid_t start_server(const char *exe)
{
    int p[2];
    char line[512];
    FILE *f;
    pid_t pid;

    if (pipe(p) < 0 || (pid = fork()) < 0)
        exit(1);
    if (pid == 0) {
        dup2(p[1], 2);
        execl(exe, exe, "serve", "--queue", b.queue, "--port", "0", "--workers", "0", "--threads",
              strncmp(b.queue, "postgres", 8) ? "4" : "32", (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    f = fdopen(p[0], "r");
    if (!fgets(line, sizeof line, f) || sscanf(line, "serve: http://127.0.0.1:%d", &b.port) != 1) {
        fprintf(stderr, "bench_serve: the server did not start: %s", line);
        exit(1);
    }
    return pid;
}

static int by_time(const void *x, const void *y)
{
    double d = *(const double *)x - *(const double *)y;

    return (d > 0) - (d < 0);
}

static int load(const char *exe, int clients, int workers)
{
    pthread_t *c = xcalloc((size_t)clients, sizeof *c), *w = xcalloc((size_t)workers, sizeof *w);
    pid_t server = start_server(exe);
    double began, all;

    b.took = xcalloc((size_t)b.jobs, sizeof *b.took);
    for (int i = 0; i < workers; i++)
        pthread_create(&w[i], NULL, work, (void *)(intptr_t)i);
    began = now_s();
    for (int i = 0; i < clients; i++)
        pthread_create(&c[i], NULL, client, NULL);
    for (int i = 0; i < clients; i++)
        pthread_join(c[i], NULL);
    all = now_s() - began;
    atomic_store(&b.stop, true);
    for (int i = 0; i < workers; i++)
        pthread_join(w[i], NULL);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    qsort(b.took, (size_t)b.jobs, sizeof *b.took, by_time);
    printf("%s: %d jobs, %d clients, %d workers: %.0f requests/s, p50 %.0f ms, p99 %.0f ms, longest %.0f ms, %d "
           "failed\n", strncmp(b.queue, "postgres", 8) ? "SQLite" : "PostgreSQL", b.jobs, clients, workers,
           b.jobs / all, 1e3 * b.took[b.jobs / 2], 1e3 * b.took[b.jobs - 1 - b.jobs / 100], 1e3 * b.took[b.jobs - 1],
           atomic_load(&b.failed));
    free(c);
    free(w);
    free(b.took);
    return atomic_load(&b.failed) != 0;
}

/* Claims and finishes n jobs: how many a second. */
static double claim_rate(struct queue *q, int n)
{
    struct queue_job j;
    struct err e = ERR_INIT;
    double began = now_s();

    for (int i = 0; i < n; i++)
        if (queue_claim(q, "run:sim", "bench", 60, 1, &j, &e) == 1) {
            queue_finish(q, &j, VERDICT, &e);
            queue_job_free(&j);
        } else {
            fprintf(stderr, "bench_serve: nothing to claim: %s\n", e.msg);
            exit(1);
        }
    return n / (now_s() - began);
}

static void put_many(struct queue *q, const char *what, int n)
{
    struct err e = ERR_INIT;
    char key[64];
    int64_t id;

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s %d", what, i);
        if (queue_put(q, &(struct queue_item){.key = key, .payload = key, .lane = "run:sim"}, &id, &e) < 0) {
            fprintf(stderr, "bench_serve: %s\n", e.msg);
            exit(1);
        }
    }
}

/* A crowd of jobs in one statement: a million in seconds. */
static void fill(int n)
{
    static const char text[] =
        "INSERT INTO job(key, lane, owner, priority, payload, attempts, made, rank)"
        " WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < $1)"
        " SELECT 'many ' || i, 'run:sim', '', 0, $2, 3, {now}, 10000 + i FROM k";
    struct err e = ERR_INIT;
    struct sql *s;
    char payload[1001];

    memset(payload, 'x', 1000);
    payload[1000] = 0;
    if (sql_open(b.queue, "SELECT 1", QUEUE_VERSION, &s, &e) < 0 || sql_run(s, NULL, &e, text, "it", (int64_t)n,
                                                                            payload) < 0) {
        fprintf(stderr, "bench_serve: %s\n", e.msg);
        exit(1);
    }
    sql_close(s);
}

static int claims(int waiting)
{
    struct queue *q;
    struct queue_stats st;
    struct err e = ERR_INIT;
    double few, many, look;

    if (queue_open(b.queue, &q, &e) < 0) {
        fprintf(stderr, "bench_serve: %s\n", e.msg);
        return 1;
    }
    put_many(q, "few", 2000);
    few = claim_rate(q, 2000);
    fill(waiting);
    look = now_s();
    if (queue_stats(q, &st, &e) < 0 || st.waiting != waiting)
        return 1;
    look = now_s() - look;
    many = claim_rate(q, 2000);
    printf("%d waiting: %.0f claims/s, against %.0f with 2000 waiting: %.2f; a look at the state %.0f ms\n", waiting,
           many,
           few, many / few, 1e3 * look);
    queue_close(q);
    return 0;
}

/* What a worker of the judge does with its queue, without the judging: for tests of faults. */
static int work_on(const char *url, const char *name)
{
    struct queue *q;
    struct queue_job j;
    struct err e = ERR_INIT;

    while (queue_open(url, &q, &e) < 0) { /* as the judge's workers, which outlive their database */
        if (e.kind != ERR_ENV || stop_requested())
            return fprintf(stderr, "bench_serve: %s\n", e.msg), 1;
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
    while (!stop_requested()) {
        int got = queue_claim(q, "run:sim", name, 3, 0.2, &j, &e);
        if (got == 1) {
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            if (queue_heartbeat(q, &j, 3, &e) == 1)
                got = queue_finish(q, &j, REFUSED, &e);
            queue_job_free(&j);
        }
        if (got < 0)
            nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
    queue_close(q);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--work"))
        return work_on(argv[2], argv[3]);
    if (argc == 4 && !strcmp(argv[1], "--claims")) {
        b.queue = argv[2];
        return claims(atoi(argv[3]));
    }
    if (argc != 6) {
        fprintf(stderr, "usage: bench_serve MUSACODER QUEUE-URL JOBS CLIENTS WORKERS | --claims QUEUE-URL WAITING |"
                        " --work QUEUE-URL NAME\n");
        return 2;
    }
    b.queue = argv[2];
    b.jobs = atoi(argv[3]);
    return load(argv[1], atoi(argv[4]), atoi(argv[5]));
}
