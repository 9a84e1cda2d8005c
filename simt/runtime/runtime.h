/* runtime.h - what the files of libsimt share: the running launch and block, findings, and the seams between the
 * scheduler, the checker and the crash handler. There is one of each per process: launches take turns under a lock. */
#ifndef SIMT_RUNTIME_H
#define SIMT_RUNTIME_H

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fiber.h"
#include "simt/abi.h"

#define WARP SIMT_WARP_SIZE
#define MAX_THREADS 1024
#define MAX_WARPS (MAX_THREADS / WARP)
#define NAMED_BARRIERS 16
#define SHARED_DEFAULT (48u << 10) /* bytes a block may use without asking */
#define SHARED_STATIC_ROOM (80u << 10) /* what a profile may raise SHARED_DEFAULT to */
#define SHARED_OPTIN (227u << 10)
extern unsigned device_shared_default, device_shared_optin, device_grid_yz; /* host.c: what a profile leaves of them */
/* Blocks of so many threads, and bytes of shared memory each, that the device holds at once; registers may allow
 * fewer. */
size_t device_resident(int threads, size_t shared);

#if WARP > 64
typedef unsigned __int128 mask_t;
#elif WARP > 32
typedef uint64_t mask_t;
#else
typedef uint32_t mask_t;
#endif
#define LANE_BIT(lane) ((mask_t)1 << (lane))

/* Variables of a thread that signal handlers read. The usual model of a loaded library calls malloc when a thread first
 * touches them, and the thread may have faulted inside malloc. */
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))

/* A host thread, as the address of something of its own. Checked accesses ask for it, and pthread_self() would cost a
 * quarter of their time. */
extern __thread char thread_mark __attribute__((tls_model("initial-exec")));
static inline const void *this_host_thread(void)
{
    return &thread_mark;
}

/* The error codes of cuda_runtime.h that the runtime itself sets. */
enum cuda_code {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_INVALID_CONFIGURATION = 9,
    CUDA_INVALID_DEVICE = 101,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_ASSERT = 710,
    CUDA_MISALIGNED = 716,
    CUDA_LAUNCH_FAILURE = 719,
    CUDA_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_NOT_SUPPORTED = 801
};

/* ---- state.c: the running launch ---- */
struct list { /* of suspended fibers, in the order in which they go on */
    struct fiber *head, *tail;
};

struct warp_op { /* one warp operation that waits for its lanes, or whose results are being read */
    mask_t mask, arrived;
    int kind;
    const void *pc;
    struct list waiting;
    void (*finish)(const struct warp_op *); /* what the last lane to come does for all; may be NULL */
    uint64_t value[WARP];
    mask_t ballot;
    int readers;
    int place; /* in the pool */
    bool complete;
    struct warp_op *next;
};

struct warp {
    mask_t alive;
    struct warp_op *ops; /* not complete */
    uint32_t epoch;      /* __syncwarp calls completed: orders memory within the warp */
    uint32_t step;       /* those, and operations that all its lanes met in: what was read before one has been read */
};

struct block {
    int n, next, exited; /* threads of the block, next one to start, those that returned */
    int arrived;         /* at the block barrier */
    const void *barrier_pc;
    uint32_t generation;
    struct { int count, all, any; } vote[2]; /* of __syncthreads_*, by parity of the generation */
    struct list at_barrier, ready;
    struct list at_active; /* in __activemask */
    struct list at_grid;   /* in grid.sync() */
    int n_at_grid;
    const void *grid_pc;
    struct named { int arrived; struct list waiting; } named[NAMED_BARRIERS];
    bool gave_way;         /* to the blocks that had not begun, behind an atomic */
    unsigned idle;         /* looks of spinning threads since a thread of the block got on */
    struct warp warp[MAX_WARPS];
};

/* Why the host got control back. Blocks that SPIN, GIVE_WAY or wait for the GRID go on later (wait.c). */
enum launch_end { LAUNCH_DONE, LAUNCH_DEADLOCK, LAUNCH_ABORTED, LAUNCH_SPINS, LAUNCH_GIVES_WAY, LAUNCH_GRID };

