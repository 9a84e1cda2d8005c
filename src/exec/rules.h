/* rules.h - what a recording and its replays mean: facts in, a category and its evidence in words out. Pure.
 * The reasons behind each rule are in docs/threat-model.md. */
#ifndef MC_EXEC_RULES_H
#define MC_EXEC_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/exec.h"

#define RULES_LIVE_BYTES 64u              /* down a call; also at most this share of the inputs, */
#define RULES_LIVE_SHARE 16u              /* and of the smallest output: 1 / 16 */
#define RULES_LIVE_READS 16u              /* replies a call that depend on the device's progress */
#define RULES_CONSTANTS ((uint64_t)64 << 10) /* bytes of constants that a recording may bring along */

enum rules_category { RULES_PASSED, RULES_CHEATING, RULES_CORRECTNESS, RULES_UNSUPPORTED, RULES_BLAMED };

/* Of one call, the most of any. */
struct rules_reads {
    uint64_t bytes, compared; /* came down; were compared on the device for an answer */
    uint32_t replies;         /* depended on the device */
    uint64_t up, given;       /* went up as data; as arguments of launches and values of fills */
};

struct rules_facts {
    bool ran;                  /* forward came to its end while its process was there */
    bool failed;               /* an exception, a fault of the device, the end of the process or of its time */
    bool replay_right;         /* each draw in a replay of the whole recording, on secret parameters, two poisons */
    bool live_right;           /* or each draw of the direct run, with the host's eyes open; else false */
    bool movement_right;       /* in a replay without launches */
    bool movement_most;        /* there most of the answer is right, and the task only moves values */
    struct executor_call last; /* the last call, live: casts */
    uint64_t launches;         /* in calls, all of them */
    struct rules_reads most;
    struct log_counts counts;  /* of the recording */
    uint64_t input_bytes;      /* of one call, tensors on the device */
    uint64_t output_bytes;     /* of the smallest output of a call; 0 where one is a number */
    uint64_t fixed_bytes;      /* of input_bytes: tensors that are the same in all draws, so a host may know them */
    bool sizes_vary;           /* outputs of some draws are larger than those of others: somebody must read how large */
    uint64_t own_bytes;        /* of a call's inputs and the model: tables of that size are program text; 0: none are */
    uint64_t table_bytes;      /* of constants that the task itself holds, the same by any seed */
    const char *torch_op;      /* an operator that forward asked torch for and that is no data movement; NULL */
    const char *library;       /* of a vendor, that host code calls: the function; NULL */
    const char *judge;         /* a kernel calls this function, which is the judge's; NULL */
    const char *lack;          /* the compile worker found that the judge does not have this: its name; NULL */
    const char *lack_why;
    bool some_right;           /* a deciding draw was right: what was refused was not needed */
    uint32_t lacks;            /* bits of enum wire_lack: the program asked for it in vain */
    const char *lacks_name;    /* what the client says that it is called ("Triton"), for the text; NULL */
    bool log_full;
    bool refused;              /* the log cannot be replayed, with replay_why */
    const char *replay_why;
    const char *altered;       /* a parameter that forward changes, which the task leaves alone; NULL */
    bool ordered;              /* order_check, with order_why */
    const char *order_why;
};

struct rules_finding {
    enum rules_category category; /* RULES_BLAMED: the stages before have said what is wrong */
    const char *code; /* "host_computes", ...; NULL when passed or blamed */
    bool live;        /* passed because the host reads a few values: the record says so */
    char text[512];   /* evidence; "" when passed */
};

void rules_decide(const struct rules_facts *f, struct rules_finding *ret);
/* Draws that are right of the direct run count: the host read so little that it steered, and did not compute. */
bool rules_live(const struct rules_facts *f);
const char *rules_category_name(enum rules_category c); /* the record's: "cheating", ...; "" when passed */

#endif
