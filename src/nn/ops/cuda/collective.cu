/* collective.cu - sums over GPUs by NCCL, found with dlopen: nothing is linked, one GPU needs no NCCL. */
#include "nn/ops/cuda/ops.cuh"

#include <stdlib.h>
#include <string.h>

#ifdef NN_EMULATED
/* Ranks of the emulator are processes that meet in shared memory: for tests of what runs on several GPUs. */
#include <atomic>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 16384 /* numbers of each rank in one exchange */
#define STUCK_S 60

struct meeting {
    std::atomic<int> here, round; /* zero in fresh memory */
    float part[];                 /* (world, AT_ONCE) */
};

struct comm {
    struct meeting *m;
    size_t bytes;
    int rank, world;
    bool stuck;
};

int op_comm_id(void *host_id, char *msg, size_t n)
{
    static int made;

    memset(host_id, 0, 128);
    snprintf((char *)host_id, 128, "/musacoder-%d-%d-%ld", (int)getpid(), made++, (long)time(NULL));
    return 0;
}

/* Waits until all ranks are here. A rank that never comes ends the others after a minute. */
static void meet(struct nn_queue *q)
{
    struct comm *c = q->comm;
    int round = c->m->round.load();
    time_t until = time(NULL) + STUCK_S;

    if (c->m->here.fetch_add(1) + 1 == c->world) {
        c->m->here.store(0);
        c->m->round.store(round + 1);
    }
    while (c->m->round.load() == round && !c->stuck) {
        usleep(50);
        c->stuck = time(NULL) > until;
    }
    if (c->stuck)
        queue_fail(q, "ranks", "another rank did not come");
}

