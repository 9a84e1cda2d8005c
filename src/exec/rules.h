/* rules.h - what a life and its replays mean: facts in, a category and its evidence in words out. Pure.
 * The reasons behind each rule are in docs/threat-model.md. */
#ifndef MC_EXEC_RULES_H
#define MC_EXEC_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/exec.h"

#define RULES_LIVE_BYTES 64u              /* down a call, and at most a sixteenth of the inputs */
#define RULES_LIVE_READS 16u              /* replies a call that depend on the device's progress */
#define RULES_CONSTANTS ((uint64_t)64 << 10) /* bytes of constants that a life may bring along */

enum rules_category { RULES_PASSED, RULES_CHEATING, RULES_RUNTIME, RULES_CORRECTNESS, RULES_UNSUPPORTED, RULES_TASK };

struct rules_facts {
    bool live_right;           /* the candidate's outputs while its process was there */
    bool replay_right;         /* in each replay of the whole life, on secret parameters and inputs, two poisons */
    bool plumbing_right;       /* in a replay without launches */
    bool task_is_plumbing;     /* the task's own reference is plumbing alone */
    struct executor_call last; /* the last call, live */
    struct log_counts counts;  /* of the life */
    uint64_t input_bytes;      /* of one call, tensors on the device */
    uint64_t constants_known;  /* of counts.bytes_up: equal to a buffer of the task's model, or laid over later */
    const char *torch_op;      /* an operator that forward asked torch for and that is no plumbing; NULL */
    bool log_full;
    int32_t replay_error;      /* of a replay, with replay_why */
    const char *replay_why;
    bool ordered;              /* order_check, with order_why */
    const char *order_why;
};

struct rules_finding {
    enum rules_category category;
    const char *code; /* "host_computes", ...; NULL when passed */
    bool live;        /* passed because the host reads a few values: the record says so */
    char text[512];   /* evidence; "" when passed */
};

void rules_decide(const struct rules_facts *f, struct rules_finding *ret);
const char *rules_category_name(enum rules_category c); /* the record's: "cheating", ...; "" when passed */
/* What the host may read in a call without losing "live". */
uint64_t rules_allowance(uint64_t input_bytes);

#endif
