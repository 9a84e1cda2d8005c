/* perf.h - from measured calls to figures: medians, intervals, the two-clock test, the roofline, and whether to trust.
 *
 * Pure functions: numbers in, numbers out; no clock, no device. Times in milliseconds, sizes in bytes, rates per
 * second.
 *
 * One timed call gives two times. event_ms: between two device events around forward, taken in the process that ran it.
 * span_ms: the judge's own clock, from the moment it reveals the call's data until it holds a commitment to the output.
 * A span holds a constant amount of work that no event covers. That constant is measured with empty kernels, of which
 * no candidate's code is a part. */
#ifndef MC_EVAL_PERF_H
#define MC_EVAL_PERF_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* Calls in the order in which they ran. round[i] counts the blocks of an interleaved measurement (A B A B: two rounds):
 * calls of one round are close in time and share what drifts. The arrays are the caller's. */
struct perf_calls {
    const double *event_ms, *span_ms;
    const int *round;
    int n;
};

/* value with a 95 % interval. */
struct perf_estimate {
    double value, lo, hi;
};

double perf_median(const double *x, int n);             /* NaN when n is 0; x is not changed */
/* 1.4826 * median |x - center|: a normal's standard deviation */
double perf_mad(const double *x, int n, double center);

/* Marks calls that something outside disturbed: above median + 10 deviations and above 1.05 medians; at most a tenth of
 * the calls, the slowest first. Fast calls are never outliers: they would be the first thing to look at. Returns how
 * many; ret_out[i] says which. */
int perf_outliers(const double *x, int n, bool *ret_out);

/* Median of the event times, and of their quotient num / den, without outliers. The interval is that of a repeated
 * measurement: a percentile bootstrap over rounds and over the calls within them (the same rounds are drawn for both
 * sides, so drift that both share cancels), widened by sqrt 2 because the other run has an error too, and by
 * PERF_REPEAT and PERF_REPEAT_MS, what is left between two processes on the same idle device. Deterministic in seed. */
#define PERF_RESAMPLES 1000
/* Standard deviation of log(time) of one process, and of the time itself: where a process's memory lies. A quotient has
 * both of each side. Measured: docs/log/benchmarks.md. */
#define PERF_REPEAT 0.015
#define PERF_REPEAT_MS 0.00018
struct perf_estimate perf_time(const struct perf_calls *c, uint64_t seed);
struct perf_estimate perf_ratio(const struct perf_calls *num, const struct perf_calls *den, uint64_t seed);
/* Product of two independent estimates, intervals combined in the logarithm. */
struct perf_estimate perf_product(struct perf_estimate a, struct perf_estimate b);

/* What a span holds besides its event: measured over empty calls. */
struct perf_overhead {
    /* mean without the lowest and the highest fifth: spans have modes some microseconds apart, and a median jumps
     * between them from run to run (measured) */
    double ms;
    double noise_ms;     /* deviation of one call */
    double se_ms;        /* standard error of ms, from the winsorised variance (Tukey and McLaughlin 1963) */
    int n;
};
struct perf_overhead perf_calibrate(const struct perf_calls *empty);

struct perf_agreement {
    bool agree;
    double gap_ms;    /* span - event of the calls, less that of empty ones */
    double margin_ms; /* a gap up to this is noise: PERF_MARGIN_MS + 6 standard errors + 2 % of the event */
    double fast_gap_ms; /* the same of the calls at or below the median event, which alone make the time: it may not be
                           above the margin for so few. Else some calls could claim less, and the others as much more */
    double judge_ms;  /* median event + gap: the judge's own estimate of the call */
};
#define PERF_MARGIN_MS 0.005
/* Both clocks are the judge's own (replays): what a busy host does to a span only ever makes it longer, so low
 * quantiles of span - event are compared, of the calls and of the fast ones among them, with those of empty calls.
 * The margin grows with the spread of the empty calls. A gap below zero is the host's, never hidden work. */
struct perf_agreement perf_agree(const struct perf_calls *c, const struct perf_calls *empty);

/* What the task must do at least, and what the device can do at most. Zeros: unknown. */
struct perf_work {
    double bytes_read, bytes_written; /* each input and parameter once, each output once */
    double flops;                     /* of matrix products and convolutions in the reference's trace */
    bool one_library_call;            /* the trace is one heavy operator: no algebra can avoid its flops */
};

struct perf_device {
    double bandwidth;      /* bytes per second of device memory, as the data sheet says */
    double peak_flops;     /* of the task's dtype, as its TF32 policy has it */
    double peak_any_flops; /* of the fastest unit that an honest kernel could use for this dtype */
    double l2_bytes;       /* what a kernel writes may stay there beyond its end */
};

struct perf_roofline {
    double ms;       /* max(bytes / bandwidth, flops / peak); NaN when nothing is known */
    bool memory_bound;
    double floor_ms; /* no honest call is faster; 0 when nothing binds */
};

/* The floor is weaker than the roofline: writes may end in L2; flops bind only where the task is one library call, at
 * the fastest unit's peak and with Winograd's saving of 2.25; PERF_FLOOR of the sum is allowed for the data sheet's
 * and the timer's error; and a reference that is itself faster than its floor (an embedding reads part of its table)
 * lifts it. */
#define PERF_FLOOR 0.9
struct perf_roofline perf_roofline(const struct perf_work *w, const struct perf_device *d, double eager_ms);

/* Everything that the section says. Sets of calls with n = 0 were not measured. */
struct perf_facts {
    struct perf_calls cold, eager_cold; /* the candidate; the reference, interleaved with it */
    struct perf_calls empty;            /* an empty kernel in place of the candidate's call */
    struct perf_estimate compile_of_eager; /* compile / eager, measured interleaved, maybe earlier; value NaN: none */
    const char *compile_error;             /* why there is none; may be NULL */
    /* the same for one call of a vendor's library that does the task; NaN: none */
    struct perf_estimate library_of_eager;
    const char *library_call;              /* "mm", "softmax", ...; NULL: none */
    struct perf_work work;
    struct perf_device device;
    bool throttled, device_busy, output_wrong, inputs_repeat;
    int checked; /* outputs of timed calls that were compared; 0 is output_wrong */
    uint64_t seed;
};

/* The record's section "performance" (new reference):
 *   candidate_ms candidate_ci eager_ms compile_ms compile_error
 *   library_ms library_call library_share (of the roofline) speedup_library speedup_library_ci
 *   speedup_eager speedup_eager_ci speedup_compile speedup_compile_ci ([lo, hi], or null)
 *   roofline_ms roofline_share bound ("memory"|"compute"|null) floor_ms bytes flops bandwidth (achieved) bandwidth_peak
 *   clocks {judge_ms gap_ms fast_gap_ms margin_ms overhead_ms noise_ms se_ms empty_ms}
 *   calls {cold eager checked outliers} trusted reasons
 * reasons: clock_disagree below_roofline throttled device_busy output_wrong inputs_repeat. A time that is not trusted
 * is still reported; it earns nothing. */
json_t *perf_section(const struct perf_facts *f);

#endif
