/* options.h - what the judge is asked: its configuration, one judgement's options, a candidate's text. */
#ifndef MC_EVAL_OPTIONS_H
#define MC_EVAL_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "objective/reward.h"
#include "task/extract.h"

struct eval_config {
    /* candidates that run at once; 0 = 1.5 for each CPU: a third of a run waits (jail, exit); 3 on a GPU */
    int jobs;
    bool no_jail;  /* --jail none */
    bool no_cache; /* do not read verdicts from the cache (they are still stored) */
    uint64_t cache_limit; /* bytes that the cache folder may take; 0: no limit */
    /* checked by eval_open (NULL: "sim"), and made ready if 'start'; else when a candidate needs it */
    const char *backend;
    /* start the backend's fork server in eval_open (seconds): a worker, who would wait for it anyway */
    bool start;
    const char *socket;  /* where this process answers others; NULL: nowhere */
    bool daemon_client;  /* hand candidates to the process that owns the device (daemon_client.h) */
    bool jobs_given;     /* set by eval_open: jobs was more than 0, so it is the number of slots on a GPU too */
};

struct eval_options {
    const char *backend;    /* "sim", "cuda": rows of judge_backend.h */
    const char *protocol;   /* "strict", "strict-torch", "kernelbench": rows of check/protocol.h */
    int trials;             /* trials per input distribution (strict), or trials (kernelbench) */
    double timeout_s;       /* one candidate's run, builds excluded */
    double build_timeout_s; /* all its builds together */
    int64_t seed;
    int64_t max_elements;   /* of any one tensor of the task; 0: the backend's limit (judge_backend.h) */
    bool perf;              /* time what passed, where the backend has a clock */
    int calls;              /* timed calls of each side; 0: as many as 0.2 s hold, at least 30 */
    bool compile_baseline;  /* time torch.compile too */
    const char *compile_mode; /* "default" or "max-autotune" */
    const char *dialect;    /* "any"; "cuda" or "musa": programs of the other one are no answer */
    struct reward_params reward; /* what the record's reward weighs; other weights are another verdict */
    int64_t caller;         /* whose turn it is (schedule.h): a process; 0: ours */
    bool fresh;             /* do not read the verdict from the cache */
    const char *capsule;    /* file for what was judged, if it passes (exec/capsule.h); NULL: none. One candidate */
    const char *repro;      /* folder for the draw that it fails on (stage/repro.h); NULL: none. One candidate */
};

#define EVAL_OPTIONS_DEFAULT \
    ((struct eval_options){.backend = "sim", .protocol = "strict", .trials = 5, .timeout_s = 30, \
                           .build_timeout_s = 60, \
                           .seed = 0, .max_elements = 0, .perf = true, .compile_baseline = true, \
                           .compile_mode = "default", .dialect = "any", .reward = REWARD_DEFAULT})

struct eval_candidate {
    const char *name;
    const char *text;
    size_t n;
    enum extract_kind kind;
    bool mended; /* bytes that were not UTF-8 have become U+FFFD on the way here */
};

/* The limit that holds: o's own, else its backend's, else INT64_MAX. */
int64_t eval_max_elements(const struct eval_options *o);

int options_no_backend(const char *name, struct err *e); /* ERR_INPUT, -1 */
/* Checks an options record from outside
 * ({"protocol","trials","timeout","build-timeout","seed","max-elements","backend","perf","calls","compile-baseline",
 * "compile-mode","dialect","speed-weight","speed-cap"}); strings stay borrowed from o. Unknown keys and bad values are
 * ERR_INPUT. o may be NULL. */
int eval_options_parse(const json_t *o, struct eval_options *ret, struct err *e);
json_t *eval_options_json(const struct eval_options *o); /* new: what eval_options_parse reads */
int eval_options_check(const struct eval_options *o, struct err *e);

#endif
