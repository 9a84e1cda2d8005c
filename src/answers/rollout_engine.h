/* rollout_engine.h - where rollouts are drawn: a row of a table. "own" is the sampler, on this model's weights;
 * "openai" is any OpenAI-compatible server that takes a prompt as ids and returns token ids and their log-probs
 * (vLLM, SGLang's fork of it, 'musacoder serve --model'). Behaviour log-probs are the engine's own. */
#ifndef MC_ANSWERS_ROLLOUT_ENGINE_H
#define MC_ANSWERS_ROLLOUT_ENGINE_H

#include "base/err.h"
#include "nn/model.h"
#include "nn/sampler.h"

struct rollout_engine;

enum rollout_engine_sync { ROLLOUT_ENGINE_SYNC_NONE, ROLLOUT_ENGINE_SYNC_DISK };
int rollout_engine_sync_of(const char *name, enum rollout_engine_sync *ret, struct err *e);

struct rollout_engine_config {
    const char *engine;       /* "own" (NULL too), "openai" */
    struct model *learner;    /* whose weights draw; must outlive the rollout engine */
    bool apart;               /* it learns while others draw: "own" draws with a copy */
    const char *device, *dtype;
    /* openai */
    const char *url, *model;  /* model: as the server calls it; NULL: its first */
    int parallel;             /* requests at a time; 0: 64 */
    enum rollout_engine_sync sync; /* none: the server keeps the weights that it has */
    const char *folder;       /* disk: weights are saved there, and the server is told to load them */
};

int rollout_engine_open(const struct rollout_engine_config *c, struct rollout_engine **ret, struct err *e);
struct rollout_engine *rollout_engine_own(struct model *m); /* the plain case: m itself */
void rollout_engine_close(struct rollout_engine *d); /* NULL is fine */

/* As sampler_run. A stop id that ended a sample may be missing at its end where a server leaves it out. */
int rollout_engine_run(struct rollout_engine *d, const struct sampler_options *o, const struct sample_request *reqs,
                       int n, struct sample **ret, size_t *ret_n, struct err *e);
/* What is drawn from now on is drawn by the learner's weights as they are now. Nothing may be drawn meanwhile. */
int rollout_engine_renew(struct rollout_engine *d, struct err *e);
bool rollout_engine_follows(const struct rollout_engine *d); /* false: its weights are its own affair */

#endif
