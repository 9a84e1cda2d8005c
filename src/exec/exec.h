/* exec.h - the judge's side: start an executor, let a client live in it, replay what the client asked for.
 *
 * A recording is construction, binding of parameters, calls 1..k. The judge marks it: executor_context, executor_bind,
 * executor_call_begin / _end. All values that the judge binds and looks at pass here and never through the client.
 * One judge's thread at a time uses an executor. After an error other than ERR_INPUT only executor_stop is left. */
#ifndef MC_EXEC_EXEC_H
#define MC_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "exec/exec_log.h"
#include "exec/wire.h"

struct executor;

struct executor_options {
    const char *backend; /* "sim", "cuda" or "musa" */
    int device;          /* ordinal; cuda */
    uint64_t memory;     /* bytes a client may hold; 0: 8 GiB on sim, 9/10 of what is free on cuda */
    double timeout_s;    /* the longest wait for one reply of the executor; 0: 60 */
    bool no_check;       /* sim: kernels run without the emulator's checks */
    const char *const *under; /* a program and its options that mcexec runs under (ncu, compute-sanitizer); NULL */
};

#define EXECUTOR_PART ((uint64_t)16 << 20) /* values are bound and looked at in parts of at most so many bytes */

/* Starts build/lib/mcexec. The executor lives until executor_stop, or dies with this process. */
int executor_start(const struct executor_options *o, struct executor **ret, struct err *e);
void executor_stop(struct executor *x); /* NULL is fine */
/* The same, but it may finish by itself: what it runs under writes its files. Its exit code, -1 for a signal. */
int executor_end(struct executor *x);
/* Bytes that a client may hold in later recordings, the judge's own memory apart: beyond, it is told that it is out of
 * memory. 0, or more than executor_options.memory: as that says. */
void executor_limit(struct executor *x, uint64_t bytes);
void executor_wait(struct executor *x, double timeout_s); /* how long it may take to answer, from now on */
const struct wire_info *executor_info(const struct executor *x);
double executor_ran(const struct executor *x); /* seconds of run time (proc/run_clock.h) that its answers took so far */
pid_t executor_pid(const struct executor *x);
bool executor_timed_out(const struct executor *x); /* the last error was a wait of timeout_s: work that does not end */

/* A fresh recording: empty memory, empty log, no modules. ret_fds: the area and the bell, for client_attach in the
 * client; owned by the caller. The recording before it ends. */
int executor_context(struct executor *x, int ret_fds[2], struct err *e);
/* An image that the compile worker wrote: only these can be loaded. Kept for the executor's life. */
int executor_image(struct executor *x, const void *image, size_t n, char ret_sha256[65], struct err *e);

/* Memory of the judge's own in this recording (inputs). Freed with the recording. */
int executor_alloc(struct executor *x, uint64_t bytes, uint64_t *ret_addr, struct err *e);
/* Writes n bytes; the log notes that these bytes are the judge's (the tag is too), not what they are. ERR_INPUT if the
 * range is not within one live allocation. */
int executor_bind(struct executor *x, uint64_t addr, const void *data, uint64_t n, uint32_t tag, struct err *e);
int executor_peek(struct executor *x, uint64_t addr, void *data, uint64_t n, struct err *e); /* waits for the device */

/* Memory of the judge's own device (device_export's descriptor; bytes: its capacity) in this recording too, at
 * *ret_addr, until the next recording. inputs: so many bytes of it a candidate may be told of; 0: a tile, which it is
 * never told of. */
int executor_share(struct executor *x, int fd, uint64_t bytes, uint64_t inputs, uint64_t *ret_addr, struct err *e);
/* As executor_bind, for values that the judge has written into shared memory by its own mapping. */
int executor_bound(struct executor *x, uint64_t addr, uint64_t n, uint32_t tag, struct err *e);
/* Waits for the device: the judge's mapping has what calls left in shared memory. */
int executor_pull(struct executor *x, uint64_t addr, uint64_t n, struct err *e);
/* Copies part of an output into a shared tile: m->from, sizes and strides; to its start at m->to. span: bytes from
 * m->from on that must lie within one allocation (else ERR_INPUT). The judge's mapping has them then. */
int executor_tile(struct executor *x, const struct wire_strided *m, uint64_t span, struct err *e);

/* What lies there are values of this type (base/dtype.h), n bytes: a cast that reads them as another one is counted. */
int executor_typed(struct executor *x, uint64_t addr, uint64_t n, int dtype, struct err *e);
/* From here on the client is served within calls only. Before real parameters are bound. */
int executor_pause(struct executor *x, struct err *e);
/* Bits of enum wire_lack: what the client has asked for in vain. */
int executor_lacks(struct executor *x, uint32_t *ret, struct err *e);

/* Calls are numbered from 1. Requests that reach the ring before _end count to the call; behind it the client is not
 * served until the next _begin, and what it asks for meanwhile belongs to the next call. */