struct run {
    const struct simt_launch *launch; /* NULL outside kernels */
    struct block block;
    struct fiber *current;
    uint64_t block_index; /* linear */
    uint64_t blocks;      /* of the grid */
    bool in_kernel;
    unsigned give_way; /* so many blocks of the launch still do (simt_set_blocks) */
    const void *owner; /* the host thread that launched */
    void *host_sp;
    sigjmp_buf escape; /* where crashes go */
    enum launch_end end;
    char *shared_lo, *shared_hi; /* static shared memory: the thread-local segment of the kernel's .so */
};
extern struct run run;

/* Is this thread inside of the kernel that runs? Others may run host code meanwhile. */
static inline bool in_my_kernel(void)
{
    return __atomic_load_n(&run.in_kernel, __ATOMIC_ACQUIRE) && run.owner == this_host_thread();
}

struct simt_dim3u { unsigned x, y, z; };
extern struct simt_dim3u threadIdx, blockIdx, blockDim, gridDim;
extern const int warpSize;
extern const struct simt_dim3u *thread_index; /* by linear index in the block */

static inline int this_thread(void)
{
    return run.current->thread;
}
/* state.c */
void wake_all(struct list *l);        /* everybody in l becomes ready, in order */
void abort_kernel(void) __attribute__((noreturn)); /* from kernel code: ends the launch; findings say why */
/* turn.c */
extern bool launch_torn; /* the last launch ended in the middle */
void turn_take(void);
void turn_give(void);
void launch_abandon(void); /* a fault of host code left a launch of this thread by a jump: the next one may start */

/* ---- wait.c: waiting without a barrier ---- */
/* The running thread looked at memory and found it unchanged: a thread that does so again and again lets others run. */
void wait_look(const void *addr, uint64_t value, const void *pc);
void wait_behind_atomic(const void *addr); /* one has happened there: the block may have to give way */
void wait_pause(const void *pc); /* the same of __nanosleep */
unsigned __int128 wait_active(const void *pc); /* of __activemask called there */
bool wait_release_active(void);  /* nobody can go on: lanes in __activemask may; false if there are none */
struct parked;                   /* a block taken off the fibers */
struct parked *wait_park(void);  /* the running block; NULL without memory */
void wait_unpark(struct parked *p); /* makes it the running block again; frees p */
void wait_wake_grid(struct parked *p); /* its threads leave grid.sync() when it goes on */
void wait_drop(struct parked *p);
/* sched.c: how many fibers have been armed; all are forgotten and the first n armed anew; f may take up threads. */
int fibers_armed(void);
bool fibers_restart(int n);
void fiber_is_idle(struct fiber *f);
void fibers_forget(void);
struct fiber *spare_fiber(void); /* NULL without memory */
extern int order_of_threads[MAX_THREADS]; /* in which a block starts them */
void barrier_forget(void); /* a launch begins */
bool wait_progress(void);        /* did a spinning thread find a change, or any other get on, since the last call? */
void wait_note_progress(void);
struct parked_queue { struct parked *head, *tail; size_t n; };
void wait_push(struct parked_queue *q, struct parked *p);
void wait_push_front(struct parked_queue *q, struct parked *p);
struct parked *wait_pop(struct parked_queue *q);

void barrier_at(const void *pc); /* sched.c: __syncthreads called there */

/* ---- async.c ---- */
unsigned simt_to_shared(const void *p); /* in the window of shared addresses; 0: it is no shared memory */
void async_reset(void);      /* a block begins */
void async_finish_all(void); /* copies under way happen now */

/* ---- warp.c ---- */
/* All lanes of the warp come here with 'mine'; the last one calls finish, which finds them as value[] of those
 * arrived. */
void warp_together(const void *mine, void (*finish)(const struct warp_op *), const char *what, const void *pc);
size_t warp_save(void *to); /* bytes of the operations under way, and their copy unless to is NULL */
void warp_restore(const void *from, size_t bytes);
void warp_reset(void);
void warp_lane_exited(struct warp *w); /* operations that waited for that lane only may now complete */
bool warp_explain_deadlock(void); /* false if no warp operation waits */