int op_comm_open(struct nn_queue *q, const void *host_id, int rank, int world, char *msg, size_t n)
{
    struct comm *c = (struct comm *)calloc(1, sizeof *c);
    int fd = shm_open((const char *)host_id, O_RDWR | O_CREAT, 0600);

    c->rank = rank;
    c->world = world;
    c->bytes = sizeof *c->m + (size_t)world * AT_ONCE * sizeof(float);
    if (fd < 0 || ftruncate(fd, (off_t)c->bytes) < 0 ||
        (c->m = (struct meeting *)mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
        snprintf(msg, n, "no shared memory for the ranks");
        free(c);
        return -1;
    }
    close(fd);
    q->comm = c;
    meet(q);
    if (rank == 0)
        shm_unlink((const char *)host_id);
    return 0;
}

void op_comm_sum(struct nn_queue *q, size_t n, float *x)
{
    struct comm *c = q->comm;

    for (size_t from = 0; from < n && !c->stuck; from += AT_ONCE) {
        size_t some = n - from < AT_ONCE ? n - from : AT_ONCE;
        memcpy(c->m->part + (size_t)c->rank * AT_ONCE, x + from, some * sizeof *x);
        meet(q);
        for (size_t i = 0; i < some; i++) {
            float sum = 0;
            for (int r = 0; r < c->world; r++)
                sum += c->m->part[(size_t)r * AT_ONCE + i];
            x[from + i] = sum;
        }
        meet(q);
    }
}

void op_comm_share(struct nn_queue *q, size_t n, float *x, int root)
{
    struct comm *c = q->comm;

    for (size_t from = 0; from < n && !c->stuck; from += AT_ONCE) {
        size_t some = n - from < AT_ONCE ? n - from : AT_ONCE;
        if (c->rank == root)
            memcpy(c->m->part, x + from, some * sizeof *x);
        meet(q);
        memcpy(x + from, c->m->part, some * sizeof *x);
        meet(q);
    }
}

int op_comm_failed(struct nn_queue *q, char *msg, size_t n) { return 0; }

void op_comm_abort(struct nn_queue *q)
{
    if (!q->comm)
        return;
    munmap(q->comm->m, q->comm->bytes);
    free(q->comm);
    q->comm = NULL;
}
#else
/* The part of nccl.h that is used, so that building needs no NCCL. Values are NCCL 2's ABI. */
typedef struct ncclComm *nccl_comm;
struct nccl_id {
    char bytes[128];
};
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

struct nccl {
    int (*ncclGetUniqueId)(struct nccl_id *);
    int (*ncclCommInitRank)(nccl_comm *, int, struct nccl_id, int);
    int (*ncclAllReduce)(const void *, void *, size_t, int, int, nccl_comm, cudaStream_t);
    int (*ncclBroadcast)(const void *, void *, size_t, int, int, nccl_comm, cudaStream_t);
    int (*ncclCommGetAsyncError)(nccl_comm, int *);
    int (*ncclCommAbort)(nccl_comm);
    const char *(*ncclGetErrorString)(int);
};

struct comm {
    const struct nccl *f;
    nccl_comm comm;
};

static const struct nccl *nccl_load(char *msg, size_t n)
{
    static struct nccl f;
    void *lib;

    if (f.ncclAllReduce)
        return &f;
    if (!(lib = library_open(COMM_LIBRARY, msg, n)))
        return NULL;
#define LOOK(name)                                                                                                     \
    if (!(f.name = (decltype(f.name))library_symbol(lib, SYMBOL(name), msg, n)))                                       \
        return NULL;
    LOOK(ncclGetUniqueId) LOOK(ncclCommInitRank) LOOK(ncclCommGetAsyncError) LOOK(ncclCommAbort)
    LOOK(ncclGetErrorString) LOOK(ncclBroadcast) LOOK(ncclAllReduce)
#undef LOOK
    return &f;
}

static int nccl_fail(const struct nccl *f, int rc, const char *what, char *msg, size_t n)
{
    if (rc != NCCL_SUCCESS)
        snprintf(msg, n, "%s: %s", what, f->ncclGetErrorString(rc));
    return rc == NCCL_SUCCESS ? 0 : -1;
}

int op_comm_id(void *host_id, char *msg, size_t n)
{
    const struct nccl *f = nccl_load(msg, n);

    return f ? nccl_fail(f, f->ncclGetUniqueId((struct nccl_id *)host_id), "ncclGetUniqueId", msg, n) : -1;
}

int op_comm_open(struct nn_queue *q, const void *host_id, int rank, int world, char *msg, size_t n)
{
    const struct nccl *f = nccl_load(msg, n);
    struct nccl_id id;

    if (!f)
        return -1;
    memcpy(&id, host_id, sizeof id);
    q->comm = (struct comm *)calloc(1, sizeof *q->comm);
    q->comm->f = f;
    return nccl_fail(f, f->ncclCommInitRank(&q->comm->comm, world, id, rank), "ncclCommInitRank", msg, n);
}

void op_comm_sum(struct nn_queue *q, size_t n, float *x)
{
    int rc = q->comm->f->ncclAllReduce(x, x, n, NCCL_FLOAT32, NCCL_SUM, q->comm->comm, q->stream);

    if (rc != NCCL_SUCCESS)
        queue_fail(q, "ncclAllReduce", q->comm->f->ncclGetErrorString(rc));
}

void op_comm_share(struct nn_queue *q, size_t n, float *x, int root)
{
    int rc = q->comm->f->ncclBroadcast(x, x, n, NCCL_FLOAT32, root, q->comm->comm, q->stream);

    if (rc != NCCL_SUCCESS)
        queue_fail(q, "ncclBroadcast", q->comm->f->ncclGetErrorString(rc));
}

int op_comm_failed(struct nn_queue *q, char *msg, size_t n)
{
    int state = NCCL_SUCCESS;

    if (!q->comm || q->comm->f->ncclCommGetAsyncError(q->comm->comm, &state) != NCCL_SUCCESS)
        return 0;
    if (state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS)
        return 0;
    snprintf(msg, n, "NCCL: %s", q->comm->f->ncclGetErrorString(state));
    return 1;
}

void op_comm_abort(struct nn_queue *q)
{
    if (q->comm) {
        q->comm->f->ncclCommAbort(q->comm->comm);
        free(q->comm);
        q->comm = NULL;
    }
}
#endif
