/* measure.h - two sides timed against each other, block by block: A B A B. Both are children that speak runner/timing.py
 * ("put" is done); the device must be held alone (hold.h). */
#ifndef MC_EVAL_MEASURE_H
#define MC_EVAL_MEASURE_H

#include "eval/perf.h"
#include "eval/timing.h"

struct measure_side {
    int fd;
    /* Makes a block's calls in place of a child (timing_block): by replays, of which nothing is kept. NULL: fd's
     * does. */
    int (*replay)(void *ctx, const struct timing_block *b, struct timed_calls *calls, struct err *e);
    void *ctx;
    const char *which; /* timing_block's */
    double timeout_s;  /* of one block */
    double known_s;    /* of a call, from elsewhere; 0: not known */
    int kept;          /* outputs that the other side keeps */
    double host_us;    /* of a call since its last warming up: the side's claim (timing.h) */
    int pad_us;        /* of the measured calls */
    struct timed_calls calls; /* the measured ones, warm-up excluded. All outputs are kept. */
    json_t *first, *last;     /* heads of the frames that closed its first and its last block: its claims; owned */
    json_t *findings;         /* in all such heads, MEASURE_FINDINGS at most; owned */
};

void measure_side_free(struct measure_side *s); /* what it owns; it is zeroed then */

struct measure_plan {
    int calls;           /* cold calls of each side; 0: as many as fit, below */
    double seconds;      /* device time aimed at for each side; 30 to MEASURE_MOST calls, at most MEASURE_MAX_S, at
                          * least one in each round */
    size_t output_bytes, keep_bytes; /* of one call; of all kept outputs of a side: fewer calls and rounds rather than more
                                      * memory, but MEASURE_ROUNDS_LEAST rounds of a cold and a warm call */
    size_t input_bytes; /* of one call; 0: not known */
    bool cold_alone;    /* no warm calls */
    bool published;     /* as KernelBench: MEASURE_PUBLISHED cold calls, none warm, in at most MEASURE_MAX_S */
};

#define MEASURE_FINDINGS 64
struct measure_fault {
    const struct measure_side *side; /* who failed */
    enum frame_fault frame;          /* FRAME_OK: a call raised */
    json_t *error;                   /* then: {"type","message",...}; owned */
};

#define MEASURE_ROUNDS 5
#define MEASURE_ROUNDS_LEAST 2
#define MEASURE_SLOW_S 0.1 /* where a call takes longer, seconds go by with the device alone: */
#define MEASURE_SLOW_ROUNDS 3
#define MEASURE_CRAWL_S 1.0 /* and where it takes longer than this every call is one too many: */
#define MEASURE_CRAWL_ROUNDS 2
#define MEASURE_MAX_S 2.0
#define MEASURE_WALL 4 /* and all that calls need around them (data, memory that is filled) takes so many times that */
#define MEASURE_MOST 60 /* cold calls of each side */
#define MEASURE_LEAST 30 /* fewer only where a call takes so long, or its outputs so much memory */
#define MEASURE_PUBLISHED 100 /* num_perf_trials of KernelBench's scripts */
#define MEASURE_EMPTY 20 /* calls of each round and side, at most and at least */
#define MEASURE_EMPTY_LEAST 5
#define MEASURE_EMPTY_BYTES ((size_t)20 << 30)

/* How many empty calls (TIMING_NULL) each round and side makes. What the clocks are compared by is what a span holds
 * beside forward, and how much longer that takes in one process than in the other (perf_carry_over): so an empty call
 * does all that a cold one does but forward, in the same memory: pad, draw all inputs, flush, events, and commit to an
 * output's worth of bytes, read and written. With less of it, a process whose memory lies worse would show the same
 * empty calls and longer spans. So a task of gigabytes has few of them rather than short ones: as many as draw and
 * commit to MEASURE_EMPTY_BYTES, 10 ms of an H200's memory, where 20 would take several times as long as all calls that
 * are timed. Depends on the task alone: not on what a side says or how long it takes. */
int measure_empty(const struct measure_plan *p); /* pure */
int measure_rounds(const struct measure_plan *p); /* at most; pure */
/* Cold calls of one side whose calls take call_s, in all rounds; pure. Fewer than measure_usual: the record says so. */
int measure_cold_calls(const struct measure_plan *p, double call_s);
int measure_usual(const struct measure_plan *p); /* cold calls that a measurement has at least if nothing limits it */
/* Lets go of the outputs that the other side keeps: their memory goes back to the device. */
int measure_forget(struct measure_side *s, struct measure_fault *fault, struct err *e);

/* How long the device is kept busy before each call, so that the host can queue all of it meanwhile: a fifth more than
 * the slower of the two hosts needs, within bounds, the same for both sides. Not more: the longer a host waits, the slower
 * and the less evenly it goes on (docs/log/benchmarks.md), and then the two clocks can tell less. Event times are
 * the device's then, however busy the machine is: host time of forward is hidden up to MEASURE_PAD_MAX_US (of a model that
 * launches one small operator after the other, some hundred launches), and shows beyond. A side that lies about its
 * host's time chooses a pad within these bounds, for both. */
#define MEASURE_PAD_MIN_US 200
#define MEASURE_PAD_MAX_US 1000
int measure_pad_us(double host_us_a, double host_us_b);

#define MEASURE_PLAN_DEFAULT ((struct measure_plan){.seconds = 0.2, .keep_bytes = (size_t)4 << 30})

/* Warm-up calls (two where they are slow, one where they are known to crawl), then measure_rounds rounds (of slow calls
 * MEASURE_SLOW_ROUNDS at most, where they crawl MEASURE_CRAWL_ROUNDS) of cold blocks, warm blocks (a third as many
 * calls; none where each cold one took MEASURE_CRAWL_S) and measure_empty calls with an empty kernel in place of
 * forward (what a call costs without one, and the least that events measure), of a and b in turn. -1 with *fault and
 * *e. Ten milliseconds to a few seconds. */
int measure_pair(struct measure_side *a, struct measure_side *b, const struct measure_plan *p, struct measure_fault *fault,
                 struct err *e);

/* The calls of one mode as perf.h wants them: arrays owned by *ret, freed by measure_calls_free. */
struct measure_calls {
    struct perf_calls c;
    double *numbers;
    int *rounds;
};
void measure_calls(const struct timed_calls *from, enum timing_mode mode, struct measure_calls *ret);
void measure_calls_free(struct measure_calls *m);
double measure_cold_ms(const struct timed_calls *c); /* median event of the cold ones; NaN without any */

/* The kept calls in the order in which they are looked at: a random one, but as long as there are some every other one is
 * a warm call (what runs beside the flush of a cold call cannot hide there), and those between are cold calls at or below
 * the cold median: who answers half of the calls only, so that the median is low, has not answered these. Indices into
 * c->v, *ret_n of them; owned by the caller. */
int *measure_order(const struct timed_calls *c, struct rng *rng, int *ret_n);

/* One request and its reply outside of blocks ("arm", "compile", "expect", ...); an "error" reply is FRAME_OK and
 * returned as a frame. */
int measure_ask(int fd, json_t *req, const void *blob, size_t n_blob, double deadline, struct frame *ret,
                enum frame_fault *ret_fault, struct err *e); /* req: reference taken */

#endif
