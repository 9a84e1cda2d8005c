/* order.h - does everything that a call queued come before what its caller queues next, and behind what its caller
 * queued before? A pure reading of the log.
 *
 * The caller's work is on the legacy default stream. Work on a stream that was never joined into it is not finished
 * when forward returns, whatever a replay that drains the device says. Work that names inputs on a stream that did not
 * wait for the legacy one may come before the inputs are there. Only events and synchronisations order streams:
 * destroying a stream waits for nothing. */
#ifndef MC_EXEC_ORDER_H
#define MC_EXEC_ORDER_H

#include <stdbool.h>

#include "exec/exec_log.h"

struct order_finding {
    bool ordered;
    bool streams;      /* some work goes to another stream than the legacy one */
    uint32_t stream;   /* of the first work that is not (one that takes a destroyed one's number has another), */
    uint64_t work;     /* and how many launches, copies and fills of that stream in the call */
    char why[192];     /* "" when ordered */
};

/* call: its number; 0: each call of the log must have joined its work when it returns. */
void order_check(const struct exec_log *log, uint32_t call, struct order_finding *ret);

#endif