/* ---- error.c ---- */
void device_error(int code);           /* of the launch: returned by cudaGetLastError once */
void device_error_sticky(int code);    /* after a crash: every call fails until simt_reset */
int device_error_state(void);
void error_reset(void);

/* ---- host.c ---- */
size_t max_dynamic_shared(const char *kernel, const void *fn);

/* ---- state.c: where reads have come to (reads.h) ---- */
struct reads { /* of a range or of shared memory, that are kept as runs */
    uint32_t stamp;     /* the launch, of shared memory the interval, that the rest is about */
    uint32_t life;      /* of the range: it and others may follow at one place */
    bool closed;        /* no more: cells tell all */
    bool whole, looked; /* all of it may be read, as was looked at once */
    uint32_t runs;      /* so many, with at least so many reads */
    uint64_t reads;
    struct read_run *head, *tail;
};

/* Where a place in the code would read next. */
struct read_site {
    uint64_t key;         /* pc and turn; 0: of no turn */
    uintptr_t next;       /* if left > 0 */
    intptr_t stride;
    uint32_t left, limit; /* limit - left reads of the run are this thread's */
    const void *pc;
    uint64_t moment;
    struct read_run *run; /* NULL: none is going on */
    int thread;
    uint32_t ahead;       /* so many next threads may read one element each, at equal distances */
} __attribute__((aligned(64)));

#define READ_SITES 256
extern struct read_site read_sites[READ_SITES];
extern const struct read_site *read_latest; /* the latest plain read; NULL: cells recorded it */
extern uint64_t read_moment; /* changes with the interval and with a warp's step; 0: accesses are not looked at */
/* A number above the bits of an address: changes with the moment and with the running thread. */
#define READ_TURN_AT 48
extern uint64_t read_turn;
void read_turns_over(void); /* the numbers begin anew */

static inline void read_turn_next(void)
{
    read_turn += (uint64_t)1 << READ_TURN_AT;
    if (__builtin_expect(!read_turn, 0))
        read_turns_over();
}

static inline void read_moment_next(void)
{
    if (read_moment) {
        read_moment++;
        read_turn_next();
    }
}

/* ---- memory.c ---- */
extern const struct simt_watch *watcher; /* simt_set_watch; NULL: nobody */
struct range {
    uintptr_t lo, hi;
    char name[48];
    struct cell *shadow; /* mapped on first use */
    struct reads reads;
    struct range *next;  /* when it is no range any more */
};
void memory_open(void); /* nested; by thread */
void memory_close(void);
int memory_depth(void); /* how often this thread has opened it */
void memory_close_to(int depth); /* what a fault left open */
void memory_abandon(void); /* a fault left whatever memory.c was doing by a jump */
void memory_move(const void *pc); /* a copy asked for at pc moves its bytes from now on; NULL: it is done */
const void *memory_mover(void); /* return address of the call whose copy this thread is in; NULL: in none */
struct range *memory_find(uintptr_t addr);                 /* the range that holds addr, or NULL */
struct range *memory_nearest(uintptr_t addr);              /* closest range, or NULL */
bool memory_is_device(uintptr_t addr);                     /* registered, or in the arena */
void memory_describe(uintptr_t addr, size_t bytes, char *out, size_t n); /* "4 bytes past the end of 'x' (..)" */
/* The thread's last memory_describe: the range, where the address lies from its start on, and the words. */
struct memory_described {
    uintptr_t base;
    size_t bytes;
    intptr_t at;
    char words[160];
};
extern __thread struct memory_described described __attribute__((tls_model("initial-exec")));

/* The shadow of a range: a cell for each four bytes, of check.c; it goes with its range. */
typedef uint64_t access_t; /* check.c packs it */
struct cell {
    access_t write, read;
    int32_t write_pc, read_pc; /* relative to the launch's body */
};
static inline size_t shadow_bytes(const struct range *r)
{
    return ((r->hi - (r->lo & ~(uintptr_t)3) + 3) / 4) * sizeof(struct cell);
}
void shadow_free(struct range *r);
extern struct range *shadow_last, *shadow_older; /* hit by the previous accesses */

