/* alike.h - calls of a log that ask for the very same: entry by entry, addresses, arguments and order included, but for
 * the calls' numbers. Played on equal memory such a call does nothing that the one before it has not done. Pure. */
#ifndef MC_EXEC_ALIKE_H
#define MC_EXEC_ALIKE_H

#include "exec/exec_log.h"

enum { ALIKE_MOST = 128, ALIKE_HASH = 65 };

struct alike { /* the calls that are different, by SHA-256 of what they ask for */
    char hash[ALIKE_MOST][ALIKE_HASH];
    unsigned n;
};

void alike_clear(struct alike *a);
/* at: behind the call's LOG_CALL_BEGIN. True: no call like it was added before; it is now, where there is room. */
bool alike_add(struct alike *a, const struct exec_log *log, size_t at);
/* Of an entry within a call that is like one before: it changes what memory holds, or asks the judge for values. What
 * allocates, frees, loads or ends the call is not left out: later calls need it. */
bool alike_is_left_out(const struct log_entry *en);

#endif