struct executor_call {
    int32_t error;       /* the device's sticky error, WIRE_OK */
    uint32_t refused;    /* requests that a rule or a check refused so far in this recording */
    uint64_t launches, bytes_up, bytes_down;
    uint64_t given;         /* bytes of launches' arguments and of fills' values: what else the host says */
    uint32_t reads;         /* replies that depended on the device's progress */
    uint32_t unanswered;    /* questions for values that a dry recording has refused so far */
    uint64_t casts_changed; /* elements whose value a cast changed in calls so far, roundings of floats apart */
    uint64_t casts;         /* in calls so far */
    uint64_t reinterpreted; /* casts in calls so far that read values as another type than theirs */
    uint64_t compared;      /* bytes that comparisons looked at */
    char why[256];       /* the first refusal or fault of the recording, in words; "" */
};
/* From here on launches of calls are logged and not played, until the next recording: for a log that is wanted for its
 * replay alone. Who asks for values is refused and counted (executor_call: unanswered): such a log is not the
 * program's. */
int executor_dry(struct executor *x, struct err *e);
int executor_call_begin(struct executor *x, uint32_t index, struct err *e);
int executor_call_end(struct executor *x, struct executor_call *ret, struct err *e);

/* The log so far, copied. exec_log_free it. */
int executor_log(struct executor *x, struct exec_log *ret, struct err *e);
/* A log from elsewhere (a capsule) becomes the recording's; replay is then possible without a client. */
int executor_adopt(struct executor *x, const struct exec_log *log, struct err *e);

/* What the emulator found while kernels ran since the recording or replay began: JSON text ("[]": nothing). Caller
 * frees. */
int executor_findings(struct executor *x, char **ret_json, struct err *e);
/* After a time limit: ends the kernel that runs, if one does, and returns the findings with a still_running one that
 * says where its thread stood. NULL: none, or the backend cannot say ('sim' can). Waits for 20 seconds at most. The
 * executor is of no further use. Caller frees. */
char *executor_stand(struct executor *x);

/* Plays the recording's log again, whole, on memory filled with 'poison'. The client is cut off and may be dead. */
struct executor_replay {
    bool movement_only; /* leave launches out */
    bool last_call;     /* from the state before the last call, as the latest replay of the whole recording left it */
    bool goes_on;       /* with last_call: from what the latest play left; where that is as before nothing is played */
    bool shuffled;      /* streams run in another order that the program allows (shuffle.h) */
    bool blocks_vary;   /* blocks run last first, or give way, by turns of calls (where the backend can: 'sim') */
    /* Calls before this one that ask for the very same as one that was played leave memory as it is, but for what they
     * allocate and free; 0: each call is played. Not with 'shuffled'. */
    uint32_t played_from;
    uint8_t poison;     /* fills memory before use: 0xff (NaN), or a finite number */
    /* Fills n bytes for a binding of the log: parameters (call 0) and inputs (the call that they are bound in or
     * before, as logged). Asked for in parts of at most 16 MiB: part is the offset of these n bytes. Return -1 to stop.
     * */
    int (*binding)(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e);
    /* The same for a range of shared memory, whole: writes it there by the judge's own mapping. */
    int (*bound)(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e);
    /* The end of a call, memory as the call left it: executor_peek is allowed. May be NULL. */
    int (*call_end)(void *ctx, uint32_t call, struct err *e);
    void *ctx;
    bool ret_moved;     /* goes_on: the state had changed */
    int32_t ret_error;  /* the device's sticky error; WIRE_REFUSED: the log cannot be replayed */
    char ret_why[256];
};
/* ERR_INPUT for last_call where no such state is kept (one call only, more than 4 GiB, a fault): replay the whole. */
int executor_replay(struct executor *x, struct executor_replay *r, struct err *e);

/* Times the last call n times, each from the state before it, on values that 'lay' gives: cold L2, behind a pad that
 * covers the host's work, by events. After a replay of the whole recording. Where the state before the last call is not
 * kept (executor_replay's last_call) each time is that of a whole recording's last call. */
struct executor_timing {
    uint32_t n;
    bool movement_only;   /* leave launches out: what the clocks differ by where no kernel runs */
    double *ret_ms;       /* n: by events */
    double *ret_span_ms;  /* n, or NULL: by the judge's own clock, pads taken off */
    double ret_sum_ms;    /* their sum */
    double ret_clock_ms;  /* the judge's own clock around each call, pads taken off, summed: never less than the sum */
    bool long_calls;      /* so long that no pad matters: the first call, which finds the pad, counts too */
    bool whole;           /* whole recordings are played; out: they were, as no state is kept */
    /* Before values are asked for: of what comes before the first call (call 0), and of each call. last: it is timed.
     * NULL is fine. */
    void (*before)(void *ctx, uint32_t call, bool last);
    int (*binding)(void *ctx, uint32_t tag, uint64_t addr, uint64_t part, void *data, uint64_t n, struct err *e);
    int (*bound)(void *ctx, uint32_t tag, uint64_t addr, uint64_t n, struct err *e);
    int (*call_end)(void *ctx, uint32_t round, struct err *e); /* outputs may be looked at; NULL */
    void *ctx;
    int32_t ret_error;
    char ret_why[256];
};
int executor_time(struct executor *x, struct executor_timing *t, struct err *e);

#endif
