/* collective.cu - sums over GPUs by NCCL, found with dlopen: nothing is linked, one GPU needs no NCCL. */
#include "nn/ops/cuda/ops.cuh"

#include <stdlib.h>
#include <string.h>

#ifdef NN_EMULATED
int op_comm_id(void *host_id, char *msg, size_t n)
{
    snprintf(msg, n, "the emulator has no NCCL");
    return -1;
}
int op_comm_open(struct nn_queue *q, const void *host_id, int rank, int world, char *msg, size_t n)
{
    snprintf(msg, n, "the emulator has no NCCL");
    return -1;
}
void op_comm_sum(struct nn_queue *q, size_t n, float *x) {}
int op_comm_failed(struct nn_queue *q, char *msg, size_t n) { return 0; }
void op_comm_abort(struct nn_queue *q) {}
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
    if (!(lib = library_open("nccl", "2", msg, n)))
        return NULL;
#define LOOK(name)                                                                                                     \
    if (!(f.name = (decltype(f.name))library_symbol(lib, #name, msg, n)))                                              \
        return NULL;
    LOOK(ncclGetUniqueId) LOOK(ncclCommInitRank) LOOK(ncclCommGetAsyncError) LOOK(ncclCommAbort)
    LOOK(ncclGetErrorString) LOOK(ncclAllReduce)
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
