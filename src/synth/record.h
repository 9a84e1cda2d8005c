/* record.h - the training record: one JSON object a line, the same bytes for the same seed.
 *
 *   {"id":"chain-3f2a90c1d2e4b567-0-thread",        unique in the corpus
 *    "kind":"generate",                             or "repair", or "knowledge" (knowledge.h: id, kind,
 *                                                   messages, task.ops, provenance, split only)
 *    "messages":[{"role":"user","content":..},..],  ends with the assistant's answer; repair has four messages:
 *                                                   task, broken program, feedback, fixed program
 *    "task":{"name":"chain_0017","code":..,         code: KernelBench format
 *            "graph":"x | mul_s(0.5) tanh",         readable; constants and inputs included
 *            "ops":["mul_s","tanh"],"families":["chain"],"graph_hash":"3f2a90c1d2e4b567",
 *            "inputs":[{"shape":[6,37],"dtype":"float32","stride":[37,1]}]},
 *    "kernel":{"lang":"cuda" or "musa","code":..,"strategy":"thread","schedule":{"block":256}},
 *    "verdict":{..},                                musacoder.verdict/1 of 'code' without times; repair: also
 *                                                   "broken_verdict"; null with --no-verify
 *    "provenance":{"generator":"musacoder-synth/1","version":..,"seed":1,"parent":null,"mutations":[]},
 *    "split":"train"}                               or "heldout"
 *
 * prompts.jsonl holds RL prompts with verl's and TRL's columns, training side only, of graphs that train.jsonl does not
 * answer (with --prompts 0: the training tasks themselves):
 *   {"data_source":"musacoder-synth/1","prompt":[{"role":"user","content":..}],"ability":"cuda-kernel",
 *    "reward_model":{"style":"rule","ground_truth":"tasks/train/chain_0017.py"},
 *    "extra_info":{"split":"train","index":17,"name":"chain_0017","task_code":..,"families":[..],"graph_hash":..}}
 *
 * Files in the output folder: train.jsonl heldout.jsonl prompts.jsonl rejected.jsonl stats.json tasks/train/NAME.py
 * tasks/heldout/NAME.py. A task is held out by its graph's hash alone (graph.h), whatever the seed, so no corpus
 * made by this generator trains on another one's held-out graphs. */
#ifndef MC_SYNTH_RECORD_H
#define MC_SYNTH_RECORD_H

#include <jansson.h>

#include "synth/plan.h"

#define SYNTH_GENERATOR "musacoder-synth/1"

/* A mutated program of a verified one, and what the judge said about both. Borrowed. */
struct repair {
    const char *mutation, *code;
    int round; /* how often this program was broken before */
    const json_t *broken_verdict, *verdict;
};

/* All return new values; verdict may be NULL (not verified). */
json_t *record_generate(const struct plan_task *t, const struct plan_program *q, const struct plan_options *o,
                        const json_t *verdict);
json_t *record_repair(const struct plan_task *t, const struct plan_program *q, const struct plan_options *o,
                      const struct repair *x);
json_t *record_rl_prompt(const struct plan_task *t, const struct plan_options *o, int index);
json_t *record_inputs(const struct graph *g);
char *record_prompt(const struct plan_task *t, const struct plan_options *o); /* caller frees */
/* A copy without what differs from run to run: times, cache hits, the machine. */
json_t *record_stable_verdict(const json_t *verdict);

#endif
