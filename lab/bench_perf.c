/* bench_perf.c - the judge's half of lab/bench_timing.py: times two sides that are ready ("put" is done) on inherited
 * sockets and prints {"performance":section,"calls":[[slot,"seed","commitment"],..]} of the second.
 *
 *   bench_perf FD_A WHICH_A FD_B WHICH_B OUTPUT_BYTES FACTS.json CALLS     FACTS: as runner/baseline.py's put, plus "device" */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "eval/measure.h"

static json_t *section(const struct measure_side *a, const struct measure_side *b, const json_t *facts)
{
    const json_t *dev = json_object_get(facts, "device");
    struct measure_calls c[6];
    struct perf_facts f = {.compile_of_eager = {NAN, NAN, NAN}, .library_of_eager = {NAN, NAN, NAN}, .checked = 1, .seed = 1};
    json_t *s;

    measure_calls(&b->calls, TIMING_COLD, &c[0]);
    measure_calls(&b->calls, TIMING_WARM, &c[1]);
    measure_calls(&a->calls, TIMING_COLD, &c[2]);
    measure_calls(&a->calls, TIMING_WARM, &c[3]);
    measure_calls(&a->calls, TIMING_NULL, &c[4]);
    measure_calls(&b->calls, TIMING_NULL, &c[5]);
    f.eager_empty = c[4].c, f.empty = c[5].c;
    f.empty_ms = perf_median(c[4].c.event_ms, c[4].c.n);
    f.cold = c[0].c, f.warm = c[1].c, f.eager_cold = c[2].c, f.eager_warm = c[3].c;
    f.overhead = perf_calibrate(&f.eager_cold);
    f.work = (struct perf_work){json_f64(facts, "bytes_read", 0), json_f64(facts, "bytes_written", 0),
                                json_f64(facts, "flops", 0), json_flag(facts, "one_library_call", false)};
    f.device = (struct perf_device){json_f64(dev, "bandwidth", 0), json_f64(dev, "peak", 0), json_f64(dev, "peak_any", 0),
                                    json_f64(dev, "l2", 0)};
    s = perf_section(&f);
    for (int i = 0; i < 6; i++)
        measure_calls_free(&c[i]);
    return s;
}

static json_t *calls_of(const struct measure_side *s)
{
    json_t *list = json_array();
    char seed[32], h[32];

    for (int i = 0; i < s->calls.n; i++) {
        snprintf(seed, sizeof seed, "%" PRIu64, s->calls.v[i].seed);
        snprintf(h, sizeof h, "%" PRIu64, s->calls.v[i].commitment);
        json_array_append_new(list, json_pack("[i,s,s]", (int)s->calls.v[i].slot, seed, h));
    }
    return list;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct measure_fault fault;
    struct measure_plan plan = MEASURE_PLAN_DEFAULT;
    json_t *facts, *out;
    char *text;

    if (argc != 8 || !(facts = json_read(argv[6], &e))) {
        fprintf(stderr, "bench_perf: %s\n", argc == 8 ? e.msg : "see lab/bench_timing.py");
        return 2;
    }
    struct measure_side a = {.fd = atoi(argv[1]), .which = argv[2], .timeout_s = 60};
    struct measure_side b = {.fd = atoi(argv[3]), .which = argv[4], .timeout_s = 60};

    plan.output_bytes = (size_t)atoll(argv[5]);
    plan.calls = atoi(argv[7]);
    if (measure_pair(&a, &b, &plan, &fault, &e) < 0) {
        fprintf(stderr, "bench_perf: %s\n", e.msg);
        return 1;
    }
    out = json_pack("{s:o,s:o}", "performance", section(&a, &b, facts), "calls", calls_of(&b));
    text = json_text(out);
    puts(text);
    free(text);
    json_decref(out);
    json_decref(facts);
    timed_calls_free(&a.calls);
    timed_calls_free(&b.calls);
    return 0;
}
