/* spares.h - processes of the judge's own side that have served a task and may serve another one. To make one costs
 * seconds on a device: its context, libraries, the first launch of each kernel. Each has ended its task and says that
 * nothing of it is left (runner/clean.py). No candidate's code was in any of them. Inside src/eval only. */
#ifndef MC_EVAL_SERVER_SPARES_H
#define MC_EVAL_SERVER_SPARES_H

#include <stdbool.h>
#include <stddef.h>

struct child;
struct judge_kept;
struct server_child;

#define SPARES 8 /* of a backend: as many as references are made side by side */

struct spares {
    struct spare {
        struct child *child;
        const char *role; /* of runner/main.py; static text */
        bool published;   /* as server_child's */
    } each[SPARES];       /* most recent last */
    size_t n;
};

/* One of that role and policy for *ret, which is the caller's then. False: there is none. */
bool spares_take(struct judge_kept *k, const struct server_child *c, struct child **ret);
/* Asks the child, whose caller is done with it, what its task has left. It is kept where that is nothing, else it is
 * ended; *child is gone either way. */
void spares_give(struct judge_kept *k, const struct server_child *c, struct child *child);
/* The most recent 'most' stay, and later ones are kept as before. */
void spares_fit(struct judge_kept *k, size_t most);
size_t spares_count(struct judge_kept *k);
/* Ends a child of the judge's own, and waits. Its output goes to the log. */
void spares_end(struct child *child, const char *role);

#endif
