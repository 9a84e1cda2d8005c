/* diagnose.h - where is a model weak, by what its tasks really compute? Each reference is run once and the aten
 * operators that it calls are filed under families; a benchmark's verdicts then give rates by family, and the rates
 * give weights with which 'synth' draws more of what is weak. */
#ifndef MC_SYNTH_DIAGNOSE_H
#define MC_SYNTH_DIAGNOSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The family of a reference that calls these ({"relu":1,"mm":2}): the rarest that one of them belongs to, "elementwise"
 * where none does, "plumbing" where only views and copies are called. */
const char *diagnose_family(const json_t *operators);

/* Tasks as {name: code}: the .py files of a folder, or a prompts.jsonl. NULL: *e says why. */
json_t *diagnose_tasks(const char *path, struct err *e);

/* Runs each task's reference in the jail, with 'timeout_s' seconds for each. OUT/traced.jsonl keeps answers by the
 * task's text: a stopped run continues. New: {name: family}; tasks that do not run are in *ret_broken, {name: why}. */
json_t *diagnose_trace(const json_t *tasks, const char *out, double timeout_s, bool no_jail, json_t **ret_broken,
                       struct err *e);

/* n names, as many of each family as there are, families in turn. New array. */
json_t *diagnose_balanced(const json_t *families, int n);

/* What verdicts of these tasks are known by: {name: hashes}, of the text alone, and with the sidecar that the folder
 * has of it (NULL: the tasks are of no folder). New. */
json_t *diagnose_marks(const json_t *tasks, const char *folder);

/* Of the first turns in RUN/verdicts.jsonl, by family: {"samples","compile_rate","correct","speedup" (median over
 * eager, of what passed; null where nothing was timed),"weight"}. Verdicts that say nothing of the program are left
 * out, and so are those of other tasks of the same names (marks; NULL: not looked at), which is said. weight:
 * (1 - c) / mean of it, within 1/4 to 4, where c is (passed + 1) / (samples + 2). */
json_t *diagnose_rates(const json_t *families, const json_t *marks, const char *run, struct err *e);

/* The weights by the registry's families (op.h), as 'synth --family-weights' reads them: {"convolution":1.8,..}. */
json_t *diagnose_weights(const json_t *rates);

/* Such a file. NULL with ERR_INPUT for a family that the registry lacks, or a weight outside of 1/100 to 100. */
json_t *diagnose_weights_read(const char *path, struct err *e);

/* Writes lines of prompts.jsonl, at most n of them (0: all), drawn without replacement by their families' weights:
 * weak families come first (Efraimidis and Spirakis 2006: order by u^(1/w)). */
int diagnose_prompts(const char *prompts, const json_t *families, const json_t *rates, uint64_t seed, int n,
                     const char *out, struct err *e);

#endif
