/* drawer.h - where rollouts are drawn: a row of a table. "own" is the sampler, on this model's weights; "openai" is any
 * OpenAI-compatible server that takes a prompt as ids and returns token ids and their log-probs (vLLM, SGLang's fork of
 * it, 'musacoder serve --model'). Behaviour log-probs are the engine's own. */
#ifndef MC_TRAIN_DRAWER_H
#define MC_TRAIN_DRAWER_H

#include "base/err.h"
#include "nn/model.h"
#include "nn/sampler.h"

struct drawer;

enum drawer_sync { DRAWER_SYNC_NONE, DRAWER_SYNC_DISK };
int drawer_sync_of(const char *name, enum drawer_sync *ret, struct err *e);

struct drawer_config {
    const char *engine;       /* "own" (NULL too), "openai" */
    struct model *learner;    /* whose weights draw; must outlive the drawer */
    bool apart;               /* it learns while others draw: "own" draws with a copy */
    const char *device, *dtype;
    /* openai */
    const char *url, *model;  /* model: as the server calls it; NULL: its first */
    int parallel;             /* requests at a time; 0: 64 */
    enum drawer_sync sync;    /* none: the server keeps the weights that it has */
    const char *folder;       /* disk: weights are saved there, and the server is told to load them */
};

int drawer_open(const struct drawer_config *c, struct drawer **ret, struct err *e);
struct drawer *drawer_own(struct model *m); /* the plain case: m itself */
void drawer_close(struct drawer *d); /* NULL is fine */

/* As sampler_run. A stop id that ended a sample may be missing at its end where a server leaves it out. */
int drawer_run(struct drawer *d, const struct sampler_options *o, const struct sample_request *reqs, int n,
               struct sample **ret, size_t *ret_n, struct err *e);
/* What is drawn from now on is drawn by the learner's weights as they are now. Nothing may be drawn meanwhile. */
int drawer_renew(struct drawer *d, struct err *e);
bool drawer_follows(const struct drawer *d); /* false: its weights are its own affair */

#endif
