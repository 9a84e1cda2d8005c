/* training_record.h - the training record: one JSON object a line, the same bytes for the same seed and verdicts.
 *
 *   {"id":"generate-17-3f2a90c1d2e4b567",          unique in its corpus
 *    "kind":"generate",                             "reason", "shape", "knowledge", "repair", "review",
 *                                                   "rewrite"
 *    "messages":[{"role":"user","content":..},..],  ends with the assistant's answer; repair has four messages:
 *                                                   task, broken program, feedback; faulty line, why, program
 *    "task":{"name":"task_0017","code":..,          code: KernelBench format
 *            "ops":["relu","sum"],"families":["activation","reduction"],"graph_hash":"3f2a90c1d2e4b567",
 *            "inputs":[{"shape":[6,37],"dtype":"float32","stride":[37,1]}]},
 *    "kernel":{"lang":"cuda" or "musa","code":..,"strategy":"map:thread reduction:warp","fusion":"all","kernels":2},
 *    "verdict":{"status","category","backend"},     null where it was not verified; a corpus' repair also has
 *                                                   "broken_verdict", of the program with the bug
 *    "provenance":{..},"difficulty":5,"split":"train"}
 *
 * Of "synth --records" also "speed": null, or of kind "rewrite" {"source":"static" (cost.h) or "measured","slow_us",
 * "fast_us"}, and "kill":{"mutants","killed"}: the mutation-kill score of the task's inputs (triviality.h).
 *
 * prompts.jsonl holds RL prompts with verl's and TRL's columns, of tasks that train.jsonl does not answer:
 *   {"data_source":"musacoder-synth/2","prompt":[{"role":"user","content":..}],"ability":"cuda-kernel",
 *    "reward_model":{"style":"rule","ground_truth":"tasks/train/task_0017.py"},
 *    "extra_info":{"split":"train","index":17,"name":"task_0017","class":"known" or "taught","task_code":..,
 *                  "families":[..],"graph_hash":..}} */
#ifndef MC_SYNTH_TRAINING_RECORD_H
#define MC_SYNTH_TRAINING_RECORD_H

#include <jansson.h>

#include "synth/fuse.h"
#include "task/prompt.h"

#define SYNTH_GENERATOR "musacoder-synth/2"

/* How a corpus asks and in which language it answers. */
struct prompt_format {
    enum prompt_style style;
    bool musa;
    int wordings;  /* requests, questions, names and layouts come in so many ways (wording.h); 0: one */
    /* repairs show numbered lines and answer with those that change, where few do (task/repair_text.h) */
    bool edits;
    bool formulas; /* a program's first kernel stands below what each operator computes, as comments */
};

/* All return new values. hash: 16 hexadecimal digits; name may be NULL. */
json_t *record_inputs(const struct dag *g);
json_t *record_task(const struct dag *g, const char *name, const char *code, const char *hash);
json_t *record_brief(const json_t *verdict); /* status, category, backend: what does not differ from run to run */

char *record_strategy(const struct kernels *k); /* "map:thread reduction:warp"; caller frees */
json_t *record_kernel(const struct kernels *k, enum fusion level, const char *code, const struct prompt_format *v);

/* Dialogues. task and program are Python files. */
json_t *record_generate(const struct prompt_format *v, const json_t *inputs, const char *task, const char *reason,
                        const char *program);
/* why: a clause, or NULL (task/repair_text.h). */
json_t *record_repair(const struct prompt_format *v, const char *task, const char *broken, const char *feedback,
                      const char *why, const char *program);
/* A slow program, how slow it is, what makes it so, a faster one. */
json_t *record_rewrite(const char *task, const char *slow, const char *speed, const char *answer, const char *fast);
/* The program in the format's dialect; takes it over. NULL: it cannot be said there. */
char *record_in_dialect(const struct prompt_format *v, char *program);
/* "Is this program right for the task?" */
json_t *record_review(const char *task, const char *program, const char *answer);

#endif