/* ---- findings.c ---- */
/* pc: an address in the guilty code (after_call: a return address), or NULL: then the launch's line is used. */
void finding(const char *kind, const void *pc, bool after_call, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void findings_abandon(void); /* a fault left whatever findings.c was doing by a jump */
/* The same for a thread of the kernel that has gone on since. */
void finding_by(struct simt_dim3u block, int thread, const char *kind, const void *pc, const char *message);
void count_launch(const char *kernel, uint64_t threads, bool failed);
void count_copy(bool from_device, bool to_device, size_t bytes); /* between host and device, if more than a few
    scalars */

/* ---- symbols.c: handlers ask, so nothing here calls malloc ---- */
struct source_line {
    const char *file; /* valid for the process's life; NULL if unknown */
    int line;
    bool exact; /* not the line before code inlined from a header */
};
struct source_line line_of(const void *pc);
/* The first word of [sp, end) that looks like a return address into code with lines that is neither ours nor the
 * system's; NULL if there is none. */
const void *own_return_address(const uintptr_t *sp, const uintptr_t *end);
/* Bytes of static shared memory that the kernel called 'name' declares itself; 'near' is any address in its .so. */
size_t static_shared_of(const void *near, const char *name);
/* Is that byte of static shared memory the compiler's own mark that a variable of class type has been constructed? */
bool shared_guard_at(const void *near, size_t offset);
struct shared_array {
    char name[64]; /* as the source has it */
    size_t begin, bytes;
};
/* The variable of static shared memory that holds that byte, or else the last one before it; kernel: of those that it
 * declares itself, NULL: of all. False: none is known. */
bool shared_array_at(const void *near, const char *kernel, size_t offset, struct shared_array *ret);
/* The thread-local segment of the .so that holds addr, in this thread. False if it has none. */
bool tls_of(const void *addr, char **lo, char **hi);
bool is_code(uintptr_t addr); /* executable, of the program or a library */
/* The loaded image of the .so that holds addr: code, constants and variables. False if there is none. */
bool image_of(const void *addr, uintptr_t *lo, uintptr_t *hi);
const char *symbol_name(const void *fn); /* mangled, or NULL */

/* ---- crash.c ---- */
void crash_install(void); /* handlers and this thread's signal stack; cheap when already done */

/* ---- check.c ---- */
extern int check_wanted;    /* simt_set_check */
extern bool check_build;    /* a module with instrumentation is loaded */
extern bool check_now;      /* instrumented accesses are looked at: inside a kernel of a check build */
void check_launch_start(void);
void check_launch_end(void);
void check_block_start(void);
struct check_saved { bool fenced, acquired; int32_t slot; uint8_t *init[2]; };
void check_park(struct check_saved *to);
void check_unpark(struct check_saved *from); /* the block goes on; frees what it holds */
void check_grid_barrier(void); /* all that follows is ordered after all that was */
void check_barrier(void);     /* the block's threads are ordered from here on */
extern bool check_pending;    /* a report waits for the write that it is about */
void check_decide(void);
static inline void check_suspend(void) /* the running thread stops: its write has happened */
{
    if (check_pending)
        check_decide();
}
void check_atomic(const void *p, size_t bytes, const void *pc, bool after_read);
void check_fence(void);
void check_volatile(const void *p, size_t bytes, bool write, const void *pc);
uintptr_t check_last_read(int thread); /* where the latest plain read was, if it was this thread's; else 0 */
/* An access that the runtime makes for the running thread. */
void check_access(const void *p, size_t bytes, bool write, bool aligned, const void *pc);
/* A row that ldmatrix loads or stmatrix stores: rows of a tile's margin are loaded unwritten, and their products
 * left out. */
void check_matrix_row(const void *p, bool write, const void *pc);
/* A copy to shared memory begins, which may write at any time from now on: nobody may be using the place. */
void check_copy_begins(const void *to, size_t bytes, const void *pc);
void check_aligned(const void *p, size_t bytes, const void *pc);

#endif
