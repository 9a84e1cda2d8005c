/* measure.h - two sides timed against each other, block by block: A B A B. Both are children that speak
 * runner/timing.py ("put" is done); the device must be held alone (schedule.h). */
#ifndef MC_EVAL_MEASURE_H
#define MC_EVAL_MEASURE_H

#include "eval/perf/perf.h"
#include "eval/perf/timing.h"

struct measure_side {
    int fd;
    /* Makes a block's calls in place of a child (timing_block): by replays. NULL: fd's does. */
    int (*replay)(void *ctx, const struct timing_block *b, struct timed_calls *calls, struct err *e);
    void *ctx;
    const char *which; /* timing_block's */
    double timeout_s;  /* of one block */
    double known_s;    /* of a call, from elsewhere; 0: not known */
    double host_us;    /* of a call since its last warming up: the side's claim (timing.h) */
    int pad_us;        /* of the measured calls */
    struct timed_calls calls; /* the measured ones, warm-up excluded */
};

void measure_side_free(struct measure_side *s); /* what it owns; it is zeroed then */

struct measure_plan {
    int calls;           /* cold calls of each side; 0: as many as fit, below */
    double seconds;      /* device time aimed at for each side; 30 to MEASURE_MOST calls, at most MEASURE_MAX_S, at
                          * least one in each round */
    size_t input_bytes; /* of one call; 0: not known */
    bool published;     /* as KernelBench: MEASURE_PUBLISHED cold calls, in at most MEASURE_MAX_S */
};

struct measure_fault {
    const struct measure_side *side; /* who failed */
    enum frame_fault frame;          /* FRAME_OK: a call raised */
    json_t *error;                   /* then: {"type","message",...}; owned */
};

#define MEASURE_ROUNDS 5
#define MEASURE_SLOW_S 0.1 /* where a call takes longer, seconds go by with the device alone: */
#define MEASURE_SLOW_ROUNDS 3
#define MEASURE_CRAWL_S 1.0 /* and where it takes longer than this every call is one too many: */
#define MEASURE_CRAWL_ROUNDS 2
#define MEASURE_MAX_S 2.0
#define MEASURE_WALL 4 /* and all that calls need around them (data, memory that is filled) takes so many times that */
#define MEASURE_MOST 60 /* cold calls of each side */
#define MEASURE_LEAST 30 /* fewer only where a call takes so long */
#define MEASURE_PUBLISHED 100 /* num_perf_trials of KernelBench's scripts */
#define MEASURE_EMPTY 20 /* calls of each round and side, at most and at least */
#define MEASURE_EMPTY_LEAST 5
#define MEASURE_EMPTY_BYTES ((size_t)20 << 30)

/* How many empty calls (TIMING_NULL) each round and side makes. What the clocks are compared by is what a span holds
 * beside forward: so an empty call does all that a cold one does but forward. A task of gigabytes has few of them
 * rather than short ones: as many as draw MEASURE_EMPTY_BYTES. Depends on the task alone: not on what a side says or
 * how long it takes. */
int measure_empty(const struct measure_plan *p); /* pure */
/* Cold calls of one side whose calls take call_s, in all rounds; pure. Fewer than measure_usual: the record says so. */
int measure_cold_calls(const struct measure_plan *p, double call_s);
int measure_usual(const struct measure_plan *p); /* cold calls that a measurement has at least if nothing limits it */
/* How long the device is kept busy before each call, so that the host can queue all of it meanwhile: a fifth more than
 * the slower of the two hosts needs, within bounds, the same for both sides. Not more: the longer a host waits, the
 * slower and the less evenly it goes on (docs/log/benchmarks.md), and then the two clocks can tell less. Event times
 * are the device's then, however busy the machine is: host time of forward is hidden up to MEASURE_PAD_MAX_US (of a
 * model that launches one small operator after the other, some hundred launches), and shows beyond. A side that lies
 * about its host's time chooses a pad within these bounds, for both. */
#define MEASURE_PAD_MIN_US 200
#define MEASURE_PAD_MAX_US 1000
int measure_pad_us(double host_us_a, double host_us_b);

#define MEASURE_PLAN_DEFAULT ((struct measure_plan){.seconds = 0.2})

/* Warm-up calls (two where they are slow, one where they are known to crawl), then MEASURE_ROUNDS rounds (of slow
 * calls MEASURE_SLOW_ROUNDS, where they crawl MEASURE_CRAWL_ROUNDS) of cold blocks and measure_empty calls with an
 * empty kernel in place of forward (what a call costs without one, and the least that events measure), of a and b
 * in turn. -1 with *fault and *e. Ten milliseconds to a few seconds. */
int measure_pair(struct measure_side *a, struct measure_side *b, const struct measure_plan *p,
                 struct measure_fault *fault, struct err *e);

/* The calls of one mode as perf.h wants them: arrays owned by *ret, freed by measure_calls_free. */
struct measure_calls {
    struct perf_calls c;
    double *numbers;
    int *rounds;
};
void measure_calls(const struct timed_calls *from, enum timing_mode mode, struct measure_calls *ret);
void measure_calls_free(struct measure_calls *m);

#endif
