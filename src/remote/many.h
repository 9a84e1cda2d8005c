/* many.h - many questions to one server, so many at a time. */
#ifndef MC_REMOTE_MANY_H
#define MC_REMOTE_MANY_H

#include "remote/openai.h"

/* Asks all n, at most 'parallel' at once. each() is called on the caller's thread, in the order in which answers
 * come, with the answer of ask i (borrowed); its -1 ends the rest. Returns 0, or -1 with the first error; answers
 * that were there before it have been delivered. A refused dialogue (openai.h) is delivered as such, and the rest goes
 * on, unless none is answered: that is an error. Ctrl-C: ERR_STOP. */
int openai_many(struct openai *a, const struct openai_ask *asks, int n, int parallel,
                int (*each)(int i, const struct openai_reply *r, void *ctx, struct err *e), void *ctx, struct err *e);

#endif
